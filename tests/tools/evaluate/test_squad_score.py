"""Exact match and F1: values computed by hand, other ways to compute them, and invalid files."""

import json
import random
from collections import Counter
from dataclasses import astuple
from fractions import Fraction

import pytest
from files import refused
from tokenizer_folders import REAL_DATA, with_real_data

from tn_fairseq.tools.evaluate.squad_score import f1, normalize_answer, read_predictions, squad_score


@pytest.mark.parametrize(
    "text, normalized",
    [
        ("  two \t words\n", "two words"),
        ("An athlete, then another!", "athlete then another"),
        ("a-b", "ab"),  # punctuation is removed before articles
        ("Beyoncé’s “Halo”", "beyoncé’s “halo”"),  # only ASCII punctuation is removed
        ("the “a” team", "“ ” team"),  # other quotes separate words
        ("I\u00a0am the\u2003one", "i am one"),  # all Unicode white space
        ("İstanbul", "i̇stanbul"),
    ],
)
def test_normalized(text, normalized):
    assert normalize_answer(text) == normalized


def random_text(rng: random.Random) -> str:
    words = ["the", "a", "An", "cat", "Cat,", "cats", "dog's", "—", "“dog”", "“a”", "5%", "...", "then", "a.", "Zürich"]
    return rng.choice([" ", "  ", "\t"]).join(rng.choices(words, k=rng.randint(0, 7)))


def test_f1_is_twice_the_shared_words_over_all():
    rng = random.Random(1)
    seen = Counter()
    for _ in range(2000):
        prediction, gold = random_text(rng), random_text(rng)
        ours, theirs = normalize_answer(prediction).split(), normalize_answer(gold).split()
        left = list(theirs)
        shared = sum(left.remove(word) is None for word in ours if word in left)
        expected = Fraction(2 * shared, len(ours) + len(theirs)) if shared else 0
        assert f1(prediction, gold) == pytest.approx(float(expected), rel=1e-15)
        assert f1(prediction, gold) == f1(gold, prediction)
        seen[shared] += 1
    assert seen[0] > 100 and seen[1] > 100 and seen[3] > 20


ANSWERS = {"q1": ["Denver Broncos", "The Broncos"], "q2": ["1999"], "q3": ["the end of the war"], "q4": ["Rome"]}


@pytest.mark.parametrize(
    "answers, predictions, expected",
    [
        # q1: 1 by its second answer; q2: 2/3; q3: 2 * 1 / (1 + 3); q4 is missing
        (ANSWERS, {"q1": "broncos", "q2": "in 1999", "q3": "the war"}, (25.0, 100 * (1 + 2 / 3 + 1 / 2) / 4, 4, 1)),
        ({"q": ["red car", "the"]}, {"q": "an"}, (100.0, 0.0, 1, 0)),  # by different answers
        ({"q": ["Rome"]}, {"q": ""}, (0.0, 0.0, 1, 0)),  # empty is wrong but not missing
    ],
)
def test_scores_by_hand(answers, predictions, expected):
    assert astuple(squad_score(answers, predictions)) == pytest.approx(expected)


@with_real_data
def test_scores_match_all_digits_of_the_official_script():
    content = json.loads((REAL_DATA / "squad" / "dev-v1.1.json").read_text(encoding="utf-8"))
    answers, predictions = {}, {}
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for number, question in enumerate(paragraph["qas"]):
                answers[question["id"]] = [answer["text"] for answer in question["answers"]]
                last = question["answers"][-1]["text"]
                kinds = paragraph["context"][: 10 + 7 * number], f"{last} and the rest", f"The {last.upper()}!"
                if number % 4 < 3:  # every fourth is missing
                    predictions[question["id"]] = kinds[number % 4]
    found = squad_score(answers, predictions)
    assert (found.questions, found.missing) == (10570, 2113)
    assert (found.exact_match, found.f1) == (22.19489120151372, 39.013242249867666)


def test_predictions_are_read_or_rejected(tmp_path):
    path = tmp_path / "predictions.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"q2": "Zürich", "q1": ""}, ensure_ascii=False).encode())
    assert read_predictions(path, ANSWERS) == {"q2": "Zürich", "q1": ""}
    for content, message in (
        (b'{"q1": "x",\n "q2": }', ", line 2: not valid JSON"),
        (b'["x"]', ": a JSON array"),
        (b'{"q1": 7}', ": the prediction for 'q1'"),
        (b'{"q1": "x", "q9": "y"}', ": the data has no question 'q9'"),
        (b'{"q1": "Z\xfcrich"}', ", line 1: not UTF-8"),
    ):
        path.write_bytes(content)
        assert refused(read_predictions, path, ANSWERS).startswith(f"{path}{message}")
