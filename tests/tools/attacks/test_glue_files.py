"""Attacked sentences in GLUE's official files."""

import json

import pytest

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools.attacks.glue_files import (
    ATTACKED,
    check_folder,
    choose_tasks,
    read_dev_files,
    replace_sentences,
    write_attacked_glue,
)
from tn_fairseq.tools.formats.glue import TASKS, read_examples


def write_dev(folder, task: str, end: str = "\n") -> None:
    """Write dev files of three examples, with columns before, between and after the sentences."""
    (folder / task).mkdir(parents=True)
    wanted = [*TASKS[task].sentences, TASKS[task].label]
    header = ["index", wanted[0], "parse", *wanted[1:]]
    label = TASKS[task].labels[1]
    rows = [[str(n), *(f'{column} "{n}"' for column in header[1:-1]), label] for n in range(3)]
    text = end.join("\t".join(row) for row in [header, *rows]) + end
    for split, name in TASKS[task].splits.items():
        if split.startswith("valid"):
            (folder / task / name).write_text(text, newline="")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("task", ATTACKED)
def test_only_the_sentences_change(tmp_path, task, end):
    write_dev(tmp_path, task, end)
    splits = {f"{task}/{name}": split for split, name in TASKS[task].splits.items() if split.startswith("valid")}
    files = read_dev_files(tmp_path, TASKS[task])
    assert [file.name for file in files] == list(splits)
    for file in files:
        path = tmp_path / file.name
        old = path.read_bytes().decode()
        new = [[f"new {sentence}" for sentence in sentences] for sentences in file.sentences]
        path.write_text(replace_sentences(file, new), newline="")
        assert path.read_bytes().decode().replace("new ", "") == old
        examples = read_examples(tmp_path / task, TASKS[task], splits[file.name])
        assert list(zip(*examples.sentences)) == [tuple(sentences) for sentences in new]


def test_sentences_in_the_last_column(tmp_path):
    (tmp_path / "MRPC").mkdir()
    text = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t2\t3\tone\ttwo\r\n0\t2\t3\tone\ttwo"
    (tmp_path / "MRPC" / "dev.tsv").write_text(text, newline="")
    (file,) = read_dev_files(tmp_path, TASKS["MRPC"])
    new = replace_sentences(file, [["three", "four"], ["five", "six"]])
    assert new == text.replace("one\ttwo\r", "three\tfour\r").replace("one\ttwo", "five\tsix")


def test_broken_rows_of_qqp_stay(tmp_path):
    write_dev(tmp_path, "QQP")
    path = tmp_path / "QQP" / "dev.tsv"
    lines = path.read_text().splitlines()
    lines.insert(2, "half a row")
    path.write_text("\n".join(lines) + "\n")
    (file,) = read_dev_files(tmp_path, TASKS["QQP"])
    new = replace_sentences(file, [["a", "b"], ["c", "d"], ["e", "f"]]).splitlines()
    assert new[2] == "half a row" and "\tc\t" in new[3] and len(new) == len(lines)


def test_tasks_are_chosen_in_the_order_given(tmp_path):
    for name in ("CoLA", "RTE", "SST-2"):
        (tmp_path / name).mkdir()
    assert [task.name for task in choose_tasks("all", tmp_path)] == ["SST-2", "RTE"]
    assert [task.name for task in choose_tasks("RTE,SST-2,RTE", tmp_path)] == ["RTE", "SST-2"]
    for names, message in {"CoLA": "CoLA: not one of the", "RTE,": "--tasks : not", "MNLI": "has no MNLI"}.items():
        with pytest.raises(InputError, match=message):
            choose_tasks(names, tmp_path)
    with pytest.raises(InputError, match="contains none of"):
        choose_tasks("all", tmp_path / "missing")


def test_an_attacked_folder_replaces_only_an_attacked_folder(tmp_path):
    source, output = tmp_path / "glue", tmp_path / "attacked"
    write_dev(source, "RTE")
    check_folder(source, output)
    write_attacked_glue(output, {"RTE/dev.tsv": "a\r\n", "QNLI/dev.tsv": "b"}, {"seed": 1}, {"RTE/dev.tsv": [0, 2]})
    assert (output / "RTE" / "dev.tsv").read_bytes() == b"a\r\n"
    content = {"attack": {"seed": 1}, "changed": {"RTE/dev.tsv": [0, 2]}}
    assert json.loads((output / "attack.json").read_text()) == content
    check_folder(source, output)
    write_attacked_glue(output, {"RTE/dev.tsv": "c"}, {}, {})
    assert {path.name for path in output.iterdir()} == {"RTE", "attack.json"}
    with pytest.raises(InputError, match="is the input"):  # also if it was attacked
        check_folder(output, output)
    for wrong in (source, source / "RTE", source / "RTE" / "dev.tsv"):
        with pytest.raises(InputError, match="is the input" if wrong == source else "exists"):
            check_folder(source, wrong)
    (tmp_path / "empty").mkdir()
    check_folder(source, tmp_path / "empty")
