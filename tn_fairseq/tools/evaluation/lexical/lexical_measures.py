"""What is measured of a checkpoint with each kind of data: substitutes, word similarities and minimal pairs."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from ....core.errors import InputError
from ....core.vocabulary import word_finder
from ....models.loading import Loaded
from ....objectives import functional
from ....objectives.mlm_soft_reg import input_word_embeddings
from ....synonyms.swords import Target
from ....tokenizers import load_tokenizer
from ...reporting.layout import WIDTH
from ..bootstrap import Measure, rank_correlation
from .blimp import by_group, prefers_good, read_blimp
from .substitution import GAP, ROW_MEASURES, RTD_AUC, find_questions, measure_substitutes
from .word_pairs import mean_cosine, one_piece_pairs, read_word_pairs

SPEARMAN, MEAN_COSINE, ACCURACY = "Spearman", "mean cosine", "accuracy"
BLIMP_PAIRS = 100
BY_PARADIGM = " by paradigm"  # of BLiMP; too many to print
NO_TARGET = "none of its targets is one piece in the vocabulary"
OTHER_DATA = "give the data of a model whose vocabulary has English words"
SWORDS_LEGEND = """\
leniency     mean over targets of log(summed probability of the acceptable substitutes / probability of the target)
rejected     the same for the rejected substitutes
lemmas       leniency if substitutes are not inflected as the target is
GAP          generalized average precision of the ranking of all judged substitutes
RTD AUC      how well ELECTRA's discriminator tells acceptable from rejected substitutes; 50 is chance"""
ROW_LEGEND = """\
row          probability of the target's row in a synonym table; acceptable, rejected: of its synonyms so judged"""
WORDS_LEGEND = """\
Spearman     correlation of people's similarity of two words with the cosine of their input embeddings
mean cosine  of all pairs of whole words; near 1 if the embeddings have collapsed"""
BLIMP_LEGEND = """\
accuracy     pairs whose good sentence has the higher pseudo-log-likelihood; 50 is chance. The phenomena are parts of
             it, so they are not among the differences that Holm's correction is for."""


@dataclass(frozen=True)
class LexicalOptions:
    """What to measure of which checkpoints and synonym tables, and the folder of the report."""

    data: Path  # with dict.txt and the tokenizer
    output: Path
    checkpoints: Sequence[str] = ()  # files, or NAME=PATTERN of the seeds of one checkpoint
    baseline: str | None = None
    encoder_json: Path | None = None  # GPT-2's, for a dictionary of numbers
    swords: Path | None = None
    synonym_table: Sequence[Path] = ()
    judge: Path | None = None  # the file for --correction-judge, to compare with people
    word_pairs: Sequence[Path] = ()
    blimp: Path | None = None
    blimp_pairs: int | None = None  # of each of BLiMP's files, by default BLIMP_PAIRS


class Part(NamedTuple):
    """What is measured with one kind of data: of a model, (items, ...) by measure."""

    measure: Callable[[Loaded], dict[Measure, np.ndarray]]
    notes: list[str]  # what the measures mean, and what is left out
    contexts: dict[str, list[str]]  # of each item, by data


@dataclass(frozen=True)
class Words:
    """What the parts need to read texts: the dictionary, its whole words, and SWORDS's targets."""

    dictionary: Dictionary
    words: Mapping[int, str]
    targets: Sequence[Target]


def parts_of(options: LexicalOptions, vocabulary: Words, tables: Mapping[str, Tensor]) -> list[Part]:
    """What to measure of the checkpoints; none if there are none.

    ``tables`` are synonym tables, int32 (V, columns). Raises InputError for data that fits no word of the vocabulary.
    """
    parts: list[Part] = []
    if not options.checkpoints:
        return parts
    if options.swords is not None:
        parts.append(_substitutes(options.swords, options.data, vocabulary, tables))
    if options.word_pairs:
        parts.append(_similarities(options.word_pairs, vocabulary))
    if options.blimp is not None:
        parts.append(_minimal_pairs(options.blimp, options.blimp_pairs or BLIMP_PAIRS, options.data, vocabulary))
    return parts


