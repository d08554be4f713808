"""fairseq-train's configuration, made in a program instead of on a command line."""

import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import DictConfig

from .errors import InputError


def training_config(flags: Sequence[object]) -> DictConfig:
    """The configuration that fairseq-train makes of these words, without the warnings of its ways with Hydra."""
    logging.getLogger("hydra").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = options.parse_args_and_arch(options.get_training_parser(), [str(flag) for flag in flags])
        return convert_namespace_to_omegaconf(args)


def as_argument(path: str | Path) -> str:
    """The path as a word of fairseq-train's command line, where a leading dash would make it an option."""
    return os.path.join(os.curdir, path) if str(path).startswith("-") else str(path)


def check_data_folder(path: str | Path) -> None:
    """Raises InputError for a folder that is there, but whose name means something else to fairseq."""
    for sign, meaning in ((os.pathsep, "the gap between two data folders"), ("${", "the name of an option")):
        if sign in str(path) and os.path.isdir(path):
            raise InputError(f"{path}: fairseq takes {sign} for {meaning}; rename the folder, or give a link to it")
