# deployc: `make demo` and `make test` do all their own set-up; everything they make stays in this folder and in
# $XDG_DATA_HOME/deployc (the engine environment, 3.4 GB, shared by both, and for the tests the quantizer's, 1.5 GB).
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE_VERSION := 0.32.0
# of the tests without an engine: .ci/run, which has run the unit tests by then, names only the others
KINDS ?= not engine
DEMO := examples/smollm2-cpu

.PHONY: help demo test unit check bench engine quantizer schema clean
help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.build engine ## merge, quantize and serve a real small model on this CPU, and ask it
	$(BIN)/python $(DEMO)/demo.py

test: $(VENV)/.dev $(VENV)/.build engine quantizer ## all tests, with real vLLM, peft, llm-compressor and systemd's own tools
	DEPLOYC_REQUIRE_BUILD=1 DEPLOYC_REQUIRE_QUANTIZER=1 $(BIN)/python -m pytest -q -n 2 -m "$(KINDS)"
	DEPLOYC_REQUIRE_ENGINE=1 $(BIN)/python -m pytest -q -m engine

unit: $(VENV)/.dev ## the tests that need no engine and no torch
	$(BIN)/python -m pytest -q -n 2 -m "not engine and not build and not wheel"

check: $(VENV)/.dev ## ruff, mypy --strict, the schema is not lagging
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/deployc schema --check

bench: $(VENV)/.dev $(VENV)/.build ## ratios measured in one run; takes 35 GB of disk for some minutes
	$(BIN)/python tests/bench/plan_time.py
	$(BIN)/python tests/bench/facts_time.py
	$(BIN)/python tests/bench/memory_score.py
	$(BIN)/python tests/bench/tune_time.py
	$(BIN)/python tests/bench/simulate_time.py
	$(BIN)/python tests/bench/speed_score.py
	$(BIN)/python tests/bench/speed_fit.py
	$(BIN)/python tests/bench/sla_time.py
	$(BIN)/python tests/bench/build_time.py --large

schema: $(VENV)/.dev ## write schemas/deploy.schema.json from the models
	$(BIN)/deployc schema --write

engine: $(VENV)/.tool ## the engine environment: vLLM for the CPU, apart from the tool's
	$(BIN)/deployc engine install --cpu --version $(ENGINE_VERSION)

quantizer: $(VENV)/.tool ## the environment of llm-compressor, for calibrated formats, apart from the others
	$(BIN)/deployc engine install --quantizer

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tool: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e .
	$(BIN)/python -m compileall -q deployc
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e '.[dev]'
	$(BIN)/python -m compileall -q deployc
	@touch $@ $(VENV)/.tool

# torch first and pinned: a plain range would fetch a newer release than the rest was tried with
$(VENV)/.build: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q -e '.[build]' torch==2.13.0
	@touch $@ $(VENV)/.tool

clean: ## remove what make made here (not the engine environment)
	rm -rf $(VENV) $(DEMO)/work .pytest_cache .mypy_cache .ruff_cache
