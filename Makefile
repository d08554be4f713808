# make demo   install everything, then pre-train a small ELECTRA and show the false negatives it found
# make test   install everything, then lint and run all tests
# make soak   install everything, then the tests that take long: kills, many workers, overflows, files with random damage
# make bench  install everything, then measure speed and memory beside a loop over the classes of transformers

PYTHON ?= python3
VENV ?= .venv
DEMO ?= demo
BENCH ?= benchmark

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test soak bench lint clean

demo: $(VENV)/.ready
	$(BIN)/python examples/quickstart/quickstart.py --output $(DEMO)

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

soak: $(VENV)/.ready
	$(BIN)/python -m pytest -m soak -s tests/soak

bench: $(VENV)/.ready
	$(BIN)/python examples/benchmark.py --output $(BENCH)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# torch and what fairseq is built with come first: fairseq's source build needs them at hand (about 6 minutes on Python
# 3.11; Python 3.12 has a wheel). fairseq also asks for torchaudio, which it imports for speech only; beside a torch
# without CUDA it cannot load its library, and then transformers fails too: a broken one is taken out again.
$(VENV)/.ready: setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 13) else \
		"error: $(PYTHON) is Python %d.%d; name a Python 3.11 or 3.12: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "installing into $(VENV): torch, fairseq (built from source on Python 3.11: about 6 minutes), and the rest"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch numpy cython setuptools wheel
	$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --no-deps fairseq-fixed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test]'
	@$(BIN)/python -c 'import torchaudio' 2>/dev/null || $(PIP) uninstall --quiet --yes torchaudio
	$(BIN)/python -c 'from tn_fairseq.synonyms.wordnet import ensure_wordnet; ensure_wordnet()'
	@touch $@

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info
