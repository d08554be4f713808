"""fairseq's moving average of the weights (``--store-ema``) copies integer tensors without averaging.

fairseq would try to average them, such as the dictionary fingerprint of our models, and fail.
"""

from collections.abc import Callable
from functools import wraps

from fairseq.models.ema.ema import EMA


def install() -> None:
    """Make fairseq average only floating-point tensors."""
    EMA.__init__ = skip_integers(EMA.__init__)


def skip_integers(init: Callable) -> Callable:
    """``EMA.__init__`` that makes the average copy the model's integer tensors."""

    @wraps(init)
    def __init__(average: EMA, model, *args, **options):
        init(average, model, *args, **options)
        integers = {name for name, tensor in model.state_dict().items() if not tensor.is_floating_point()}
        average.skip_keys = average.skip_keys | integers

    return __init__
