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

.PHONY: demo test test-all lint size bench bench-soak bench-crash bench-hostile bench-speed browser clean weights

demo: $(VENV)/local weights
	$(BIN)/agenteval demo $(DEMO)

test: $(VENV)/dev weights lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not slow"

# What `make test` leaves out: kills, crashes, signals, weights, browser, load. At most half an hour.
test-all: $(VENV)/dev weights
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m slow

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Lines and files of the package, and of the path of one quantify.
size: $(VENV)/dev
	$(BIN)/python -m benchmarks.size

bench: $(VENV)/dev weights
	$(BIN)/python -m benchmarks

# A part of the benchmarks; at most 20 minutes each on two cores, hostile half an hour.
bench-soak bench-crash bench-hostile bench-speed: bench-%: $(VENV)/dev weights
	$(BIN)/python -m benchmarks $*

# Chromium for the tests of the report, from Debian, when root and not there yet. Without it these
# tests are skipped, with a line that says so.
browser:
	@for b in chromium chromium-browser google-chrome; do command -v $$b > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
		> /dev/null || echo "browser: chromium could not be installed"; \
	fi

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
