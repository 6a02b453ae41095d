# `make demo` shows what plainrisk does; `make test` runs everything that guards it. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
BUILT := pyproject.toml setup.py $(wildcard src/plainrisk/_native/*.[ch])

# What depends on the compiled loops is tested a second time without them.
NUMPY_TOO := $(addprefix tests/,native bins form solve data models property)

.DEFAULT_GOAL := help
.PHONY: help demo test format lint types unit bench paper clean

help:
	@echo "make demo    fit, certify and explain models on built-in credit data (about a minute)"
	@echo "make test    format, lint, types, tests, doctests"
	@echo "make paper   reproduce the paper's tables and write docs/results (hours; PAPER=report writes the report alone)"
	@echo "make bench   time plainrisk beside its rivals (about an hour; BENCH=--quick for minutes)"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plainrisk needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras, so that the demo does not wait for the test tools.
$(VENV)/.installed-demo: $(BUILT) | $(BIN)/python
	@rm -f src/plainrisk/_native/*.so
	$(BIN)/python -m pip install --quiet --editable '.[cli,plot]'
	@touch $@

$(VENV)/.installed-dev: $(BUILT) | $(BIN)/python
	@rm -f src/plainrisk/_native/*.so
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
	PLAINRISK_KERNELS=numpy $(BIN)/python -m pytest -n 2 -q $(NUMPY_TOO)

# The rivals ask for much, so they live in an environment of their own. BENCH="--quick" and the like go to the runner.
$(BENCH_VENV)/.installed: $(BUILT)
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable '.[bench]'
	@touch $@

bench: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python -m benchmarks.run $(BENCH)

# What is in the store already is not fitted again. PAPER="run paper" and the like go to the runner.
paper: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python -m paper $(PAPER)

clean:
	rm -rf $(VENV) $(BENCH_VENV) build src/*.egg-info src/plainrisk/_native/*.so demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
