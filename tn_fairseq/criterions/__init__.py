"""The criteria: each file is named after its flag, ``--criterion NAME``."""

from importlib import import_module
from pkgutil import iter_modules

for module in iter_modules(__path__):  # fairseq does the same with tasks and models
    import_module(f"{__name__}.{module.name}")
