"""The command swap-synonyms."""

import json

import pytest
from files import contents, refused, write
from helpers import run_command
from lexical_files import swords_content, write_swords

from tn_fairseq.commands.evaluate_swap_synonyms import main
from tn_fairseq.tools.formats.squad_json import read_squad

CONTEXT = "The sailors purchased an automobile, and the car stopped. Later an old automobile stopped near the village."
QUESTIONS = {
    "a": ("What did the sailors purchase?", ["an automobile", "automobile"]),
    "b": ("Who purchased it?", ["The sailors"]),
    "c": ("Which village was it?", [CONTEXT]),
    "d": ("Who was it?", []),
}


@pytest.fixture
def squad(tmp_path):
    qas = [
        {"id": name, "question": question, "answers": [{"text": t, "answer_start": CONTEXT.index(t)} for t in answers]}
        for name, (question, answers) in QUESTIONS.items()
    ]
    data = [{"title": "Ships", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]
    return write(tmp_path / "dev.json", {"version": "1.1", "data": data})


def attacked(path) -> dict[str, tuple[str, str, list]]:
    """Context, question and swaps of each question in a file."""
    data = json.loads(path.read_text())["data"]
    paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
    return {q["id"]: (p["context"], q["question"], q["swaps"]) for p in paragraphs for q in p["qas"]}


def test_contexts_change_outside_of_the_answers(squad, tmp_path, capsys):
    output = tmp_path / "swapped.json"
    main(["--squad", str(squad), "--output", str(output), "--share", "1", "--show", "1"])
    old, new = read_squad(squad), read_squad(output)
    assert [example.id for example in new] == ["a", "b"] and {example.title for example in new} == {"Ships"}
    for before, after in zip(old, new):
        assert [text for text, _ in before.answers] == [text for text, _ in after.answers]
        assert all(after.context.startswith(text, start) for text, start in after.answers)
        assert before.question == after.question and before.context != after.context
    contexts = attacked(output)
    assert contexts["a"][0].count("automobile") == 2 and "sailors" not in contexts["a"][0]
    assert contexts["b"][0].startswith("The sailors ") and contexts["b"][0].count("automobile") < 2
    for context, _, swaps in contexts.values():
        kept = {("a", "an"), ("an", "a")}
        changes = [(one, two) for one, two in zip(words(CONTEXT), words(context), strict=True) if one != two]
        assert [list(change) for change in changes if change not in kept] == swaps
    printed = capsys.readouterr().out
    assert "questions: 4, attacked: 2, left out: 2" in printed
    assert "left out because they have no answers: 1" in printed
    assert "left out because no word outside of their answers can be swapped: 1" in printed
    (before,) = (line for line in printed.splitlines() if line.startswith("  - The sailors"))
    assert before[4:] in CONTEXT
    attack = json.loads(output.read_text())["attack"]
    assert attack["share"] == 1 and attack["in"] == "context" and attack["wordnet"].startswith("WordNet 3")
    assert len(attack["sha256"]) == 64 and attack["tagger"].startswith("HanTa")


def words(text: str) -> list[str]:
    return text.replace(",", "").replace(".", "").split()


def test_questions_can_be_swapped_instead(squad, tmp_path):
    main(["--squad", str(squad), "--output", str(tmp_path / "q.json"), "--in", "question", "--share", "1"])
    found = attacked(tmp_path / "q.json")
    assert {context for context, _, _ in found.values()} == {CONTEXT}
    assert found["b"][1] == "Who bought it?" and found["b"][2] == [["purchased", "bought"]]


def test_the_seed_alone_decides(squad, tmp_path):
    """Another number of workers gives the same bytes."""
    outputs = []
    for seed, workers in (("1", "2"), ("1", "1"), ("2", "1")):
        words = ["--squad", str(squad), "--output", str(tmp_path / "out.json"), "--share", "0.3", "--seed", seed]
        main([*words, "--workers", workers])
        outputs.append((tmp_path / "out.json").read_bytes())
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.slow  # imports and reads WordNet in another process
def test_another_hash_seed_of_python_gives_the_same_bytes(squad, tmp_path):
    words = ["--squad", str(squad), "--share", "0.3", "--output"]
    command = ["tn-fairseq", "evaluate", "swap-synonyms", *words, tmp_path / "there.json"]
    run = run_command("env", "PYTHONHASHSEED=7", *command)
    assert run.code == 0, run.output
    main([*words, str(tmp_path / "here.json")])
    assert (tmp_path / "there.json").read_bytes() == (tmp_path / "here.json").read_bytes()


def test_judgments(squad, tmp_path, capsys):
    judged = {"auto": 9, "automobile": 2, "gondola": 0}
    write_swords(tmp_path / "swords.json.gz", swords_content([("The car stopped.", "car", judged)]))
    main(["--squad", str(squad), "--output", str(tmp_path / "a.json"), "--swords", str(tmp_path / "swords.json.gz")])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert "keep all 1 6 3 33.3% 33.3% 33.3%".split() in rows
    assert "any first 1 4 2 50.0% 50.0% 0.0%".split() in rows


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--squad missing.json", "missing.json"),
        ("--output dev.json", "is the input"),
        ("--swords dev.json", "dev.json: contexts"),
        ("--share 0", "--share"),
        ("--share 2", "--share"),
        ("--most 0", "--most"),
        ("--in title", "--in"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(squad, tmp_path, monkeypatch, options, named):
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    assert named in refused(main, ["--squad", "dev.json", "--output", "new", *options.split()])
    assert contents(tmp_path) == before
