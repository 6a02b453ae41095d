# `make demo` shows what plainrisk does; `make test` runs everything that guards it. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
DOCS_VENV := .venv-docs
# The extras that tests need; .ci/run adds those under other licenses.
DEV ?= dev
BUILT := pyproject.toml setup.py src/plainrisk/_version.py $(wildcard src/plainrisk/_native/*.[ch])

# What depends on linear algebra is tested a second time under other kernels of OpenBLAS, what depends on the compiled
# kernels a second time without them, and with them under sanitizers by `make sanitize`.
OTHER_BLAS_TOO := $(addprefix tests/,solve fit) $(addprefix tests/models/test_,arm.py hard_cases.py nnlr.py two_layer.py) \
  $(addprefix tests/property/test_,invariances.py monotone_exactly.py rules_exactly.py)
NUMPY_TOO := $(addprefix tests/,native bins form)
SANITIZED := build/sanitized
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g

.DEFAULT_GOAL := help
.PHONY: help demo docs page images tools quick test format lint types unit pythons coverage mutants sanitize fuzz bench bench-spark orientation paper clean

help:
	@echo "make demo        fit, certify and explain models on built-in credit data (about a minute)"
	@echo "make quick       format, lint, house rules and the core tests, in under two minutes"
	@echo "make docs        build the site into build/site; warnings are errors (two minutes)"
	@echo "make test        format, lint, types, tests, doctests; what is not installed is skipped"
	@echo "make pythons     the tests of scoring on the built wheel, under every other Python that is found"
	@echo "make coverage    lines and branches that tests reach (longer than make test)"
	@echo "make mutants     change forms, certificates, reasons and decisions, and see what no test notices (hours)"
	@echo "make tools       install what tests run beside Python (Chromium; with CI set, the engines of exports too)"
	@echo "make fuzz        damage files and requests until you stop it (FUZZ='--seconds 600' for ten minutes each)"
	@echo "make page        build the decision page into the package (needs Node 20.19 or newer)"
	@echo "make sanitize    the compiled kernels under the address and undefined-behavior sanitizers"
	@echo "make orientation count lines, files, constants and the way of a fit for docs/architecture.md"
	@echo "make paper       reproduce the paper's tables and write docs/results (hours; PAPER='table german' for one column)"
	@echo "make bench-spark time fits to a Spark table (SPARK='--rows 200000' for minutes)"
	@echo "make bench       time plainrisk beside its rivals (half an hour; BENCH=--quick for minutes)"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plainrisk needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras, so that the demo waits neither for the test tools nor for the lab.
$(VENV)/.installed-demo: $(BUILT) | $(BIN)/python
	@rm -f src/plainrisk/_native/*.so
	$(BIN)/python -m pip install --quiet --editable '.[cli,plot]'
	@touch $@

$(VENV)/.installed-dev: $(BUILT) lab/pyproject.toml | $(BIN)/python
	@rm -f src/plainrisk/_native/*.so
	$(BIN)/python -m pip install --quiet --editable '.[$(DEV)]' --editable lab
	@touch $@ $(VENV)/.installed-demo

demo: $(VENV)/.installed-demo
	$(BIN)/plainrisk demo
	@echo "To call plainrisk as above: . $(BIN)/activate"

# The built page is committed, so that nobody who uses Python needs Node; a test says if it is not that of page/.
page:
	cd page && npm ci && npm run build

# The pictures of the page in docs/images.
images: $(VENV)/.installed-dev tools
	$(BIN)/python scripts/images.py

# Programs that tests run beside Python: Chromium, and in CI the engines of exports.
tools:
	@sh scripts/tools.sh

# What most changes break first: the rules of the house, the form, a fit, explanations, commands.
QUICK := tests/test_house_rules.py tests/golden tests/schema/test_schema.py tests/fit/test_training.py tests/models/test_arm.py \
  $(addprefix tests/form/test_,form.py levels.py links.py model_file.py) \
  $(addprefix tests/explain/test_,certify.py contributions.py reasons.py) \
  $(addprefix tests/cli/test_cli_,explain.py fit.py schema.py score.py)

quick: format lint
	$(BIN)/python -m pytest -n 2 -q $(QUICK)

test: format lint types unit

format: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q
	core=$$($(BIN)/python scripts/other_blas.py); if [ -n "$$core" ]; then \
	  echo "again with OPENBLAS_CORETYPE=$$core"; \
	  OPENBLAS_CORETYPE=$$core $(BIN)/python -m pytest -n 2 -q $(OTHER_BLAS_TOO); fi
	PLAINRISK_KERNELS=numpy $(BIN)/python -m pytest -n 2 -q $(NUMPY_TOO)

# On an installed wheel, without extras; the last Python gets a wheel that was built without a compiler.
pythons: $(BIN)/python
	$(BIN)/python scripts/other_pythons.py

# Lines and branches of src that tests reach, those in processes of their own too; files below 95% are shown.
coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet 'coverage>=7.10'
	mkdir -p build && rm -f build/coverage*
	COVERAGE_FILE=$(CURDIR)/build/coverage $(BIN)/python -m coverage run -m pytest -n 2 --dist loadgroup -q
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

# MUTANTS="--only links --changes 10" and the like go to the runner.
mutants: $(VENV)/.installed-dev
	$(BIN)/python scripts/mutants.py $(MUTANTS)

# A build apart from the installed one. The kernels are optional at installation, so see first that they are there.
sanitize: $(VENV)/.installed-dev
	rm -rf $(SANITIZED)
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python setup.py -q build -b $(SANITIZED) --build-lib $(SANITIZED)/lib
	export PYTHONPATH=$(SANITIZED)/lib ASAN_OPTIONS=detect_leaks=0; \
	export LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)"; \
	$(BIN)/python -c 'from plainrisk._native import COMPILED, __file__ as f; assert COMPILED and "$(SANITIZED)" in f, f' && \
	$(BIN)/python -m pytest -n 2 -q tests/native tests/bins tests/form

# The programs of the gallery and the notebooks are run, so the site has an environment of its own.
$(DOCS_VENV)/.installed: $(BUILT)
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(DOCS_VENV)/bin/python -m pip install --quiet --editable '.[docs]'
	@touch $@

docs: $(DOCS_VENV)/.installed
	$(DOCS_VENV)/bin/python -m sphinx -W --keep-going -q -b html docs build/site
	$(DOCS_VENV)/bin/python scripts/check_site.py build/site

# The rivals ask for much, so they live in an environment of their own. BENCH="--quick" and the like go to the runner.
$(BENCH_VENV)/.installed: $(BUILT) lab/pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable '.[bench]' --editable lab
	@touch $@

bench: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python -m benchmarks.run $(BENCH)

# Needs Java 17 and the extra spark. SPARK="--rows 200000" and the like go to the runner.
bench-spark: $(VENV)/.installed-dev
	$(BIN)/python scripts/spark_bench.py $(SPARK)

# FUZZ="--seconds 600 --only model --engine atheris" and the like go to the runner.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python scripts/fuzz.py $(FUZZ)

# Counts the house: lines, files, constants, the way of a fit; the table stands in docs/architecture.md.
orientation: $(VENV)/.installed-dev
	$(BIN)/python scripts/orientation.py

# What is in the store already is not fitted again. PAPER="run paper" and the like go to the runner.
paper: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python -m plainrisk_lab.paper $(PAPER)

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(DOCS_VENV) build docs/gallery docs/reference/generated src/*.egg-info lab/src/*.egg-info src/plainrisk/_native/*.so demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
