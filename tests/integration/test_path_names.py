"""File and folder names that a shell, a glob pattern or an option parser could misread.

Every command gets such names for all its inputs and outputs, and must give the same results as with plain names.
"""

import os
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch
from files import contents, refused
from helpers import FAMILIES, prepare_training, write_sources
from safetensors.torch import load_file

from tn_fairseq.commands import (
    data_binarize,
    data_glue,
    data_squad,
    data_train_tokenizer,
    evaluate_glue,
    evaluate_squad_score,
    exchange_export,
    exchange_import,
    look_analysis,
    synonyms_build,
    synonyms_show,
)
from tn_fairseq.tools.results.table import read_table

PLAIN = "plain"
# a leading dash, quotes, patterns, formats, a precomposed and a combining accent, special characters of shells, YAML
# and HTML, a newline, and trailing whitespace
ODD = """-x it's  "a" [x]*?{y} 100%s %(z)d café cafe\u0301 漢字 😀 a=b,$c;&#~|<i>\\n\n """


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """The files that a user has before the first command."""
    folder = write_sources(tmp_path_factory.mktemp("sources"))
    (folder / "stop-words").write_text("noun1\n")
    return folder


def train(data: object, save_dir: object, *flags: object) -> None:
    prepare_training(data, save_dir, *flags)()


class Names:
    """Relative paths with the odd name in every part."""

    def __init__(self, name: str, sources: Path):
        self.name, self.sources = name, sources

    def __call__(self, kind: str, ending: str = "") -> str:
        return os.path.join(f"{self.name}{kind}", f"{self.name}{ending}")

    def source(self, kind: str, ending: str = "") -> str:
        """A copy of a source file or folder with such a name."""
        path, source = Path(self(kind, ending)), self.sources / kind
        path.parent.mkdir()
        (shutil.copytree if source.is_dir() else shutil.copy)(source, path)
        return str(path)

    def argument(self, path: str) -> str:
        """The path as a positional argument, as a user must give it."""
        return f"./{path}"


def parameters(path: str) -> dict[str, list]:
    state = torch.load(path, weights_only=True)
    return {name: tensor.tolist() for name, tensor in state["model"].items()}


