"""The binarize command: its output and its errors."""

import json
import re
import subprocess
import sys

import pytest
from helpers import run_command

from tn_fairseq.preprocessing.commands.binarize import main

COMMAND = ["-m", "tn_fairseq.preprocessing", "binarize"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]


@pytest.fixture
def flags(tmp_path):
    """Flags of a run that succeeds; later flags win."""
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    (tmp_path / "train.txt").write_text("\nthe cat\n\n\x07\n\nthe dog sat\n")
    (tmp_path / "valid.txt").write_text("the cat")
    named = {"train": "train.txt", "valid": "valid.txt", "tokenizer": "vocab.txt", "destdir": "out"}
    return [word for flag, name in named.items() for word in (f"--{flag}", str(tmp_path / name))]


def test_report(flags, tmp_path, capsys):
    main([*flags, "--test", str(tmp_path / "valid.txt"), str(tmp_path / "valid.txt"), "--workers", "2"])
    out = capsys.readouterr().out
    assert "tokenizer: BERT WordPiece of vocab.txt, 8 pieces, uncased (no piece has a capital letter)" in out
    assert "dictionary: 8 symbols" in out
    rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    #              documents, sentences, tokens, unknown, and lines dropped: no pieces, repeated and outer blanks
    assert ["train", "2", "2", "8", "20.000%", "1", "1", "1"] in rows
    assert ["valid", "1", "1", "3", "0.000%", "0", "0", "0"] in rows
    assert ["test", "2", "2", "7", "0.000%", "0", "0", "0"] in rows
    assert (
        f"wrote dict.txt, train.bin, train.idx, valid.bin, valid.idx, test.bin, test.idx and tokenizer/ to {tmp_path}"
        in out
    )
    assert json.loads((tmp_path / "out/tokenizer/tokenizer_config.json").read_text())["do_lower_case"] is True


def test_text_only(flags, tmp_path, capsys):
    main([*flags, "--text-only"])
    assert (tmp_path / "out" / "train.txt").read_text() == "the cat\n\nthe <unk> sat\n"
    assert "wrote dict.txt, train.txt, valid.txt and" in capsys.readouterr().out
    assert not (tmp_path / "out" / "train.bin").exists()


def test_a_given_dictionary_is_kept(flags, tmp_path):
    (tmp_path / "released.txt").write_text("sat 7\nmadeupword0000 0\ncat 5\nthe 3\n")
    main([*flags, "--dict", str(tmp_path / "released.txt")])
    assert (tmp_path / "out" / "dict.txt").read_text() == (tmp_path / "released.txt").read_text()


@pytest.mark.parametrize(
    ("flag", "content", "message"),
    [
        ("--train", None, "No such file"),
        ("--train", b"", "no line with text"),
        ("--valid", b"the\n\xff", "not UTF-8 at byte 4"),
        ("--tokenizer", None, "no such file"),
        ("--tokenizer", b"?", "unknown kind"),
        ("--dict", None, "No such file"),
        ("--dict", b"the 1\n", "the dictionary lacks 2"),
        ("--dict", b"the\n", "not a fairseq dictionary"),
        ("--destdir", b"", "--destdir"),
    ],
)
def test_wrong_input_gets_one_line(flags, tmp_path, flag, content, message):
    path = tmp_path / "wrong"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as caught:
        main([*flags, flag, str(path)])
    assert message in caught.value.code
    assert caught.value.code.startswith("error: ")
    assert "\n" not in caught.value.code
    assert not list(tmp_path.glob("out/*"))


def test_workers_must_be_positive(flags, capsys):
    with pytest.raises(SystemExit):
        main([*flags, "--workers", "0"])
    assert "--workers: must be a positive integer, not 0" in capsys.readouterr().err


def test_an_error_in_the_shell(flags, tmp_path):
    (tmp_path / "valid.txt").write_bytes(b"\xff")
    command = [sys.executable, *COMMAND, *flags, "--workers", "2"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, "Traceback" in run.stderr) == (1, False)
    assert run.stderr.splitlines()[-1].startswith(f"error: {tmp_path}/valid.txt: not UTF-8 at byte 0")


def test_without_a_dask_scheduler_the_error_is_the_only_output(flags, tmp_path):
    pytest.importorskip("distributed")
    run = run_command(sys.executable, *COMMAND, *flags, "--dask", "tcp://127.0.0.1:1")
    assert "--dask tcp://127.0.0.1:1: no Dask scheduler there (" in run.error() and len(run.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
