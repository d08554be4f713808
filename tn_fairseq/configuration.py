"""fairseq-train's configuration, made in a program instead of on a command line."""

import logging
import warnings
from collections.abc import Sequence

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import DictConfig


def training_config(flags: Sequence[object]) -> DictConfig:
    """The configuration that fairseq-train makes of these words, without the warnings of its ways with Hydra."""
    logging.getLogger("hydra").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = options.parse_args_and_arch(options.get_training_parser(), [str(flag) for flag in flags])
        return convert_namespace_to_omegaconf(args)
