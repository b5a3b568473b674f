# Taintkeeper: `make demo` shows the main job, `make test` runs every check. Both need Python >= 3.11 and make, nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Which control plane: embedded (default), real (built from Go modules), kubeconfig (the current context, asks first).
CLUSTER ?= embedded
PYTEST_ARGS ?=
OUTAGE_ARGS ?=
CRASH_ARGS ?=
# What is measured: wave, lateness, scale, storm, growth; and how (--help tells).
BENCH ?= wave
BENCH_ARGS ?=
export PYTHONPATH := hack

.DEFAULT_GOAL := help
.PHONY: help demo outage rivals crash e2e bench test lint types contract unit cluster format lock real-cluster real-cluster-build image-proof clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Taintkeeper needs Python >= 3.11, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(VENV)/.ready ## Watch the operator do its job (CLUSTER=embedded|real|kubeconfig)
	@$(BIN)/python -m demo --cluster $(CLUSTER)

outage: $(VENV)/.ready ## Let nodes, zones, the API server and the operator fail on a real control plane (OUTAGE_ARGS=--short)
	@$(BIN)/python -m outage $(OUTAGE_ARGS)

rivals: $(VENV)/.ready ## Run for two minutes beside kube-controller-manager's own controllers
	@$(BIN)/python -m rivals

crash: $(VENV)/.ready ## Kill the operator 50 times while pods count; the API server's audit log judges (CRASH_ARGS=--kills=5)
	@$(BIN)/python -m crash $(CRASH_ARGS)

e2e: $(VENV)/.ready ## Run Kubernetes' own end-to-end tests of taint based eviction, 11 minutes (needs Go)
	@$(BIN)/python -m e2e

bench: $(VENV)/.ready ## Measure beside kube-controller-manager (BENCH=wave|lateness|scale|storm|growth, BENCH_ARGS=--help)
	@$(BIN)/python -m bench.$(BENCH) $(BENCH_ARGS)

test: lint types contract $(VENV)/.ready ## Lint, types, import contract, unit tests, cluster tests
	$(BIN)/python -m testbed.real build --if-possible
	$(BIN)/pytest --cluster both $(PYTEST_ARGS)

lint: $(VENV)/.ready ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready ## Check types
	$(BIN)/mypy

contract: $(VENV)/.ready ## Check that the core stays free of I/O
	$(BIN)/lint-imports

unit: $(VENV)/.ready ## Run the unit tests alone
	$(BIN)/pytest tests/unit $(PYTEST_ARGS)

cluster: $(VENV)/.ready ## Run the cluster tests alone (CLUSTER=embedded|real|both)
	$(BIN)/pytest tests/cluster --cluster $(CLUSTER) $(PYTEST_ARGS)

format: $(VENV)/.ready ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## Lock the dependencies anew, with hashes (needs uv)
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements/runtime.txt
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --extra dev -c requirements/runtime.txt pyproject.toml -o requirements/dev.txt
	echo hatchling | uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header -c requirements/dev.txt - -o requirements/build.txt

real-cluster-build: $(VENV)/.ready ## Build etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok (needs Go)
	$(BIN)/python -m testbed.real build

real-cluster: $(VENV)/.ready ## Start a real control plane and print its kubeconfig; Ctrl-C ends it
	$(BIN)/python -m testbed.real run

image-proof: $(VENV)/.ready ## Carry out the Dockerfile's steps without a container engine (needs root)
	$(BIN)/python -m image

clean: ## Remove what was made here
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
