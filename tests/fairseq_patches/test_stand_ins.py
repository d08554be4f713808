"""Every replacement does what fairseq's function does for configurations, trainers and models of other programs."""

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock, patch

import pytest
import torch
from fairseq import file_io, options
from fairseq.dataclass.configs import EMAConfig
from fairseq.distributed import utils as distributed_utils
from fairseq.models.ema.ema import EMA
from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin
from fairseq.trainer import Trainer
from helpers import FAMILIES, training_flags
from omegaconf import OmegaConf
from torch import nn

from tn_fairseq.fairseq_patches.replacing import REPLACED


def outcome(call: Callable, *args: object, **named: object) -> object:
    """What a call returns, or the error that it raises."""
    try:
        return call(*args, **named)
    except (Exception, SystemExit) as error:
        return type(error), str(error)


def save(function: Callable, folder) -> object:
    """A file of iopath, which cannot be renamed; and fairseq's names of the arguments."""
    with patch.object(file_io.PathManager, "supports_rename", lambda path: False):
        function(obj=[1], filename=str(folder / "a.pt"), async_write=False)
    return torch.load(folder / "a.pt"), [path.name for path in folder.iterdir()]


def copy(function: Callable, folder) -> object:
    """A copy onto an existing file, which fairseq replaces even without overwrite."""
    source, target = folder / "a", folder / "b"
    source.write_text("new")
    target.write_text("old")
    function(src_path=str(source), dst_path=str(target))
    return target.read_text()


def load(function: Callable, folder) -> object:
    """A state without a configuration, and one without a model."""
    last = {"num_updates": 1, "criterion_name": "x", "optimizer_name": "y", "lr_scheduler_state": {}}
    history = {"optimizer_history": [last], "last_optimizer_state": {}}
    found = []
    for part in ({"model": {"weight": torch.ones(1)}}, {"cfg": {"common": {"seed": 7}}}):
        torch.save({**history, **part, "extra_state": {"train_iterator": {"epoch": 1}}}, folder / "a.pt")
        found.append(function(path=folder / "a.pt", arg_overrides=None))
    return found


def verify(function: Callable, folder) -> object:
    function(save_dir=folder / "new")
    return [path.name for path in folder.iterdir()]


def resume(function: Callable, folder) -> object:
    """A configuration with what fairseq reads, and trainers that are mocks."""
    cfg = dict.fromkeys(("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader"), False)
    cfg |= {"optimizer_overrides": "{}", "finetune_from_model": None, "save_dir": str(folder)}
    found = []
    for restore_file in ("checkpoint_last.pt", "missing.pt"):
        settings = cfg | {"restore_file": restore_file}
        for kind in (OmegaConf.create, lambda settings: argparse.Namespace(**settings)):
            for trainer in (MagicMock(checkpoint_suffix=""), MagicMock(spec=Trainer, checkpoint_suffix="", task=None)):
                trainer.load_checkpoint.return_value = None
                state, iterator = function(kind(settings), trainer)
                found.append((state, iterator is trainer.get_train_iterator.return_value))
    return found


def save_run(function: Callable, folder) -> object:
    """Settings of another program, at the end of an epoch, and trainers that are mocks."""
    cfg = {"save_dir": str(folder), "no_epoch_checkpoints": True, "save_interval": 1, "save_interval_updates": 3}
    cfg |= {"no_save": False, "no_last_checkpoints": False, "keep_best_checkpoints": 0, "keep_last_epochs": 0}
    cfg |= {"maximize_best_checkpoint_metric": False, "keep_interval_updates": 0}
    cfg["write_checkpoints_asynchronously"] = True
    trainer = MagicMock(checkpoint_suffix="", data_parallel_rank=0)
    trainer.get_num_updates.return_value = 3
    epochs = MagicMock(epoch=1)
    function(argparse.Namespace(**cfg), trainer, epoch_itr=epochs, val_loss=None)
    return [Path(call.args[0]).name for call in trainer.save_checkpoint.call_args_list]


