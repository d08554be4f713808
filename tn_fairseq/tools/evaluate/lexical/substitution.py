"""What a model says about the judged substitutes of SWORDS in the place of a word."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score
from torch import Tensor

from ....core.synonym_table import PADDING
from ....core.vocabulary import match_case, word_finder
from ....models.electra import ElectraModel
from ....models.loading import Loaded
from ....synonyms.acceptance import judged_synonyms
from ....synonyms.inflection import inflect, readings
from ....synonyms.swords import ACCEPTABLE, REJECTED, Target
from ....tokenizers.base import Tokenizer
from .scoring import Place, log_probabilities, max_length, replaced_token_logits

MAX_CONTEXT = 128  # tokens of a context, <s> and </s> included, so that models of different lengths see the same
LENIENCY, REJECTED_MASS, LEMMAS, GAP, RTD_AUC = "leniency", "rejected", "lemmas", "GAP", "RTD AUC"
ROW_MEASURES = ("row", "row acceptable", "row rejected")


class Question(NamedTuple):
    """A target of one piece in the tokens of its context, (T,), and its substitutes that have spellings of one piece.

    ``spellings`` are the dictionary ids of each substitute in the target's form, and ``scores``, (substitutes,), the
    shares of judges who accept it. ``acceptable_lemmas`` are the ids of acceptable substitutes as they are judged.
    """

    target: Target
    tokens: np.ndarray
    position: int
    spellings: list[list[int]]
    scores: np.ndarray
    acceptable_lemmas: list[int]

    @property
    def word(self) -> int:
        """The dictionary id of the target."""
        return int(self.tokens[self.position])

    def place(self, length: int, bos: int, eos: int) -> Place:
        """The target in the middle of at most ``length`` tokens of its context, ``<s>`` and ``</s>`` included."""
        room = length - 2
        first = max(0, min(self.position - room // 2, len(self.tokens) - room))
        tokens = np.concatenate([[bos], self.tokens[first : first + room], [eos]])
        return Place(tokens, self.position - first + 1)


def find_questions(
    targets: Sequence[Target], tokenizer: Tokenizer, table: np.ndarray, words: Mapping[int, str]
) -> list[Question]:
    """The targets that are one whole word of the dictionary in their contexts.

    ``table`` maps the tokenizer's ids to the dictionary's (``lookup_table``), and ``words`` are the dictionary's whole
    words (``whole_words``). Judged substitutes are lemmas; they take the form of the target.
    """
    find = word_finder(words)
    questions = []
    for target in targets:
        token_ids, offsets = tokenizer.encode_with_offsets(target.context)
        (covering,) = np.nonzero((offsets[:, 1] > target.start) & (offsets[:, 0] < target.end))
        tokens = table[token_ids]
        is_one_token = offsets[covering].tolist() == [[target.start, target.end]]
        # what follows may continue the word: total in totals
        if not is_one_token or target.context[target.end : target.end + 1].isalnum():
            continue
        word = int(tokens[covering[0]])
        if word not in words:
            continue
        used = {word}
        spellings, scores = [], []
        lemmas: list[int] = []
        for substitute in target.substitutes:
            texts = substitute.text, *in_the_form_of(target, substitute.text)
            lemma, *ids = (find(match_case(text, like=target.word)) for text in texts)
            new = [index for index in dict.fromkeys(ids) if index is not None and index not in used]
            if new:
                spellings.append(new)
                scores.append(substitute.score)
                used.update(new)
            if substitute.score >= ACCEPTABLE and lemma is not None and lemma not in (word, *lemmas):
                lemmas.append(lemma)
        questions.append(Question(target, tokens, int(covering[0]), spellings, np.array(scores), lemmas))
    return questions


def in_the_form_of(target: Target, lemma: str) -> list[str]:
    """The spellings of a lemma in the inflected form of the target (*poll* for *elections*: *polls*).

    If the target can be several forms (the verb *put*), the spellings of all of them; the lemma if it is of none.
    """
    forms = sorted(
        reading.form
        for reading in readings(target.word.lower())
        if (reading.lemma, reading.part_of_speech) == (target.lemma.lower(), target.part_of_speech)
    )
    spellings = [spelling for form in forms for spelling in inflect(lemma.lower(), target.part_of_speech, form)]
    return spellings if forms else [lemma]


def measure_substitutes(
    loaded: Loaded, questions: Sequence[Question], tables: Mapping[str, Tensor], words: Mapping[int, str]
) -> dict[tuple[str, str], np.ndarray]:
    """The measures by (measure, name of a synonym table or ""), each (questions,), NaN where it is undefined.

    ``tables`` are synonym tables, int32 (V, columns). With the target masked, leniency is the logarithm of the summed
    probability of all acceptable substitutes divided by the target's, and REJECTED_MASS the same for those rejected.
    LEMMAS is leniency for the substitutes as they are judged, which are lemmas, instead of in the target's form.
    GAP, RTD_AUC (only for ELECTRA) and the probability of a table's row (ROW_MEASURES) are in percent.
    """
    dictionary = loaded.task.source_dictionary
    length = min(MAX_CONTEXT, max_length(loaded))
    places = [question.place(length, dictionary.bos(), dictionary.eos()) for question in questions]
    names = [(kind, "") for kind in (LENIENCY, REJECTED_MASS, LEMMAS, GAP)]
    names += [(kind, name) for name in tables for kind in ROW_MEASURES]
    measures = {name: np.full(len(questions), np.nan) for name in names}
    likeliest: list[list[int]] = [[] for _ in questions]  # spelling of each substitute
    for members, log_probs in log_probabilities(loaded, places):
        for number, log_prob in zip(members, log_probs.cpu().numpy().astype(float)):
            question = questions[number]
            target_log_prob, scores = log_prob[question.word], question.scores
            substitutes = np.array([log_mass(log_prob[spellings]) for spellings in question.spellings])
            measures[LENIENCY, ""][number] = log_mass(substitutes[scores >= ACCEPTABLE]) - target_log_prob
            measures[REJECTED_MASS, ""][number] = log_mass(substitutes[scores < REJECTED]) - target_log_prob
            measures[LEMMAS, ""][number] = log_mass(log_prob[question.acceptable_lemmas]) - target_log_prob
            measures[GAP, ""][number] = 100 * generalized_average_precision(substitutes, scores)
            likeliest[number] = [spellings[log_prob[spellings].argmax()] for spellings in question.spellings]
            for name, table in tables.items():
                row = [index for index in table[question.word].tolist() if index != PADDING]
                judged = judged_synonyms(question.target, row, words)
                row_scores = np.array([judged[index].score if index in judged else np.nan for index in row])
                percent = 100 * np.exp(log_prob[row])
                parts = percent, percent[row_scores >= ACCEPTABLE], percent[row_scores < REJECTED]
                for kind, part in zip(ROW_MEASURES, parts, strict=True):
                    measures[kind, name][number] = part.sum()
    if isinstance(loaded.model, ElectraModel):
        measures[RTD_AUC, ""] = _replaced_token_auc(loaded, questions, places, likeliest)
    return measures


def _replaced_token_auc(
    loaded: Loaded, questions: Sequence[Question], places: Sequence[Place], likeliest: Sequence[Sequence[int]]
) -> np.ndarray:
    """For each question, how well the discriminator tells acceptable from rejected substitutes, in percent."""
    filled: list[Place] = []
    judged: list[tuple[int, bool]] = []  # the question, and whether the substitute is acceptable
    for number, (question, place) in enumerate(zip(questions, places, strict=True)):
        for substitute, score in zip(likeliest[number], question.scores, strict=True):
            if score >= ACCEPTABLE or score < REJECTED:
                tokens = place.tokens.copy()
                tokens[place.position] = substitute
                filled.append(Place(tokens, place.position))
                judged.append((number, score >= ACCEPTABLE))
    originality = -replaced_token_logits(loaded, filled)
    owners, is_acceptable = np.array(judged, dtype=int).reshape(-1, 2).T
    return np.array([100 * auc(originality[owners == n], is_acceptable[owners == n]) for n in range(len(questions))])


def log_mass(log_probabilities: Sequence[float] | np.ndarray) -> float:
    """The logarithm of the summed probability, (n) natural logarithms; NaN if there are none."""
    return float(logsumexp(log_probabilities)) if len(log_probabilities) else np.nan


def generalized_average_precision(ranking: np.ndarray, weights: np.ndarray) -> float:
    """GAP (Kishida 2005; Kremer et al. 2014) of candidates ranked by ``ranking``, highest first; 1 is the best.

    ``weights`` are their gold weights; both are (n). With x_1 … x_n the weights in the order of the ranking, and
    y_1 … y_n in descending order: sum over i with x_i > 0 of mean(x_1 … x_i), divided by the same sum over y. Equal
    ranks keep the given order. NaN if no weight is positive.
    """
    best = _precisions(np.sort(weights)[::-1])
    return _precisions(weights[np.argsort(-ranking, kind="stable")]) / best if best > 0 else np.nan


def _precisions(weights: np.ndarray) -> float:
    means = np.cumsum(weights) / np.arange(1, len(weights) + 1)
    return float(means[weights > 0].sum())


def auc(scores: np.ndarray, is_positive: np.ndarray) -> float:
    """The probability that a positive has the higher score, with ties counted as half; both (n); NaN without both."""
    return float(roc_auc_score(is_positive, scores)) if 0 < is_positive.sum() < len(is_positive) else np.nan
