"""Which files are found, what their names say, and why one is refused. That they are read is tested in test_text.py."""

import sys

import pytest
from files import refused, write
from helpers import zstd

from tn_fairseq.tools.preprocessing.text_files import ARROW, JSON, PARQUET, TEXT, TSV, ZSTD_MODULE, TextFile, find_files


@pytest.mark.parametrize(
    ("path", "format", "compression"),
    [
        ("a.txt", TEXT, None),
        ("a.json.backup", TEXT, None),
        ("wiki.gz", TEXT, ".gz"),
        ("A.JSONL.GZ", JSON, ".gz"),
        ("a.json.xz", JSON, ".xz"),
        ("a.tsv.zst", TSV, ".zst"),
        ("a.ndjson.bz2", JSON, ".bz2"),
        ("a.parquet", PARQUET, None),
        ("a.feather", ARROW, None),
        ("https://host/a.jsonl.gz?download=true&x=1", JSON, ".gz"),
        ("https://host/get?file=a.jsonl", TEXT, None),
    ],
)
def test_a_name_says_what_a_file_is_unless_the_user_does(path, format, compression):
    file = TextFile("", path, 0)
    assert (file.format, file.compression) == (format, compression)
    named = TextFile("", path, 0, named_format=TSV)
    assert (named.format, named.compression) == (TSV, compression)


def test_hidden_files_are_left_out_but_not_the_folder_that_is_given(tmp_path, monkeypatch):
    for name in ("a.txt", "b/c.txt", "b/_SUCCESS", ".git/d.txt", "b/_temporary/e.txt"):
        write(tmp_path / "_here" / name, "the cat")
    monkeypatch.chdir(tmp_path / "_here")
    for given in (".", tmp_path / "_here", "**/*", tmp_path / "_here" / "**" / "*.txt", f"file://{tmp_path}/_here"):
        found = [file.path.removeprefix(f"{tmp_path}/_here/") for file in find_files([given])]
        assert found == ["a.txt", "b/c.txt"], given


def test_what_is_refused(tmp_path, monkeypatch):
    write(tmp_path / "mixed" / "a.txt", "the")
    write(tmp_path / "mixed" / "b.jsonl", b"{}")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "link").symlink_to(tmp_path / "mixed")
    write(tmp_path / "a.zst", zstd.compress(b"the cat"))
    for given, message in (
        ("nothing[1].txt", "nothing[1].txt: no file there"),
        ("nothing.txt", "nothing.txt: No such file"),
        ("mixed", "mixed: has text (a.txt) and json (b.jsonl); give --format"),
        ("linked", "linked/link: a link"),
        ("linked/*", "linked/link: a link"),
    ):
        assert message in refused(find_files, [tmp_path / given])
    assert [file.format for file in find_files([tmp_path / "mixed"], JSON)] == [JSON, JSON]
    for address, reason in (
        ("memory://nothing/*.txt", "no file there"),
        ("memory://nothing.txt", "No such file"),
        ("carrier://pigeon/a.txt", "Protocol not known: carrier"),
    ):
        assert refused(find_files, [address]).startswith(f"{address}: {reason}")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fsspec.implementations.http", None)
        assert "install what is missing" in refused(find_files, ["https://host/a.txt"])
    monkeypatch.setitem(sys.modules, ZSTD_MODULE, None)
    assert "pip install 'tn_fairseq[zstd]'" in refused(find_files, [tmp_path / "a.zst"])
