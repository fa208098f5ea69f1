# Everything that is done with this repository. `make help` explains each target.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
UV_VERSION := 0.13.8
PACKAGES := shared services/watcher services/scheduler services/actuator services/console deploy/local
LOCKS := requirements-dev.lock $(addsuffix /requirements.lock,services/watcher services/scheduler services/actuator services/console)
SOURCES := shared services deploy/local tests

##@ Everyday
.PHONY: help
help: ## Explain every target
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.ready ## Make .venv with every package and tool, from the hashed lock

$(VENV)/.ready: requirements-dev.lock $(addsuffix /pyproject.toml,$(PACKAGES))
	@echo "» setting up $(VENV) (about 20 s at first)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation $(addprefix -e ,$(PACKAGES))
	@touch $@

.PHONY: demo
demo: setup ## Watch Spark, Ray and a Job of three tenants grow, shrink and share a cluster
	@$(BIN)/python -m sluice_local.demo

.PHONY: demo-real
demo-real: setup ## The same with containers that really run and compute, on a real node (Linux, root)
	@$(BIN)/python -m sluice_local.demo.real

.PHONY: up
up: setup ## Start the embedded stack and all services
	@$(BIN)/sluice-local up --services

.PHONY: down
down: setup ## Stop them; their data stays
	@$(BIN)/sluice-local down

.PHONY: node
node: setup ## Add a real node, whose pods really run, to the stack that is up (Linux, root)
	@$(BIN)/sluice-local node up

.PHONY: node-down
node-down: setup ## End it and its pods, and leave nothing of it on this machine
	@$(BIN)/sluice-local node down

.PHONY: status
status: setup ## Show what runs, where, and whether it is ready
	@$(BIN)/sluice-local status

.PHONY: logs
logs: setup ## Follow the logs of everything
	@$(BIN)/sluice-local logs -f

.PHONY: env
env: setup ## Print the exports that make kubectl, Kafka and Redis clients and sluice talk to the stack
	@$(BIN)/sluice-local env

.PHONY: doctor
doctor: ## Say what is missing on this machine and how to get it
	@PYTHONPATH=deploy/local:shared $$(test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON)) -m sluice_local doctor

##@ Checks
.PHONY: test
test: setup ## Run every test, on a real Kafka, Redis and API server
	@$(BIN)/sluice-local build --with kuberay,spark-operator,training-operator
	@$(BIN)/pytest tests --numprocesses 3 --durations 15

.PHONY: test-unit
test-unit: setup ## Run what needs no server: a minute or two
	@$(BIN)/pytest tests -m "not integration and not e2e and not slow" --hypothesis-profile quick

