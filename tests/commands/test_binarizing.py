"""The commands binarize, glue and squad: their output and their errors."""

import json
import os
import re
from importlib import import_module
from types import SimpleNamespace

import pytest
from files import refused, write
from preprocessed import serve_hub

from tn_fairseq.core.dictionary import load_dictionary

binarize, glue, squad = (
    import_module(f"tn_fairseq.commands.data_{name}").main for name in ("binarize", "glue", "squad")
)
COMMANDS = {"binarize": binarize, "glue": glue, "squad": squad}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "where", "?"]
CONTEXT = "the cat sat, the cat sat, the cats"  # 10 tokens, 3 of them unknown
# CoLA with a test split, STS-B without one, and QQP with a broken row
GLUE = {
    "CoLA/train.tsv": "gj04\t1\t\tthe cat sat\ngj04\t0\t*\tsat the dog sat\ngj04\t1\t\tthe cat\n",
    "CoLA/dev.tsv": "gj04\t0\t\t\u200b\n",
    "CoLA/test.tsv": "index\tsentence\n0\tthe cat\n",
    "STS-B/train.tsv": "sentence1\tsentence2\tscore\nthe cat sat\tthe cat\t4.5\ncat\tsat\t0\n",
    "STS-B/dev.tsv": "sentence1\tsentence2\tscore\ncat\tsat\t1\n",
    "QQP/train.tsv": "id\tquestion1\tquestion2\tis_duplicate\n0\tcat\tsat\t1\n1\tcat\n",
    "QQP/dev.tsv": "id\tquestion1\tquestion2\tis_duplicate\n0\tcat\tsat\t0\n",
}


def squad_file(*answers: str | None) -> dict:
    """Questions about one context, each with an answer or none."""
    questions = []
    for number, answer in enumerate(answers):
        marked = [{"text": answer, "answer_start": CONTEXT.index(answer)}] if answer else []
        question = "where the cat sat ?" if number else "?"
        questions.append({"id": str(number), "question": question, "answers": marked})
    return {"data": [{"paragraphs": [{"context": CONTEXT, "qas": questions}]}]}


