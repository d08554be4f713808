"""The page of cases: sentences in which the model predicts a synonym, as one self-contained HTML file."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_TEMPLATE = Path(__file__).with_name("case_page.html")
_DIGITS = 6  # of a probability; the smallest value that the page shows is 0.01%
# characters that could end the data element, that some parsers read as line ends, or that UTF-8 cannot encode
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


class Synonym(NamedTuple):
    """A word of the gold word's row in the synonym table."""

    word: str
    probability: float  # given by the model at the masked position


class Case(NamedTuple):
    """A masked word whose prediction was wrong, and its synonyms."""

    table: str  # the synonym table's name, such as "wordnet"
    # segments of the text to concatenate: 0 is plain text, 1 also masked, 2 the masked word with its leading space
    context: list[tuple[str, int]]
    gold: str
    gold_probability: float
    prediction: str
    prediction_probability: float
    part_of_speech: str  # "noun", "verb", "adjective", "adverb" or "unknown"
    inflection: str  # how the form of the prediction relates to the gold word's (inflection.Relation); "" if unknown
    synonyms: list[Synonym]  # the gold word's row of the table, in its order
    corrected: bool  # whether the prediction is in the row; else a near miss: a synonym was probable, but another won


class TeacherCase(NamedTuple):
    """A masked word whose wrong prediction a teacher finds likely: as likely as the gold word, or likely by itself."""

    teacher: str  # the model that the user named
    context: list[tuple[str, int]]  # as in ``Case``, as all fields of the same names
    gold: str
    gold_probability: float
    prediction: str
    prediction_probability: float
    part_of_speech: str
    inflection: str
    synonym_in: list[str]  # the synonym tables that have the prediction as a synonym of the gold word
    teacher_gold_probability: float
    teacher_prediction_probability: float


def confidence(case: Case | TeacherCase) -> float:
    """The probability of the predicted synonym if corrected, else of the most likely synonym (0 if there is none).

    For a teacher's case, its probability of the prediction.
    """
    if isinstance(case, TeacherCase):
        return case.teacher_prediction_probability
    if case.corrected:
        return case.prediction_probability
    return max((synonym.probability for synonym in case.synonyms), default=0.0)


def case_page(
    checkpoint: str,
    updates: int | None,
    split: str,
    cases: Sequence[Case | TeacherCase],
    rates: Sequence[Mapping[str, Any]] = (),
    curves: Sequence[Mapping[str, Any]] = (),
    teacher: str | None = None,
) -> str:
    """The complete page as self-contained HTML, to be written as UTF-8.

    ``rates`` are those of ``analysis.figures``, in percent, for each checkpoint and table. ``curves`` are the losses in
    training: a name and points (updates, loss). ``teacher`` names the teacher if there is one. Raises ValueError if a
    number is NaN or infinite.
    """
    ordered = [_compact(case) for case in sorted(cases, key=confidence, reverse=True)]
    data: dict[str, Any] = {"checkpoint": checkpoint, "updates": updates, "split": split, "cases": ordered}
    data |= {"rates": rates, "curves": curves} | ({"teacher": teacher} if teacher else {})
    embedded = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    embedded = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", embedded)
    template = _TEMPLATE.read_text(encoding="utf-8")
    # replace the data last because its text may contain a placeholder
    return template.replace("{{policy}}", _policy(template)).replace("{{data}}", embedded)


def cases_json(cases: Sequence[Case | TeacherCase]) -> str:
    """A JSON list with one line per case: an object with the fields of ``Case`` or ``TeacherCase``."""
    fields = [case._asdict() | ({"synonyms": dict(case.synonyms)} if isinstance(case, Case) else {}) for case in cases]
    lines = [json.dumps(case, ensure_ascii=False) for case in fields]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _compact(case: Case | TeacherCase) -> list[Any]:
    """The fields of the case in order, with rounded numbers; the tenth is the kind, which is 2 for a teacher's case."""
    fields = [round(field, _DIGITS) if isinstance(field, float) else field for field in case]
    if isinstance(case, TeacherCase):
        return [*fields[:9], 2, *fields[9:]]
    synonyms = [Synonym(word, round(probability, _DIGITS)) for word, probability in case.synonyms]
    return [*fields[:8], synonyms, int(case.corrected)]


def _policy(template: str) -> str:
    """The content security policy: allows only the template's own style and script, by their hashes."""
    digests = [(kind, hashlib.sha256(text.encode()).digest()) for kind, text in _INLINE.findall(template)]
    allowed = [f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" for kind, digest in digests]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])
