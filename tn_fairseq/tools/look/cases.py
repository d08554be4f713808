"""The cases to show: masked words whose prediction was a synonym (corrections), or almost was (near misses).

With a teacher, also those whose wrong prediction it finds likely.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ...core.synonym_table import PADDING
from .case_page import Case, Synonym, TeacherCase
from .predictions import Judgment, Predictions

_PIECES_OF_A_WORD = 8
CONTEXT = 24  # tokens shown on either side of the masked word
SAME_PAIR = 5  # maximum number of cases shown of one pair of gold and predicted word
_SPARE = 10  # keep this many times the cases shown, because too many may be of the same pair


class Wording(NamedTuple):
    """How to write cases: the surface forms of the dictionary's entries, and their names outside a text.

    ``part_of_speech(word, synonym)`` gives the part of speech of ``word`` in the sense shared with ``synonym``, and
    ``inflection(word, prediction)`` how their forms relate.
    """

    forms: Sequence[str]
    labels: Sequence[str]
    part_of_speech: Callable[[str, str], str]
    inflection: Callable[[str, str], str]


class _MaskedWord(NamedTuple):
    """A masked position; ``key`` identifies it across maskings."""

    confidence: float
    key: tuple[int, int]
    tokens: Tensor  # (T)
    masked_tokens: Tensor  # (T) boolean
    gold: int
    gold_probability: float
    prediction: int
    prediction_probability: float
    synonyms: dict[int, float]  # their probabilities
    teacher: tuple[float, float] = (0.0, 0.0)  # its probabilities of the gold word and of the prediction

    @property
    def synonym(self) -> int:
        """The predicted synonym if there is one, else the most likely one, or the prediction if there is none."""
        if self.prediction in self.synonyms or not self.synonyms:
            return self.prediction
        return max(self.synonyms, key=lambda index: (self.synonyms[index], index))

    def as_text(self, wording: Wording) -> dict[str, Any]:
        """The fields that every kind of case has."""
        labels = wording.labels
        gold, prediction = labels[self.gold], labels[self.prediction]
        return {
            "context": context(self.tokens.tolist(), self.masked_tokens.tolist(), self.key[1], wording.forms),
            "gold": gold,
            "gold_probability": self.gold_probability,
            "prediction": prediction,
            "prediction_probability": self.prediction_probability,
            "part_of_speech": wording.part_of_speech(gold, labels[self.synonym]),
            "inflection": wording.inflection(gold, prediction),
        }


class CaseCollector:
    """Keeps the most confident cases of one table: corrections and near misses."""

    def __init__(self, name: str, table: Tensor, limit: int):
        self.name, self.table, self.limit = name, table, limit
        self.most_confident = {True: _MostConfident(limit), False: _MostConfident(limit)}

    def add(self, batch: Predictions, probabilities: Tensor, false_negative: Tensor) -> None:
        """Add the cases of a batch; ``probabilities`` (N, V) are the model's, ``false_negative`` (N) the table's."""
        masked = batch.masked
        rows = self.table[masked.words].long()
        synonym_probabilities = probabilities.gather(1, rows.clamp(min=0)).masked_fill(rows == PADDING, 0.0)
        prediction_probabilities = probabilities.gather(1, masked.predictions.unsqueeze(1)).squeeze(1)
        near_miss = ~false_negative & (masked.predictions != masked.targets) & (rows[:, 0] != PADDING)
        places = masked.masked_tokens.nonzero()
        for corrected, candidates, confidence in (
            (True, false_negative, prediction_probabilities),
            (False, near_miss, synonym_probabilities.max(dim=1).values),
        ):
            positions = candidates.nonzero().squeeze(1)
            best = confidence[positions].topk(min(len(positions), self.limit)).indices
            for position in positions[best].tolist():
                indices = [index for index in rows[position].tolist() if index != PADDING]
                synonyms = dict(zip(indices, synonym_probabilities[position].tolist()))
                word = _masked_word(batch, places, position, probabilities)
                word = word._replace(confidence=confidence[position].item(), synonyms=synonyms)
                self.most_confident[corrected].add(word)

    def cases(self, wording: Wording) -> list[Case]:
        """The cases as text, most confident first, with a limited number per pair of words."""
        return [
            Case(
                table=self.name,
                **case.as_text(wording),
                synonyms=[Synonym(wording.labels[index], probability) for index, probability in case.synonyms.items()],
                corrected=corrected,
            )
            for corrected in (True, False)
            for case in self.most_confident[corrected].chosen()
        ]


class TeacherCollector:
    """Keeps the words whose wrong prediction a teacher finds most likely; ``is_word`` (V) says which symbols count."""

    def __init__(self, name: str, tables: Mapping[str, Tensor], is_word: Tensor, limit: int):
        self.name, self.tables, self.is_word, self.limit = name, tables, is_word, limit
        self.most_confident = _MostConfident(limit)

    def add(self, batch: Predictions, judgment: Judgment, probabilities: Tensor) -> None:
        """Add the cases of a batch; ``probabilities`` (N, V) are the model's."""
        masked = batch.masked
        gold_probabilities, prediction_probabilities = judgment.gold_lprobs.exp(), judgment.prediction_lprobs.exp()
        is_whole = masked.words.eq(masked.targets) & self.is_word[masked.targets] & self.is_word[masked.predictions]
        is_likely = judgment.as_likely | judgment.likely
        positions = (is_whole & is_likely & masked.predictions.ne(masked.targets)).nonzero().squeeze(1)
        places = masked.masked_tokens.nonzero()
        best = prediction_probabilities[positions].topk(min(len(positions), self.limit)).indices
        for position in positions[best].tolist():
            teacher = gold_probabilities[position].item(), prediction_probabilities[position].item()
            word = _masked_word(batch, places, position, probabilities)
            self.most_confident.add(word._replace(confidence=teacher[1], teacher=teacher))

    def cases(self, wording: Wording) -> list[TeacherCase]:
        """The cases as text, most likely to the teacher first, as ``CaseCollector.cases``."""
        return [
            TeacherCase(
                teacher=self.name,
                **case.as_text(wording),
                synonym_in=[name for name, table in self.tables.items() if case.prediction in table[case.gold]],
                teacher_gold_probability=case.teacher[0],
                teacher_prediction_probability=case.teacher[1],
            )
            for case in self.most_confident.chosen()
        ]


