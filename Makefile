# Two commands on a fresh machine: `make demo` and `make test`.
# Needed beforehand: Python 3.11 or newer with venv, make, g++ and perl.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

# Tests start some hundred processes: bytecode is kept, whatever the environment says, and in $(VENV).
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.PHONY: demo test lint docs bench figures fuzz quality hashes clean

demo: $(VENV)/demo.stamp
	$(BIN)/axs6 demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy -p axs6

# Checks transcripts and figures, and builds the site in build/site; `mkdocs serve` shows it at work.
docs: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -q -n 2 tests/test_transcripts.py tests/test_figures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/golden.py
	$(BIN)/python benchmarks/simulators.py
	$(BIN)/python benchmarks/bridge.py

# Measures the figures of README and docs that are out of date, or those of ONLY; LIBERTY=FILE is
# the full sky130 library, which one of them needs.
figures: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/figures.py $(addprefix --only ,$(ONLY)) $(addprefix --liberty ,$(LIBERTY))

fuzz: $(VENV)/dev.stamp
	$(PIP) -e ".[fuzz]"
	$(BIN)/python fuzz/run.py

# Measures area and depth of the units, or of those of ONLY, anew: commit the table with what
# changed it.
quality: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/quality.py tests/synth/quality.csv $(ONLY)

# Hashes the Verilog of many designs, or of those of the units in ONLY, anew: commit the list with
# what changed it.
hashes: $(VENV)/dev.stamp
	$(BIN)/python tests/hw/test_verilog_hashes.py $(ONLY)

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "axs6: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 2; }
	@for tool in g++ perl; do command -v $$tool >/dev/null || \
	  { echo "axs6: $$tool is needed on PATH (Verilator builds simulations with it)"; exit 2; }; done
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "axs6: Python's venv module is needed (apt install python3-venv)"; exit 2; }
	@touch $@

$(VENV)/demo.stamp: $(VENV)/python.stamp pyproject.toml constraints.txt
	@echo "installing what the demo needs into $(VENV)"
	$(PIP) -e ".[demo]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	@echo "installing what the tests need into $(VENV)"
	$(PIP) -e ".[dev]"
	@touch $@
