"""How well synonym tables agree with people in the sentences of SWORDS, also if a judge of corrections filters them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....core.errors import InputError
from ....models.loading import Loaded
from ....objectives.judge import judge_scores
from ....synonyms.acceptance import Crossings, TableQuality, crossings, judged_synonyms, table_quality
from ....synonyms.swords import VERDICTS, Target
from ....tokenizers import load_tokenizer
from .scoring import Place, batches, max_length
from .substitution import MAX_CONTEXT, Question, find_questions

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
Rows = Iterator[dict[str, Any]]  # of the table of results


def table_rows(name: str, table: Tensor, targets: Sequence[Target], words: Mapping[int, str]) -> Rows:
    """What people say about a table, int32 (V, columns), and how many of its pairs cross inflections."""
    yield from quality_rows(name, table_quality(table, targets, words, by_lemma=True))
    yield from crossing_rows(name, crossings(table, words))
    yield from quality_rows(f"{name} by spelling", table_quality(table, targets, words, by_lemma=False))


def quality_rows(arm: str, quality: TableQuality) -> Rows:
    """The number of judged pairs, and shares in percent, without those that are undefined."""
    yield {"arm": arm, "measure": "table judged", "value": quality.judged}
    shares = [(f"table {verdict}", getattr(quality, verdict), quality.judged) for verdict in VERDICTS]
    yield from _shares(arm, [*shares, ("table held", quality.held, quality.all_acceptable)])


def crossing_rows(arm: str, found: Crossings) -> Rows:
    """The numbers of rows and pairs, and shares in percent, without those that are undefined."""
    yield {"arm": arm, "measure": "table rows", "value": found.rows}
    yield {"arm": arm, "measure": "table pairs", "value": found.pairs}
    yield from _shares(
        arm,
        [
            ("table crossing", found.rows_crossing, found.rows),
            ("table own word", found.own_word, found.pairs),
            ("table other word", found.other_word, found.pairs),
        ],
    )


def _shares(arm: str, counts: Sequence[tuple[str, int, int]]) -> Rows:
    for measure, part, whole in counts:
        if whole:
            yield {"arm": arm, "measure": measure, "value": 100 * part / whole}


def judge_rows(
    judge: Loaded, data: Path, targets: Sequence[Target], tables: Mapping[str, Tensor], words: Mapping[int, str]
) -> Rows:
    """For each table, int32 (V, columns), what people say about the synonyms that the judge keeps at each threshold.

    ``data`` is the folder with the tokenizer. Raises InputError for a table without synonyms that people have judged.
    """
    tokenizer = load_tokenizer(data / "tokenizer")
    questions = find_questions(targets, tokenizer, tokenizer.lookup_table(judge.task.source_dictionary), words)
    for name, table in tables.items():
        scores = score_synonyms(judge, questions, table, words)
        if not scores:
            raise InputError(f"--judge: people have judged no synonym of {name}; give another table or data")
        yield from threshold_rows(name, scores, table, targets, words)


def threshold_rows(
    name: str,
    scores: Mapping[tuple[str, int], float],
    table: Tensor,
    targets: Sequence[Target],
    words: Mapping[int, str],
) -> Rows:
    """The rows of a table with the synonyms that a judge scores, and of those that each threshold keeps."""
    for threshold in (0.0, *THRESHOLDS):
        pairs = {pair for pair, score in scores.items() if score >= threshold}
        arm = f"{name}, judge {threshold:g}" if threshold else f"{name}, no judge"
        yield from quality_rows(arm, table_quality(table, targets, words, by_lemma=True, kept=pairs))


def score_synonyms(
    judge: Loaded, questions: Sequence[Question], table: Tensor, words: Mapping[int, str]
) -> dict[tuple[str, int], float]:
    """The judge's scores of all synonyms in a table, int32 (V, columns), that people have judged at the questions.

    They have the id of the target and the synonym's in the dictionary as keys.
    """
    dictionary = judge.task.source_dictionary
    length = min(MAX_CONTEXT, max_length(judge))
    places: list[Place] = []
    pairs: list[tuple[str, int]] = []
    for question in questions:
        judged = judged_synonyms(question.target, table[question.word].tolist(), words)
        places += [question.place(length, dictionary.bos(), dictionary.eos())] * len(judged)
        pairs += [(question.target.id, synonym) for synonym in judged]
    scores = np.empty(len(places))
    for members, tokens, position_mask in batches(judge, places):
        # the candidates are in the order of the rows
        predictions = torch.tensor([pairs[member][1] for member in members], device=tokens.device)
        scores[members] = judge_scores(judge.model, {"src_tokens": tokens}, position_mask, predictions).cpu().numpy()
    return dict(zip(pairs, scores.tolist(), strict=True))
