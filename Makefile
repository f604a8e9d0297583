# One command each; CI runs the same ones. tools/bootstrap builds what they need.
.DEFAULT_GOAL := help
.PHONY: help demo check test sync lab soak bench clean venv

PYTHON := .venv/bin/python
NEWEST := .venv-newest/bin/python
PYTEST := -m pytest -n 3
CONFORMANCE := $(wildcard tests/*/test_*_conformance.py)
APART := --ignore=tests/simulation --ignore=tests/lab
MINUTES ?= 30

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: venv ## Install holdfast here and see two competitors take turns at one lock
	@PATH="$(CURDIR)/.venv/bin:$$PATH" examples/taking_turns

check: venv ## Lint, format, types, twins and layers: no test of behaviour
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	$(PYTHON) tools/unasync.py --check
	$(PYTHON) tools/api_reference.py --check
	$(PYTHON) tools/choosing.py --check
	$(PYTHON) -m pytest tests/test_architecture.py

# Tests wait more than they work: three at once keep two cores busy, and five those of the conformance
# suite, which wait for servers most of the time.
test: check ## Everything: check, tests with coverage, simulation and lab, tests on the newest Python
	$(PYTHON) -m pytest -n 5 --cov --cov-report= --cov-fail-under=0 $(CONFORMANCE)
	$(PYTHON) $(PYTEST) --cov --cov-append --ignore-glob='*_conformance.py' $(APART)
	$(PYTHON) $(PYTEST) --dist worksteal tests/lab tests/simulation
	@if [ -x $(NEWEST) ]; then \
		set -x; $(NEWEST) $(PYTEST) $(APART) -m "not slow"; \
	else \
		echo "newest Python: $$($(PYTHON) --version) is the newest here, and was just tested"; \
	fi

sync: venv ## Regenerate the _sync trees from the _async ones, and the API reference
	$(PYTHON) tools/unasync.py
	$(PYTHON) tools/api_reference.py
	$(PYTHON) tools/choosing.py

lab: venv ## Put every engine through every fault, and draw what happened: build/matrix.html
	@mkdir -p build
	.venv/bin/holdfast lab matrix --html build/matrix.html

# Soak tests outlast the limit that every other test has.
soak: venv ## Guards with 2,000 additions each, Redlock with slow nodes, lab and simulation for MINUTES=30 each
	@mkdir -p build
	HOLDFAST_CONTEST_ADDITIONS=2000 $(PYTHON) $(PYTEST) --timeout=0 tests/guards/test_contest.py
	HOLDFAST_SLOW_NODES=2,4 $(PYTHON) $(PYTEST) $(wildcard tests/_*/test_redlock_*.py)
	.venv/bin/holdfast lab soak --minutes $(MINUTES) --report build/soak.md
	HOLDFAST_SOAK_MINUTES=$(MINUTES) $(PYTHON) -m pytest --timeout=0 tests/simulation

bench: venv ## Measure every engine beside its floor and its peers: 15 minutes, build/bench.html
	@mkdir -p build
	.venv/bin/holdfast bench --peers --json build/bench.json --html build/bench.html --markdown build/bench.md

clean: ## Remove all that make and the tests leave behind, environments too
	rm -rf .venv .venv-newest build dist .coverage .coverage.* htmlcov
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@tools/bootstrap
