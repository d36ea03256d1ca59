# Every target sets itself up: a fresh clone needs nothing but Python 3.11 or newer, and make.
# `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# The virtual environment takes the oldest Python that is supported and found: what works there works later too.
# Name others with `make PYTHON=/path/to/python3 NEWEST_PYTHON=…`.
PYTHON :=
NEWEST_PYTHON :=
find_oldest = python="$(PYTHON)"; [ -n "$$python" ] || python=$$(scripts/find-python oldest)
find_newest = python="$(NEWEST_PYTHON)"; [ -n "$$python" ] || python=$$(scripts/find-python newest)
minor_version = -c 'import sys; print("%d.%d" % sys.version_info[:2])'

PY := .venv/bin/python
NEWEST_PY := .venv-newest/bin/python
SUITES := $(wildcard tests/unit tests/integration tests/transcripts)
PYTEST_ARGS ?=
# A worker per core. A file's tests stay together, in their order: they share what the file set up. WORKERS=0: in one process.
WORKERS ?= auto
PARALLEL := --numprocesses $(WORKERS) --dist loadfile

# These come with the files that they run.
BENCH := $(if $(wildcard bench/__main__.py),bench-smoke)
COMPAT := $(if $(wildcard tests/compat/__main__.py),compat-check)

.DEFAULT_GOAL := help
.PHONY: help setup test demo check static check-rest lint format types layers wheel-test newest-python system-packages clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Third-party packages by version and hash. The list is whole, so nothing is left to resolve: pip before 23.3 would look for
# the newest release of whatever is also wanted with an extra. Byte code is left to the first import: most is never imported.
define install_third_party
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r $(2)
endef

# The package itself, in place. hatchling came with the constraints, so nothing is downloaded for the build.
define install_package
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
endef

# What the demo and the commands need, a tenth of the whole: who only looks at it waits seconds, not minutes.
.venv/.demo: constraints-demo.txt pyproject.toml README.md scripts/find-python
	@echo "setting up .venv: some seconds, once"
	@$(find_oldest); "$$python" -m venv .venv
	$(call install_third_party,.venv,constraints-demo.txt)
	$(call install_package,.venv)
	@touch $@

.venv/.third-party: constraints.txt scripts/find-python
	@echo "setting up .venv: a minute or two, once"
	@$(find_oldest); "$$python" -m venv .venv
	$(call install_third_party,.venv,constraints.txt)
	@touch $@

.venv/.package: .venv/.third-party pyproject.toml README.md
	$(call install_package,.venv)
	@touch $@ .venv/.demo

.venv-newest/.third-party: constraints.txt scripts/find-python
	@echo "setting up .venv-newest: a minute or two, once"
	@$(find_newest); "$$python" -m venv .venv-newest
	$(call install_third_party,.venv-newest,constraints.txt)
	@touch $@

.venv-newest/.package: .venv-newest/.third-party pyproject.toml README.md
	$(call install_package,.venv-newest)
	@touch $@

setup: .venv/.package ## the virtual environment in .venv

test: setup ## the tests (PYTEST_ARGS="-k name" for some of them; CI=true adds two slow ones)
	$(PY) -m pytest $(SUITES) $(PARALLEL) $(PYTEST_ARGS)

demo: .venv/.demo ## the whole thing end to end on this machine
	.venv/bin/kubeauthn demo

check: static test check-rest ## what CI runs

static: lint types layers ## what needs no test to run: it comes first, for it takes a minute and the tests many

check-rest: newest-python wheel-test $(COMPAT) $(BENCH) ## what CI runs after `make test`

lint: setup ## ruff: rules and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: setup ## ruff: put imports and format right
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

types: setup ## mypy, strict, on src
	$(PY) -m mypy

layers: setup ## import-linter: who may import whom
	.venv/bin/lint-imports

wheel-test: setup ## builds the wheel once and tries it in a clean environment without extras
	scripts/wheel-test $(PY)

# Without those that need a system part: make test has run them, and they are about the part, not about Python.
newest-python: setup ## unit and integration tests on the newest Python that is here
	@$(find_newest); newest=$$("$$python" $(minor_version)); ours=$$($(PY) $(minor_version)); \
	if [ "$$newest" = "$$ours" ]; then \
	    echo "newest-python: Python $$ours is the only one found, and make test has run it"; \
	else \
	    $(MAKE) .venv-newest/.package && \
	    echo "newest-python: Python $$newest" && \
	    $(NEWEST_PY) -m pytest $(wildcard tests/unit tests/integration) -m "not needs" $(PARALLEL) $(PYTEST_ARGS); \
	fi

ifdef BENCH
.PHONY: bench bench-smoke
bench: setup ## benchmarks, as ratios (QUICK=1 for a short run)
	$(PY) -m bench $(if $(QUICK),--quick)

bench-smoke: setup
	$(PY) -m bench --quick
endif

ifdef COMPAT
.PHONY: compat compat-check
compat: setup ## writes docs/compat/python-clients.md from a run of the adapter suite
	$(PY) -m tests.compat --write

compat-check: setup
	$(PY) -m tests.compat --check
endif

.PHONY: e2e fuzz-oracle oracle-recorded docs reference screenshots
e2e: setup ## the real kube-apiserver and kubectl, built from their modules (needs Go)
	$(PY) -m tests.e2e

fuzz-oracle: setup ## compares generated cases with Kubernetes' own code (MINUTES=10; needs Go)
	$(PY) -m tests.peers.build oracle-1.37
	$(PY) -m tests.oracle --minutes $(or $(MINUTES),10)

oracle-recorded: setup ## replays the recorded cases through Kubernetes' own code (needs Go)
	$(PY) -m tests.peers.build oracle-1.37
	$(PY) -m tests.oracle --recorded

screenshots: setup ## the pictures in docs/images, taken in Chromium
	scripts/screenshots

docs: setup ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "docs: site/index.html"

reference: setup ## writes docs/reference from the code
	scripts/reference

system-packages: ## the Debian packages that some tests use (as root or with sudo)
	@scripts/system-packages

clean: ## removes the environments and everything that was built
	rm -rf .venv .venv-newest dist build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
