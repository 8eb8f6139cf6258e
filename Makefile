# Every target sets up what it needs in .venv and says what it does. Only Python 3.11+, make and a package registry
# are assumed; uv is used where it is present.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes: each would compile every module again

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto
# Most tests wait for processes and disks: two for each core.
TEST_JOBS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')
PARTS := .[agents,embedded,view]

.PHONY: help demo test test-faults test-fleet test-frameworks test-browser bench fix docs screenshots golden clean

help: ## say what the targets do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.agents ## set up and run lint, docstring and test agents on examples/shop with the embedded model
	@echo "demo: agents on examples/shop with the embedded model; its files are not changed" >&2
	@$(BIN)/remora model pull
	@$(BIN)/remora analyze examples/shop/shop/pricing.py -o lint,docstring,test --server embedded --max-turns 6 \
		|| test $$? -le 2  # agents that failed are part of what it shows
	@echo "  (here, remora is $(BIN)/remora)"
	@echo "  A larger model writes docstrings and edits of its own (a download of 1.1 GB, once):"
	@echo "    $(BIN)/remora analyze examples/shop/shop/cart.py -o docstring --model qwen2.5-coder-1.5b"
	@echo
	@$(BIN)/remora trace verify -C examples/shop | tail -n 3

test: $(VENV)/.dev ## everything that must pass: ruff, mypy, import order, docs, pytest
	@echo "test: ruff" >&2
	@$(BIN)/ruff check --no-cache
	@$(BIN)/ruff format --check --quiet
	@echo "test: import order" >&2
	@PYTHONPATH=src:lab/src $(BIN)/lint-imports --no-logo --no-cache
	@echo "test: pytest, and mypy --strict beside it" >&2
	@{ $(BIN)/mypy >$(VENV)/mypy.txt 2>&1 || { printf '\nmypy:\n'; cat $(VENV)/mypy.txt; exit 1; } >&2; } & \
		status=0; $(BIN)/pytest -q -n $(TEST_JOBS) --dist worksteal || status=$$?; \
		wait $$! || { echo "test: mypy found errors (above, and in $(VENV)/mypy.txt)" >&2; exit 1; }; \
		cat $(VENV)/mypy.txt; exit $$status

test-faults: $(VENV)/.dev ## the long runs: injected faults, real models, whole agents (under an hour)
	@echo "test-faults: kills, bit flips, failing disks, real models, whole agents" >&2
	@$(BIN)/pytest -q -n $(JOBS) -m faults

test-fleet: $(VENV)/.dev ## Postgres and Ray under faults: every cut, kills, a full disk (installs Ray)
	@$(call install,-e '.[fleet]')
	@echo "test-fleet: Postgres killed, cut off, full, slow; fenced writers; Ray workers and nodes killed, cut off" >&2
	@$(BIN)/pytest -q -n $(JOBS) --dist loadfile -m fleet

test-frameworks: $(VENV)/.dev ## the adapters, each with its real framework in an environment of its own (installs them)
	@echo "test-frameworks: Pydantic AI, LangChain, OpenAI Agents, smolagents" >&2
	@$(BIN)/pytest -q -n $(JOBS) --dist loadfile -m frameworks

test-browser: $(VENV)/.dev ## the viewer in a real browser; installs Debian's Chromium if there is none and it can
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; done; \
		echo "test-browser: no Chromium was found; installing Debian's" >&2; \
		{ command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -q && apt-get install -qy chromium; } >&2 \
		|| { echo "test-browser: install Chromium yourself: apt-get install chromium" >&2; exit 1; }
	@$(BIN)/pytest -q -n $(JOBS) tests/view -m "not fleet and not frameworks"

bench: $(VENV)/.dev ## measure speed, as ratios in one run
	@echo "bench: results go to benchmarks/results" >&2
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks.short
	@$(BIN)/python -m benchmarks.scripts --out benchmarks/results/scripts.json
	@$(BIN)/python -m benchmarks.workspaces
	@$(BIN)/python -m benchmarks.verifying
	@$(BIN)/python -m benchmarks.runs --embedded
	@$(BIN)/python -m benchmarks.decisions
	@$(BIN)/python -m benchmarks.hub

fix: $(VENV)/.dev ## repair what can be repaired by itself: style, generated docs
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/cog -r -U docs/reference/*.md

golden: $(VENV)/.dev ## write the golden files again and show what changed
	@$(BIN)/python tests/golden/make.py
	@git --no-pager diff --stat -- tests/golden

docs: $(VENV)/.dev ## build the documentation into site/
	@echo "docs: site/" >&2
	@$(BIN)/cog -r -U docs/reference/*.md
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

screenshots: $(VENV)/.dev ## take the pictures of the viewer in the documentation again
	@$(BIN)/python docs/screenshots.py
	@git --no-pager diff --stat -- docs/img

clean: ## remove what make made
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.venv:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Install one, or name it: make PYTHON=…" >&2; exit 1; }
	@echo "setup: $(VENV) with $$($(PYTHON) --version)" >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	@touch $@

# $(1): what to install
install = if command -v uv >/dev/null; then uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1); \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check $(1); fi

$(VENV)/.agents: pyproject.toml $(VENV)/.venv
	@echo "setup: Remora and what its agents need" >&2
	@$(call install,-e '$(PARTS)')
	@touch $@

$(VENV)/.dev: pyproject.toml lab/pyproject.toml $(VENV)/.agents
	@echo "setup: the lab, and what the tests and docs need" >&2
	@$(call install,-e '$(PARTS)' -e lab --group dev)
	@touch $@
