# Every command that people and CI run. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench soak lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := requirements.lock

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP)  ## make .venv and install everything into it, at the locked versions

$(STAMP): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Contrada needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12 ..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked packages into $(VENV) (PySpark is 450 MB: this takes a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)  ## the main job: match generated storms and vehicles on a local Spark, and draw the result
	@$(BIN)/contrada demo

test: $(STAMP)  ## the whole test suite, in parallel
	@$(BIN)/python -m pytest -n 2

check: $(STAMP)  ## format, lint, types, import order, spelling
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/codespell

format: $(STAMP)  ## rewrite the code as `make check` wants it
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed against bare Shapely scripts, as ratios in one run
	@$(BIN)/python benchmarks/points.py
	@$(BIN)/python benchmarks/crtree.py

soak: $(STAMP)  ## longer runs: more layers, and many new random cases against the exact oracle
	@$(BIN)/python -m pytest -n 2 -m soak --hypothesis-profile soak --timeout 3600

lock: $(STAMP)  ## resolve the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade --extra dev pyproject.toml --output-file $(LOCK)

clean:  ## remove what the other targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis demo reproduce-* benchmarks/results
