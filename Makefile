# Everything from a fresh clone: needs Python 3.11 or newer and a package index, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check format bench reference clean

demo: $(VENV)/.installed        ## see what Holdfast does, on a sample of conversations
	@$(BIN)/holdfast demo

test: $(VENV)/.installed-dev    ## the fast tests, on SQLite and PostgreSQL
	$(BIN)/pytest -q -n 2 -m "not slow"

check: $(VENV)/.installed-dev   ## lint, types, structure, and all tests; TESTS="-m slow" for those that `test` leaves out
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 $(TESTS)

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev   ## the numbers of the README and the how-tos; DATA=folder adds recall
	$(BIN)/python -m benchmarks speed --full
	$(BIN)/python -m benchmarks records
	$(BIN)/python -m benchmarks agents
	$(if $(DATA),$(BIN)/python -m benchmarks recall $(DATA),)

reference: $(VENV)/.installed-dev  ## the pages of docs/reference, from the docstrings
	$(BIN)/python scripts/reference.py

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(VENV)/.installed $@
