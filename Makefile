.PHONY: setup demo test check bench
PYTHON ?= python3
BIN = .venv/bin

setup: .venv/ready  ## a virtual environment with everything, from the pinned set

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]"
	touch $@

demo: setup  ## train on the documentation of your own Python and show the topics
	$(BIN)/topicloom demo

test: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## quality and speed against the Gibbs sampler, and memory on a million documents
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/memory.py
