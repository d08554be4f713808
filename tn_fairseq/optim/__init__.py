"""The optimizer: ``--optimizer electra_adamw``."""

from . import electra_adamw  # noqa: F401
