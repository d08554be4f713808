"""The task: ``--task electra``."""

from . import electra  # noqa: F401