def _substitutes(swords: Path, data_bin: Path, vocabulary: Words, tables: Mapping[str, Tensor]) -> Part:
    data, tokenizer = swords_name(swords), load_tokenizer(data_bin / "tokenizer")
    words, targets = vocabulary.words, vocabulary.targets
    questions = find_questions(targets, tokenizer, tokenizer.lookup_table(vocabulary.dictionary), words)
    if not questions:
        raise InputError(f"{swords}: {NO_TARGET} of {data_bin}; {OTHER_DATA}")
    judged = sum(len(question.target.substitutes) for question in questions)
    used = sum(len(question.scores) for question in questions)
    note = (
        f"{data}: {len(questions):,} of {len(targets):,} targets are one piece; {used:,} of their {judged:,} judged "
        "substitutes are one piece in the form of the target. All others are left out. Targets in one context are "
        "resampled together."
    )
    in_percent = (GAP, RTD_AUC, *ROW_MEASURES)

    def measure(loaded: Loaded) -> dict[Measure, np.ndarray]:
        measures = measure_substitutes(loaded, questions, tables, words)
        return {
            Measure(data, name, table, "%" if name in in_percent else ""): values
            for (name, table), values in measures.items()
        }

    legend = [SWORDS_LEGEND, *([ROW_LEGEND] if tables else []), *textwrap.wrap(note, WIDTH)]
    return Part(measure, legend, {data: [question.target.context for question in questions]})


def _similarities(paths: Sequence[Path], vocabulary: Words) -> Part:
    find = word_finder(vocabulary.words)
    pairs: dict[Measure, tuple[Tensor, np.ndarray]] = {}
    notes = [WORDS_LEGEND]
    for path in paths:
        rated = read_word_pairs(path)
        ids, gold = one_piece_pairs(rated, find)
        share = f"{len(ids):,} of {len(rated):,} pairs are two one-piece words"
        if len(ids) < 2:
            unknown = [word for pair in rated for word in pair[:2] if find(word) is None]
            lacks = f", which lacks {unknown[0]!r}" if unknown else ""
            raise InputError(f"{path}: {share} in the vocabulary{lacks}; {OTHER_DATA}")
        if len(set(gold)) == 1:
            raise InputError(f"{path}: {share}, all with the similarity {gold[0]:g}; give pairs that differ")
        pairs[Measure(path.stem, SPEARMAN, statistic=rank_correlation)] = ids, gold
        notes.append(f"{path.stem}: {share}; the others are left out.")

    def measure(loaded: Loaded) -> dict[Measure, np.ndarray]:
        embeddings = input_word_embeddings(loaded.model).weight.detach().float().cpu()
        values = {}
        for one, (ids, gold) in pairs.items():
            cosines = 1 - functional.soft_regularization(*embeddings[ids].unbind(dim=1)).numpy()
            values[one] = np.stack([gold, cosines], axis=1)
        overall_cosine = mean_cosine(embeddings[list(vocabulary.words)])
        return values | {Measure("word embeddings", MEAN_COSINE): np.array([overall_cosine])}

    return Part(measure, notes, {})


def _minimal_pairs(blimp: Path, pairs_per_file: int, data_bin: Path, vocabulary: Words) -> Part:
    tokenizer = load_tokenizer(data_bin / "tokenizer")
    lookup = tokenizer.lookup_table(vocabulary.dictionary)
    pairs = read_blimp(blimp, pairs_per_file)
    members = by_group(pairs)
    files = sum(kind == BY_PARADIGM for kind, _ in members)
    note = f"{len(pairs):,} pairs of {files} paradigms, at most {pairs_per_file:,} of each."

    def measure(loaded: Loaded) -> dict[Measure, np.ndarray]:
        preferences = prefers_good(loaded, pairs, tokenizer, lookup)
        return {
            Measure(blimp.stem, ACCURACY + kind, part, "%", detail=bool(kind)): preferences[numbers]
            for (kind, part), numbers in members.items()
        }

    return Part(measure, [BLIMP_LEGEND, f"{blimp.stem}: {note}"], {})


def swords_name(path: Path) -> str:
    """The name of a SWORDS file in results."""
    return path.name.split(".json")[0]
