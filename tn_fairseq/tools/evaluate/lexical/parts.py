"""What is measured of a checkpoint with each kind of data: substitutes, word similarities and minimal pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
from ...results.measures import PEOPLE
from .blimp import by_group, prefers_good, read_blimp
from .lexical_options import LexicalOptions
from .substitution import find_questions, measure_substitutes
from .word_pairs import mean_cosine, one_piece_pairs, read_word_pairs

BY_PARADIGM = "minimal pairs by paradigm"  # too many to print
NO_TARGET = "none of its targets is one piece in the vocabulary"
OTHER_DATA = "give the data of a model whose vocabulary has English words"
Row = dict[str, Any]  # of the table of results


class Part(NamedTuple):
    """What is measured with one kind of data."""

    measure: Callable[[Loaded], Iterator[Row]]  # of a model
    notes: list[str]  # what is left out
    people: list[Row]  # what people say about the items


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
        parts.append(_minimal_pairs(options.blimp, options.blimp_pairs, options.data, vocabulary))
    return parts


def _rows(data: str, measure: str, items: Sequence[str], values: np.ndarray, part: str = "") -> Iterator[Row]:
    """A row for each item with a defined value."""
    for item, value in zip(items, values.tolist(), strict=True):
        if not np.isnan(value):
            yield {"data": data, "measure": measure, "part": part, "item": item, "value": value}


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
    contexts = {context: number for number, context in enumerate(dict.fromkeys(one.context for one in targets))}
    items = [f"{contexts[question.target.context]}/{question.target.id}" for question in questions]

    def measure(loaded: Loaded) -> Iterator[Row]:
        for (name, table), values in measure_substitutes(loaded, questions, tables, words).items():
            yield from _rows(data, name, items, values, table)

    return Part(measure, [note], [])


def _similarities(paths: Sequence[Path], vocabulary: Words) -> Part:
    find = word_finder(vocabulary.words)
    ids_of: dict[str, Tensor] = {}
    items: dict[str, list[str]] = {}
    notes: list[str] = []
    people: list[Row] = []
    for path in paths:
        rated, name = read_word_pairs(path), path.stem
        ids_of[name], pairs = one_piece_pairs(rated, find)
        share = f"{len(pairs):,} of {len(rated):,} pairs are two one-piece words"
        if len(pairs) < 2:
            unknown = [word for pair in rated for word in pair[:2] if find(word) is None]
            lacks = f", which lacks {unknown[0]!r}" if unknown else ""
            raise InputError(f"{path}: {share} in the vocabulary{lacks}; {OTHER_DATA}")
        gold = np.array([pair.similarity for pair in pairs])
        if len(set(gold)) == 1:
            raise InputError(f"{path}: {share}, all with the similarity {gold[0]:g}; give pairs that differ")
        # with a number, because a file may have a pair twice
        items[name] = [f"{number} {pair.word} {pair.other}" for number, pair in enumerate(pairs, start=1)]
        people += [row | {"arm": PEOPLE} for row in _rows(name, "Spearman", items[name], gold)]
        notes.append(f"{name}: {share}; the others are left out.")

    def measure(loaded: Loaded) -> Iterator[Row]:
        embeddings = input_word_embeddings(loaded.model).weight.detach().float().cpu()
        for name, ids in ids_of.items():
            cosines = 1 - functional.soft_regularization(*embeddings[ids].unbind(dim=1)).numpy()
            yield from _rows(name, "Spearman", items[name], cosines)
        yield {"measure": "mean cosine", "value": mean_cosine(embeddings[list(vocabulary.words)])}

    return Part(measure, notes, people)


def _minimal_pairs(blimp: Path, pairs_per_file: int, data_bin: Path, vocabulary: Words) -> Part:
    tokenizer = load_tokenizer(data_bin / "tokenizer")
    lookup = tokenizer.lookup_table(vocabulary.dictionary)
    pairs = read_blimp(blimp, pairs_per_file)
    members = by_group(pairs)
    files = sum(f"minimal pairs{kind}" == BY_PARADIGM for kind, _ in members)
    note = f"{blimp.stem}: {len(pairs):,} pairs of {files} paradigms, at most {pairs_per_file:,} of each."

    def measure(loaded: Loaded) -> Iterator[Row]:
        preferences = prefers_good(loaded, pairs, tokenizer, lookup)
        for (kind, part), numbers in members.items():
            items = list(map(str, numbers))
            yield from _rows(blimp.stem, f"minimal pairs{kind}", items, preferences[numbers], part)

    return Part(measure, [note], [])


def swords_name(path: Path) -> str:
    """The name of a SWORDS file in results."""
    return path.name.split(".json")[0]
