# Python and make suffice. `make run` first; `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export MEMORY_PIPELINES_HOME ?= $(CURDIR)/.memory_pipelines
export DAGSTER_HOME ?= $(MEMORY_PIPELINES_HOME)/dagster
export PYTHONPATH := $(CURDIR)
PORT ?= 3000
# one file, one worker: each has embedded servers of its own
WORKERS := -n logical --maxprocesses 4 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help run ui jobs test test-servers lint check format bench down clean lock

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed, this is %d.%d" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "creating $(VENV) from requirements.lock (about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: instance
instance:
	@mkdir -p "$(DAGSTER_HOME)" && cp deploy/local/dagster.yaml "$(DAGSTER_HOME)/dagster.yaml"

run: $(VENV)/installed instance ## set up, run the main job on the sample logs, recall
	@$(BIN)/python -m jobs.sample_run

ui: $(VENV)/installed instance ## the Dagster UI on the same instance, http://127.0.0.1:3000
	@$(BIN)/memory-pipelines local up
	@$(BIN)/dagster dev --host 127.0.0.1 --port $(PORT) -w workspace.yaml

jobs: $(VENV)/installed instance ## land what is in the inbox, cut, derive and publish what waits
	@$(BIN)/python -m jobs.run_waiting

test: $(VENV)/installed ## everything, with the embedded servers
	@$(BIN)/python -m pytest $(WORKERS)

test-servers: $(VENV)/installed ## the same contracts on real servers, which are fetched into .servers (see CONTRIBUTING.md)
	@PYTHONPATH="$(CURDIR):$(CURDIR)/tests" $(BIN)/python -m servers.together
	@$(BIN)/python -m pytest tests/contract tests/orchestration -m servers

lint: $(VENV)/installed ## format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: lint ## the quick loop: lint and the quick unit tests
	@$(BIN)/python -m pytest $(WORKERS) tests/unit -m 'not slow'

format: $(VENV)/installed ## format and sort imports
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/installed ## turns per second of steps 1-6, as a library and under Dagster
	@$(BIN)/python -m benchmarks.throughput

down: ## stop the embedded servers of this folder
	@$(BIN)/memory-pipelines local down

clean: ## stop the servers and remove all local state
	@test ! -x $(BIN)/memory-pipelines || $(BIN)/memory-pipelines local down
	@rm -rf "$(MEMORY_PIPELINES_HOME)"

lock: ## resolve requirements.lock anew (needs uv)
	@uv pip compile --python-version 3.11 --all-extras --generate-hashes --no-annotate --no-header --no-emit-index-url --no-strip-extras \
	  pyproject.toml -o requirements.lock
