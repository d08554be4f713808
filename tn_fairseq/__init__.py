"""Pre-training on true negatives, as a fairseq plugin: ``fairseq-train DATA_BIN --user-dir tn_fairseq ...``.

Without fairseq, this imports nothing, and the modules that do not need it still work.
"""

import importlib.util
import sys
import warnings
from functools import cache
from typing import Any


@cache
def register() -> None:
    """Register the plugin if fairseq is installed; ``import tn_fairseq`` does so after ``import fairseq``."""
    if importlib.util.find_spec("fairseq"):
        with warnings.catch_warnings():
            # from torch 2.14 on, about fairseq's own functions
            warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")
            importlib.import_module("fairseq")
        # fairseq imports a plugin's tasks and models by itself, but not its criteria and optimizers
        from . import criterions, fairseq_patches, models, optim, tasks  # noqa: F401

        fairseq_patches.settings.check_recipe()


# as a plugin of fairseq; a command registers when it knows that it needs fairseq, which takes seconds to import
if "fairseq" in sys.modules:
    register()


def __getattr__(name: str) -> Any:
    if name == "from_pretrained":  # imported when it is used, because training does not need it
        register()
        from .huggingface.hub_interface import from_pretrained

        return from_pretrained
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
