# Everything from a fresh clone: needs Python 3.11 or newer and a package index, nothing else.
PYTHON ?= python3
VENV := .venv
# What `test`, `check` and `bench` install; EXTRAS=dev,claude adds the real Claude Code for its tests.
EXTRAS ?= dev
BIN := $(VENV)/bin
# How many processes run tests.
WORKERS ?= 2
export WORKERS
PYTEST = $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

# What an installation compiles, and by what.
KERNEL = hatch_build.py src/holdfast/search/_kernel.c

# What the random cases of a soak are made from.
SEED := $(or $(SEED),$(shell date +%s))

# A run reads what it has compiled, in all its processes, also where the environment says that nothing is kept.
unexport PYTHONDONTWRITEBYTECODE

# The public modules; those of CrewAI and Strands are read where their frameworks are, beside which `dev` is not.
REFERENCE = holdfast $(addprefix holdfast.,aio compaction.recent_turns contract dedup errors events kinds \
	learning.service prompt.window providers.null providers.tracing records.grants records.options \
	records.quarantine testing testing.minimal types.scope \
	$(addprefix tools.,actions exports files presets results tool) \
	$(addprefix integrations.,agent_framework anthropic claude_agent google_adk langchain langgraph \
	llama_index mcp.server openai_agents pydantic_ai pydantic_conversations)) \
	$(addprefix holdfast_cli.formats.,export importing record_markdown)

.PHONY: help demo test lint check soak frameworks format bench reference dist clean

help:                           ## list the targets, as `make` alone does
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed        ## see what Holdfast does, on a sample of conversations
	@$(BIN)/holdfast demo

test: $(VENV)/.installed-dev    ## run the fast tests, on SQLite and PostgreSQL; TESTS="-m slow" for the others
	$(PYTEST) $(or $(TESTS),-m "not slow")

lint: $(VENV)/.installed-dev    ## run lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint                     ## run lint, types, structure, and all tests
	$(PYTEST) $(TESTS)

soak: $(VENV)/.installed-dev    ## run for half an hour: many random cases, all databases; SEED=… repeats one
	@echo "SEED=$(SEED)"
	HOLDFAST_SOAK=$(SEED) $(PYTEST) -m "soak or scaled" --hypothesis-seed=$(SEED) $(TESTS)
	$(BIN)/python scripts/frameworks.py lowest

frameworks: $(VENV)/.installed-dev  ## run the tests of adapters of frameworks that cannot be installed beside others
	$(BIN)/python scripts/frameworks.py newest

format: $(VENV)/.installed-dev  ## mend what lint can, and the layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev   ## measure the numbers of the README and the how-tos; DATA=folder adds recall
	@code=0; set -x; $(BIN)/python -m benchmarks side-by-side --full || code=$$?; \
	$(BIN)/python -m benchmarks speed --full && \
	$(BIN)/python -m benchmarks records && \
	$(if $(DATA),$(BIN)/python -m benchmarks recall $(DATA),true) && exit $$code

reference: $(VENV)/.installed-dev  ## write a page for each public module into docs/reference, from the docstrings
	rm -rf docs/reference
	$(BIN)/pdoc --docformat google --no-show-source --output-directory docs/reference $(REFERENCE)

dist: $(VENV)/bin/python        ## build what is published into dist/, and run it from there in an empty environment
	rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check hatchling
	$(BIN)/python -m hatchling build -d dist
	cd cli && ../$(BIN)/python -m hatchling build -d ../dist
	$(PYTHON) -m venv --clear build/installed
	build/installed/bin/pip install --quiet --disable-pip-version-check dist/holdfast-*.whl
	cd build && installed/bin/python -I ../scripts/readme.py ../README.md
	build/installed/bin/pip install --quiet --disable-pip-version-check --find-links dist dist/holdfast_cli-*.whl
	cd build && installed/bin/holdfast demo >demo.txt

clean:                          ## remove the environment and what was built
	rm -rf $(VENV) build dist docs/reference

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml cli/pyproject.toml $(KERNEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --editable ./cli
	@touch $@

# pip takes ten times as long for as many packages.
$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml cli/pyproject.toml $(KERNEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[$(EXTRAS)]" --editable ./cli
	@touch $(VENV)/.installed $@
