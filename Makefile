# `make demo` and `make test` do all their set-up; all they need is Python 3.11 (PYTHON=/path/to/python3.11 chooses one).

VENV := .venv
BIN := $(VENV)/bin
BENCH ?= --replace
SHELL := /bin/sh

IS_311 = import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))
# The first Python 3.11 that really starts: a pyenv shim may stand on PATH and yet refuse.
PYTHON ?= $(shell for python in python3.11 python3 python "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.11*/bin/python; do \
	if "$$python" -c "$(IS_311)" >/dev/null 2>&1; then echo "$$python"; break; fi; done)

.PHONY: help bench demo test runtimes lint format pictures clean python

help:
	@echo "make demo    the main job on this machine, end to end, with an embedded AWS"
	@echo "make test    all tests, cheapest first"
	@echo "make bench   dmslake beside Delta, Iceberg, Hudi and others: hours; BENCH='--rows 200000 --repeat 1' for minutes"
	@echo "make runtimes  the environments of other Pythons that some tests need, which otherwise make them"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff format the code"
	@echo "make pictures  the README's pictures anew (needs chromium and chromium-driver)"
	@echo "make clean   remove the virtual environment and all caches"

demo: $(VENV)/.installed-local
	$(BIN)/dmslake demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.install
	$(BIN)/python -m benchmarks.peers $(BENCH)

runtimes: python
	$(PYTHON) -m tests.runtimes.prepare

lint: $(VENV)/.installed-dev
	@status=0; for step in "ruff check" "ruff format --check" "mypy"; do \
		echo "$$step"; $(BIN)/$$step || status=1; done; exit $$status

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

pictures: $(VENV)/.installed-dev
	$(BIN)/python -m tests.browser.pictures

clean:
	rm -rf $(VENV) .cache .hypothesis build dist *.egg-info spark-warehouse metastore_db derby.log

# Each stamp is written last: what broke off is done again.
$(VENV)/.installed-local: setup.py pyproject.toml | $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local]'
	@touch $@

$(VENV)/.installed-bench: setup.py pyproject.toml | $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $(VENV)/.installed-local $@

# dev holds all of local.
$(VENV)/.installed-dev: setup.py pyproject.toml | $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(VENV)/.installed-local $@

$(VENV)/.created:
	@$(MAKE) --no-print-directory python
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Fails, with the way out, where the Python that would be taken is not 3.11 with venv.
python:
	@'$(PYTHON)' -c "$(IS_311)" || { \
		echo "dmslake needs Python 3.11 with venv, found: '$(PYTHON)'. Install it (Debian: apt-get install" \
			"python3.11-venv) or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
