"""What is measured of a checkpoint with each kind of data: substitutes, word similarities and minimal pairs."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
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
from .blimp import by_group, prefers_good, read_blimp
from .results import ACCURACY, MEAN_COSINE, SPEARMAN, Key
from .substitution import find_questions, measure_substitutes
from .word_pairs import mean_cosine, one_piece_pairs, read_word_pairs

NO_TARGET = "none of its targets is one piece in the vocabulary"
OTHER_DATA = "give the data of a model whose vocabulary has English words"
# the measure of a model by key, (items,) each
Measure = Callable[[Loaded], dict[Key, np.ndarray]]


class Part(NamedTuple):
    """What is measured with one kind of data."""

    measure: Measure
    gold: dict[Key, np.ndarray]  # similarities of word pairs, (items,)
    contexts: dict[str, list[str]]  # of each item, by data
    notes: dict[str, str]  # what is left out, by data


def parts_of(
    options: Namespace,
    targets: Sequence[Target],
    dictionary: Dictionary,
    words: Mapping[int, str],
    tables: Mapping[str, Tensor],
) -> list[Part]:
    """What to measure of the checkpoints; none if there are none."""
    parts: list[Part] = []
    if not options.checkpoints:
        return parts
    if options.swords is not None:
        parts.append(_substitutes(options, targets, dictionary, words, tables))
    if options.word_pairs:
        parts.append(_similarities(options, words))
    if options.blimp is not None:
        parts.append(_minimal_pairs(options, dictionary))
    return parts


def _substitutes(
    options: Namespace,
    targets: Sequence[Target],
    dictionary: Dictionary,
    words: Mapping[int, str],
    tables: Mapping[str, Tensor],
) -> Part:
    data, tokenizer = swords_name(options.swords), load_tokenizer(options.data / "tokenizer")
    questions = find_questions(targets, tokenizer, tokenizer.lookup_table(dictionary), words)
    if not questions:
        raise InputError(f"{options.swords}: {NO_TARGET} of {options.data}; {OTHER_DATA}")
    judged = sum(len(question.target.substitutes) for question in questions)
    used = sum(len(question.scores) for question in questions)
    note = (
        f"{len(questions):,} of {len(targets):,} targets are one piece; {used:,} of their {judged:,} judged "
        "substitutes are one piece in the form of\nthe target. All others are left out."
    )

    def measure(loaded: Loaded) -> dict[Key, np.ndarray]:
        found = measure_substitutes(loaded, questions, tables, words)
        return {Key(data, measure, table): values for (measure, table), values in found.items()}

    return Part(measure, {}, {data: [question.target.context for question in questions]}, {data: note})


def _similarities(options: Namespace, words: Mapping[int, str]) -> Part:
    find = word_finder(words)
    pairs: dict[Key, Tensor] = {}
    gold: dict[Key, np.ndarray] = {}
    notes: dict[str, str] = {}
    for path in options.word_pairs:
        rated = read_word_pairs(path)
        key = Key(path.stem, SPEARMAN)
        pairs[key], gold[key] = one_piece_pairs(rated, find)
        share = f"{len(pairs[key]):,} of {len(rated):,} pairs are two one-piece words"
        if len(pairs[key]) < 2:
            raise InputError(f"{path}: {share} in the vocabulary; {OTHER_DATA}")
        notes[path.stem] = f"{path.stem}: {share}; the others are left out."

    def measure(loaded: Loaded) -> dict[Key, np.ndarray]:
        embeddings = input_word_embeddings(loaded.model).weight.detach().float().cpu()
        found = {
            key: 1 - functional.soft_regularization(*embeddings[ids].unbind(dim=1)).numpy()  # cosines
            for key, ids in pairs.items()
        }
        found[Key("word embeddings", MEAN_COSINE)] = np.array([mean_cosine(embeddings[list(words)])])
        return found

    return Part(measure, gold, {}, notes)


def _minimal_pairs(options: Namespace, dictionary: Dictionary) -> Part:
    stem, tokenizer = options.blimp.stem, load_tokenizer(options.data / "tokenizer")
    lookup = tokenizer.lookup_table(dictionary)
    pairs = read_blimp(options.blimp, options.blimp_pairs)
    members = by_group(pairs)
    files = sum(kind == " by paradigm" for kind, _ in members)
    note = f"{len(pairs):,} pairs of {files} paradigms, at most {options.blimp_pairs:,} of each."

    def measure(loaded: Loaded) -> dict[Key, np.ndarray]:
        found = prefers_good(loaded, pairs, tokenizer, lookup)
        return {Key(stem, ACCURACY + kind, part): found[numbers] for (kind, part), numbers in members.items()}

    return Part(measure, {}, {}, {stem: note})


def swords_name(path: Path) -> str:
    """The name of a SWORDS file in results."""
    return path.name.split(".json")[0]
