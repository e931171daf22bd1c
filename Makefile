# The commands of a contributor; .ci/run checks the same and more. PYTHON chooses the interpreter of `make install`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help install check quick test docs

help: ## List these commands.
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

install: ## Make .venv, build the native module, install tools, tests and hooks.
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[dev,docs]'
	if [ -e .git ]; then $(BIN)/pre-commit install; fi

check: ## Style, format and types of Python and C++.
	$(BIN)/pre-commit run --all-files

quick: ## The tests that take seconds.
	$(BIN)/pytest -q -m quick -n auto

test: ## The default tests: five minutes on two cores.
	$(BIN)/pytest -q -n auto

docs: ## The site of docs/, in site/.
	$(BIN)/sphinx-build -q -W docs site
