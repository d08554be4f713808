"""fairseq-train's configuration, built in Python instead of on the command line."""

import logging
import os
import warnings
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.utils import import_user_module
from omegaconf import DictConfig

from .errors import InputError, first_line


def parse_training_flags(flags: Sequence[object]) -> Namespace:
    """The arguments of fairseq-train; exits if it would refuse one. The configuration below takes 20 times as long."""
    import_module(__package__.partition(".")[0]).register()  # all that flags may name
    return options.parse_args_and_arch(options.get_training_parser(), [str(flag) for flag in flags])


def import_plugin(user_dir: str | Path | None) -> None:
    """Import a plugin as ``--user-dir`` of fairseq does; raises InputError if that fails."""
    try:
        import_user_module(Namespace(user_dir=user_dir))
    except Exception as error:  # whatever the plugin does
        kind = type(error).__name__
        fault = f"--user-dir {user_dir}: cannot be imported ({kind}: {first_line(error)})"
        raise InputError(f"{fault}; give a plugin's folder, or repair it") from None


def training_config(flags: Sequence[object]) -> DictConfig:
    """The configuration that fairseq-train makes from these flags, without Hydra's warnings."""
    logging.getLogger("hydra").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return convert_namespace_to_omegaconf(parse_training_flags(flags))


def as_argument(path: str | Path) -> str:
    """The path as an argument of fairseq-train, with ``./`` before a leading dash, which would make it an option."""
    return os.path.join(os.curdir, path) if str(path).startswith("-") else str(path)


def check_data_folder(path: str | Path) -> None:
    """Raises InputError if the folder exists but fairseq would misread its name."""
    for sign, meaning in ((os.pathsep, "the separator of two data folders"), ("${", "the name of an option")):
        if sign in str(path) and os.path.isdir(path):
            raise InputError(f"{path}: fairseq takes {sign} for {meaning}; rename the folder, or make a link to it")
