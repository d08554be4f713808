#!/usr/bin/env python3
"""Write a text with exact synonyms, to measure what false negatives cost and what an objective can recover.

    python examples/study/twins.py --data data-bin --destdir twin-bin --share 0.5

Words are drawn at random. Each gets a twin: a new symbol that replaces it in half of its occurrences. No context can
tell which of both stood there, so the synonym table is exact, and every prediction of the other one is a false
negative. DIR gets the text with twins, the original text with the same dictionary (DIR/oracle), the table
(DIR/synonyms.safetensors), and what was done (DIR/twins.json).
"""

import argparse
import json
import logging
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from tn_fairseq.core.dictionary import MASK, load_dictionary, without_mask
from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import write_atomically
from tn_fairseq.core.synonym_table import rows_to_table, save_synonym_table
from tn_fairseq.core.vocabulary import whole_words
from tn_fairseq.data.data_bin import load_sentences
from tn_fairseq.tools.preprocessing.writers import BinaryWriter

SENTENCES = 1 << 14  # read at a time
SUFFIX = "~"  # of a twin's symbol; no tokenizer makes a word that ends with it
TABLE, ORACLE, REPORT = "synonyms.safetensors", "oracle", "twins.json"


class TwinCounts(NamedTuple):
    """Counts of a split: its tokens with each ``</s>``, those that have a twin, and those that the twin replaced."""

    tokens: int
    with_twin: int
    replaced: int