@pytest.fixture
def flags(tmp_path, monkeypatch):
    """For each command, the flags of a run that succeeds; later flags win."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "vocab.txt", "\n".join(PIECES) + "\n")
    write(tmp_path / "released.txt", "sat 7\nmadeupword0000 0\ncat 5\nthe 3\n? 1\nwhere 1\n")
    write(tmp_path / "train.txt", "\nthe cat\n\n\x07\n\nthe dog sat\n")
    write(tmp_path / "valid.txt", "the cat")
    write(tmp_path / "train.json", squad_file("the", "cat sat, the cat", "cats", "at"))
    write(tmp_path / "valid.json", squad_file("cat", None))
    for name, text in GLUE.items():
        write(tmp_path / "glue" / name, text)
    common = "--tokenizer vocab.txt --destdir out"
    return {
        "binarize": f"--train train.txt --valid valid.txt {common}".split(),
        "glue": f"--glue-dir glue {common} --task all".split(),
        "squad": f"--train train.json --valid valid.json {common}".split(),
    }


def rows(capsys) -> list[list[str]]:
    """What was printed, split into cells."""
    return [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]


def test_report_of_binarize(flags, tmp_path, capsys):
    binarize([*flags["binarize"], "--test", "valid.txt", "valid.txt", "--workers", "2"])
    printed = rows(capsys)
    assert ["tokenizer: BERT WordPiece of vocab.txt, 10 pieces, uncased (no piece has a capital letter)"] in printed
    #       documents, sentences, tokens, unknown, and lines dropped: no pieces, repeated and outer blanks
    assert ["train", "2", "2", "8", "20.000%", "1", "1", "1"] in printed
    assert ["valid", "1", "1", "3", "0.000%", "0", "0", "0"] in printed
    assert ["test", "2", "2", "7", "0.000%", "0", "0", "0"] in printed
    files = "train.bin, train.idx, valid.bin, valid.idx, test.bin, test.idx"
    assert printed[-1][0].startswith(f"wrote dict.txt, {files} and tokenizer/ to out in ")
    assert json.loads((tmp_path / "out/tokenizer/tokenizer_config.json").read_text())["do_lower_case"] is True


def test_report_of_glue(flags, tmp_path, capsys):
    (tmp_path / "glue" / "WNLI").mkdir()
    glue([*flags["glue"], "--max-length", "5"])
    printed = rows(capsys)
    assert ["not in glue: SST-2, MRPC, MNLI, QNLI, RTE"] in printed and ["other folders, not read: WNLI"] in printed
    assert ["STS-B, training pairs in both orders"] in printed
    # examples, tokens, unknown, truncated, no pieces, broken rows and labels
    cola = printed[printed.index(["CoLA"]) :]
    assert cola[2] == ["train", "3", "11", "12.500%", "1", "0", "0", "0: 33.3%, 1: 66.7%"]
    assert cola[3] == ["valid", "1", "1", "0.000%", "0", "1", "0", "0: 100.0%, 1: 0.0%"]
    assert cola[4] == ["test", "1", "3", "0.000%", "0", "0", "0", "none"]
    assert ["train", "4", "16", "0.000%", "2", "0", "0", "0 to 4.5, mean 2.250"] in printed
    assert ["train", "1", "4", "0.000%", "0", "0", "1", "0: 0.0%, 1: 100.0%"] in printed
    assert printed[-1][0].startswith("wrote CoLA, STS-B, QQP and tokenizer/ to out in ")
    assert sorted(os.listdir("out")) == ["CoLA", "QQP", "STS-B", "tokenizer"]


def test_tasks_before_an_error_are_kept_if_all_files_are_there(flags, tmp_path):
    write(tmp_path / "glue/STS-B/dev.tsv", b"\xff")
    assert "glue/STS-B/dev.tsv, line 1: not UTF-8" in refused(glue, flags["glue"])
    assert sorted(os.listdir("out")) == ["CoLA", "tokenizer"]
    (tmp_path / "glue" / "QQP" / "dev.tsv").unlink()
    assert "QQP/dev.tsv: does not exist" in refused(glue, [*flags["glue"], "--destdir", "other"])
    assert not (tmp_path / "other").exists()


def test_report_of_squad(flags, tmp_path, capsys, caplog):
    write(tmp_path / "test.json", squad_file(None))
    squad([*flags["squad"], *"--test test.json --max-length 10 --doc-stride 3 --max-question-length 3".split()])
    assert "valid.json: 1 of 2 questions have no answers" in caplog.text
    printed = rows(capsys)
    #      questions, cut, windows, per question, unknown, and answers: in no window, inside tokens
    # "?" leaves room for 6 of 10 tokens; the other question, after truncation, for 4
    assert ["train", "4", "3", "12", "3.000", "11.538%", "1", "1"] in printed  # 3 of 1 + 3 * 5 + 10
    assert ["valid", "2", "1", "6", "3.000", "18.750%", "0", "0"] in printed
    assert ["test", "1", "0", "3", "3.000", "27.273%", "0", "0"] in printed
    assert printed[-1][0].startswith("wrote dict.txt, train.*, valid.*, test.* and tokenizer/ to out in ")
    assert len(load_dictionary(tmp_path / "out" / "dict.txt")) == len(PIECES)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_given_dictionary_is_kept_and_tasks_are_chosen(flags, tmp_path, command, capsys):
    COMMANDS[command]([*flags[command], "--dict", "released.txt", *["--task", "STS-B", "CoLA"] * (command == "glue")])
    printed = capsys.readouterr().out
    assert command != "glue" or ("wrote STS-B, CoLA and" in printed and "not in" not in printed)
    for name in ("CoLA/input0", "STS-B/input1") if command == "glue" else ("",):
        assert (tmp_path / "out" / name / "dict.txt").read_text() == (tmp_path / "released.txt").read_text()


def test_glue_from_the_hub(flags, monkeypatch, capsys):
    class Dataset(list):
        labels = SimpleNamespace(names=["entailment", "not_entailment"])
        features = {"question": None, "sentence": None, "label": labels}

    def answer(path, name, split):
        return Dataset([{"question": "cat", "sentence": "sat", "label": -1 if split == "test" else 1}])

    asked = serve_hub(monkeypatch, answer)
    glue([*flags["glue"][2:], "--from-hub", "--task", "QNLI"])
    assert asked == [("nyu-mll/glue", "qnli", split) for split in ("train", "validation", "test")]
    assert ["valid", "1", "4", "0.000%", "0", "0", "0", "entailment: 0.0%, not_entailment: 100.0%"] in rows(capsys)
    files = [f"{split}.{kind}" for split in ("test", "train", "valid") for kind in ("bin", "idx")]
    assert sorted(os.listdir("out/QNLI/input1")) == ["dict.txt", *files]


def test_squad_from_the_hub(flags, capsys, monkeypatch):
    row = {"id": "1", "title": "", "context": CONTEXT, "question": "?"}
    row["answers"] = {"text": ["sat"], "answer_start": [8]}
    serve_hub(monkeypatch, lambda name, split: {"train": [row], "validation": [row, row | {"id": "2"}]}[split])
    squad([*flags["squad"][4:], "--from-hub"])
    assert [row[:2] for row in rows(capsys)[-3:-1]] == [["train", "1"], ["valid", "2"]]


@pytest.mark.parametrize(
    ("command", "changes", "named"),
    [
        ("glue", "--tokenizer nowhere", "nowhere"),
        ("squad", "--dict nowhere", "nowhere"),
        ("binarize", "--dict the.txt", "the dictionary lacks 4"),
        *((command, "--destdir vocab.txt", "--destdir") for command in COMMANDS),
        ("binarize", "--train latin", "not UTF-8 at byte 4"),
        ("glue", "--task RTE", "RTE/train.tsv"),
        ("glue", "--glue-dir glue/QQP --task QQP", "glue/QQP: a folder of one task"),
        ("glue", "--glue-dir train.txt --task QQP", "train.txt"),
        ("glue", "--glue-dir nowhere", "nowhere: contains none of CoLA, SST-2, MRPC"),
        ("glue", "--task CoLA WNLI", "--task WNLI"),
        ("squad", "--train valid.json", "train: question '1' has no answer"),
        ("binarize", "--workers 2 --dask tcp://x:1", "--dask and --workers"),
        ("glue", "--from-hub", "--from-hub and --glue-dir"),
        ("squad", "--from-hub", "--train and --from-hub"),
        ("squad", "--doc-stride 0", "--doc-stride 0"),
        ("squad", None, "--train or --from-hub"),
        ("glue", None, "--glue-dir or --from-hub"),
    ],
)
def test_wrong_input_gets_one_line(flags, tmp_path, command, changes, named):
    write(tmp_path / "latin", b"the\n\xff")
    write(tmp_path / "the.txt", "the 1\n")
    words = flags[command][2:] if changes is None else [*flags[command], *changes.split()]
    assert named in refused(COMMANDS[command], words)
    assert not list(tmp_path.glob("out/*"))


def test_without_a_dask_scheduler_the_error_is_the_only_output(flags, tmp_path, monkeypatch, capfd):
    engine = pytest.importorskip("tn_fairseq.tools.preprocessing.engines.dask")
    pytest.importorskip("distributed")
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    assert "--dask tcp://127.0.0.1:1: " in refused(binarize, [*flags["binarize"], "--dask", "tcp://127.0.0.1:1"])
    assert capfd.readouterr().err == "" and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("The cat sat\nwhere the cat\nsat the cat.\n", True),
        ("The cat sat where\nThe cat sat the cat.\nthe cat\nThe cat\n", False),
        ("the cat sat\nwhere the cat\nsat the cat.\n", False),  # without uppercase letters
    ],
)
def test_wrapped_text_gets_a_warning(flags, tmp_path, capsys, text, warns):
    write(tmp_path / "a.txt", text)
    binarize([*flags["binarize"], "--train", "a.txt", "--valid", "a.txt"])
    said = "67% (train) and 67% (valid) of the lines begin with a lowercase letter"
    assert (said in capsys.readouterr().out) == warns


def test_a_vocabulary_for_another_language_gets_a_warning(flags, tmp_path, capsys):
    write(tmp_path / "train.txt", "the cat sat\n" * 20)
    write(tmp_path / "valid.txt", "the cat кот\n" * 20)
    binarize(flags["binarize"])
    (warning,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning:")]
    assert "33% (valid) of the tokens are unknown" in warning


@pytest.mark.parametrize("more", [[], ["--text-only"], ["--shards", "1"]])
def test_the_first_sentences_are_shown_as_they_will_be_trained_on(flags, capsys, more):
    """Control characters are nothing, and the dog is unknown."""
    binarize([*flags["binarize"], *more])
    printed = capsys.readouterr().out.splitlines()
    first = printed.index("train begins with these lines, as they will be trained on:") + 1
    unknown = "<unk>" if more == ["--text-only"] else "[UNK]"
    assert printed[first : first + 2] == ["  the cat", f"  the {unknown} sat"]