def _masked_word(batch: Predictions, places: Tensor, position: int, probabilities: Tensor) -> _MaskedWord:
    """A masked position of a batch, as sure as its prediction, without synonyms and a teacher.

    ``places``, (N, 2), are the sequences and places of the masked positions, and ``probabilities`` (N, V) the model's.
    """
    masked = batch.masked
    sequence, place = places[position].tolist()
    gold, prediction = int(masked.targets[position]), int(masked.predictions[position])
    prediction_probability = probabilities[position, prediction].item()
    return _MaskedWord(
        confidence=prediction_probability,
        key=(batch.sequence_ids[sequence], place),
        tokens=masked.text[sequence],
        masked_tokens=masked.masked_tokens[sequence],
        gold=gold,
        gold_probability=probabilities[position, gold].item(),
        prediction=prediction,
        prediction_probability=prediction_probability,
        synonyms={},
    )


class _MostConfident:
    """The most confident cases, one for each masked position."""

    def __init__(self, limit: int):
        self.limit = limit
        self.cases: dict[tuple[int, int], _MaskedWord] = {}

    def add(self, case: _MaskedWord) -> None:
        if case.key not in self.cases or self.cases[case.key].confidence < case.confidence:
            self.cases[case.key] = case
        if len(self.cases) > 2 * _SPARE * self.limit:
            self.cases = {case.key: case for case in self._sorted()[: _SPARE * self.limit]}

    def chosen(self) -> list[_MaskedWord]:
        """Not too many of them, and not too many of one pair of words."""
        pairs: Counter[tuple[int, int]] = Counter()
        chosen = []
        for case in self._sorted():
            pairs[case.gold, case.prediction] += 1
            if pairs[case.gold, case.prediction] <= SAME_PAIR:
                chosen.append(case)
        return chosen[: self.limit]

    def _sorted(self) -> list[_MaskedWord]:
        return sorted(self.cases.values(), key=lambda case: -case.confidence)


def _continues_a_word(form: str) -> bool:
    return bool(form) and not form[0].isspace()


def context(tokens: Sequence[int], masked: Sequence[bool], place: int, forms: Sequence[str]) -> list[tuple[str, int]]:
    """The text around a position as segments to concatenate: 0 is plain text, 1 also masked, 2 the position itself."""
    first, last = max(0, place - CONTEXT), place + CONTEXT + 1
    # complete the words at both ends; not every script has spaces, so not without limit
    for _ in range(_PIECES_OF_A_WORD):
        first -= first > 0 and _continues_a_word(forms[tokens[first]])
        last += last < len(tokens) and _continues_a_word(forms[tokens[last]])
    pieces = [
        (forms[token], 2 if index == place else int(masked[index]))
        for index, token in enumerate(tokens[first:last], start=first)
    ]
    if any(forms[token] for token in tokens[:first]):
        pieces.insert(0, ("…", 0))
    if any(forms[token] for token in tokens[last:]):
        pieces.append((" …", 0))
    segments: list[tuple[str, int]] = []
    for form, kind in pieces:
        if form and segments and kind == 0 == segments[-1][1]:
            segments[-1] = (segments[-1][0] + form, 0)
        elif form:
            segments.append((form, kind))
    return segments
