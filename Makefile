# `make demo` and `make test` set up all they need in .venv; an active environment is ignored.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
WORKERS ?= 2
# For instance: make test PYTEST_ARGS="-k datasets -x"
PYTEST_ARGS ?=

# An active environment or PYTHONPATH must not leak into .venv.
unexport PYTHONHOME
unexport PYTHONPATH
unexport VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# uv if there is one (and it reaches the packages), else pip. Byte code is left to the first
# import: compiling all of it takes as long as the rest of the install.
install = { command -v uv >/dev/null && uv pip install -q --python $(PY) -c constraints.txt $(1); } \
	|| $(PY) -m pip install -q --no-compile -c constraints.txt $(1)

.PHONY: help demo test lint format notebook clean FORCE

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## Set up, then run the demonstration
	@# 3 is an answer too, from draws that have not converged; it says so.
	@$(BIN)/bnnvs demo || [ $$? -eq 3 ]

test: lint ## Set up, then run ruff, mypy and pytest
	@OMP_NUM_THREADS=1 MPLBACKEND=agg $(PY) -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

lint: $(VENV)/.installed-test ## Set up, then run ruff and mypy
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(VENV)/.installed-test ## Format the code and sort the imports
	@$(PY) -m ruff check --select I --fix .
	@$(PY) -m ruff format .

notebook: $(VENV)/.installed-test ## Run the notebooks; SAVE=1 keeps what they print
	@$(PY) -m pytest --nbmake $(if $(SAVE),--overwrite) -n $(WORKERS) notebooks

clean: ## Remove .venv and all that the demonstration and the tools left
	rm -rf $(VENV) bnnvs-demo bnnvs-quick *-bnnvs build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp newer than both files means that nothing has changed since the install.
$(VENV)/.installed: pyproject.toml constraints.txt $(VENV)/pyvenv.cfg
	@echo "Installing pymc-bnnvs in $(VENV)"
	@$(call install,-e .)
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt $(VENV)/pyvenv.cfg
	@echo "Installing pymc-bnnvs and what its tests need in $(VENV)"
	@$(call install,-e '.[test]')
	@touch $@ $(VENV)/.installed

# Made anew where its Python has gone, say after an upgrade of the one it came from.
$(VENV)/pyvenv.cfg: $(if $(shell test -x $(PY) && echo there),,FORCE)
	@python=$$(sh .ci/find-python) || exit 1; \
	echo "Making $(VENV) with $$python"; \
	if [ "$$python" = uv ]; then uv venv -q --clear --seed --python 3.13 $(VENV); \
	else "$$python" -m venv --clear $(VENV); fi
