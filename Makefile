# Everything runs in a virtual environment of the project's own; `make demo` and `make test` need nothing but Python 3.11.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test check install bench clean

demo: $(VENV)/.installed
	rm -rf demo && mkdir demo
	$(BIN)/dialoom run personalens --users 6 --setting base --setting I --model offline/attentive --seed 7 -o demo/run.db
	$(BIN)/dialoom show demo/run.db 2
	$(BIN)/dialoom report demo/run.db -o demo/report > /dev/null
	$(BIN)/dialoom export demo/run.db -o demo/dialogues.jsonl > /dev/null
	$(BIN)/dialoom report demo/run.db --table scores --table dialogues
	@echo "Everything is in demo/: run.db (the run: dialogues, judgements, every call and every checkpoint),"
	@echo "dialogues.jsonl (one dialogue a line), report/ (Markdown and CSV)."
	@echo "Look further: $(BIN)/dialoom show demo/run.db | head; $(BIN)/dialoom status demo/run.db; $(BIN)/dialoom --help"

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses 2

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/planning.py

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("dialoom needs Python 3.11 or newer, this is %s" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
