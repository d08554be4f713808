"""Killed preprocessing: partial output never looks complete, and the next run writes the correct bytes."""

import random
import shutil
from functools import partial
from pathlib import Path

import pytest
from files import contents, refused, write
from interruption import full_disk, kill_at_every_step
from tokenizer_folders import bert_folder

from tn_fairseq.commands import data_glue, data_squad, data_train_tokenizer
from tn_fairseq.core.errors import InputError
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.preprocessing.binarization import binarize

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran"]


def text(path: Path, documents: int, seed: int) -> Path:
    rng = random.Random(seed)
    lines = (
        " ".join(rng.choices(WORDS, k=rng.randint(3, 30))) + "\n" * rng.choice((1, 1, 1, 2)) for _ in range(documents)
    )
    return write(path, "".join(lines))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param({"seed": 2, "words": 5}, {}, id="another dictionary"),
        pytest.param({"seed": 2, "shards": 2}, {"shards": 1}, id="fewer shards", marks=pytest.mark.slow),
        pytest.param({"seed": 2}, {"shards": 2, "workers": 2}, id="two workers", marks=pytest.mark.soak),
    ],
)
def test_killed_at_every_step(before, now, tmp_path):
    """The folder has output of an earlier run with another text, other tokens or other shards."""

    def run(destdir: Path, seed: int = 1, words: int = 8, **options: int) -> None:
        tokenizer = load_tokenizer(bert_folder(tmp_path / f"tokenizer{words}", WORDS[:words]))
        path = text(tmp_path / f"text{seed}", 20, seed)
        binarize({"train": [path], "valid": [path]}, tokenizer, destdir, **options)

    old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "out"
    run(old, **before)
    run(new, **now)
    first = "shard0/dict.txt" if now else "dict.txt"  # without it fairseq does not read the folder
    check_every_step(old, new, out, partial(run, out, **now), first, fewest=20)


def shown(folder: Path) -> dict[str, bytes]:
    """The files in a folder that are not hidden."""
    return {name: content for name, content in contents(folder).items() if not name.startswith(".")}


def check_every_step(old: Path, new: Path, out: Path, run, needed: str, fewest: int) -> None:
    """Kill a run that turns ``old`` into ``new``; if the path ``needed`` exists, all output is the old or the new."""
    steps = 0
    for steps in kill_at_every_step(run, lambda: shutil.copytree(old, out)):
        if (out / needed).exists():
            assert shown(out) in (contents(old), contents(new)), steps
        run()
        assert contents(out) == contents(new), steps
        shutil.rmtree(out)
    assert steps > fewest
    assert contents(out) == contents(new)


def test_a_tokenizer_killed_at_every_step(tmp_path):
    """Over a tokenizer of another kind: a tokenizer that can be loaded is the old or the new one."""
    path = text(tmp_path / "text", 200, 1)

    def train(output: Path, kind: str) -> None:
        size = {"wordpiece": 32, "sentencepiece": 24}[kind]
        data_train_tokenizer.main(f"--input {path} --type {kind} --vocab-size {size} --output {output}".split())

    def tokens(folder: Path) -> list[str] | None:
        try:
            tokenizer = load_tokenizer(folder)
        except InputError:
            return None
        return [tokenizer.description.split()[0], *tokenizer.encode_chunk(["the cat sat"])[0]]

    old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "out"
    for before, now in (("sentencepiece", "wordpiece"), ("wordpiece", "sentencepiece")):
        train(old, before)
        train(new, now)
        allowed = (None, tokens(old), tokens(new))
        assert len(set(map(str, allowed))) == 3
        seen = []
        for _ in kill_at_every_step(partial(train, out, now), partial(shutil.copytree, old, out)):
            seen.append(allowed.index(tokens(out)))
            train(out, now)
            assert contents(out) == contents(new)
            shutil.rmtree(out)
        assert seen == sorted(seen, key=[1, 0, 2].index) and set(seen) == {0, 1, 2}
        for folder in (old, new, out):
            shutil.rmtree(folder)


SENTENCES = "gj04\t1\t\tthe cat sat\ngj04\t0\t*\tsat the dog sat\n"


@pytest.mark.slow
def test_glue_killed_at_every_step(tmp_path):
    """Over earlier output: if the folder of the task exists, all output is the old or the new."""
    tokenizer = bert_folder(tmp_path / "tokenizer", WORDS)

    def run(output: Path, sentences: str = SENTENCES) -> None:
        for split in ("train", "dev"):
            write(tmp_path / "glue" / "CoLA" / f"{split}.tsv", sentences)
        words = ["--glue-dir", tmp_path / "glue", "--task", "CoLA", "--tokenizer", tokenizer, "--destdir", output]
        data_glue.main(list(map(str, words)))

    old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "out"
    run(old, SENTENCES * 2)
    run(new)
    check_every_step(old, new, out, partial(run, out), "CoLA", fewest=1)


@pytest.mark.slow
def test_squad_killed_at_every_step(tmp_path):
    """Over earlier output of another dictionary, which is written last."""
    answer = {"text": "cat", "answer_start": 4}
    paragraph = {"context": "the cat sat on a mat", "qas": [{"id": "1", "question": "the cat", "answers": [answer]}]}
    path = write(tmp_path / "squad.json", {"data": [{"paragraphs": [paragraph]}]})

    def run(output: Path, words: int = 8) -> None:
        tokenizer = bert_folder(tmp_path / f"tokenizer{words}", WORDS[:words])
        flags = ["--train", path, "--valid", path, "--tokenizer", tokenizer, "--destdir", output]
        data_squad.main(list(map(str, flags)))

    old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "out"
    run(old, words=5)
    run(new)
    check_every_step(old, new, out, partial(run, out), "dict.txt", fewest=1)


def test_a_full_disk_gets_one_line_and_does_not_change_earlier_output(tmp_path):
    tokenizer, out = load_tokenizer(bert_folder(tmp_path / "tokenizer", WORDS)), tmp_path / "out"
    binarize({"train": [text(tmp_path / "small", 20, 2)]}, tokenizer, out)
    before, large = contents(out), {"train": [text(tmp_path / "large", 2000, 1)]}
    with full_disk(10_000):
        message = refused(binarize, large, tokenizer, out)
    assert "File too large; give a --destdir you can write to" in message
    assert contents(out) == before
