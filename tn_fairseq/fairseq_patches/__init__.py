"""Functions of fairseq that the plugin replaces because there is no hook; README.md lists and explains all of them."""

from . import bf16, durable_checkpoints, loaders, mixed_precision, resuming, settings, training, workers  # noqa: F401
