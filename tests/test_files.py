import os

import pytest
import torch
from safetensors.torch import load_file

from tn_fairseq.files import save_tensors


@pytest.fixture(params=[0o022, 0o027, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_tensors_are_for_those_to_read_whom_the_umask_lets(umask, tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors({"zeros": torch.zeros(3)}, path, {"format": "pt"})
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert torch.equal(load_file(path)["zeros"], torch.zeros(3))
    assert list(tmp_path.iterdir()) == [path]