class Parser(argparse.ArgumentParser):
    """A parser that handles errors itself."""

    def error(self, message):
        raise ValueError(message)


def parse(function: Callable, _) -> object:
    flags = ["data", *FAMILIES["roberta"].split(), "--lr-scheduler", "polynomial_decay"]
    parser = options.get_training_parser()
    known = function(parser=parser, input_args=[*flags, "--total-num-update", "3", "--other"], parse_known=True)
    assert "error" not in vars(parser)  # it is still the program's own
    less = function(options.get_training_parser(), [*flags, "--total-num-update", "3"], suppress_defaults=True)
    own = Parser()
    own.add_argument("--number", type=int)
    return known[1], vars(less), outcome(function, own, ["--number", "x"])


def start(function: Callable, folder) -> object:
    """A program whose file has the name of one of fairseq's, and callables that are no functions."""
    names: dict = {}
    exec(compile("def main(cfg, **options): return called(cfg, **options)", folder / "train.py", "exec"), names)
    called = names["called"] = MagicMock()
    workers = {"distributed_init_method": None, "distributed_no_spawn": True, "distributed_world_size": 1}
    workers |= {"pipeline_model_parallel": False, "distributed_port": -1, "tpu": False}
    minimal = OmegaConf.create({"distributed_training": workers, "common": {"tpu": False}})
    bare = SimpleNamespace(distributed_training=SimpleNamespace(**workers), common=SimpleNamespace(tpu=False))
    for cfg in (minimal, bare):
        for main in (names["main"], called):
            function(cfg, main, more=1)
    return called.call_args_list


def broadcast(function: Callable, folder) -> object:
    with patch.object(distributed_utils, "_USE_XLA", True):  # where torch's process groups do not exist
        return outcome(function, obj=[1], src_rank=0, group=("tpu", [[0]]), dist_device=torch.device("cpu"))


def build_trainer(function: Callable, folder) -> object:
    """Flags of argparse, which fairseq still accepts, and a model and a task that are not ours."""
    flags = [*training_flags("data", folder)[3:], *FAMILIES["roberta"].split(), "--criterion", "masked_lm", "--bf16"]
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", *map(str, flags)])
    args.bf16 = args.tpu = False
    trainer = Trainer.__new__(Trainer)
    function(trainer, cfg=args, task=None, model=nn.Linear(1, 1), criterion=nn.Linear(1, 1))
    return trainer.cfg


def state_dict(function: Callable, _) -> object:
    trainer = MagicMock()
    state = function(trainer)
    return state["cfg"] is trainer.cfg, state.keys()


def train_step(function: Callable, _) -> object:
    """Samples that are tensors, for a stand-in and for a trainer that looks like fairseq's."""
    found = []
    for trainer in (MagicMock(), MagicMock(autocast=False)):
        trainer._prepare_sample.side_effect = FloatingPointError("of another program")
        samples = [torch.zeros(2), torch.ones(3)]
        result = outcome(function, trainer, samples) if "autocast" not in vars(trainer) else None
        trainer._prepare_sample.side_effect = KeyError("stop")
        found.append(
            (result, outcome(function, trainer, samples), trainer._prepare_sample.call_args[0][0] is samples[0])
        )
    return found


def clip(function: Callable, _) -> object:
    trainer = MagicMock()
    trainer.optimizer.clip_grad_norm.side_effect = OverflowError("of another program")
    return outcome(function, trainer, 1.0)


