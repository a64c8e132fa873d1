# Needs Python 3.11 or newer and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test check bench walk docs clean
.DEFAULT_GOAL := run

run: $(STAMP) ## a team of agents under a policy, in a scratch home
	@$(BIN)/fairlead demo

test: $(STAMP) ## run all tests
	@tests/tools.sh
	$(BIN)/python -m pytest

check: $(STAMP) ## lint, formatting, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP) ## measure, print the table, keep bench/results.json
	@$(BIN)/python -c "import pluggy, cchooks" 2>/dev/null || $(BIN)/python -m pip install --quiet -e '.[bench]'
	@$(BIN)/python -m bench $(BENCH)

walk: $(STAMP) ## trace four events through the packages
	@$(BIN)/python bench/walk.py

docs: $(STAMP) ## write the generated parts of the reference again
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv

$(STAMP): pyproject.toml hatch_build.py $(wildcard launcher/*.*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Fairlead needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up .venv: about half a minute, only the first time" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
