"""The squad command: its output and its errors."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import run_command

from tn_fairseq.dictionary import load_dictionary
from tn_fairseq.preprocessing.commands.squad import main

COMMAND = ["-m", "tn_fairseq.preprocessing", "squad"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "where", "?"]
CONTEXT = "the cat sat, the cat sat, the cats"  # 10 tokens, 3 of them unknown


def squad_file(path: Path, *answers: str | None) -> Path:
    """Questions about one context, each with an answer or none."""
    questions = [
        {
            "id": str(number),
            "question": "where the cat sat ?" if number else "?",
            "answers": [{"text": answer, "answer_start": CONTEXT.index(answer)}] if answer else [],
        }
        for number, answer in enumerate(answers)
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": questions}]}]}))
    return path


@pytest.fixture
def flags(tmp_path):
    """Flags of a run that succeeds; later flags win."""
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    squad_file(tmp_path / "train.json", "the", "cat sat, the cat", "cats", "at")
    squad_file(tmp_path / "valid.json", "cat", None)
    named = {"train": "train.json", "valid": "valid.json", "tokenizer": "vocab.txt", "destdir": "out"}
    return [word for flag, name in named.items() for word in (f"--{flag}", str(tmp_path / name))]


def test_report(flags, tmp_path, capsys):
    short = ["--max-length", "10", "--doc-stride", "3", "--max-question-length", "3"]
    main([*flags, "--test", str(squad_file(tmp_path / "test.json", None)), *short])
    out = capsys.readouterr().out
    assert "tokenizer: BERT WordPiece of vocab.txt, 10 pieces" in out
    rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    #      questions, cut, windows, per question, unknown, and answers: in no window, inside tokens
    # "?" leaves room for 6 of 10 tokens; the other question, after truncation, for 4
    assert ["train", "4", "3", "12", "3.000", "11.538%", "1", "1"] in rows  # 3 of 1 + 3 * 5 + 10
    assert ["valid", "2", "1", "6", "3.000", "18.750%", "0", "0"] in rows
    assert ["test", "1", "0", "3", "3.000", "27.273%", "0", "0"] in rows
    assert f"wrote dict.txt, train.*, valid.*, test.* and tokenizer/ to {tmp_path / 'out'} in" in out
    assert len(load_dictionary(tmp_path / "out" / "dict.txt")) == len(PIECES)


def test_from_hub(flags, tmp_path, capsys, monkeypatch):
    row = {
        "id": "1",
        "title": "",
        "context": CONTEXT,
        "question": "?",
        "answers": {"text": ["sat"], "answer_start": [8]},
    }
    rows = {"train": [row], "validation": [row, row | {"id": "2"}]}
    datasets = SimpleNamespace(load_dataset=lambda name, split: rows[split])
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    main([*flags[4:], "--from-hub"])
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[-3:-1]] == [["train", "1"], ["valid", "2"]]


@pytest.mark.parametrize(
    ("flag", "content", "message"),
    [
        ("--train", None, "No such file"),
        ("--train", b"[]", "data: must be a list"),
        ("--valid", b"?", "wrong, line 1: not valid JSON"),
        ("--tokenizer", None, "no such file"),
        ("--dict", b"the 1\n", "the dictionary lacks 4"),
        ("--destdir", b"", "--destdir"),
    ],
)
def test_wrong_input_gets_one_line(flags, tmp_path, flag, content, message):
    path = tmp_path / "wrong"
    if content is not None:
        path.write_bytes(content)
    assert message in refused([*flags, flag, str(path)])
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--doc-stride", "0"], "--doc-stride 0: must be between 1 and 445"),
        (["--max-length", "60"], "--max-length 60 has no room"),
        (["--from-hub"], "--from-hub cannot be combined with files; omit --train, --valid"),
    ],
)
def test_flags_that_contradict_each_other(flags, wrong, message):
    assert message in refused([*flags, *wrong])


def test_a_missing_split(flags, tmp_path):
    assert "no --train; give --train and --valid, or --from-hub" in refused(flags[2:])
    unlabeled = squad_file(tmp_path / "unlabeled.json", "cat", None)
    assert "train: question '1' has no answer" in refused([*flags, "--train", str(unlabeled)])


def test_an_error_in_the_shell(flags, tmp_path):
    (tmp_path / "valid.json").write_bytes(b"\xff")
    assert f"{tmp_path}/valid.json, line 1: not UTF-8 (byte 0)" in run_command(sys.executable, *COMMAND, *flags).error()


def refused(flags: list[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        main(flags)
    assert caught.value.code.startswith("error: ")
    assert "\n" not in caught.value.code
    return caught.value.code
