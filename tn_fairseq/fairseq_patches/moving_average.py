"""fairseq's moving average of the weights (``--store-ema``) copies integer and frozen tensors without averaging.

fairseq would try to average integers, such as the dictionary fingerprint of our models, and fail. The average of equal
weights differs from them by rounding.
"""

from collections.abc import Callable
from functools import wraps

from fairseq.models.ema.ema import EMA


def install() -> None:
    """Make fairseq average only floating-point tensors that are trained."""
    EMA.__init__ = skip_constants(EMA.__init__)


def skip_constants(init: Callable) -> Callable:
    """``EMA.__init__`` that makes the average copy the model's integer and frozen tensors."""

    @wraps(init)
    def __init__(average: EMA, model, *args, **options):
        init(average, model, *args, **options)
        integers = {name for name, tensor in model.state_dict().items() if not tensor.is_floating_point()}
        frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
        average.skip_keys = average.skip_keys | integers | frozen

    return __init__
