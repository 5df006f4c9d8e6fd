# Everything one does with a clone of Baton. Each target does the set-up it needs, once, and again when a lock changes.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11, \
	$(shell command -v $(name) >/dev/null && $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
DEMO_READY := $(VENV)/.demo-ready
DEV_READY := $(VENV)/.dev-ready
PEERS := .baton/peers
CTRANSLATE2 := $(VENV)/whisper-ctranslate2/bin/whisper-ctranslate2
PEERS_PYTHON := restate-sdk==1.3.0,granian==2.8.9 dbos==3.4.0 absurd-sdk==0.5.1,absurdctl==0.5.1
NO_BROWSER := tests --ignore=tests/e2e --ignore=tests/chaos --ignore=tests/bench

##@ Use

demo: $(DEMO_READY) model ## everything on this machine; open the address it prints
	@exec $(PY) -m app.cli demo --end-with-parent

doctor: $(DEMO_READY) ## what is missing or unreachable, and what to do about it
	@$(PY) -m app.cli doctor

##@ Develop

dev: $(DEV_READY) model ## the demo, with web and workers started again after each change of the source
	@exec $(PY) -m app.cli demo --reload --end-with-parent

test: $(DEV_READY) model ## unit, integration and crash tests (real servers, no browser)
	@$(PY) -m pytest $(NO_BROWSER) -n 2

check: $(DEV_READY) ## lint, format, types, import contracts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/pyright
	@$(VENV)/bin/lint-imports

crash: $(DEV_READY) model ## die before and after every durable write, and recover; FULL=1 tries every pair of deaths
	@SCHEDULES=$${SCHEDULES:-1000} $(PY) -m pytest tests/crash tests/integration/test_signal_schedules.py

mutate: $(DEV_READY) ## take each guard out of each conditional write, and see the crash suite's checks notice
	@$(PY) -m tests.crash.mutate

chaos: $(DEV_READY) ## random kills, pauses and outages of real processes; SEED=7 repeats a run, CHAOS_MINUTES=60 soaks
	@$(PY) -m tests.chaos

bench: $(DEV_READY) ## the kernel on one workload beside other engines; OPTIONS="--json FILE", "--profile", "--help"
	@$(PY) -m tests.bench $(OPTIONS)

bench-peers: $(PY) ## install Restate, DBOS and Absurd for 'make bench' (from PyPI and npm; PostgreSQL is the system's)
	@test -x $(PEERS)/v/bin/python || $(PY) -m venv $(PEERS)/v
	@for peer in $(PEERS_PYTHON); do $(PEERS)/v/bin/pip install --quiet --disable-pip-version-check \
		'psycopg[binary]' psutil aiohttp $${peer//,/ } || echo "$$peer cannot be installed; 'make bench' goes without it"; done
	@npm install --prefix $(PEERS) --silent --no-fund --no-audit @restatedev/restate-server@1.7.12 || \
		echo "Restate's server cannot be installed; 'make bench' goes without it"
	@test -n "$$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null)" || echo "DBOS and Absurd need PostgreSQL: apt-get install postgresql"

bench-hour: $(DEV_READY) model ## an hour of talk, live at four times the clock: seconds from its end to its summary, memory
	@$(PY) -m tests.bench.hour

bench-speech: $(DEV_READY) model $(CTRANSLATE2) ## words and time of the speech recognition beside others with the same model
	@$(PY) -m tests.bench.speech $(CTRANSLATE2)

$(CTRANSLATE2):
	@echo "· installing whisper-ctranslate2 to measure against"
	@$(PY) -m venv $(VENV)/whisper-ctranslate2 && $(VENV)/whisper-ctranslate2/bin/pip install --quiet whisper-ctranslate2==0.5.8

e2e: $(DEV_READY) model ## the product in a real browser (needs Chromium)
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		echo "The browser tests need Chromium: apt-get install chromium"; exit 1; }
	@$(PY) -m pytest tests/e2e

shots: $(DEV_READY) ## a picture of every page in both languages and themes, phone and desk, into .baton/shots
	@$(PY) -m tests.e2e.shots

format: $(DEV_READY) ## rewrite the source in the project's format
	@$(VENV)/bin/ruff check --fix --select I .
	@$(VENV)/bin/ruff format .

lock: $(DEV_READY) ## renew both lock files from pyproject.toml
	@$(VENV)/bin/uv pip compile pyproject.toml $(LOCK_OPTIONS) -o requirements.lock
	@$(VENV)/bin/uv pip compile pyproject.toml --extra dev $(LOCK_OPTIONS) -o requirements-dev.lock
	@echo "· requirements.lock and requirements-dev.lock are renewed; 'make test' installs and tries them"

LOCK_OPTIONS := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade --quiet

clean: ## remove the environment and caches; data in .baton stays
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find app kernel activities fixtures tests -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "· removed; the data in .baton is kept: delete that folder yourself if you want to start afresh"

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

.PHONY: demo doctor dev test check crash mutate chaos bench bench-peers bench-hour bench-speech e2e shots format lock clean help model

# ---- set-up ----

$(PY):
	@test -n "$(PYTHON)" || { \
		echo "Baton needs Python 3.11 or newer: apt-get install python3 python3-venv"; exit 1; }
	@echo "· making a Python environment in $(VENV) with $(PYTHON)"
	@rm -rf $(VENV)
	@why=$$($(PYTHON) -m venv $(VENV) 2>&1) || { rm -rf $(VENV); echo "$$why" | tail -n 5; \
		echo "Python cannot make an environment here: apt-get install python3-venv"; exit 1; }

# The dev lock holds every pin of the other one, so whoever has it needs no second installation.
$(DEMO_READY): requirements.lock | $(PY)
	$(call install,requirements.lock)
	@printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s/$(PY)" -m app.cli "$$@"\n' "$(CURDIR)" "$(CURDIR)" > $(VENV)/bin/baton
	@chmod +x $(VENV)/bin/baton
	@touch $@

$(DEV_READY): requirements-dev.lock pyproject.toml | $(PY)
	$(call install,requirements-dev.lock)
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable . 2>>$(VENV)/install.log
	@touch $(DEMO_READY) $@

define install
@echo "· installing the packages of $(1), about 1 GB: this takes a minute or more"
@$(PIP) install --require-hashes --requirement $(1) 2>$(VENV)/install.err | tee $(VENV)/install.log | awk '$(PROGRESS)' || { \
	echo "The packages could not be installed. The last lines of pip (all of them: $(VENV)/install.log, install.err):"; \
	tail -n 5 $(VENV)/install.log; grep -v "is ignored" $(VENV)/install.err | tail -n 10; \
	echo "Is the package index reachable, and the disk not full? Then run the same command again."; exit 1; }
endef

PROGRESS := /^Collecting / { n++; if (n % 20 == 0) print "  " n " packages fetched"; fflush() } \
	/^Installing collected/ { print "  " n " packages fetched; putting them into place"; fflush() }

model:
	@$(PY) -m app.models
