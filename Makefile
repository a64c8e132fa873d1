# Needs make and Python 3.11 or newer. Everything else is installed into .venv.
PYTHON ?= python3
# Arguments for pytest: make test TESTS="tests/policy -k glob"
TESTS ?=
BIN := .venv/bin
# Tests start thousands of processes: each would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE
LOWEST := .venv-lowest

define require_python
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
  echo "Fairlead needs Python 3.11 or newer. $(PYTHON) is: $$($(PYTHON) -V 2>&1 | head -n 1)" >&2; \
  echo "Name another one: make PYTHON=python3.12" >&2; exit 1; }
endef

.PHONY: run test test-lowest soak fuzz faults kills check bench walk docs clean
.DEFAULT_GOAL := run

run: .venv/.installed ## a team of agents under a policy, in a scratch home
	@$(BIN)/fairlead demo

test: .venv/.dev ## run all tests, or those of TESTS
	@tests/tools.sh
	$(BIN)/python -m pytest $(TESTS)

test-lowest: $(LOWEST)/.dev ## the same on the lowest version of each requirement
	@tests/tools.sh
	@echo "On the lowest versions:" $$($(LOWEST)/bin/python tools/requirements.py)
	$(LOWEST)/bin/python -m pytest $(TESTS)

fuzz: .venv/.dev ## random inputs for the parsers, the daemon and the launcher, for MINUTES
	cd tests && ../$(BIN)/python -m fuzz --minutes $(or $(MINUTES),5)

faults: .venv/.dev ## the whole matrix of faults; `make test` plays a part of it
	@tests/tools.sh
	FAIRLEAD_FAULTS=all $(BIN)/python -m pytest tests/faults tests/daemon/test_faults.py

kills: .venv/.dev ## kill daemon, launchers, checks and hooks KILLS times in each test that kills; ROUNDS of faults of a team
	FAIRLEAD_KILLS=$(or $(KILLS),1000) $(BIN)/python -m pytest tests/mail/test_killing.py tests/daemon/test_reading.py \
	  tests/daemon/test_native_plans.py tests/daemon/test_leases.py tests/daemon/test_answers_and_leases.py \
	  -k "kill or answers_and_leases"
	FAIRLEAD_KILLS=$(or $(ROUNDS),100) $(BIN)/python -m pytest tests/team/test_chaos.py tests/team/test_offline_day.py

soak: .venv/.dev ## a daemon under load for MINUTES: memory, descriptors, delay, sizes, nothing lost; then more than is kept
	cd tests && ../$(BIN)/python -m soak --minutes $(or $(MINUTES),10)

check: .venv/.dev ## lint, formatting, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: .venv/.bench ## measure, print the table, keep bench/results.json
	@$(BIN)/python -m bench $(BENCH)

walk: .venv/.dev ## trace four events through the packages
	@$(BIN)/python bench/walk.py

docs: .venv/.dev ## write the generated parts of the reference again
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv $(LOWEST)

# What the product needs, and nothing else.
.venv/.installed: pyproject.toml hatch_build.py $(wildcard launcher/*.*)
	$(require_python)
	@$(PYTHON) tools/setup_venv.py .venv
	@touch $@

.venv/.dev: .venv/.installed
	@$(BIN)/python tools/setup_venv.py .venv --add dev
	@touch $@

.venv/.bench: .venv/.dev
	@$(BIN)/python tools/setup_venv.py .venv --add bench
	@touch $@

$(LOWEST)/.dev: pyproject.toml hatch_build.py $(wildcard launcher/*.*)
	$(require_python)
	@$(PYTHON) tools/setup_venv.py $(LOWEST) --lowest
	@$(LOWEST)/bin/python tools/setup_venv.py $(LOWEST) --add dev --lowest
	@touch $@
