# Everything runs in .venv, made here from Python 3.11 or newer. Install steps leave a stamp in
# .venv and run again only after this file, pyproject.toml or constraints.txt changed.

# The first of these that runs and is new enough. Override with: make PYTHON=/path/to/python ...
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	command -v "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

# Settings of the caller's shell that would reach into the environment or strip assertions.
unexport PYTHONHOME PYTHONPATH PYTHONOPTIMIZE PIP_USER PIP_TARGET PIP_PREFIX

# Those that compare kernels with the oracle, with plain numpy or with each other.
DEVICE_TESTS := $(addprefix tests/,bounds/tight/test_tight_search_differential.py \
	bounds/tight/test_tight_at_scale_differential.py search/test_runners_up_differential.py \
	bounds/tight/test_many_concepts.py bounds/tight/test_grams.py \
	bounds/tight/theory/test_exact_scores.py internal/test_transfers.py \
	methods/test_beam_differential.py methods/test_guides.py activations/test_layer_counting.py \
	test_explain.py counts/test_scores.py internal/test_mesh.py \
	bounds/paper/test_paper_search_differential.py internal/test_kernel_choice.py)

.DEFAULT_GOAL := help
.PHONY: help demo test test-device test-lowest coverage lint format thorough chaos bench docs clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-demo ## Install the package and explain a few units of a small example
	$(BIN)/optexp demo

test: lint docs ## Run every check: ruff, pyright, the documentation, pytest on all cores
	$(BIN)/python -m pytest -n auto

# In an environment of its own. uv finds the lowest versions, which pip cannot.
test-lowest: $(LOWEST)/.installed ## Run pytest with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n auto

coverage: $(VENV)/.installed-test ## Run pytest and list the lines of the package that no test runs
	$(BIN)/python -m pytest -n auto --cov=optexp_jax --cov-report=term-missing:skip-covered

lint: $(VENV)/.installed-test ## Run ruff and pyright
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

format: $(VENV)/.installed-test ## Sort imports, apply safe fixes and reformat
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

thorough: $(VENV)/.installed-test ## Run pytest with 50 times the examples, and the slow tests
	$(BIN)/python -m pytest -n auto --thorough

chaos: $(VENV)/.installed-test ## Kill, damage and deceive: run the tests of that, thoroughly, for their figures
	$(BIN)/python -m pytest -n auto --thorough -m chaos

test-device: $(VENV)/.installed-test ## Run the tests of device kernels on the accelerator there is
	JAX_PLATFORMS="$(JAX_PLATFORMS)" OPTEXP_KERNELS=device $(BIN)/python -m pytest $(DEVICE_TESTS)

bench: $(VENV)/.installed-bench ## Run all benchmarks, and say which ratio got worse
	$(BIN)/optexp bench all --json benchmarks/results/bench.json
	$(BIN)/python benchmarks/worse.py benchmarks/results/bench.json

docs: $(VENV)/.installed-test ## Build the documentation into site/, failing on broken links
	$(BIN)/python scripts/command_reference.py docs/reference/commands.md
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/zensical build --clean --strict

clean: ## Remove what the tools wrote; keeps .venv and runs/
	rm -rf build dist site docs/reference/commands.md .cache .coverage .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv and .venv-lowest as well
	rm -rf $(VENV) $(LOWEST)

$(BIN)/python:
	@"$(or $(PYTHON),false)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; tried $(or $(PYTHON),python3.11 python3 python3.12 python3.13)." >&2; \
	  echo "Install it, or run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# Order-only on the interpreter: a new .venv has no stamps, so it needs no timestamp.
INPUTS := Makefile pyproject.toml constraints.txt | $(BIN)/python

$(VENV)/.installed-demo: $(INPUTS)
	$(PIP) -e ".[torch,report]"
	@touch $@

$(VENV)/.installed-test: $(INPUTS)
	$(PIP) -e ".[test,docs,torch,models,coco,table,report,plot,dask]"
	@touch $@

$(VENV)/.installed-bench: $(INPUTS)
	$(PIP) -e ".[bench,torch,dask,report]"
	@touch $@

EXTRAS := --extra test --extra torch --extra models --extra coco --extra table --extra dask --extra plot --extra report
UV = $(LOWEST)/bin/python -m uv pip

$(LOWEST)/.installed: pyproject.toml
	rm -rf $(LOWEST)
	"$(PYTHON)" -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet uv
	$(UV) compile --quiet --resolution lowest-direct $(EXTRAS) -o $(LOWEST)/lowest.txt pyproject.toml
	$(UV) install --quiet --python $(LOWEST) -r $(LOWEST)/lowest.txt
	$(UV) install --quiet --python $(LOWEST) --no-deps -e .
	@touch $@