def write_twins(
    data_bin: Path, destdir: Path, share: float, occurrences: float, min_count: int, seed: int
) -> dict[str, TwinCounts]:
    """Write a binarized text with twins, the original text with the same dictionary, the table, and what was done.

    ``share`` is the share of the training text's tokens, without ``</s>``, that have a twin. Words are drawn at random
    from the whole words that occur at least ``min_count`` times. ``occurrences`` is the share of a word's occurrences
    that its twin replaces, drawn at random. Those that the next token continues count, too, because a twin is exact
    there as well. All files are read in parts. Writes everything or nothing. Raises InputError for invalid data, a
    share that the words do not reach, and a ``destdir`` that exists.
    """
    if destdir.exists():
        raise InputError(f"{destdir}: exists; delete it, or give another --destdir")
    dictionary = load_dictionary(data_bin / "dict.txt")
    splits = sorted(path.stem for path in data_bin.glob("*.idx"))
    if "train" not in splits:
        raise InputError(f"{data_bin}: has no train.idx; give a folder that tn-fairseq data binarize wrote")
    try:
        words = sorted(whole_words(dictionary))
    except InputError:
        raise InputError(
            f"{data_bin / 'dict.txt'}: contains numbers (GPT-2 BPE), which do not tell where words begin; binarize the "
            f"text with tn-fairseq data binarize and another tokenizer, such as RoBERTa's tokenizer.json"
        ) from None
    sentences = {split: load_sentences(data_bin / split, "binarize", dictionary) for split in splits}
    chosen = _draw_words(sentences["train"], len(dictionary), words, share, min_count, seed, data_bin / "train.bin")
    extended, twins = add_twins(dictionary, chosen)
    counts = {}
    with write_atomically(destdir, "give another --destdir") as folder:
        oracle = folder / ORACLE
        oracle.mkdir(parents=True)
        for number, split in enumerate(splits):
            rng = np.random.default_rng([seed, 1, number])
            counts[split] = _write_split(sentences[split], split, folder, extended, twins, occurrences, rng)
        for place in (folder, oracle):
            if (data_bin / "tokenizer").is_dir():
                shutil.copytree(data_bin / "tokenizer", place / "tokenizer")
            without_mask(extended).save(str(place / "dict.txt"))
        pairs = {word: [int(twins[word])] for word in chosen}
        pairs |= {twin: [word] for word, (twin,) in pairs.items()}
        settings = {"share": share, "occurrences": occurrences, "min_count": min_count, "seed": seed}
        description = {"source": "twins", "options": json.dumps(settings)}
        table = rows_to_table(extended, pairs)
        save_synonym_table(folder / TABLE, table, extended, description, continuations=[False] * len(extended))
        report = {**settings, "words": len(chosen), "splits": {split: n._asdict() for split, n in counts.items()}}
        (folder / REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return counts


def _draw_words(
    text: MMapIndexedDataset, symbols: int, words: Sequence[int], share: float, min_count: int, seed: int, path: Path
) -> list[int]:
    """Words that are together this share of the tokens of the text at ``path``; raises InputError if there are none."""
    counts = np.zeros(symbols, dtype=np.int64)  # how often each symbol occurs
    for ids, _ in read_parts(text):
        counts += np.bincount(ids, minlength=symbols)
    tokens = int(text.sizes.sum() - len(text))
    if not tokens:
        raise InputError(f"{path}: contains only empty lines; binarize a text")
    chosen = choose_words(counts, words, share * tokens, min_count, np.random.default_rng([seed, 0]))
    reached = sum(counts[word] for word in chosen) / tokens
    if share and (not chosen or reached < share - 0.01):
        frequent = sum(counts[word] for word in words if counts[word] >= min_count) / tokens
        reason = f"are only {frequent:.2f} of its tokens; reduce --share or --min-count"
        if frequent >= share:
            reason = f"are too frequent to reach this share ({reached:.3f}); give more text, or another --share"
        raise InputError(f"--share {share}: the words of {path} that occur at least {min_count} times {reason}")
    return chosen


def read_parts(sentences: MMapIndexedDataset) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield some sentences at a time: (tokens,) indices and (sentences,) lengths."""
    for start in range(0, len(sentences), SENTENCES):
        part = [sentences[index].numpy() for index in range(start, min(start + SENTENCES, len(sentences)))]
        yield np.concatenate(part), np.array(list(map(len, part)))


def choose_words(
    counts: np.ndarray, words: Sequence[int], tokens: float, min_count: int, rng: np.random.Generator
) -> list[int]:
    """Words in random order, each if it does not take the sum of their counts above ``tokens``; in the order of ids."""
    frequent = [word for word in words if counts[word] >= max(min_count, 1)]
    chosen, left = [], tokens
    for word in rng.permutation(frequent).astype(int).tolist():
        if counts[word] <= left:
            chosen.append(word)
            left -= counts[word]
    return sorted(chosen)


def add_twins(dictionary: Dictionary, words: Sequence[int]) -> tuple[Dictionary, np.ndarray]:
    """A copy of the dictionary with the words' twins before ``<mask>``, and each symbol's twin, or itself: (V,)."""
    suffix = SUFFIX
    while any(dictionary[word] + suffix in dictionary.indices for word in words):
        suffix += SUFFIX
    extended = without_mask(dictionary)
    twins = np.arange(len(dictionary))
    for word in words:
        twins[word] = extended.add_symbol(dictionary[word] + suffix)
    extended.add_symbol(MASK)
    return extended, twins


def _write_split(
    sentences: MMapIndexedDataset,
    split: str,
    folder: Path,
    dictionary: Dictionary,
    twins: np.ndarray,
    occurrences: float,
    rng: np.random.Generator,
) -> TwinCounts:
    """Write a split with twins to ``folder``, and as it is to the oracle's folder."""
    with_twins, original = (BinaryWriter(place / split, dictionary) for place in (folder, folder / ORACLE))
    tokens = with_twin = replaced = 0
    for ids, lengths in read_parts(sentences):
        has_twin = twins[ids] != ids
        swapped = has_twin & (rng.random(len(ids)) < occurrences)
        with_twins.append(np.where(swapped, twins[ids], ids), lengths)
        original.append(ids, lengths)
        tokens, with_twin, replaced = tokens + len(ids), with_twin + has_twin.sum(), replaced + swapped.sum()
    with_twins.close()
    original.close()
    return TwinCounts(tokens, int(with_twin), int(replaced))


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DATA_BIN", help="output of tn-fairseq data binarize")
    add("--destdir", type=Path, required=True, metavar="DIR", help="folder for the output")
    text = "share of the training text's tokens that have a twin, from 0 to 1"
    add("--share", type=float, required=True, metavar="S", help=text)
    text = "share of the occurrences of a word that its twin replaces (default: %(default)s)"
    add("--occurrences", type=float, default=0.5, metavar="S", help=text)
    text = "only words that occur at least this often in the training text (default: %(default)s)"
    add("--min-count", type=int, default=10, metavar="N", help=text)
    add("--seed", type=int, default=1, metavar="N", help="random seed (default: %(default)s)")
    args = parser.parse_args(argv)
    for flag in ("share", "occurrences"):
        if not 0 <= getattr(args, flag) <= 1:
            raise InputError(f"--{flag} must be between 0 and 1, not {getattr(args, flag)}")
    if args.seed < 0:
        raise InputError(f"--seed must be non-negative, not {args.seed}")
    logging.getLogger("fairseq.data.data_utils").setLevel(logging.WARNING)  # it names each file that it loads
    counts = write_twins(args.data, args.destdir, args.share, args.occurrences, args.min_count, args.seed)
    for split, n in counts.items():
        print(f"{split}: {n.tokens:,} tokens, {n.with_twin:,} with a twin, {n.replaced:,} replaced by it")
    print(f"wrote the text with twins to {args.destdir}, with {ORACLE}/, {TABLE} and {REPORT}")


if __name__ == "__main__":
    main()
