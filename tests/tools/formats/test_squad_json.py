"""SQuAD: the format of its files, and the data set on the Hub."""

import json

import pytest
from files import refused, write
from preprocessed import offline, serve_hub

from tn_fairseq.tools.formats.squad_json import SquadExample, examples_from_hub, read_squad, squad_json


def content(**question) -> dict:
    """A file of two paragraphs with a question each; arguments change keys of the second question, None deletes one."""
    first = {"id": "1", "question": "the cat?", "answers": [{"text": "cat", "answer_start": 4}]}
    second = {"id": "2", "question": "the mat?", "answers": [{"text": "the", "answer_start": 0}], **question}
    second = {key: value for key, value in second.items() if value is not None}
    paragraphs = [{"context": "the cat sat", "qas": [first]}, {"context": "the mat, the cat", "qas": [second]}]
    return {"version": "1.1", "data": [{"title": "Cats", "paragraphs": paragraphs}]}


def answer(text: str, start: object) -> dict:
    return content(answers=[{"text": text, "answer_start": start}])


@pytest.fixture
def read(tmp_path):
    return lambda content: read_squad(write(tmp_path / "a.json", content))


def test_reading(read):
    assert read(content(extra=1, is_impossible=False)) == [
        SquadExample("1", "the cat?", "the cat sat", (("cat", 4),), "Cats"),
        SquadExample("2", "the mat?", "the mat, the cat", (("the", 0),), "Cats"),
    ]
    assert read(b"\xef\xbb\xbf" + json.dumps(content()).encode()) == read(content())


def test_titles_answers_and_ids_may_be_missing_or_of_another_type(read):
    one, two = content()["data"][0], content(id=4)["data"][0]
    one["title"] = None
    two["paragraphs"][0]["qas"][0]["id"] = "3"
    found = read({"data": [one, two]})
    assert [(example.id, example.title) for example in found] == [("1", ""), ("2", ""), ("3", "Cats"), ("4", "Cats")]
    for answers in (None, []):
        assert [len(example.answers) for example in read(content(answers=answers))] == [1, 0]


@pytest.mark.parametrize(("start", "found"), [(0, 0), (9, 9), (5, 9), (99, 9), (-3, 0), (10**30, 9)])
def test_an_answer_is_moved_to_the_nearest_match(read, caplog, start, found):
    assert read(answer("the", start))[1].answers == (("the", found),)
    assert caplog.text.count("a.json: 1 answers do not start at answer_start") == (start != found)
    # occurrences may overlap
    aaa = {"id": "1", "question": "a", "answers": [{"text": "aa", "answer_start": 7}]}
    assert read({"data": [{"paragraphs": [{"context": "aaa b", "qas": [aaa]}]}]})[0].answers == (("aa", 1),)


def test_answers_that_are_not_in_the_context_are_left_out(read, caplog):
    one, two = read(content())
    assert read(answer("dog", 0)) == [one]
    assert "1 answers are not in their context and are left out, with 1 questions that have no others: " in caplog.text
    assert "data[0].paragraphs[1].qas[0].answers[0]: 'dog' is not in the context" in caplog.text
    both = [{"text": text, "answer_start": 0} for text in ("dog", "the")]
    assert read(content(answers=both)) == [one, two] and "with 0 questions" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (b'{"data":\n ?', "a.json, line 2: not valid JSON"),
        ({"data": []}, "a.json: contains no questions"),
        ({"data": [{}]}, "data[0].paragraphs: must be a list"),
        ({"data": [{"paragraphs": [{"context": "a", "qas": [1]}]}]}, "paragraphs[0].qas[0].id: must be a string"),
        (content(id=True), "id: must be a string"),
        (content(id="1"), "data[0].paragraphs[1].qas[0].id: '1' is already data[0].paragraphs[0].qas[0].id"),
        (content(question=None), "data[0].paragraphs[1].qas[0].question: must be a string"),
        (content(question="\ud83d"), "question: holds half a surrogate pair"),
        (content(is_impossible=True, answers=[]), "qas[0].is_impossible: SQuAD 2.0 is not supported"),
        (content(answers={}), "answers: must be a list"),
        (content(answers=[{"text": "the"}]), "paragraphs[1].qas[0].answers[0].answer_start: must be an integer"),
        (answer("the", True), "answer_start: must be an integer;"),
        (answer(" ", 3), "answers[0]: blank"),
        (
            content(answers=[{"text": text, "answer_start": 0} for text in ("a\ndog", "dogs")]),
            r"qas[0].answers[0]: 'a\ndog' is not in the context, nor are 1 other answers; correct them",
        ),
    ],
)
def test_files_that_are_refused(read, wrong, message):
    assert message in refused(read, wrong)


def test_the_json_is_in_squads_format(read):
    one, two = read(content())
    examples = [SquadExample(name, one.question, one.context, one.answers) for name in "12"]
    examples += [SquadExample("3", two.question, two.context, ())]
    data = squad_json(examples)
    assert [len(paragraph["qas"]) for paragraph in data["data"][0]["paragraphs"]] == [2, 1]
    assert data["version"] == "1.1" and read(data) == examples


def test_examples_from_the_hub(monkeypatch, caplog):
    row = {"id": "1", "title": "Cats", "context": "the cat", "question": "who?"}
    row["answers"] = {"text": ["cat", "the", "the"], "answer_start": [4, 1, 2]}
    asked = serve_hub(monkeypatch, lambda *_: [row])
    assert examples_from_hub("train") == [SquadExample("1", "who?", "the cat", (("cat", 4), ("the", 0), ("the", 0)))]
    assert asked == [("rajpurkar/squad", "train")]
    assert "rajpurkar/squad, train: 2 answers do not start" in caplog.text
    serve_hub(monkeypatch, offline)
    assert "Couldn't reach the Hub; use local files" in refused(examples_from_hub, "train")
