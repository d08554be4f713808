"""How well a judge of corrections agrees with people: the synonyms of a table in the sentences of SWORDS."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ....core.errors import InputError
from ....models.loading import Loaded
from ....objectives.judge import judge_scores
from ....synonyms.acceptance import judged_synonyms, table_quality
from ....synonyms.swords import VERDICTS, Target
from ....tokenizers import load_tokenizer
from ...reporting.layout import align, cell, percent
from .scoring import Place, batches, max_length
from .substitution import MAX_CONTEXT, Question, find_questions

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
HEADINGS = ("threshold", "kept", "% kept", *(f"% {name}" for name in VERDICTS), "% of all acceptable")
LEGEND = """\
kept                 synonyms, judged by people at a target of SWORDS, with at least this score; "none" is no judge
% acceptable         percentage of the kept ones that at least half of the people accept
% doubtful           accepted by fewer, but by at least one in ten
% rejected           accepted by fewer than one in ten
% of all acceptable  percentage of all acceptable one-piece substitutes that are kept"""


def judge_text(
    judge: Loaded, data: Path, targets: Sequence[Target], tables: Mapping[str, Tensor], words: Mapping[int, str]
) -> str:
    """For each table, int32 (V, columns), how many synonyms the judge keeps at each threshold, and what people say.

    ``data`` is the folder with the tokenizer. Raises InputError for a table without synonyms that people have judged.
    """
    tokenizer = load_tokenizer(data / "tokenizer")
    questions = find_questions(targets, tokenizer, tokenizer.lookup_table(judge.task.source_dictionary), words)
    lines: list[str | list[str]] = []
    for name, table in tables.items():
        scores = score_synonyms(judge, questions, table, words)
        if not scores:
            raise InputError(f"--judge: people have judged no synonym of {name}; give another table or data")
        lines += [f"judge, {name}", list(HEADINGS), *threshold_lines(scores, table, targets, words), ""]
    return "\n".join([*align(lines), *LEGEND.splitlines()])


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


def threshold_lines(
    scores: Mapping[tuple[str, int], float], table: Tensor, targets: Sequence[Target], words: Mapping[int, str]
) -> list[list[str]]:
    """A line of the report for each threshold; ``scores`` are those of ``score_synonyms``."""
    lines = []
    for threshold in (None, *THRESHOLDS):
        pairs = {pair for pair, score in scores.items() if threshold is None or score >= threshold}
        kept = table_quality(table, targets, words, by_lemma=True, kept=pairs)
        shares = [percent(len(pairs), len(scores))]
        shares += [percent(part, len(pairs)) for part in (kept.acceptable, kept.doubtful, kept.rejected)]
        shares.append(percent(kept.held, kept.all_acceptable))
        label = "none" if threshold is None else f"{threshold:g}"
        lines.append([f"  {label}", f"{len(pairs):,}", *(cell(share, ".1f") for share in shares)])
    return lines
