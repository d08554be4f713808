"""Fixtures for the toy language of helpers.py."""

import ctypes
import gc
import logging
import os
import platform
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from composing import fast
from fairseq import options, tasks
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass import utils as fairseq_dataclasses
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from fork_server import BIN, VARIABLES, served_folder
from helpers import FAMILIES, WORDS, save_random_model, synonyms_of, write_data_bin, write_table
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

import tn_fairseq  # noqa: F401  registers the plugin's models, tasks and criteria
from tn_fairseq.core.configuration import training_config
from tn_fairseq.core.dictionary import load_dictionary

GLIBC = platform.libc_ver()[0] == "glibc"
# without the folder of an activated environment, so that tests do not depend on one
os.environ["PATH"] = os.pathsep.join(path for path in os.environ["PATH"].split(os.pathsep) if Path(path) != BIN)
logging.disable = lambda level=None: None  # commands that tests call in this process would affect later tests
tqdm.monitor_interval = 0  # a process that is forked while tqdm's thread holds a lock would wait for it forever
torch.set_num_threads(1)  # more threads are slower at this size, and would change the order of sums
fairseq_dataclasses.compose = fast(fairseq_dataclasses.compose)
gc.collect()
gc.freeze()  # so that later collections skip the imported modules


@pytest.fixture(scope="module", autouse=True)
def return_freed_memory():
    """A model that trains in this process makes glibc keep freed memory (modules/memory.py)."""
    yield
    if GLIBC:
        gc.collect()
        gc.freeze()  # what is left, such as modules that the tests imported, stays
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="session")
def data_bin(tmp_path_factory) -> Path:
    return write_data_bin(tmp_path_factory.mktemp("data-bin"))


@pytest.fixture(scope="session")
def dictionary(data_bin) -> Dictionary:
    return load_dictionary(data_bin / "dict.txt")


@pytest.fixture(scope="session")
def synonym_table(tmp_path_factory, dictionary) -> Path:
    path = tmp_path_factory.mktemp("table") / "synonyms.safetensors"
    return write_table(path, dictionary, {word: synonyms_of(word) for word in WORDS})


@pytest.fixture(scope="session")
def empty_table(tmp_path_factory, dictionary) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "empty.safetensors", dictionary, {})


@pytest.fixture(scope="session")
def teacher(tmp_path_factory, data_bin) -> Path:
    """A checkpoint with confident random predictions, for ``--distillation-teacher``."""
    cfg = training_config([data_bin, *FAMILIES["bert"].split(), "--tokens-per-sample", 32])
    return save_random_model(tmp_path_factory.mktemp("teacher") / "teacher.pt", cfg, seed=9)


def section(dataclass: type[FairseqDataclass], name: str, args: Namespace) -> DictConfig:
    """A section of fairseq-train's configuration, without Hydra, which takes a second."""
    return OmegaConf.structured(replace(dataclass.from_namespace(args), _name=name))


@pytest.fixture
def build(data_bin, teacher):
    """Build (task, model, criterion) from a family of models and additional flags of fairseq-train."""

    def build_all(family: str, *flags: object):
        if "mlm_distillation" in flags and not {"--distillation-teacher", "--distillation-draws"} & {*flags}:
            flags = (*flags, "--distillation-teacher", teacher)
        flags = [data_bin, *FAMILIES[family].split(), "--criterion", "electra", "--tokens-per-sample", 32, *flags]
        args = options.parse_args_and_arch(options.get_training_parser(), list(map(str, flags)))
        torch.manual_seed(1)
        task = tasks.setup_task(section(TASK_DATACLASS_REGISTRY[args.task], args.task, args))
        model = MODEL_DATACLASS_REGISTRY.get(args.arch)
        model = section(model, args.arch, args) if model else OmegaConf.create({**vars(args), "_name": args.arch})
        criterion = section(CRITERION_DATACLASS_REGISTRY[args.criterion], args.criterion, args)
        return task, task.build_model(model), task.build_criterion(criterion)

    return build_all


@pytest.fixture
def served_programs(monkeypatch) -> None:
    """The fork server also runs the Python programs that functions called in this process start."""
    monkeypatch.setattr(sys, "executable", str(served_folder() / "python"))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def quickstart_recipe() -> Path:
    return Path(__file__).parent.parent / "examples" / "quickstart" / "electra_tiny.yaml"
