"""Which files are found, and what says why one is refused. That their text is read is tested in test_text.py."""

import sys

import pytest
from files import refused, write
from helpers import zstd

from tn_fairseq.tools.preprocessing.compression import ZSTD_MODULE
from tn_fairseq.tools.preprocessing.text_files import TextFile, find_files


def test_what_is_refused(tmp_path, monkeypatch):
    write(tmp_path / "mixed" / "a.txt", "the")
    write(tmp_path / "mixed" / "b.jsonl", b"{}")
    write(tmp_path / "splits" / "dataset_dict.json", {"splits": ["train"]})
    write(tmp_path / "splits" / "train" / "state.json", {})
    write(tmp_path / "linked" / "a.txt", "the")
    (tmp_path / "linked" / "more").symlink_to(tmp_path / "mixed")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.txt").symlink_to(tmp_path / "nothing")
    write(tmp_path / "a.zst", zstd.compress(b"the cat"))
    write(tmp_path / "a.parquet", b"PAR1")
    for given, message in (
        ("nothing[1].txt", "nothing[1].txt: no file there"),
        ("nothing.txt", "nothing.txt: No such file or directory; give a text file"),
        ("*.json", "*.json: no file there"),
        ("mixed", "mixed: a folder with plain text (a.txt) and JSON Lines (b.jsonl); give the files, or a pattern"),
        ("splits", "splits: contains the splits train; give the folder of one split"),
        ("linked", "linked/more: a link to a folder, which is not followed; give the folder that it leads to"),
        ("broken", "broken/a.txt: a link to a file that does not exist; repair it, or delete it"),
    ):
        assert message in refused(find_files, [tmp_path / given])
    for address, reason in (
        ("memory://nothing/*.txt", "no file there"),
        ("memory://nothing.txt", "No such file or directory"),
        ("carrier://pigeon/a.txt", "Protocol not known: carrier"),
    ):
        message = refused(find_files, [address])
        assert message.startswith(f"{address}: {reason}")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fsspec.implementations.http", None)
        assert refused(find_files, ["https://host/a.txt"]).endswith("; install what is missing with pip")
    for module, given, extra in (("pyarrow", "a.parquet", "parquet"), (ZSTD_MODULE, "a.zst", "zstd")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            assert f"pip install 'tn_fairseq[{extra}]'" in refused(find_files, [tmp_path / given])


@pytest.mark.parametrize("query", ["", "?download=true", "?path=a.txt"])
def test_a_query_says_nothing_about_the_format(query):
    assert TextFile("", f"https://host/A.JSONL.GZ{query}", 0).address == "https://host/a.jsonl.gz"
    for other in ("what?.jsonl", "https://host/get?file=a.jsonl"):
        assert TextFile("", other, 0).address == other