class Other(nn.Module):
    """A model that is not ours, with a frozen weight, complex numbers, and a state that is not a tensor."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        self.register_buffer("phase", torch.ones(1, dtype=torch.complex64))

    def get_extra_state(self):
        return {"version": 3}

    def set_extra_state(self, state):
        pass


def average(function: Callable, _) -> object:
    config = EMAConfig(store_ema=True, ema_decay=0.75)
    found = []
    for skipped in (None, ["weight"]):
        model, moving = Other(), EMA.__new__(EMA)
        function(moving, model=model, config=config, skip_keys=skipped)
        for tensor in (model.weight, model.frozen, model.phase):
            tensor.data.add_(1)
        moving.step(model)
        found.append([tensor.item() for tensor in moving.get_model().state_dict().values() if torch.is_tensor(tensor)])
    mocked = EMA.__new__(EMA)
    for kind in (Mock(), Mock(spec=nn.Module)):
        function(mocked, kind, config)
    return found, mocked.skip_keys


class Half(_FP16OptimizerMixin):
    """An optimizer of another program: a frozen weight, one that is not used, and copies that are flat or not."""

    def __init__(self, flat: bool):
        self.fp16_params = [nn.Parameter(torch.full((2,), value).half()) for value in (1.0, 2.0, 3.0, 4.0)]
        self.fp16_params[1].requires_grad_(flat)
        if flat:  # one vector for each device, as on a GPU
            copies = nn.Parameter(torch.cat([parameter.detach().float() for parameter in self.fp16_params]))
            copies.grad = torch.ones_like(copies)
            self.fp32_params = {None: copies}
        else:
            self.fp32_params = self.build_fp32_params(None, self.fp16_params, flatten=False)
        for place in (0, 3):
            self.fp16_params[place].grad = torch.full((2,), 5.0).half()
        self.scaler, self._needs_sync, self._multiply_factor = None, True, 1.0


def half(function: Callable, _) -> object:
    """Twice, because the gradients in float32 exist from the second time on."""
    found = []
    for flat in (False, True):
        optimizer = Half(flat)
        for copies in [optimizer.fp32_params] * (not flat):
            copies[0].data.fill_(7)
        for needed in (True, True, False):
            optimizer._needs_sync = needed
            function(optimizer)
            copies = list(optimizer.fp32_params.values()) if flat else optimizer.fp32_params
            gradients = [parameter.grad for parameter in optimizer.fp16_params]
            kept = None if function.__name__ == "zero_grad" else [copy.grad for copy in copies]
            found.append((copies, kept, gradients, optimizer.fp16_params, optimizer._needs_sync))
    return found


CASES = {
    "_sync_fp16_grads_to_fp32": half,
    "_sync_fp32_params_to_fp16": half,
    "zero_grad": half,
    "torch_persistent_save": save,
    "copy": copy,
    "load_checkpoint_to_cpu": load,
    "verify_checkpoint_directory": verify,
    "load_checkpoint": resume,
    "save_checkpoint": save_run,
    "parse_args_and_arch": parse,
    "call_main": start,
    "_broadcast_object_slow": broadcast,
    "Trainer.__init__": build_trainer,
    "state_dict": state_dict,
    "train_step": train_step,
    "clip_grad_norm": clip,
    "EMA.__init__": average,
}


@pytest.mark.parametrize(("owner", "name", "ours"), REPLACED)
def test_a_replacement_does_the_same_for_other_programs(owner, name, ours, tmp_path):
    check = CASES[f"{owner.__name__}.{name}" if name == "__init__" else name]
    found = []
    for number, function in enumerate((ours, ours.__wrapped__)):
        (tmp_path / str(number)).mkdir()
        found.append(check(function, tmp_path / str(number)))
    assert str(found[0]) == str(found[1]).replace(str(tmp_path / "1"), str(tmp_path / "0"))


def test_a_static_function_stays_static(tmp_path):
    (tmp_path / "a").write_text("text")
    file_io.PathManager().copy(str(tmp_path / "a"), str(tmp_path / "b"), overwrite=True)
    assert (tmp_path / "b").read_text() == "text"


def test_a_trainer_that_was_built_before_the_import_makes_the_same_checkpoint():
    trainer = Trainer.__new__(Trainer)  # without what our __init__ adds
    assert outcome(trainer.state_dict) == outcome(Trainer.state_dict.__wrapped__, trainer)
