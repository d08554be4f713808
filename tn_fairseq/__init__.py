"""Pre-training on true negatives, as a fairseq plugin: ``fairseq-train DATA_BIN --user-dir tn_fairseq ...``.

Without fairseq, this imports nothing, and the modules that do not need it still work.
"""

import importlib.util
import sys
from typing import Any

# `python -m tn_fairseq` only prints this folder, and `doctor` checks whether torch and fairseq can be imported. Python
# sets sys.argv[0] to "-m" while it imports the parent packages of the module to run.
if not (sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] == __name__) and importlib.util.find_spec("fairseq"):
    # fairseq imports a plugin's tasks and models by itself, but not its criteria and optimizers
    from . import criterions, fairseq_patches, models, optim, tasks  # noqa: F401

    fairseq_patches.settings.check_recipe()


def __getattr__(name: str) -> Any:
    if name == "from_pretrained":  # imported when it is used, because training does not need it
        from .huggingface.hub_interface import from_pretrained

        return from_pretrained
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
