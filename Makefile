# `make run` starts everything, `make test` tests it. Both set up what they need, once.
#   make run ARGS="--port 9000 --ctx-size 4096"      make test ARGS="tests/engine -x"
PYTHON ?= python3
PY := .venv/bin/python
ARGS ?=

.PHONY: run test lint bench chaos load screenshots messages setup setup-dev
.DEFAULT_GOAL := run

# exec: a signal reaches the server itself, and its exit code is the recipe's
run: setup
	@exec $(PY) manage.py serve $(ARGS)

test: setup-dev
	@$(PY) deploy/setup.py --browser
	@$(PY) manage.py fetch_model
	@exec $(PY) -m pytest $(or $(ARGS),-n 2 --dist loadscope)

lint: setup-dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy .

bench: setup-dev
	@exec $(PY) -m tests.bench $(ARGS)

chaos: setup-dev
	@$(PY) manage.py fetch_model
	@exec $(PY) -m tests.chaos $(ARGS)

load: setup-dev
	@$(PY) manage.py fetch_model
	@exec $(PY) -m tests.chaos.load $(ARGS)

screenshots: setup-dev
	@$(PY) deploy/setup.py --browser
	@exec $(PY) -m tests.e2e.screenshots $(ARGS)

# Needs GNU gettext. The compiled catalogs are kept in the repository, so that running Berth does not.
messages: setup-dev
	@for app in dashboard inference; do cd $$app && ../$(PY) ../manage.py makemessages -l de --no-wrap --no-obsolete --add-location never -v 0 && cd ..; done
	@cd dashboard && ../$(PY) ../manage.py makemessages -d djangojs -l de --no-wrap --no-obsolete --add-location never -v 0 -i 'vendor'
	@for app in dashboard inference; do (cd $$app && ../$(PY) ../manage.py compilemessages -v 0); done

setup setup-dev:
	@command -v $(PYTHON) >/dev/null || { echo "make: there is no $(PYTHON); install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) deploy/setup.py $(if $(filter setup-dev,$@),--dev)
