# `make demo` shows what plainrisk does; `make test` runs everything that guards it. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test format lint types unit bench clean

help:
	@echo "make demo    fit, certify and explain models on built-in credit data (about a minute)"
	@echo "make test    format, lint, types, tests, doctests"
	@echo "make bench   time plainrisk beside its rivals"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plainrisk needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras, so that the demo does not wait for the test tools.
$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[cli,plot]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed-demo

demo: $(VENV)/.installed-demo
	$(BIN)/plainrisk demo

test: format lint types unit

format: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -q

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
