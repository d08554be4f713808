import sys
from importlib.util import find_spec

from files import refused

from tn_fairseq.core.packages import hide_broken_torchaudio, require, version_of


def test_a_folder_of_the_same_name_is_not_the_package(tmp_path, monkeypatch):
    (tmp_path / "pictures_of_ours").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    expected = "--draw needs pictures_of_ours, which is missing: pip install 'tn_fairseq[plot]'"
    assert refused(require, "pictures_of_ours", "--draw", "plot") == expected
    (tmp_path / "painters_of_ours.py").touch()
    assert require("painters_of_ours", "--draw", "plot").__name__ == "painters_of_ours"


def test_versions():
    assert version_of("torch")[0].isdigit() and version_of("no-such-package") is None


def test_a_torchaudio_that_cannot_be_imported_is_hidden(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchaudio", None)  # restored after the test
    del sys.modules["torchaudio"]
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "torchaudio.py"
    path.write_text("works = True\n")
    hide_broken_torchaudio()
    assert sys.modules["torchaudio"].works
    del sys.modules["torchaudio"]
    path.write_text("raise RuntimeError('compiled with different CUDA versions')\n")
    hide_broken_torchaudio()
    assert find_spec("torchaudio") is None
