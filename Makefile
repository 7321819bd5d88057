# Everything happens in .venv; nothing else is needed than Python 3.11+, a C++ compiler and the package registries.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src CMakeLists.txt pyproject.toml -type f ! -name '*.pyc' 2>/dev/null)

.PHONY: demo test lint bench sanitize clean
.DELETE_ON_ERROR:

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --group test --group lint ".[sklearn,plot]"
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

demo: $(VENV)/.installed  ## bin a skewed table by each method: a table and a picture
	$(BIN)/python -m boostbins.demo

test: $(VENV)/.installed  ## all tests
	$(BIN)/python -m pytest -q

lint: $(VENV)/.installed  ## the linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror src/boostbins/_core/*.hpp src/boostbins/_core/*.cpp

bench: $(VENV)/.bench  ## every figure of the README
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/memory.py

sanitize: $(BIN)/python  ## the kernels under AddressSanitizer and UBSan
	benchmarks/sanitize.sh $(BIN)/python

clean:
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
