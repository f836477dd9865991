# Everything a newcomer needs: `make demo` and `make test`. Both create .venv and install into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := python -m pip install --quiet --disable-pip-version-check

# torch for the CPU, without the gigabytes that the usual build for Linux has for GPUs; any from 2.4 on will do, too.
# Where the usual index has none, it comes from PyTorch's own; where that cannot be reached, the usual build will do.
TORCH ?= torch==2.13.0
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
install_torch = $(1)/python -m pip show --quiet torch 2>/dev/null || $(1)/$(PIP) $(TORCH)+cpu 2>/dev/null \
  || $(1)/$(PIP) --index-url $(TORCH_INDEX) --retries 1 --timeout 15 $(TORCH) 2>/dev/null || $(1)/$(PIP) $(TORCH)

# What is installed beside the package; `make demo` needs but tabletop, learning and video.
EXTRAS ?= all,examples,docs,dev

# For pictures, which are optional: tried and, where it is missing and we may, installed.
OPENGL := libegl1 libgl1-mesa-dri libgles2 libglx-mesa0
PROBE_OPENGL = $(BIN)/python -c 'from bilevel.tabletop.opengl import backend; backend()'
INSTALL_OPENGL = { export DEBIAN_FRONTEND=noninteractive; \
  apt-get install -qy $(OPENGL) || { apt-get update -q && apt-get install -qy $(OPENGL); }; }

# For looking at the report in a browser, which only tests do.
INSTALL_BROWSER = { export DEBIAN_FRONTEND=noninteractive; \
  apt-get install -qy chromium || { apt-get update -q && apt-get install -qy chromium; }; }

# Examples whose packages need other versions than ours: each has a virtual environment of its own.
SUITES := kinder robosuite

.PHONY: demo check test test-suites test-lerobot lint docs gallery package clean

demo: $(VENV)/installed
	PATH="$(abspath $(BIN)):$$PATH" bash examples/demo.sh

# A fast loop, under a minute: format, lint, the types of what has changed since the last commit, and the quick tests.
SLOW := conformance demonstrations docs examples experiments learning/test_learn.py methods planning/test_fond.py \
  planning/test_fond_against_definition.py rules/test_learning.py rules/test_verify.py rules/test_verify_family.py tabletop \
  test_examples.py test_methods.py cli/test_demo.py cli/test_learn_command.py
CHANGED = $$(git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py')

# Each of several processes has a core; with threads of their own they would wait for each other.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@changed="$(CHANGED)"; if [ -z "$$changed" ]; then echo "no Python file has changed"; else $(BIN)/mypy $$changed; fi
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal $(addprefix --ignore=tests/,$(SLOW))

test: $(VENV)/installed lint
	@command -v chromium >/dev/null || $(INSTALL_BROWSER) >/dev/null 2>&1 \
	  || echo "No chromium, so nobody looks at the report; all else is tested. Install it with: apt-get install chromium"
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal --hypothesis-profile=ci

test-suites: $(SUITES:%=.venv-%/installed)
	$(foreach suite,$(SUITES),.venv-$(suite)/bin/python -m pytest tests/examples/test_$(suite).py &&) true

# LeRobot itself: some gigabytes, in an environment of its own.
test-lerobot: export BILEVEL_LEROBOT := $(abspath .venv-lerobot)
test-lerobot: $(VENV)/installed
	$(BIN)/bilevel lerobot install
	$(ONE_THREAD) $(BIN)/python -m pytest tests/lerobot

.venv-%/installed: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	$(call install_torch,.venv-$*/bin)
	.venv-$*/bin/$(PIP) pytest --editable '.[learning,video]' \
	  --requirement $(wildcard examples/$**/requirements.txt)
	touch $@

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html; to search in it, too: $(BIN)/python -m http.server --directory build/site"

gallery: $(VENV)/installed
	$(BIN)/python examples/gallery.py

# The wheel and the source distribution, and a check of both: in an empty environment, from pip to a film.
package: $(VENV)/installed
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python benchmarks/install.py dist/*.whl dist/*.tar.gz

$(VENV)/installed: pyproject.toml setup.py $(shell find src -name "*.pyx" -o -name "*.pxd" -o -name "*.hpp")
	$(PYTHON) -m venv $(VENV) \
	  || { apt-get install -qy python3-venv && $(PYTHON) -m venv $(VENV); } \
	  || { echo "Python's venv is missing; install it with: apt install python3-venv"; rm -rf $(VENV); exit 1; }
	$(BIN)/$(PIP) --upgrade pip || true  # an old one takes many minutes to find versions that go together
	$(call install_torch,$(BIN))
	$(BIN)/$(PIP) --editable '.[$(EXTRAS)]'
	$(BIN)/python -m compileall -q src  # so that commands start fast even where Python may not keep bytecode
	@$(PROBE_OPENGL) 2>/dev/null || $(INSTALL_OPENGL) >/dev/null 2>&1 \
	  || echo "No OpenGL, so no pictures; all else works. Install it with: apt-get install $(OPENGL)"
	touch $@

clean:
	rm -rf $(VENV) build dist
