# Everything a newcomer needs: `make demo` and `make test`. Both create .venv and install into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint benchmark fuzz clean

demo: $(VENV)/installed
	$(BIN)/python -m bilevel.demo

test: $(VENV)/installed lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

benchmark: $(VENV)/installed
	$(BIN)/python benchmarks/rule_scaling.py

fuzz: $(VENV)/installed
	$(BIN)/python benchmarks/fuzz_pddl.py --files 100000
	$(BIN)/python tests/rules/engine/test_engine.py 10000

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV) \
	  || { apt-get install -qy python3-venv && $(PYTHON) -m venv $(VENV); } \
	  || { echo "Python's venv is missing; install it with: apt install python3-venv"; rm -rf $(VENV); exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[worlds,planners,plots,dev]'
	touch $@

clean:
	rm -rf $(VENV) build
