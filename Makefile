# One command for each need; `make` alone lists them. The environment is made once, in .venv, and made again when
# pyproject.toml, constraints.txt or the compiled part change.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test cover check slow bench study format clean

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install -c constraints.txt
BASE := .venv/.installed
DEV := .venv/.installed-dev
# Two test processes share the cores, so each computes on one thread.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

help: ## show this list
	@echo 'Regard: train, understand and serve attention models on the machine you have.'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'The first command installs everything into .venv (several minutes, once). Then also:'
	@echo '  .venv/bin/regard --help'

demo: $(BASE) ## train a model that reads dates in dozens of languages, score it, draw what it looks at (makes demo/ afresh)
	@rm -rf demo
	@$(BIN)/regard demo --out demo

test: $(DEV) ## run the test suite
	@$(PYTEST)

# Counting lines makes the suite half as slow again.
cover: $(DEV) ## run the test suite and count; at least 90 % of the lines must be covered
	@$(PYTEST) --cov=regard --cov-report=term:skip-covered --cov-fail-under=90

check: $(DEV) ## all that a commit must pass: format, lint, types, tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(PYTEST)

slow: $(DEV) ## run the tests that take minutes
	@$(BIN)/python -m pytest -m slow --timeout=3600

bench: $(DEV) ## measure speed beside Eole, JoeyNMT, transformers, CTranslate2 (needs REGARD_DATA; results/bench.json)
	@$(BIN)/python -m benchmarks.run

# Studies that share a folder share rows. Two rows at a time, a core each. Table 3 has equal steps, as in the paper.
ROW := --budget 12m --at-once 2
study: $(DEV) ## run the lectures' tables again: 55 rows, some six hours, goes on where it stopped (needs REGARD_DATA; results/study-*)
	@$(BIN)/regard study table2 --out .bench/lineup $(ROW)
	@$(BIN)/regard study bottleneck --out .bench/lineup $(ROW)
	@$(BIN)/regard study gradients --out .bench/lineup $(ROW)
	@$(BIN)/regard study table3 --out .bench/table3 --steps 700 --at-once 2
	@$(BIN)/regard study levers --out .bench/one-by-one $(ROW)
	@cp .bench/lineup/study-* .bench/table3/study-* .bench/one-by-one/study-* results/

format: $(DEV) ## format the code and repair what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## back to a fresh checkout: remove .venv, caches and demo/ (models/ and .bench/ stay)
	@rm -rf .venv demo build dist regard.egg-info regard/native/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	@find regard tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# torch goes first, by its exact version: a looser request may fetch gigabytes for a GPU that is not there.
$(BASE): pyproject.toml constraints.txt setup.py $(wildcard regard/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "regard: $(PYTHON) is $$($(PYTHON) --version 2>&1); Python 3.11 or newer is needed;" \
	    "name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "regard: $(PYTHON) cannot make virtual environments; install its venv package" \
	    "(on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@echo 'Installing PyTorch and the other libraries into .venv (several minutes, once) ...'
	@$(PIP) torch numpy
	@$(PIP) -e .
	@touch $@

$(DEV): $(BASE)
	@echo 'Installing the test and lint tools into .venv ...'
	@$(PIP) -e '.[dev]'
	@touch $@
