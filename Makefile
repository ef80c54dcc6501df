# Two set-up commands: `make demo` and `make test`. Each makes what it needs, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch is installed first and by itself. On Linux the default wheel brings gigabytes of CUDA; for
# the CPU build: make demo TORCH="torch --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0
# Extra arguments of the demo, e.g. DEMO="--limit 6 --repeats 1".
DEMO ?=
JOBS ?= 2

.PHONY: demo test lint bench clean weights

demo: $(VENV)/local weights
	$(BIN)/agenteval demo $(DEMO)

test: $(VENV)/dev weights lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev weights
	$(BIN)/python -m benchmarks

# No network when the weights are there already.
weights: $(VENV)/local
	@$(BIN)/agenteval models pull > /dev/null

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/torch: | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@touch $@

$(VENV)/local: pyproject.toml | $(VENV)/torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[local]"
	@touch $@

$(VENV)/dev: pyproject.toml $(VENV)/local
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[local,dev]"
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
		build dist benchmarks/out *.egg-info
