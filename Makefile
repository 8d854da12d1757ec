# Every target first makes sure that the environment is complete; that takes no time when it is.
.DEFAULT_GOAL := help
.PHONY: help setup run cluster test test-all test-asyncio coverage fmt check bench fuzz audit sbom soak sim sim-proof mutants docs release clean

BIN := .venv/bin
# Spark takes the Java that setup found, which need not be the one on PATH.
WITH_JAVA := JAVA_HOME="$$(cat .venv/java-home)"
# Tests, demonstration and Spark start hundreds of interpreters: what one has compiled the next one finds.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo 'make setup     virtual environment, packages of the lock file, Java runtime, native codec'
	@echo 'make run       two clusters and a Spark pipeline between them, on real data'
	@echo '               INPUT=file.ndjson|file.csv KEY=column MESSAGES=n ONCE=1'
	@echo 'make cluster   three brokers on ZooKeeper and BookKeeper, one of them killed under load; the same variables'
	@echo '               (needs Maven once)'
	@echo 'make test      the test suite without what takes long'
	@echo 'make test-all  everything, also against a real Pulsar (needs Maven and a JDK)'
	@echo 'make test-asyncio  unit tests of broker, client and testing kit in the debug mode of asyncio'
	@echo 'make coverage  coverage of each module by its own unit test alone, and what has none; ARGS=tests/unit/rules'
	@echo 'make check     lint, format, sentences, types, import contracts'
	@echo 'make fmt       format and fix what can be fixed'
	@echo 'make bench     figures beside the last release and a real Pulsar on this machine'
	@echo 'make fuzz      hostile bytes into every parser, SECONDS_EACH=6 for each'
	@echo 'make docs      the documentation site, in build/site'
	@echo 'make release   sdist and wheels in dist/, each checked and installed; VERSION=x.y.z first sets the version'
	@echo 'make audit     known vulnerabilities of what the lock file names'
	@echo 'make sbom      dist/interpulse-VERSION.cdx.json: what a wheel with all extras installs'
	@echo 'make sim       seeds of the simulated world, SEEDS=1-500 JOBS=2; ARGS="--scenario single --log file"'
	@echo 'make sim-proof the seeds that each planted bug needs to be found in the simulated world; ARGS="--bug 7"'
	@echo 'make soak      the fault suite, the simulated world and fuzzing, repeated for SOAK_MINUTES (default 30)'
	@echo 'make mutants   changes of rules, log and lanes that their unit tests do not notice, MUTANTS=interpulse.rules.limits.*'

setup:
	@tools/setup.sh

# INPUT, KEY, MESSAGES and ONCE reach the demonstration as environment variables.
run: setup
	@$(WITH_JAVA) $(BIN)/python demo/two_clusters.py

# The same variables; the starters of ZooKeeper and BookKeeper are shared with the tests.
cluster: setup
	@PYTHONPATH="$$PWD$${PYTHONPATH:+:$$PYTHONPATH}" $(WITH_JAVA) $(BIN)/python demo/three_brokers.py

# Every worker has its own Spark session and its own real Pulsar; the tests of one file share them. Many tests wait for
# rounds, rates and time-outs of brokers: on two cores a third process uses what two leave idle. Files come in the order
# of tests/conftest.py, not by the number of their tests, which would keep the longest for the end.
WORKERS ?= 3
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: setup
	$(WITH_JAVA) $(BIN)/pytest -q -m 'not slow' $(PARALLEL) $(ARGS)

test-all: setup
	$(WITH_JAVA) $(BIN)/pytest -q $(PARALLEL) $(ARGS)

# The checks of this mode make every task several times as expensive: they run where the asynchronous code is, and in the
# loops of brokers that tests start, which is why it is a variable. What it logs of slow steps tells of the machine, and
# would stand among the lines that tests expect.
test-asyncio: setup
	PYTHONASYNCIODEBUG=1 $(BIN)/pytest -q -m 'not slow' --log-disable=asyncio $(PARALLEL) tests/unit/broker tests/unit/client tests/unit/testing $(ARGS)

# In one process, which knows at each line whose test runs.
coverage: setup
	$(WITH_JAVA) $(BIN)/python -m tools.own_coverage $(ARGS)

fmt: setup
	$(BIN)/ruff check --fix-only -q
	$(BIN)/ruff format

PROSE_PAGES := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md changes .github docs
# Openings of docstrings and words that docs/STYLE.md rules out; the page that lists them is left out.
OPENINGS := $(BIN)/codespell --dictionary tools/prose/openings.txt --regex '(?<=""")[A-Za-z]+' --skip '*_pb2*'
WORDS := $(BIN)/codespell --dictionary tools/prose/words.txt --skip '*_pb2*,docs/STYLE.md,docs/decisions/*'

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(OPENINGS) src
	$(WORDS) src $(PROSE_PAGES)
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/mypy
	$(BIN)/lint-imports

UV_RUN := $(BIN)/python -m uv run -q --frozen --all-extras

docs: setup
	NO_MKDOCS_2_WARNING=1 $(UV_RUN) --group docs mkdocs build --strict --quiet

VERSION ?=
release: setup
	@UV_RUN='$(UV_RUN) --group release' tools/release.sh $(VERSION)

bench: setup
	$(WITH_JAVA) $(BIN)/python -m benchmarks.end_to_end $(ARGS)

# Hours for all of them; MUTANTS='interpulse.rules.limits.*' takes those of one module. `mutmut browse` shows what survived.
MUTANTS ?=
MUTMUT := $(UV_RUN) --with 'mutmut>=3.8,<4' mutmut
mutants: setup
	$(MUTMUT) run --max-children $(WORKERS) $(MUTANTS)
	@$(MUTMUT) results | grep -v 'not checked' || true

SECONDS_EACH ?= 6
fuzz: setup
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS_EACH)

audit: setup
	@$(BIN)/python -m tools.audit

sbom: setup
	@$(BIN)/python -m tools.sbom

# Under one seed for the hashes of text, and one run in fifty a second time under another.
SEEDS ?= 1-500
JOBS ?= 2
sim: setup
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.play $(SEEDS) --jobs $(JOBS) --twice=50 $(ARGS)

# Renews the figures and the page of what is proven.
sim-proof: setup
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.prove --jobs $(JOBS) --figures tests/simulation/figures/plants.json $(ARGS)
	$(BIN)/python -m tools.generate_what_is_proven

SOAK_MINUTES ?= 30
soak: setup
	$(WITH_JAVA) tools/soak.sh "$(SOAK_MINUTES)"

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache mutants spark-warehouse
