# Two set-up commands: `make demo` and `make test`. Each makes what it needs, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch is installed first and by itself. On Linux the default wheel brings gigabytes of CUDA, so the
# CPU build is taken where its index answers within seconds; another: make TORCH="torch==2.9 ...".
TORCH ?= torch==2.13.0
CPU := https://download.pytorch.org/whl/cpu
# Extra arguments of the demo, e.g. DEMO="--dir here".
DEMO ?=
JOBS ?= 2

.PHONY: demo test test-all test-interop scale lint size bench bench-soak bench-crash bench-hostile bench-speed browser clean

# First what is recorded or needs no model; then the local critic, which has to be fetched.
demo: $(VENV)/base
	@$(BIN)/agenteval demo $(DEMO)
	@test -e $(VENV)/local || echo "Now the critic on this machine: torch is fetched (200 MB; 2 GB" \
		"where only the CUDA build is to be had). Ctrl-C leaves it at this."
	@$(MAKE) --no-print-directory $(VENV)/local
	@$(BIN)/agenteval demo --local

test: $(VENV)/dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not slow"

# What `make test` leaves out: kills, crashes, signals, browser, load. At most half an hour.
test-all: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m slow

# Scorers of other frameworks, and what the docs show of them, each with its real package in an
# environment of its own, which the first run fetches (3 GB in all). INTEROP="mlflow deepeval": only these.
INTEROP ?=
test-interop: $(VENV)/dev
	$(BIN)/python tests/interop/run.py $(INTEROP)

# PostgreSQL and Ray, several workers, kills: measured, see docs/scale.md. Half an hour on two cores.
# PostgreSQL's programs come from Debian when root, else they are to be there.
scale: $(VENV)/dev
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } > /dev/null; \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[ray]"
	$(BIN)/python -m benchmarks.scale

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Lines and files of the package, and of the path of one quantify.
size: $(VENV)/dev
	$(BIN)/python -m benchmarks.size

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks

# A part of the benchmarks; at most 20 minutes each on two cores, hostile half an hour.
# bench-speed: calls per second beside the bare openai client and bare aiohttp at 64 and 256 in flight,
# the same command with everything stored, start-up, readers, statistics.
bench-soak bench-crash bench-hostile bench-speed: bench-%: $(VENV)/dev
	$(BIN)/python -m benchmarks $*

# Chromium for the tests of the report, from Debian, when root and not there yet. Without it these
# tests are skipped, with a line that says so.
browser:
	@for b in chromium chromium-browser google-chrome; do command -v $$b > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
		> /dev/null || echo "browser: chromium could not be installed"; \
	fi

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/base: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/torch: | $(VENV)/bin/python
	@index=$(if $(filter file,$(origin TORCH)),$$(test "$$(uname -s)" = Linux && $(BIN)/python -c \
		"import urllib.request as u; u.urlopen('$(CPU)/torch/', timeout=4)" 2> /dev/null \
		&& echo "--index-url $(CPU)")); \
	set -x; $(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH) $$index
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
