"""Functions of fairseq that the plugin replaces because there is no hook; README.md lists and explains all of them."""

from . import (
    background_threads,
    bf16,
    distributed,
    divergence,
    durable_checkpoints,
    moving_average,
    settings_check,
    starting_generator,
)

# in this order: the last three wrap what durable_checkpoints replaces
PARTS = (
    background_threads,
    distributed,
    divergence,
    durable_checkpoints,
    moving_average,
    bf16,
    settings_check,
    starting_generator,
)


def install() -> None:
    """Replace fairseq's functions in this process, and check its flags if it is fairseq-train or fairseq-validate."""
    for part in PARTS:
        part.install()
    settings_check.check_command()
