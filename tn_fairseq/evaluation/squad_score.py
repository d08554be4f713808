"""Exact match and F1 of SQuAD 1.1, digit for digit those of the official script."""

import json
import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class SquadScore:
    """Per cent over all questions; those ``missing`` a prediction count 0."""

    exact_match: float
    f1: float
    questions: int
    missing: int


def normalize_answer(text: str) -> str:
    """Lower-case, without ASCII punctuation and articles, one space between words."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> bool:
    """Whether the two are one answer once normalised."""
    return normalize_answer(prediction) == normalize_answer(gold)


def f1(prediction: str, gold: str) -> float:
    """The harmonic mean of precision and recall of the normalised words; 0 where they share none."""
    predicted, wanted = normalize_answer(prediction).split(), normalize_answer(gold).split()
    shared = (Counter(predicted) & Counter(wanted)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def squad_score(answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> SquadScore:
    """Score each prediction by the gold answer of its question that suits it best.

    Raises ValueError without questions, and for a question without an answer.
    """
    if not answers:
        raise ValueError("no questions to score")
    matches, total_f1 = 0, 0.0
    for question, golds in answers.items():
        if question in predictions:
            matches += max(exact_match(predictions[question], gold) for gold in golds)
            total_f1 += max(f1(predictions[question], gold) for gold in golds)
    count = len(answers)
    missing = count - len(answers.keys() & predictions.keys())
    return SquadScore(100.0 * matches / count, 100.0 * total_f1 / count, count, missing)


def read_predictions(path: str | Path, ids: Collection[str]) -> dict[str, str]:
    """Read a JSON object of answer texts by question id; not all ``ids`` need be there, but no others may.

    Raises InputError.
    """
    try:
        content = json.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a JSON file of predictions") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; convert it, for example with iconv") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not valid JSON ({error.msg}); write it with a JSON library"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object; give one of answer texts by question id")
    for id, text in content.items():
        if not isinstance(text, str):
            raise InputError(f"{path}: the prediction for {id!r} is no text; give one answer text for each question id")
        if id not in ids:
            raise InputError(f"{path}: the data has no question {id!r}; give the predictions made for these data")
    return content
