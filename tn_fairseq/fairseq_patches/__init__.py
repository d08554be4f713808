"""Functions of fairseq that the plugin replaces because there is no hook; README.md lists and explains all of them."""

from . import background_threads, distributed, divergence, durable_checkpoints, moving_average, settings_check


def install() -> None:
    """Replace fairseq's functions in this process, and check its flags if it is fairseq-train or fairseq-validate."""
    for module in (background_threads, distributed, divergence, durable_checkpoints, moving_average, settings_check):
        module.install()
    settings_check.check_command()
