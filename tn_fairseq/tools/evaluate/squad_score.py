"""Exact match and F1 of SQuAD 1.1, with exactly the same results as the official script."""

import json
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import InputError
from ...core.files import read_json_object
from ..formats.squad_json import read_labeled_squad

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class SquadScore:
    """Scores in percent over all questions; the ``missing`` ones have no prediction and count as 0."""

    exact_match: float
    f1: float
    questions: int
    missing: int


def score_files(data: Path, predictions: Path) -> str:
    """The scores in the format of the official script; says on standard error how many predictions are missing.

    ``data`` is in the format of SQuAD 1.1, and ``predictions`` maps ids to texts. Raises InputError for invalid files.
    """
    answers = {example.id: [text for text, _ in example.answers] for example in read_labeled_squad(data)}
    score = squad_score(answers, read_predictions(predictions, answers))
    if score.missing:
        print(f"{score.missing:,} of {score.questions:,} questions have no prediction and count as 0", file=sys.stderr)
    return json.dumps({"exact_match": score.exact_match, "f1": score.f1})


def normalize_answer(text: str) -> str:
    """Lowercase the text, remove ASCII punctuation and articles, and put one space between words."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> bool:
    """Whether the two are equal after normalization."""
    return normalize_answer(prediction) == normalize_answer(gold)


def f1(prediction: str, gold: str) -> float:
    """The harmonic mean of precision and recall of the normalized words; 0 if no word is shared."""
    predicted, wanted = normalize_answer(prediction).split(), normalize_answer(gold).split()
    shared = (Counter(predicted) & Counter(wanted)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def best_score(score: Callable[[str, str], float], prediction: str, golds: Sequence[str]) -> float:
    """The score of a prediction with the gold answer that gives the highest."""
    return max(score(prediction, gold) for gold in golds)


def squad_score(answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> SquadScore:
    """Score each prediction against the gold answer of its question that gives the highest score."""
    pairs = [(predictions[question], golds) for question, golds in answers.items() if question in predictions]
    matches = sum(best_score(exact_match, *pair) for pair in pairs)
    total_f1 = sum(best_score(f1, *pair) for pair in pairs)
    count = len(answers)
    return SquadScore(100.0 * matches / count, 100.0 * total_f1 / count, count, count - len(pairs))


def read_predictions(path: str | Path, ids: Collection[str]) -> dict[str, str]:
    """Read a JSON object that maps question ids to answers; some of ``ids`` may be missing.

    Raises InputError if the file is invalid or has other ids.
    """
    remedy = "give a JSON file of predictions, an object that maps question ids to answers"
    content = read_json_object(path, remedy, "utf-8-sig")
    for id, text in content.items():
        if not isinstance(text, str):
            raise InputError(f"{path}: the prediction for {id!r} is not text; give one text for each question id")
        if id not in ids:
            raise InputError(f"{path}: the data has no question {id!r}; give predictions made for this data")
    return content
