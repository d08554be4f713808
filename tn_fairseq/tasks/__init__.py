"""The tasks: ``--task electra|squad``."""

from . import electra, squad  # noqa: F401
