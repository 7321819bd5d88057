# Everything happens in .venv; nothing else is needed than Python 3.11+, a C++ compiler and the package registries.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src CMakeLists.txt pyproject.toml -type f ! -name '*.pyc' 2>/dev/null)
EDITABLE := $(wildcard $(VENV)/.editable)
GROUPS := --group test --group browser --group docs --group paper --group lint
FAST := not (slow or browser or spark or dask or paper)

.PHONY: demo dev test check test-oldest peers fuzz lint bench bench-check docs paper sanitize clean
.DELETE_ON_ERROR:

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

# An editable install follows src/ by itself. It is built without isolation: what builds the kernels anew, at an import,
# must still be there then.
$(VENV)/.installed: $(BIN)/python $(if $(EDITABLE),CMakeLists.txt pyproject.toml,$(SOURCES))
	$(BIN)/python -m pip install --quiet $(GROUPS) $(if $(EDITABLE),--group dev) .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip install --quiet --force-reinstall --no-deps $(if $(EDITABLE),\
	    --no-build-isolation -C build-dir=build/editable -C editable.mode=redirect -C editable.rebuild=true \
	    -C editable.verbose=false -e) .
	touch $@

dev: $(BIN)/python  ## from now on .venv follows src/: Python at once, the kernels at the next import
	touch $(VENV)/.editable
	rm -f $(VENV)/.installed
	$(MAKE) $(VENV)/.installed

$(VENV)-oldest/.installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-oldest/bin/python -m pip install --quiet --group oldest .
	$(VENV)-oldest/bin/python -m pip install --quiet --force-reinstall --no-deps .
	touch $@

demo: $(VENV)/.installed  ## the main job on built-in data: a table, a verdict and a page
	$(BIN)/boostbins demo

test: $(VENV)/.installed  ## all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile

check: $(VENV)/.installed lint  ## before a commit: the linters and the fast tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile -m "$(FAST)"

# Old libraries warn of newer ones beside them: their warnings are no errors here.
test-oldest: $(VENV)-oldest/.installed  ## the adapters with the oldest versions of the libraries
	OMP_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -q -n auto --dist loadfile -o filterwarnings= -W ignore tests/sources \
	    tests/adapters tests/lightgbm tests/xgboost tests/test_catboost*.py tests/test_sklearn.py tests/test_cache.py tests/test_transformer.py \
	    tests/comparison tests/reporting/test_facts.py

peers: $(VENV)/.installed  ## the libraries' own tests, with our classes in the place of theirs
	$(BIN)/python -m tests.peers sklearn -n auto

SECONDS ?= 60
SEED ?= 0

fuzz: $(VENV)/.installed  ## random cases for as long as SECONDS says
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED)

lint: $(VENV)/.installed  ## the linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror src/boostbins/_core/*.hpp src/boostbins/_core/*.cpp
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

bench: $(VENV)/.installed  ## every figure of the README and of docs/figures.md
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/sizes.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/adapters.py
	$(BIN)/python benchmarks/accuracy.py

bench-check: $(VENV)/.installed  ## what has got slower since the ratios that were kept
	$(BIN)/python benchmarks/sizes.py --check benchmarks/sizes.json

docs: $(VENV)/.installed  ## the site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

paper: $(VENV)/.installed  ## the paper in small: every experiment, a page of tables and figures (some minutes)
	$(BIN)/python -m paper run all --protocol smoke --out paper-report

sanitize:  ## the kernels' tests under AddressSanitizer and UBSan
	tests/sanitize.sh $(PYTHON)

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-sanitize build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache site
