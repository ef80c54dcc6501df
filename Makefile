# Two set-up commands: `make demo` and `make test`. Each makes what it needs, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch is installed first, without its dependencies; the extra `local` brings those. On Linux the
# default wheel brings gigabytes of CUDA, so the CPU build is taken where its index answers within
# seconds. For another build: make TORCH="torch==2.9 ...".
TORCH ?= torch==2.13.0
CPU := https://download.pytorch.org/whl/cpu
# The lock: the versions of all other packages. `make CONSTRAINTS=` installs the newest ones instead.
CONSTRAINTS ?= constraints.txt
# Environment variables also reach the environment in which pip builds the package; options do not.
PIP = $(if $(CONSTRAINTS),PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS)) \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check
# Extra arguments of the demo, e.g. DEMO="--dir here".
DEMO ?=
JOBS ?= 2
# Run only these tests: make test TESTS=tests/readers
TESTS ?=
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

.PHONY: demo docs pictures test test-all test-latest test-interop pytest lock lint size bench bench-soak \
	bench-crash bench-hostile bench-speed scale browser clean

# First what is recorded or needs no model; then the local critic, which has to be fetched.
demo: $(VENV)/base
	@$(BIN)/agenteval demo $(DEMO)
	@test -e $(VENV)/local || echo "Now the critic on this machine: torch is fetched (200 MB; 2 GB" \
		"where only the CUDA build is to be had). Ctrl-C leaves it at this."
	@$(MAKE) --no-print-directory $(VENV)/local
	@$(BIN)/agenteval demo --local

test: lint pytest

pytest: $(VENV)/dev
	$(PYTEST) -m "not slow" $(TESTS)

# What `make test` leaves out: kills, crashes, signals, browser, load. At most half an hour.
test-all: $(VENV)/dev
	$(PYTEST) -m slow

# The tests of `make test` without the lock, in a new environment: do the newest versions work? Lists the
# versions that differ from the lock; where none does, `make test` has tested them all.
LATEST := .venv-latest
test-latest:
	rm -rf $(LATEST)
	@$(MAKE) --no-print-directory $(LATEST)/dev VENV=$(LATEST) CONSTRAINTS=
	@$(LATEST)/bin/python -m pip freeze --exclude-editable --exclude torch | tr A-Z_ a-z- \
		> $(LATEST)/versions.txt
	@echo "Installed versions that differ from the lock:"
	@if sed 's/ ;.*//' constraints.txt | grep -vxFf - $(LATEST)/versions.txt; then \
		$(MAKE) --no-print-directory pytest VENV=$(LATEST) CONSTRAINTS=; \
	else echo "none: make test tests the same versions"; fi

# Write the lock: the newest versions that pyproject.toml allows, for Python 3.11 and later on all systems.
# Besides the dependencies it has what torch needs (setuptools) and what builds the package. `make lock
# UPGRADE=` changes only what has to change.
UPGRADE ?= --upgrade
UV := .venv-lock
lock:
	@test -e $(UV)/done || { $(PYTHON) -m venv $(UV) && \
		$(UV)/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9 && touch $(UV)/done; }
	@echo torch > $(UV)/excludes.txt
	printf 'setuptools\nhatchling\neditables\n' | $(UV)/bin/uv pip compile --quiet pyproject.toml - \
		--all-extras --universal --python-version 3.11 --excludes $(UV)/excludes.txt --no-annotate \
		--custom-compile-command "make lock" $(UPGRADE) --output-file constraints.txt

# Scorers of other frameworks, and what the docs show of them, each with its real package in an
# environment of its own, which the first run fetches (3 GB in all). INTEROP="mlflow deepeval": only these.
INTEROP ?=
test-interop: $(VENV)/dev
	$(BIN)/python tests/interop/run.py $(INTEROP)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a website in site/. Broken links are errors. Zensical reads the same files.
docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict -f .mkdocs.yml

# Lines and files of the package, and of the path of one quantify.
size: $(VENV)/dev
	$(BIN)/python -m benchmarks.size

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks

# A part of the benchmarks; at most 20 minutes each on two cores.
# bench-speed: calls per second beside the bare openai client and bare aiohttp at 64 and 256 in flight,
# the same command with everything stored, and with every reply cached.
bench-soak bench-crash bench-hostile bench-speed: bench-%: $(VENV)/dev
	$(BIN)/python -m benchmarks $*

# What Ray actors cost and bring, and what survives kills. About a quarter of an hour.
scale: $(VENV)/dev
	$(BIN)/python -m benchmarks scale

# The pictures of the README.
pictures: $(VENV)/dev browser
	$(BIN)/python docs/pictures.py

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

$(VENV)/base: pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/torch: | $(VENV)/bin/python
	@index=$(if $(filter file,$(origin TORCH)),$$(test "$$(uname -s)" = Linux && $(BIN)/python -c \
		"import urllib.request as u; u.urlopen('$(CPU)/torch/', timeout=4)" 2> /dev/null \
		&& echo "--index-url $(CPU)")); \
	set -x; $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(TORCH) $$index
	@touch $@

$(VENV)/local: pyproject.toml $(CONSTRAINTS) | $(VENV)/torch
	$(PIP) -e ".[local]"
	@touch $@

$(VENV)/dev: pyproject.toml $(CONSTRAINTS) $(VENV)/local
	$(PIP) -e ".[local,dev]"
	@touch $@

clean:
	rm -rf $(VENV) $(UV) $(LATEST) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
		.hypothesis build dist benchmarks/out *.egg-info
