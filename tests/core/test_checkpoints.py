"""Which checkpoints are read, which are refused, and why."""

from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from files import refused
from helpers import Bomb

from tn_fairseq.core.checkpoints import load_checkpoint

TRUST = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


@pytest.fixture(params=[True, False], ids=["zip", "older format"])
def save(request, tmp_path):
    """Write a checkpoint that holds an object next to its model."""

    def save_one(name, extra):
        state = {"cfg": {"model": {}}, "model": {"weight": torch.ones(2)}, "args": None}
        history = [{"optimizer_name": "", "num_updates": 1, "lr_scheduler_state": {}}]
        state |= {"optimizer_history": history, "extra_state": {"train_iterator": {}, "extra": extra}}
        torch.save(state, tmp_path / name, _use_new_zipfile_serialization=request.param)
        return tmp_path / name

    return save_one


def refusal(path):
    message = refused(load_checkpoint, path)
    assert message.startswith(f"{path}: ")
    return message


@pytest.mark.parametrize("number", [np.float64(1.5), np.int64(7), np.bool_(True)])
def test_numpy_scalars_and_namespaces_are_read(save, number):
    path = save("model.pt", {"best": number, "args": Namespace(lr=1)})
    for state in (load_checkpoint(path), checkpoint_utils.load_checkpoint_to_cpu(str(path))):
        extra = state["extra_state"]["extra"]
        best = extra["best"]
        assert best == number and type(best) is type(number)
        assert extra["args"] == Namespace(lr=1)


def test_other_code_loads_files_as_before(save):
    path = save("model.pt", {"best": np.float64(1.5)})
    before = set(torch.serialization.get_safe_globals())
    with torch.serialization.safe_globals([Namespace]):  # as other code may do
        load_checkpoint(path)
        assert Namespace in torch.serialization.get_safe_globals()
    assert set(torch.serialization.get_safe_globals()) == before
    assert Namespace not in before
    with pytest.raises(Exception, match="multiarray.scalar"):
        torch.load(path, weights_only=True)


def test_python_objects_are_refused_by_name_unless_the_user_trusts_them(save, tmp_path, monkeypatch):
    array = save("array.pt", np.array([Bomb(tmp_path / "trap")], dtype=object))
    assert "safe loader refuses (numpy" in refusal(array)
    path = save("objects.pt", Bomb(tmp_path / "trap"))
    name = f"{open.__module__}.open"  # of io, and from Python 3.13 on of _io
    assert refusal(path).endswith(
        f"holds Python objects that torch's safe loader refuses ({name}); if you trust the file, set {TRUST}=1, "
        "which lets the file run any code"
    )
    with pytest.raises(SystemExit, match=rf"safe loader refuses \({name}\)"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert not (tmp_path / "trap").exists()
    monkeypatch.setenv(TRUST, "1")
    assert torch.equal(load_checkpoint(path)["model"]["weight"], torch.ones(2))
    assert (tmp_path / "trap").exists()
    (tmp_path / "trap").unlink()
    assert "cfg" in checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert (tmp_path / "trap").exists()


def test_only_damaged_files_are_called_damaged(save, tmp_path, monkeypatch):
    path = save("model.pt", {"best": np.float64(1.5)})
    assert "No such file" in refusal(tmp_path / "missing.pt")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "damaged, or not a checkpoint" in refusal(path)
    path.write_bytes(content.replace(b"multiarray", b"multIarray"))  # one bit of a function's name is flipped
    assert "multiarray" not in refusal(path)
    path.write_bytes(b"loss 3\n")
    for trusted in "01":
        monkeypatch.setenv(TRUST, trusted)
        assert "damaged, or not a checkpoint" in refusal(path)


def test_a_trusted_file_with_missing_classes_is_not_called_damaged(save, monkeypatch):
    class Missing:
        pass

    monkeypatch.setitem(globals(), "Missing", Missing)
    Missing.__qualname__ = "Missing"
    path = save("missing.pt", Missing())
    monkeypatch.delitem(globals(), "Missing")
    monkeypatch.setenv(TRUST, "1")
    assert "holds Python objects that cannot be imported here" in refusal(path) and "Missing" in refusal(path)
