# make install  install everything into .venv (TORCH=cpu gets the small torch, without CUDA)
# make demo   install everything, continue half of a small BERT with three objectives and show what they get wrong
#             (OPEN=1 opens the page of results in a browser)
# make demo-from-scratch  the same with a tokenizer and an ELECTRA trained from nothing
# make test   install everything, lint and run all tests but the slow ones
# make study  install everything, compare objectives over several seeds (SIZE=tiny, cpu or gpu)
# make slow   install everything, run the slow tests
# make soak   install everything, run the slow and the longest tests: kills, many workers, randomly damaged files
#             (SOAK='-k workers' runs some of them)
# make docs   install everything, build the site of the guides into site/
# make dist   install everything, build the sdist and the wheel, and check them
# make bench  install everything, compare speed and memory with a training loop over the classes of transformers
# make gpu-bundle  install everything, collect in one folder what a GPU machine without a network needs for
#             examples/benchmark_gpu.py: our package, and the wheels that a machine with torch and transformers lacks

PYTHON ?= python3
VENV ?= .venv
TORCH ?=
DEMO ?= demo
OPEN ?=
STUDY ?= study
SIZE ?= tiny
SOURCES ?=
BENCH ?= benchmark
BUNDLE ?= gpu-bundle
# for the Python of the GPU machine
BUNDLE_PYTHON ?= 3.12
BUNDLE_WHEELS = ve-fairseq hydra-core omegaconf bitarray cffi pycparser nltk defusedxml lemminflect
SOAK ?=

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check

.PHONY: install demo demo-from-scratch study test slow soak docs dist bench gpu-bundle lint clean

install: $(VENV)/.ready

demo: $(VENV)/.ready
	@$(BIN)/python examples/quickstart/quickstart.py --output $(DEMO) $(if $(OPEN),--open)

demo-from-scratch: $(VENV)/.ready
	@$(BIN)/python examples/quickstart/quickstart.py --output $(DEMO)-from-scratch --from-scratch $(if $(OPEN),--open)

study: $(VENV)/.ready
	$(BIN)/tn-fairseq study $(SIZE) --output $(STUDY) $(SOURCES)

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

slow: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow

soak: $(VENV)/.ready
	$(BIN)/python -m pytest -m 'slow or soak' --timeout 0 -s $(SOAK)

docs: $(VENV)/.ready
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

dist: $(VENV)/.ready
	$(PIP) install --quiet --constraint constraints.txt build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

bench: $(VENV)/.ready
	$(BIN)/python examples/benchmark.py --output $(BENCH)

gpu-bundle: $(VENV)/.ready
	rm -rf $(BUNDLE)
	$(PIP) download --quiet --no-deps --only-binary :all: --implementation cp --python-version $(BUNDLE_PYTHON) \
		--platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
		--constraint constraints.txt --dest $(BUNDLE)/wheels $(BUNDLE_WHEELS)
	$(PIP) wheel --quiet --no-deps --constraint constraints.txt --wheel-dir $(BUNDLE)/wheels antlr4-python3-runtime .
	cp examples/benchmark.py examples/benchmark_gpu.py $(BUNDLE)
	@echo "copy $(BUNDLE) to the GPU machine, and type there:"
	@echo "  python -m pip install --no-index --no-deps --target site $(BUNDLE)/wheels/*.whl"
	@echo "  PYTHONPATH=site python $(BUNDLE)/benchmark_gpu.py --output gpu"

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

$(VENV)/.ready: install.py setup.py constraints.txt fairseq.txt
	@$(PYTHON) install.py $(VENV) $(if $(TORCH),--torch $(TORCH))
	@touch $@

clean:
	rm -rf $(VENV) $(DEMO) $(DEMO)-from-scratch build dist site *.egg-info
