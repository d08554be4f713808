"""The page of cases: sentences in which the model puts in a synonym, as one HTML file that needs nothing else."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError

_TEMPLATE = Path(__file__).with_name("page.html")
_DIGITS = 6  # of a probability: the page shows 0.01 % at the least
# what could end the element that holds the data, what is a line's end to some readers, and what UTF-8 cannot say
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


class Synonym(NamedTuple):
    """A word of the gold word's row in the synonym table."""

    word: str
    probability: float  # the model's, at the masked position


class Case(NamedTuple):
    """A masked word whose prediction was wrong, and its synonyms."""

    table: str  # the synonym table's name, such as "wordnet"
    # the text in segments, to be concatenated as they are; 0 plain, 1 masked as well, 2 the masked word in question
    # (its original text, with its leading space)
    context: list[tuple[str, int]]
    gold: str
    gold_probability: float
    prediction: str
    prediction_probability: float
    part_of_speech: str  # "noun", "verb", "adjective", "adverb" or "unknown"
    synonyms: list[
        Synonym
    ]  # the gold word's row of the table, in its order, with the prediction among them if corrected
    # the prediction is in the row; otherwise a near miss: the model put much probability on a synonym, but more on
    # another word
    corrected: bool


def confidence(case: Case) -> float:
    """The probability of the predicted synonym where corrected, of the likeliest synonym otherwise (0 without one)."""
    if case.corrected:
        return case.prediction_probability
    return max((synonym.probability for synonym in case.synonyms), default=0.0)


def case_page(
    checkpoint: str,
    updates: int | None,
    split: str,
    summaries: Sequence[Mapping[str, Any]],
    cases: Sequence[Case],
) -> str:
    """The whole page as one self-contained text, to be written as UTF-8.

    ``summaries`` are rows of ``rates.rows``, in per cent, one a table. Raises InputError where a number is NaN or
    infinite.
    """
    data = {
        "checkpoint": checkpoint,
        "updates": updates,
        "split": split,
        "summaries": [dict(summary) for summary in summaries],
        "cases": [_compact(case) for case in sorted(cases, key=confidence, reverse=True)],
    }
    try:
        embedded = _embed(data)
    except ValueError:  # JSON knows no NaN
        raise InputError(
            f"{checkpoint}: gives probabilities that are NaN; its training has diverged, so name an earlier checkpoint"
        ) from None
    template = _TEMPLATE.read_text(encoding="utf-8")
    # the data last: text in it may look like anything
    return template.replace("{{policy}}", _policy(template)).replace("{{data}}", embedded)


def _compact(case: Case) -> list[Any]:
    """The case in the order of its fields, with short numbers."""
    return list(
        case._replace(
            gold_probability=round(case.gold_probability, _DIGITS),
            prediction_probability=round(case.prediction_probability, _DIGITS),
            synonyms=[Synonym(word, round(probability, _DIGITS)) for word, probability in case.synonyms],
            corrected=int(case.corrected),
        )
    )


def _embed(data: Any) -> str:
    """JSON that stays within a script element, whatever text it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _policy(template: str) -> str:
    """The content security policy: the template's own style and script, known by their hashes, and nothing else."""
    sources = {
        f"{kind}-src": base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in _INLINE.findall(template)
    }
    allowed = [f"{kind} 'sha256-{digest}'" for kind, digest in sources.items()]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])
