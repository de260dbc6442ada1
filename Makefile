# The entry points, for people and CI alike. `make` alone lists them.
#
# Everything runs from .venv, which is made and filled on first use; a missing prerequisite is named
# together with the line that installs it. Choose an interpreter with `make PYTHON=python3.12 ...`.

PYTHON ?=
ARGS ?=
SEED ?=
SEEDS ?= 20
FIRST ?= 1
FUZZ_SECONDS ?= 20

VENV := .venv
BIN := $(VENV)/bin
BUILT := $(VENV)/.built
COMPILED := $(wildcard broker/*/hot/*.pyx replication/*/hot/*.pyx)
COMPILED_MODULES := $(subst /,.,$(patsubst broker/%,%,$(patsubst replication/%,%,$(COMPILED:.pyx=))))
BUILD_INPUTS := pyproject.toml scripts/build.sh $(COMPILED) \
	$(wildcard broker/*/hot/*.pxd broker/*/hot/*.h replication/*/hot/*.pxd replication/*/hot/*.h)
TESTS := $(wildcard tests/unit tests/property tests/tidy tests/sim tests/fuzz tests/crash tests/golden)
SIM_RANGE = $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(FIRST))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build run test lint format types imports sim slow fuzz bench settings-table clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

build: $(BUILT)  ## make .venv, install what is needed, compile (does nothing when up to date)

$(BUILT): $(BUILD_INPUTS)
	@sh scripts/build.sh "$(PYTHON)"

run: build  ## start one broker with its data under ./data; more options with ARGS="--http-port 0"
	@exec $(BIN)/lograft serve --data ./data $(ARGS)

test: build  ## all tests that need no cluster, asyncio tests once more in asyncio's debug mode
	$(BIN)/pytest -q -m "not slow" $(TESTS)
	PYTHONASYNCIODEBUG=1 $(BIN)/pytest -q -m "asyncio and not slow" tests/unit

lint: build  ## ruff (rules and format) and cython-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint $(COMPILED) $(wildcard $(COMPILED:.pyx=.pxd))

format: build  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

types: build  ## mypy, and the stubs of compiled modules against what was compiled
	$(BIN)/mypy
	MYPYPATH=broker:replication:client $(BIN)/stubtest --mypy-config-file pyproject.toml \
		--allowlist scripts/stubtest-allow.txt --ignore-unused-allowlist $(COMPILED_MODULES)

imports: build  ## who may import whom
	$(BIN)/lint-imports --no-cache

sim: build  ## simulated clusters: SEED=7 replays one, SEEDS=5000 runs many (FIRST=1 is the first)
	$(BIN)/python tests/sim/run.py $(SIM_RANGE)

fuzz: build  ## damaged and random bytes against every parser, FUZZ_SECONDS=20 for each
	@for fuzz in tests/fuzz/fuzz_*.py; do $(BIN)/python "$$fuzz" --seconds $(FUZZ_SECONDS) || exit 1; done

slow: build  ## what takes long: slow tests, 1000 seeds, five minutes of fuzzing per parser
	$(BIN)/pytest -q -m slow $(TESTS)
	$(MAKE) sim SEEDS=1000
	$(MAKE) fuzz FUZZ_SECONDS=300

bench: build  ## every benchmark; each adds a line to bench/results
	@for bench in bench/bench_*.py; do echo "$$bench"; $(BIN)/python "$$bench" --record || exit 1; done

settings-table: build  ## write the table of settings in docs/OPERATING.md anew
	$(BIN)/python scripts/settings_table.py

clean:  ## remove .venv, caches and whatever was compiled; ./data stays
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f $(COMPILED:.pyx=.c) $(wildcard $(COMPILED:.pyx=.*.so))