.PHONY: lint
lint: setup ## ruff, mypy (strict but for tests), the layers, and whether generated files are fresh
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy shared/sluice services/*/sluice_* deploy/local/sluice_local
	@$(BIN)/mypy --config-file tests/mypy.toml tests
	@$(BIN)/lint-imports --config pyproject.toml
	@$(BIN)/python -m sluice.generate --check
	@$(BIN)/python -m sluice_scheduler.simulator.schema --check

.PHONY: bench
bench: bench-core bench-pods bench-workloads ## Measure speed, memory and API writes, in a quarter of an hour

.PHONY: bench-pods
bench-pods: setup ## Measure bursts, single pods and contention beside a bare client, in one run
	@$(BIN)/sluice-local build
	@$(BIN)/python -m tests.bench

.PHONY: bench-workloads
bench-workloads: setup ## Measure 15,000 DynamicWorkloads on the embedded API server
	@$(BIN)/sluice-local build
	@$(BIN)/python -m tests.bench.workloads

.PHONY: bench-core
bench-core: setup ## Measure the core alone, and plot cost against size (docs/images/core-cost.png)
	@$(BIN)/python -u -m tests.bench.core --plot docs/images/core-cost.png

MINUTES ?= 60
.PHONY: soak-core
soak-core: setup ## Play random histories of the core for MINUTES=60, and keep what fails as a regression
	@PYTHONPATH=tests $(BIN)/python tests/property/soak.py --minutes $(MINUTES)

.PHONY: chaos
chaos: setup ## Bring faults about on real servers under load for MINUTES=60 (FAULT="redis": those alone), and check what comes of it
	@PYTHONPATH=tests:tests/integration:tests/e2e $(BIN)/python -u -m chaos --minutes $(MINUTES) $(if $(FAULT),--fault "$(FAULT)")

.PHONY: defect
defect: setup ## List the defects of docs/defects.md, or show NAME=a-name, or NAME=all
	@$(BIN)/python -m tests.defects $(NAME)

.PHONY: sim
sim: setup ## Run the whole system in one process, from SEEDS= seeds or for MINUTES=; SEED= repeats one
	@PYTHONPATH=tests PYTHONHASHSEED=0 $(BIN)/python -m simulation.system $(if $(SEED),--seed $(SEED)) \
	  $(if $(SEEDS),--seeds $(SEEDS)) $(if $(filter command line environment,$(origin MINUTES)),--minutes $(MINUTES))

##@ Containers
ENGINE := deploy/compose/docker-engine.sh
COMPOSE = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

.PHONY: images
images: ## Build an image per service, and those of the stack under them
	@$(ENGINE) up
	@deploy/compose/images.sh $(COMPOSE)

.PHONY: compose-up
compose-up: images ## Start all of it in containers, on ports of 127.0.0.1 (docs/compose.md)
	@$(COMPOSE) up --detach

.PHONY: compose-down
compose-down: ## Stop and remove the containers; their data stays
	@$(COMPOSE) down

.PHONY: compose-test
compose-test: setup ## Build and run all of it in containers, and send gated pods through
	@$(ENGINE) run $(MAKE) --no-print-directory compose-trial

.PHONY: compose-trial
compose-trial: images
	@$(BIN)/python -m tests.compose $(COMPOSE)

# What images are built with, and what those for the real node are made of.
OTHER_LOCKS := services/build.lock deploy/compose/kubernetes/go.lock deploy/local/images/spark.lock deploy/local/images/ray.lock
lock: $(OTHER_LOCKS)

$(OTHER_LOCKS): %.lock: %.in
	@$(MAKE) --no-print-directory LOCK_OF=$< LOCK_TO=$@ compile

##@ Maintenance
.PHONY: format
format: setup ## Format all Python
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

.PHONY: generate
generate: setup ## Write CRDs, JSON Schemas and AsyncAPI anew from the models
	@$(BIN)/python -m sluice.generate
	@$(BIN)/python -m sluice_scheduler.simulator.schema

# Never by way of files' times: in a fresh clone they mean nothing.
.PHONY: lock
lock: $(addprefix lock/,$(LOCKS)) ## Resolve the lock files anew

SERVICE_LOCKS := $(addprefix lock/,$(filter services/%,$(LOCKS)))
.PHONY: lock/requirements-dev.lock $(SERVICE_LOCKS)
lock/requirements-dev.lock:
	@$(MAKE) --no-print-directory LOCK_OF=pyproject.toml LOCK_TO=$(@:lock/%=%) LOCK_ARGS="--group dev" compile

$(SERVICE_LOCKS): lock/%/requirements.lock:
	@$(MAKE) --no-print-directory LOCK_OF=$*/pyproject.toml LOCK_TO=$(@:lock/%=%) compile

OWN := sluice sluice-watcher sluice-scheduler sluice-actuator sluice-console sluice-local
.PHONY: compile
compile:
	@test -x $(UV) || ($(PYTHON) -m venv $(VENV) && $(BIN)/pip install --quiet uv==$(UV_VERSION))
	@$(UV) pip compile --quiet --generate-hashes --no-header --no-emit-index-url --universal --python-version 3.11 \
	  $(addprefix --no-emit-package ,$(OWN)) $(LOCK_ARGS) $(LOCK_OF) --output-file $(LOCK_TO)
	@echo "» $(LOCK_TO)"
