"""How well a judge of corrections agrees with people: the synonyms of a table in the sentences of SWORDS."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...configuration import check_data_folder
from ...dictionary import load_dictionary
from ...errors import InputError
from ...judge import judge_scores
from ...models.loading import Loaded, check_masked_lm, load
from ...reporting.layout import align, table_names
from ...synonym_table import load_synonym_table
from ...synonyms.acceptance import is_one_piece, judged_synonyms, table_quality
from ...synonyms.swords import VERDICTS, Substitute, read_swords, verdict
from ...synonyms.words import word_finder
from ...tokenizers import load_tokenizer
from ...vocabulary import whole_words
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


class Scored(NamedTuple):
    """A synonym in a table's row of a target, the judgment of people, and the score of the judge."""

    target: str
    substitute: Substitute
    one_piece: bool  # whether the judged lemma is a symbol of the dictionary, as the synonym is
    score: float


def judge_report(checkpoint: Path, data: Path, swords: Path, tables: Sequence[Path], encoder_json: Path | None) -> str:
    """For each table, how many synonyms the judge keeps at each threshold, and what people say about them, as text.

    Raises InputError for files that are invalid or do not fit the dictionary of ``data``, and for a table without
    synonyms that people have judged.
    """
    check_data_folder(data)
    dictionary = load_dictionary(data / "dict.txt")
    words = whole_words(dictionary, encoder_json)
    targets = read_swords(swords)
    read = {name: load_synonym_table(path, dictionary) for name, path in zip(table_names(tables), tables)}
    tokenizer = load_tokenizer(data / "tokenizer")
    questions = find_questions(targets, tokenizer, tokenizer.lookup_table(dictionary), words)
    judge = load(check_masked_lm(checkpoint, dictionary), data)
    lines: list[str | list[str]] = []
    for name, table in read.items():
        scored = score_synonyms(judge, questions, table, words)
        if not scored:
            raise InputError(f"{swords}: people have judged no synonym of {name}; give another table or other data")
        acceptable = table_quality(table, targets, words, by_lemma=True).all_acceptable
        lines += [name, list(HEADINGS)]
        lines += [threshold_line(scored, threshold, acceptable) for threshold in (None, *THRESHOLDS)]
        lines.append("")
    return "\n".join([*align(lines), *LEGEND.splitlines()])


def score_synonyms(
    judge: Loaded, questions: Sequence[Question], table: Tensor, words: Mapping[int, str]
) -> list[Scored]:
    """The judge's scores of all synonyms in a table, int32 (V, columns), that people have judged at the questions."""
    dictionary = judge.task.source_dictionary
    length = min(MAX_CONTEXT, max_length(judge))
    places: list[Place] = []
    synonyms: list[int] = []
    found: list[tuple[str, Substitute, bool]] = []
    find = word_finder(words)
    for question in questions:
        judged = judged_synonyms(question.target, table[question.word].tolist(), words)
        places += [question.place(length, dictionary.bos(), dictionary.eos())] * len(judged)
        synonyms += judged
        for substitute in judged.values():
            found.append((question.target.id, substitute, is_one_piece(substitute, question.target, find)))
    scores = np.empty(len(places))
    for members, tokens, of_place in batches(judge, places):
        # the candidates are in the order of the rows
        predictions = torch.tensor([synonyms[member] for member in members], device=tokens.device)
        scores[members] = judge_scores(judge.model, {"src_tokens": tokens}, of_place, predictions).cpu().numpy()
    return [Scored(*judged, score) for judged, score in zip(found, scores.tolist(), strict=True)]


def threshold_line(scored: Sequence[Scored], threshold: float | None, all_acceptable: int) -> list[str]:
    """One line of the report; without a threshold, everything is kept."""
    kept = [one for one in scored if threshold is None or one.score >= threshold]
    verdicts = [verdict(one.substitute.score) for one in kept]
    acceptable = (one for one, name in zip(kept, verdicts) if name == "acceptable" and one.one_piece)
    held = {(one.target, one.substitute.text) for one in acceptable}
    shares = [verdicts.count(name) / len(kept) if kept else None for name in VERDICTS]
    return [
        "  none" if threshold is None else f"  {threshold:g}",
        f"{len(kept):,}",
        f"{100 * len(kept) / len(scored):.1f}",
        *("-" if share is None else f"{100 * share:.1f}" for share in shares),
        f"{100 * len(held) / all_acceptable:.1f}" if all_acceptable else "-",
    ]
