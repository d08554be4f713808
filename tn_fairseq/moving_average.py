"""fairseq's moving average of the weights (``--store-ema``) takes what is no weight as it is.

It would average the integers of a checkpoint, too, such as our models' mark of their dictionary, and fails on them.
"""

from collections.abc import Callable
from functools import wraps

from fairseq.models.ema.ema import EMA


def install() -> None:
    """Have fairseq average floating-point numbers only."""
    EMA.__init__ = skip_integers(EMA.__init__)


def skip_integers(init: Callable) -> Callable:
    """``EMA.__init__``, which tells the average to copy the integers of its model."""

    @wraps(init)
    def __init__(average: EMA, model, *args, **options):
        init(average, model, *args, **options)
        integers = {name for name, tensor in model.state_dict().items() if not tensor.is_floating_point()}
        average.skip_keys = average.skip_keys | integers

    return __init__
