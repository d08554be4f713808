"""The add-distractors command: its output and its errors."""

import json
import os
import random
import sys
from pathlib import Path

import pytest
from helpers import run_command

from tn_fairseq.attacks.distractors import NO_STATEMENT, POSITIONS
from tn_fairseq.formats.squad import read_squad
from tn_fairseq.preprocessing.commands.add_distractors import main

PEOPLE = ["Ada King", "Max Planck", "Marie Curie", "Alan Turing", "Isaac Newton", "James Watt"]


@pytest.fixture
def squad(tmp_path) -> Path:
    """Two articles with three contexts each; each context has a question with a distractor and one without."""
    draw, data = random.Random(1), []
    for article in range(2):
        paragraphs = []
        for number, name in enumerate(PEOPLE[3 * article : 3 * article + 3]):
            year = draw.randrange(1800, 1900)
            context = f"Here is a story. In {year} the prize went to {name} of Rome. It rained."
            answers = [
                {"text": name, "answer_start": context.index(name)},
                {"text": "Rome", "answer_start": context.index("Rome")},
            ]
            rows = [(f"Who won the prize in {year}?", answers), ("Did it rain?", answers[:1])]
            qas = [{"id": f"{article}-{number}-{n}", "question": q, "answers": a} for n, (q, a) in enumerate(rows)]
            paragraphs.append({"context": context, "qas": qas})
        data.append({"title": f"article {article}", "paragraphs": paragraphs})
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"version": "1.1", "data": data}))
    return path


def attack(squad: Path, *flags: str) -> Path:
    output = squad.with_name("out.json")
    main(["--squad", str(squad), "--output", str(output), *flags])
    return output


@pytest.mark.parametrize("position", POSITIONS)
def test_the_output_is_squad_with_the_distractor_in_the_context(squad, position, capsys):
    before = {example.id: example for example in read_squad(squad)}
    output = attack(squad, "--position", position)
    content = json.loads(output.read_text())
    assert (content["attack"]["name"], content["attack"]["position"]) == ("add-distractors", position)
    entries = {qa["id"]: qa for article in content["data"] for p in article["paragraphs"] for qa in p["qas"]}
    examples = read_squad(output)
    assert [example.id for example in examples] == [name for name in before if name.endswith("-0")] == list(entries)
    for example in examples:
        old, sentence = before[example.id], entries[example.id]["distractor"]
        assert example.context.count(sentence) == 1 and sentence not in old.context
        assert example.context.replace(sentence, "").split() == old.context.split()
        assert (example.question, example.title) == (old.question, old.title)
        assert [text for text, _ in example.answers] == [text for text, _ in old.answers]
        assert all(example.context.startswith(text, start) for text, start in example.answers)
    printed = capsys.readouterr().out
    assert "questions: 12, attacked: 6, left out: 6" in printed
    assert f"left out because {NO_STATEMENT}: 6" in printed


def test_the_same_seed_gives_the_same_bytes(squad, capsys):
    """With other workers, and in another process with another hash seed."""
    first = attack(squad, "--seed", "7", "--show", "2").read_bytes()
    shown = capsys.readouterr().out
    assert shown.count("distractor: ") == 2
    assert attack(squad, "--seed", "8").read_bytes() != first
    assert attack(squad, "--seed", "7", "--workers", "2").read_bytes() == first
    command = [sys.executable, "-m", "tn_fairseq.preprocessing", "add-distractors", "--squad", squad, "--seed", "7"]
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    output = squad.with_name("other.json")
    run = run_command("env", f"PYTHONHASHSEED={hash_seed}", *command, "--output", output)
    assert run.code == 0, run.output
    assert output.read_bytes() == first


def test_questions_without_answers_are_left_out(squad, capsys):
    content = json.loads(squad.read_text())
    content["data"][0]["paragraphs"][0]["qas"][0]["answers"] = []
    squad.write_text(json.dumps(content))
    assert len(read_squad(attack(squad))) == 5
    assert "left out because they have no answers: 1" in capsys.readouterr().out


def refusal(*words: object, capsys) -> str:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    return caught.value.code if isinstance(caught.value.code, str) else capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "data: "),
        ("?", "line 1: not valid JSON"),
        ('{"data": []}', "contains no questions"),
    ],
)
def test_a_file_that_is_not_squad(tmp_path, content, message, capsys):
    (tmp_path / "dev.json").write_text(content)
    error = refusal("--squad", tmp_path / "dev.json", "--output", tmp_path / "out.json", capsys=capsys)
    assert error.startswith("error: ") and message in error and "\n" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.json"]


def test_wrong_input(squad, capsys):
    flags = ["--squad", squad, "--output", squad.with_name("out.json")]
    content = json.loads(squad.read_text())
    content["data"].pop()
    one = squad.with_name("one.json")
    one.write_text(json.dumps(content))
    for words, message in (
        ([*flags, "--output", squad], "is the input"),
        ([*flags, "--squad", squad.with_name("missing.json")], "missing.json: No such file"),
        ([*flags, "--seed", "x"], "--seed: invalid int value"),
        ([*flags, "--position", "middle"], "--position: invalid choice"),
        ([*flags, "--workers", "0"], "--workers: must be a positive integer"),
    ):
        assert message in refusal(*words, capsys=capsys)
        assert not squad.with_name("out.json").exists()
    # one title: each context counts as an article
    main([str(word) for word in (*flags, "--squad", one)])
    content["data"][0]["paragraphs"] = content["data"][0]["paragraphs"][:1]
    one.write_text(json.dumps(content))
    squad.with_name("out.json").unlink()
    unlabeled = squad.with_name("unlabeled.json")
    unlabeled.write_text(
        json.dumps({"data": [{"paragraphs": [{"context": "", "qas": [{"id": "1", "question": ""}]}]}]})
    )
    assert "unlabeled.json: no question has an answer" in refusal(*flags, "--squad", unlabeled, capsys=capsys)
    assert "at least 2 articles" in refusal(*flags, "--squad", one, capsys=capsys)
    assert not squad.with_name("out.json").exists()
