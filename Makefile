# make install  install everything into .venv
# make demo   install everything, continue a small BERT twice and show its false negatives
#             (OPEN=1 opens the page of results in a browser)
# make demo-from-scratch  the same with a tokenizer and an ELECTRA trained from nothing
# make test   install everything, lint and run all tests
# make study  install everything, compare objectives over several seeds (SIZE=tiny, cpu or gpu)
# make slow   install everything, run the slow tests
# make soak   install everything, run the slow and the longest tests: kills, many workers, randomly damaged files
#             (SOAK='-k workers' runs some of them)
# make dist   install everything, build the sdist and the wheel, and check them
# make bench  install everything, compare speed and memory with a training loop over the classes of transformers

PYTHON ?= python3
VENV ?= .venv
DEMO ?= demo
OPEN ?=
STUDY ?= study
SIZE ?= tiny
SOURCES ?=
BENCH ?= benchmark
SOAK ?=

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
# uv is several times as fast as pip
INSTALL = $(if $(shell command -v uv),$(BIN)/python uv_pip.py --quiet,$(PIP) install --quiet)

.PHONY: install demo demo-from-scratch study test slow soak dist bench lint clean

install: $(VENV)/.ready

demo: $(VENV)/.ready
	@$(BIN)/python examples/quickstart/quickstart.py --output $(DEMO) $(if $(OPEN),--open)

demo-from-scratch: $(VENV)/.ready
	@$(BIN)/python examples/quickstart/quickstart.py --output $(DEMO)-from-scratch --from-scratch $(if $(OPEN),--open)

study: $(VENV)/.ready
	$(BIN)/python examples/study/study.py $(SIZE) --output $(STUDY) $(SOURCES)

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

slow: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow

soak: $(VENV)/.ready
	$(BIN)/python -m pytest -m 'slow or soak' --timeout 0 -s $(SOAK)

dist: $(VENV)/.ready
	$(PIP) install --quiet --constraint constraints.txt build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

bench: $(VENV)/.ready
	$(BIN)/python examples/benchmark.py --output $(BENCH)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

# fairseq has no wheel except on x86-64 Linux. Elsewhere pip builds it from source, which needs torch, numpy, cython and
# setuptools to be installed first. fairseq requires torchaudio, but uses it for speech only. torchaudio from PyPI needs
# CUDA: with a CPU torch it cannot be imported, and then the models of transformers cannot be imported either.
$(VENV)/.ready: setup.py constraints.txt fairseq.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 13) else \
		"error: $(PYTHON) is Python %d.%d; use Python 3.11 or 3.12: make PYTHON=python3.12; or with uv: " \
		"uv run --no-project --python 3.12 make" % sys.version_info[:2])'
	@$(PYTHON) -m venv $(VENV)
	@echo "[1/4] torch and numpy (about 800 MB on disk, and several GB more if your index has torch with CUDA)"
	@$(INSTALL) --constraint constraints.txt torch numpy cython setuptools
	@echo "[2/4] fairseq (about 60 MB)"
	@$(INSTALL) --no-build-isolation --no-deps --require-hashes --requirement fairseq.txt
	@echo "[3/4] this package and all that its extras and tests need (about 700 MB)"
	@$(INSTALL) --constraint constraints.txt --editable '.[test]'
	@$(BIN)/python -c 'import torchaudio' 2>/dev/null || $(PIP) uninstall --quiet --yes torchaudio
	@echo "[4/4] WordNet (about 40 MB)"
	@$(BIN)/python -W ignore -m tn_fairseq.synonyms.fetch_wordnet
	@touch $@

clean:
	rm -rf $(VENV) $(DEMO) $(DEMO)-from-scratch build dist *.egg-info
