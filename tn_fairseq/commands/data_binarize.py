"""Convert text into the files that fairseq reads: dict.txt, train.bin, train.idx, valid.bin ...

The text is UTF-8, one sentence (or paragraph) per line, with blank lines between documents; or JSON Lines, CSV, TSV,
Parquet or Arrow, where each record is one document. The suffix of a file, or --format, says what it is; .gz, .xz, .bz2
and .zst are decompressed. FILE can also be a folder, a pattern such as 'corpus/*.jsonl.zst', or an address such as
s3://bucket/corpus or hf://datasets/NAME/train.parquet.

The tokenizer is a folder saved by train-tokenizer or Hugging Face, a BERT vocab.txt, a SentencePiece .model, or GPT-2's
encoder.json with its vocab.bpe in the same folder. Its files are copied to DATA_BIN/tokenizer.

    tn-fairseq data binarize --train train.txt --valid valid.txt --tokenizer vocab.txt \\
        --destdir data-bin
    fairseq-train data-bin --user-dir "$(tn-fairseq user-dir)" --task electra ...

With --text-only, the pieces are written as text, which fairseq itself can binarize:

    fairseq-preprocess --only-source --srcdict text/dict.txt --trainpref text/train.txt --validpref text/valid.txt \\
        --destdir data-bin

With --shards N, fairseq-train reads one part of the text per epoch: fairseq-train data-bin/shard0:data-bin/shard1 ...
With --dask, the workers of a Dask cluster do the work; they need tn_fairseq, but not the files.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.options import option
from ..tokenizers.base import Tokenizer
from ..tools.preprocessing.text import Reading
from ..tools.results.layout import align
from .arguments import command_line
from .binarizing import BinarizingOptions, cells, percentage

if TYPE_CHECKING:
    from ..tools.preprocessing.binarization import SplitCounts

# joins the lines of each paragraph; paragraphs are separated by blank lines
JOIN = "tr -d '\\r' < FILE | awk -v RS= '{gsub(/\\n/, \" \"); print}'"
WIDTH = 110  # characters of a unit that are shown
_MOST_UNKNOWN = 0.02  # share of the tokens; a vocabulary for the text has far fewer


@dataclass(frozen=True, kw_only=True)
class BinarizeOptions(Reading, BinarizingOptions):
    """The text, how to read it, and what to write."""

    train: Sequence[str] = option("text to train on", metavar="FILE")
    valid: Sequence[str] = option("text to validate on", metavar="FILE")
    test: Sequence[str] = option("text to test on", default=(), metavar="FILE")
    workers: int = option("processes", default=1, at_least=1)
    dask: str | None = option(
        "use the workers of this Dask scheduler instead, such as tcp://10.0.0.1:8786",
        default=None,
        metavar="ADDRESS",
        not_with="workers",
    )
    shards: int | None = option("split the training text into this many folders", default=None, at_least=1)
    text_only: bool = option("write pieces as text instead of .bin and .idx", default=False)


def binarize(options: BinarizeOptions) -> None:
    """Binarize, and print what was written and what was dropped."""
    began = time.perf_counter()
    tokenizer = options.load_tokenizer()
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..core.dictionary import load_dictionary
    from ..tools.preprocessing import binarization

    splits = {split: getattr(options, split) for split in ("train", "valid", "test") if getattr(options, split)}
    counts = binarization.binarize(
        splits,
        tokenizer,
        options.destdir,
        options.dask or options.workers,
        options.text_only,
        options.dict,
        options.shards,
        options,
    )
    seconds = time.perf_counter() - began
    folders = [options.destdir / name for name in binarization.shard_names(options.shards)]
    size = len(load_dictionary(folders[0] / "dict.txt"))
    print(f"dictionary: {size:,} symbols including fairseq's special symbols and <mask>")
    print(*_table(counts), sep="\n")
    print("train begins with these lines, as they will be trained on:", *first_units(folders[0], tokenizer), sep="\n  ")
    _warn(counts)
    if options.skip_bad_records:
        print(f"skipped bad records: {', '.join(f'{n.bad:,} in {split}' for split, n in counts.items())}")
    kinds = ("txt",) if options.text_only else ("bin", "idx")
    names = ", ".join(f"{split}.{kind}" for split in splits for kind in kinds)
    if options.shards is None:
        print(f"wrote dict.txt, {names} and tokenizer/ to {options.destdir} in {seconds:.1f} s")
        return
    tokens = counts["train"].shard_tokens
    print(
        f"wrote {options.shards} shards of {min(tokens):,} to {max(tokens):,} training tokens in {seconds:.1f} s, each "
        f"with dict.txt, {names} and tokenizer/; fairseq-train reads one per epoch:"
    )
    print(*folders, sep=os.pathsep)


def first_units(folder: Path, tokenizer: Tokenizer) -> list[str]:
    """The pieces of the first two sentences that were written, cut to a line each."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    from ..core.dictionary import load_dictionary

    if (folder / "train.txt").exists():  # of --text-only
        with open(folder / "train.txt", encoding="utf-8") as file:
            units = list(islice(filter(None, map(str.strip, file)), 2))
    else:
        dictionary = load_dictionary(folder / "dict.txt")
        sentences, ids = MMapIndexedDataset(str(folder / "train")), tokenizer.token_ids(dictionary)
        filled = (sentences[number][:-1].tolist() for number in range(len(sentences)) if sentences.sizes[number] > 1)
        units = [
            " ".join(tokenizer.pieces[ids[index]] if ids[index] < len(tokenizer.pieces) else "?" for index in unit)
            for unit in islice(filled, 2)
        ]
    return [unit if len(unit) <= WIDTH else f"{unit[: WIDTH - 1]}…" for unit in units]


def _warn(counts: dict[str, "SplitCounts"]) -> None:
    """Print what the counts of the splits let suspect about the text."""
    unknown = {split: n.unknown / n.pieces for split, n in counts.items() if n.unknown > _MOST_UNKNOWN * n.pieces}
    if unknown:
        print(
            f"warning: {_shares(unknown)} of the tokens are unknown to this vocabulary, so nothing is learned about "
            "them. Give a --tokenizer for this text, or make one with tn-fairseq data train-tokenizer"
        )
    wrapped = {split: n.lowercase / n.lines for split, n in counts.items() if n.looks_wrapped}
    if wrapped:
        print(
            f"warning: {_shares(wrapped)} of the lines begin with a lowercase letter. Each line gets an </s>, so it "
            f"should be a sentence or a paragraph. If the text is wrapped, join its lines: {JOIN}"
        )


def _shares(shares: dict[str, float]) -> str:
    """Shares of splits, such as ``5% (train) and 6% (valid)``."""
    return " and ".join(f"{share:.0%} ({split})" for split, share in shares.items())


def _table(counts: dict[str, "SplitCounts"]) -> list[str]:
    """One row for each split; the last three columns count the lines that were dropped, by reason."""
    rows = [[""] * 5 + ["dropped lines:", "", ""]]
    rows += [["split", "documents", "sentences", "tokens", "unknown", "no pieces", "blank repeated", "blank at ends"]]
    for split, n in counts.items():
        dropped = (n.nothing_kept, n.repeated_blanks, n.outer_blanks)
        rows.append(cells(split, n.documents, n.sentences, n.tokens, percentage(n.unknown, n.pieces), *dropped))
    return align(rows)


main = command_line("data binarize", __doc__, binarize)
