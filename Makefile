# `make demo` shows the whole of Headway once; `make test` proves it. Everything else is for those who change it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced
UV := $(shell command -v uv 2>/dev/null || echo $(VENV)-uv/bin/uv)

.PHONY: help demo test check fix docs bench lint types imports examples lock setup clients clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)-uv/bin/uv:
	@echo "uv is missing: installing it with pip into $(VENV)-uv"
	@python3 -m venv $(VENV)-uv && $(VENV)-uv/bin/pip install --quiet uv

$(STAMP): requirements.lock pyproject.toml | $(filter $(VENV)-uv/bin/uv,$(UV))
	@test -x $(BIN)/python || $(UV) venv --quiet $(VENV)
	@echo "installing the locked packages into $(VENV)"
	@$(UV) pip sync --quiet --require-hashes --python $(BIN)/python requirements.lock
	@$(UV) pip install --quiet --no-deps --python $(BIN)/python --editable .
	@touch $@

setup: $(STAMP)  ## install everything, locked, into .venv

clients: $(STAMP)  ## add the agent frameworks that some tests run (heavy)
	@$(UV) pip install --quiet --require-hashes --python $(BIN)/python --requirement requirements-clients.lock

demo: $(STAMP)  ## start two real replicas and the gateway, run an agent through it, explain its task
	@$(BIN)/headway demo

test: $(STAMP)  ## the whole test suite
	@$(BIN)/pytest

lint: $(STAMP)
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(STAMP)
	@$(BIN)/pyright

imports: $(STAMP)
	@$(BIN)/lint-imports --no-logo

examples: $(STAMP)
	@$(BIN)/pytest tests/docs

check: lint types imports  ## format, lint, types, imports, tests with coverage, docs examples
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report --fail-under=90

fix: $(STAMP)  ## format and mend what can be mended
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

docs: examples  ## run every example in README and docs

bench: $(STAMP)  ## the figures, as ratios measured in one run
	@$(BIN)/python benchmarks/run.py

lock: | $(filter $(VENV)-uv/bin/uv,$(UV))  ## resolve the dependencies anew
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --all-extras --group dev \
		--no-header --no-annotate --no-emit-index-url --upgrade pyproject.toml --output-file requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --group clients \
		--constraint requirements.lock --no-header --no-annotate --no-emit-index-url --upgrade --output-file requirements-clients.lock

clean:  ## remove everything that make made
	@rm -rf $(VENV) $(VENV)-uv build dist out .pytest_cache .ruff_cache .hypothesis .coverage*
