"""Functions of fairseq that the plugin replaces because there is no hook; docs/fairseq-changes.md lists all."""

from . import bf16, durable_checkpoints, mixed_precision, resuming, settings, training, workers  # noqa: F401
