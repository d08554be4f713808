"""The glue command: its output and its errors."""

import re
import sys
import types

import pytest
from helpers import run_command

from tn_fairseq.preprocessing.commands.glue import main

COMMAND = ["-m", "tn_fairseq.preprocessing", "glue"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]


@pytest.fixture
def glue_dir(tmp_path):
    """CoLA with a test split, STS-B without one, and QQP with a broken row."""
    files = {
        "CoLA/train.tsv": "gj04\t1\t\tthe cat sat\ngj04\t0\t*\tsat the dog sat\ngj04\t1\t\tthe cat\n",
        "CoLA/dev.tsv": "gj04\t0\t\t\u200b\n",
        "CoLA/test.tsv": "index\tsentence\n0\tthe cat\n",
        "STS-B/train.tsv": "sentence1\tsentence2\tscore\nthe cat sat\tthe cat\t4.5\ncat\tsat\t0\n",
        "STS-B/dev.tsv": "sentence1\tsentence2\tscore\ncat\tsat\t1\n",
        "QQP/train.tsv": "id\tquestion1\tquestion2\tis_duplicate\n0\tcat\tsat\t1\n1\tcat\n",
        "QQP/dev.tsv": "id\tquestion1\tquestion2\tis_duplicate\n0\tcat\tsat\t0\n",
    }
    for name, text in files.items():
        path = tmp_path / "glue" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "glue"


@pytest.fixture
def flags(tmp_path, glue_dir):
    """Flags of a run that succeeds; later flags win."""
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    paths = {"--glue-dir": glue_dir, "--tokenizer": tmp_path / "vocab.txt", "--destdir": tmp_path / "out"}
    return [*(str(word) for pair in paths.items() for word in pair), "--task", "all"]


def test_report(flags, glue_dir, tmp_path, capsys):
    main([*flags, "--max-length", "5"])
    out = capsys.readouterr().out
    assert "tokenizer: BERT WordPiece of vocab.txt, 8 pieces, uncased (no piece has a capital letter)" in out
    assert f"not in {glue_dir}: SST-2, MRPC, MNLI, QNLI, RTE\n" in out
    assert "\nCoLA\n" in out and "\nSTS-B, training pairs in both orders\n" in out
    rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    # examples, tokens, unknown, truncated, no pieces, broken rows and labels
    cola = rows[rows.index(["CoLA"]) :]
    assert cola[2] == ["train", "3", "11", "12.500%", "1", "0", "0", "0: 33.3%, 1: 66.7%"]
    assert cola[3] == ["valid", "1", "1", "0.000%", "0", "1", "0", "0: 100.0%, 1: 0.0%"]
    assert cola[4] == ["test", "1", "3", "0.000%", "0", "0", "0", "none"]
    assert ["train", "4", "16", "0.000%", "2", "0", "0", "0 to 4.5, mean 2.250"] in rows
    assert ["train", "1", "4", "0.000%", "0", "0", "1", "0: 0.0%, 1: 100.0%"] in rows
    assert f"wrote CoLA, STS-B, QQP and tokenizer/ to {tmp_path / 'out'} in " in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["CoLA", "QQP", "STS-B", "tokenizer"]


def test_one_task(flags, tmp_path, capsys):
    main([*flags, "--task", "CoLA"])
    assert "not in" not in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["CoLA", "tokenizer"]


def test_a_given_dictionary_is_kept(flags, tmp_path):
    (tmp_path / "released.txt").write_text("sat 7\nmadeupword0000 0\ncat 5\nthe 3\n")
    main([*flags, "--dict", str(tmp_path / "released.txt")])
    for name in ("CoLA/input0", "STS-B/input1"):
        assert (tmp_path / "out" / name / "dict.txt").read_text() == (tmp_path / "released.txt").read_text()


def test_from_the_hub(flags, tmp_path, monkeypatch, capsys):
    class Dataset(list):
        names = ["entailment", "not_entailment"]
        features = {"question": None, "sentence": None, "label": types.SimpleNamespace(names=names)}

    def load_dataset(path, name, split):
        assert (path, name) == ("nyu-mll/glue", "qnli")
        return Dataset([{"question": "cat", "sentence": "sat", "label": -1 if split == "test" else 1}])

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    main([*flags[2:], "--from-hub", "--task", "QNLI"])
    rows = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert ["valid", "1", "4", "0.000%", "0", "0", "0", "entailment: 0.0%, not_entailment: 100.0%"] in rows
    assert sorted(path.name for path in (tmp_path / "out" / "QNLI" / "input1").iterdir()) == sorted(
        ["dict.txt", *(f"{split}.{kind}" for split in ("train", "valid", "test") for kind in ("bin", "idx"))]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--task", "RTE"], "RTE/train.tsv: No such file or directory; use the file from the GLUE download"),
        (["--glue-dir", "nowhere"], "nowhere: contains none of CoLA, SST-2, MRPC"),
        (["--max-length", "2"], "--max-length 2: too short for CoLA; must be at least 3"),
        (["--tokenizer", "nowhere"], "nowhere: no such file"),
        (["--dict", "nowhere"], "nowhere: No such file"),
        (["--destdir", __file__], "give a --destdir you can write to"),
    ],
)
def test_wrong_input_gets_one_line(flags, tmp_path, changes, message):
    with pytest.raises(SystemExit) as caught:
        main([*flags, *changes])
    assert caught.value.code.startswith("error: ") and message in caught.value.code
    assert "\n" not in caught.value.code
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "one of the arguments --glue-dir --from-hub is required"),
        (["--from-hub", "--glue-dir", "x"], "argument --glue-dir: not allowed with argument --from-hub"),
        (["--glue-dir", "x", "--task", "WNLI"], "argument --task: invalid choice: 'WNLI'"),
    ],
)
def test_usage(flags, wrong, message, capsys):
    with pytest.raises(SystemExit):
        main([*flags[2:], *wrong])
    assert message in capsys.readouterr().err


def test_an_error_in_the_shell(flags, glue_dir, tmp_path):
    (glue_dir / "STS-B" / "dev.tsv").write_text("sentence1\tsentence2\tscore\ncat\tsat\tmuch\n")
    error = run_command(sys.executable, *COMMAND, *flags).error()
    assert error.startswith(
        f"error: {glue_dir}/STS-B/dev.tsv, line 2: the score must be a number from 0 to 5, not 'much'"
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["CoLA", "tokenizer"]
