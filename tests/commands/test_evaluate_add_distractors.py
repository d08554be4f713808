"""The add-distractors command: its output and its errors."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from files import contents, refused, write
from helpers import run_command

from tn_fairseq.commands.evaluate_add_distractors import main
from tn_fairseq.tools.formats.squad_json import read_squad

PEOPLE = ["Ada King", "Max Planck", "Marie Curie", "Alan Turing", "Isaac Newton", "James Watt"]


@pytest.fixture
def squad(tmp_path) -> Path:
    """Two articles with three contexts each; each context has a question with a distractor and one without."""
    data = [{"title": f"article {number}", "paragraphs": []} for number in range(2)]
    for number, name in enumerate(PEOPLE):
        year = 1800 + 13 * number
        context = f"Here is a story. In {year} the prize went to {name} of Rome. It rained."
        answers = [{"text": text, "answer_start": context.index(text)} for text in (name, "Rome")]
        rows = [(f"Who won the prize in {year}?", answers), ("Did it rain?", answers[:1])]
        qas = [{"id": f"{number}-{n}", "question": q, "answers": a} for n, (q, a) in enumerate(rows)]
        data[number // 3]["paragraphs"].append({"context": context, "qas": qas})
    return write(tmp_path / "dev.json", {"version": "1.1", "data": data})


def attack(squad: Path, *flags: str) -> Path:
    output = squad.with_name("out.json")
    main(["--squad", str(squad), "--output", str(output), *flags])
    return output


def test_the_output_is_squad_with_the_distractor_at_the_end_of_the_context(squad, capsys):
    content = json.loads(squad.read_text())
    content["data"][0]["paragraphs"][0]["qas"][0]["answers"] = []
    write(squad, content)
    before = {example.id: example for example in read_squad(squad)}
    output = attack(squad)
    content = json.loads(output.read_text())
    assert content["attack"]["name"] == "add-distractors"
    entries = {qa["id"]: qa for article in content["data"] for p in article["paragraphs"] for qa in p["qas"]}
    examples = read_squad(output)
    assert [example.id for example in examples] == [f"{number}-0" for number in range(1, 6)] == list(entries)
    for example in examples:
        old, sentence = before[example.id], entries[example.id]["distractor"]
        assert example == replace(old, context=f"{old.context} {sentence}")
    printed = capsys.readouterr().out
    assert "questions: 12, attacked: 5, left out: 7" in printed
    assert "left out because no rule makes a statement of them: 6" in printed
    assert "left out because they have no answers: 1" in printed


def test_the_same_seed_gives_the_same_bytes(squad, capsys):
    first = attack(squad, "--seed", "7", "--show", "2").read_bytes()
    shown = capsys.readouterr().out
    assert shown.count("distractor: ") == 2
    assert attack(squad, "--seed", "8").read_bytes() != first
    assert attack(squad, "--seed", "7", "--workers", "2").read_bytes() == first


@pytest.mark.slow  # imports and reads WordNet in another process
def test_another_hash_seed_of_python_gives_the_same_bytes(squad):
    first = attack(squad, "--seed", "7").read_bytes()
    command = ["tn-fairseq", "evaluate", "add-distractors", "--squad", squad, "--seed", "7"]
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    output = squad.with_name("other.json")
    run = run_command("env", f"PYTHONHASHSEED={hash_seed}", *command, "--output", output)
    assert run.code == 0, run.output
    assert output.read_bytes() == first


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--squad", "missing.json"], "missing.json"),
        (["--squad", "unlabeled.json"], "unlabeled.json: no question has an answer"),
        (["--output", "dev.json"], "is the input"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(squad, monkeypatch, flags, named):
    monkeypatch.chdir(squad.parent)
    unlabeled = {"context": "", "qas": [{"id": "1", "question": ""}]}
    write(squad.with_name("unlabeled.json"), {"data": [{"paragraphs": [unlabeled]}]})
    before = contents(squad.parent)
    assert named in refused(main, ["--squad", "dev.json", "--output", "out.json", *flags])
    assert contents(squad.parent) == before