def all_commands(name: str, sources: Path, capsys) -> dict[str, object]:
    """Run every command in the current folder and return the results."""
    names = Names(name, sources)
    found: dict[str, object] = {}

    def run(command: ModuleType, *words: object) -> str:
        command.main([str(word) for word in words])
        return capsys.readouterr().out

    text, vocabulary = names.source("text"), names.source("vocab.txt", ".txt")
    run(data_train_tokenizer, f"--input={text}", "--type=wordpiece", "--vocab-size=60", f"--output={names('trained')}")
    found["tokenizer"] = contents(Path(names("trained")))

    data, tokenizer = names("data-bin"), f"--tokenizer={vocabulary}"
    run(data_binarize, f"--train={text}", f"--valid={text}", tokenizer, f"--destdir={data}")
    found["data-bin"] = contents(Path(data))

    table, dictionary = names("synonyms", ".safetensors"), f"--dict={data}/dict.txt"
    source = f"--vectors={names.source('vectors')}", f"--stop-words={names.source('stop-words')}"
    run(synonyms_build, dictionary, "--source=vectors", *source, f"--output={table}")
    shown = run(synonyms_show, dictionary, f"./{table}", "noun1", "noun2")
    found["synonyms"] = load_file(table)["synonyms"].tolist(), shown.splitlines()[-2:]

    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction", f"--synonym-table={table}"]
    folder = names("checkpoints")
    train(names.argument(data), folder, *flags, "--max-update", 1)
    train(names.argument(data), folder, *flags, "--max-update", 2)  # resumes
    checkpoint = f"{folder}/checkpoint_last.pt"
    found["trained"] = parameters(checkpoint)

    run(synonyms_build, dictionary, "--source=model", f"--path={checkpoint}", f"--output={names('near')}")
    found["near"] = load_file(names("near"))["synonyms"].tolist()

    report = names("report")
    words = f"--path={folder}/checkpoint_l*.pt", f"--synonym-table={table}", "--mask-seeds=1", f"--output={report}"
    look_analysis.main([names.argument(data), *words])
    assert "Glyph" not in capsys.readouterr().err
    rows, _ = read_table(Path(report, "results.parquet"))
    assert set(rows["arm"]) == {checkpoint, Path(table).stem} and set(rows["part"]) == {"", Path(table).stem}
    found["report"] = rows["value"].tolist(), sorted(contents(Path(report)))

    exported = names("exported")
    run(exchange_export, names.argument(checkpoint), f"--output={exported}", f"--data={data}")
    found["exported"] = {file: sum for file, sum in contents(Path(exported)).items() if not file.endswith("README.md")}
    imported = names("imported", ".pt")
    words = f"--generator={exported}/generator", f"--data={data}", f"--output={imported}"
    told = run(exchange_import, names.argument(f"{exported}/discriminator"), *words)
    found["imported"] = parameters(imported)
    # the printed command is valid
    first, data_folder, _, _, *flags = shlex.split(told.split("continue with: ")[1])[:-1]
    assert first == "fairseq-train" and Path(data_folder) == Path(data)
    folder = names("continued")
    train(data_folder, folder, *flags, "--criterion", "electra", "--max-update", 1)
    found["continued"] = parameters(f"{folder}/checkpoint_last.pt")

    for command, words in (
        (data_glue, (f"--glue-dir={names.source('glue')}", "--task=all")),
        (data_squad, (f"--train={names.source('squad.json')}", f"--valid={names('squad.json')}")),
    ):
        output = names(f"{command.__name__.rpartition('.')[2]}-bin")
        run(command, *words, tokenizer, f"--destdir={output}")
        found[command.__name__.rpartition(".")[2]] = contents(Path(output))
    words = f"--data={names('data_glue-bin')}", f"--output={names('scores')}", "--max-update=1", "--batch-size=8"
    run(evaluate_glue, names.argument(checkpoint), "--seeds=1", *words)
    rows, _ = read_table(Path(names("scores"), "results.parquet"))
    assert set(rows["arm"]) == {f"{name}-checkpoint_last"} and rows["value"].notna().all()
    found["evaluated"] = rows["value"].tolist()
    scored = names("squad.json"), names.source("predictions.json")
    found["score"] = run(evaluate_squad_score, *map(names.argument, scored))
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("served_programs")
def test_the_names_of_files_and_folders_change_nothing(sources, tmp_path, monkeypatch, capsys):
    found = {}
    for name in (PLAIN, ODD):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        found[name] = all_commands(name, sources, capsys)
        assert all(path.name.startswith(name) for path in folder.iterdir())  # no file is in another folder
    assert found[ODD].keys() == found[PLAIN].keys()
    for part in found[PLAIN]:
        assert found[ODD][part] == found[PLAIN][part], part


def refusal(command: ModuleType, *words: object) -> str:
    return refused(command.main, list(map(str, words)))


@pytest.mark.parametrize(("name", "sign"), [("a:b", ":"), ("${x}", "${")])
def test_a_data_folder_whose_name_fairseq_misreads(name, sign, data_bin, synonym_table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(data_bin, name)
    expected = f"error: {name}:"
    words = "--path", "model.pt", "--synonym-table", synonym_table, "--output", "report"
    assert refusal(look_analysis, name, *words).startswith(expected)
    assert refusal(exchange_import, "bert", "--data", name, "--output", "model.pt").startswith(expected)
    if sign == ":":  # fairseq reads the other sign before it imports the plugin
        words = name, "checkpoints", *FAMILIES["electra"].split(), "--criterion", "electra"
        assert refused(lambda words: train(*words), list(map(str, words))).startswith(expected)
    os.symlink(name, "link")  # as the message suggests
    assert "model.pt" in refusal(
        look_analysis, "link", "--path", "model.pt", "--synonym-table", synonym_table, "--output", "report"
    )


def test_a_newline_in_a_name_leaves_the_message_one_line(tmp_path):
    path = tmp_path / "no\r\nsuch" / "dict.txt"
    error = refusal(synonyms_show, "t", "noun1", "--dict", path)
    assert r"no\r\nsuch/dict.txt: No such file" in error


def test_a_name_that_is_not_text_gets_one_line(sources, data_bin, tmp_path):
    vectors = os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt")  # Latin-1
    shutil.copy(sources / "vectors", vectors)
    words = "--dict", data_bin / "dict.txt", "--source", "vectors", "--vectors", os.fsdecode(vectors)
    error = refusal(synonyms_build, *words, "--output", tmp_path / "table.safetensors")
    assert r"caf\udce9.txt" in error and "cannot be written as utf-8; rename" in error
    assert [path.suffix for path in tmp_path.iterdir()] == [".txt"]
