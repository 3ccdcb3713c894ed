# Every target sets up what it needs in VENV. On a fresh machine with Python 3.11+, pip and make: `make demo`, `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# The parity tier finds official tokenizers and templates here, and is absent where the folder is.
ASSETS := $(or $(RENDERERS_ASSETS),../shared/assets)

.PHONY: demo test engines vllm fuzz check bench golden oldest clean

demo: $(VENV)/.demo
	@$(BIN)/renderers demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

# The engines with a transformers model, in an environment of its own: torch is too large for everybody's.
engines: $(VENV)-engines/.dev
	OMP_NUM_THREADS=1 $(VENV)-engines/bin/python -m pytest -n 2 tests/engines tests/examples tests/trajectory/test_trajectory_torch.py

# The clients against a real vLLM on the CPU. Its environment takes some minutes and 3.4 GB, and RECORD=1 records anew.
vllm: $(VENV)/.dev $(VENV)-vllm/.server
	$(BIN)/python tests/engines/vllm_server.py test $(VENV)-vllm $(if $(RECORD),--record)

# The counts that the project's claims rest on. EXAMPLES sets the number for each property.
EXAMPLES ?= 5000
fuzz: $(VENV)/.dev
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n 2 -m "not slow" --hypothesis-profile=fuzz

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The parity tests against the oldest transformers that is supported.
oldest: $(VENV)-oldest/.dev
	$(VENV)-oldest/bin/python -m pytest -n 2 tests/families tests/template

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

golden: $(VENV)/.dev
	RENDERERS_ASSETS=$(ASSETS) $(BIN)/python -m golden.record

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[cli]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[transformers,cli,testing,engines,arrow,dev]'
	@touch $@ $(VENV)/.demo

$(VENV)-engines/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-engines
	$(VENV)-engines/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
		--constraint constraints.txt --editable '.[transformers,cli,testing,engines,local,arrow]' pytest pytest-xdist numpy
	$(VENV)-engines/bin/python -c 'import torch; print("torch", torch.__version__)'
	@touch $@

$(VENV)-vllm/.server: tests/engines/vllm_server.py | $(VENV)/bin/python
	$(BIN)/python tests/engines/vllm_server.py install $(VENV)-vllm
	@touch $@

$(VENV)-oldest/.dev: pyproject.toml oldest.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint oldest.txt \
		--editable '.[transformers,cli,testing,dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-bench $(VENV)-engines $(VENV)-oldest $(VENV)-vllm build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
