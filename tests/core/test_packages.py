from preprocessed import refused

from tn_fairseq.core.packages import require, version_of


def test_a_folder_of_the_same_name_is_not_the_package(tmp_path, monkeypatch):
    (tmp_path / "pictures_of_ours").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    expected = "--draw needs pictures_of_ours, which is missing: pip install 'tn_fairseq[plot]'"
    assert refused(require, "pictures_of_ours", "--draw", "plot") == expected
    (tmp_path / "painters_of_ours.py").touch()
    assert require("painters_of_ours", "--draw", "plot").__name__ == "painters_of_ours"


def test_versions():
    assert version_of("torch")[0].isdigit() and version_of("no-such-package") is None
