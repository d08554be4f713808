"""Convert text into the files that fairseq reads: dict.txt, train.bin, train.idx, valid.bin ...

The text is UTF-8, one sentence (or paragraph) per line, with blank lines between documents. The tokenizer is a folder
saved by train-tokenizer or Hugging Face, a BERT vocab.txt, a SentencePiece .model, or GPT-2's encoder.json with its
vocab.bpe in the same folder. Its files are copied to DATA_BIN/tokenizer.

    python -m tn_fairseq.preprocessing binarize --train train.txt --valid valid.txt --tokenizer vocab.txt \\
        --destdir data-bin
    fairseq-train data-bin --task masked_lm ...

With --text-only, the pieces are written as text, which fairseq itself can binarize:

    fairseq-preprocess --only-source --srcdict text/dict.txt --trainpref text/train.txt --validpref text/valid.txt \\
        --destdir data-bin

With --shards N, fairseq-train reads one part of the text per epoch: fairseq-train data-bin/shard0:data-bin/shard1 ...
With --dask, the workers of a Dask cluster do the work; they need tn_fairseq, but not the files.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from ...arguments import positive
from ...dictionary import load_dictionary
from ...errors import one_line_errors
from ...reporting.layout import align
from ...tokenizers import load_tokenizer
from ..binarization import SplitCounts, binarize, shard_names


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.preprocessing binarize",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--train", nargs="+", type=Path, required=True, metavar="FILE", help="text to train on")
    parser.add_argument("--valid", nargs="+", type=Path, required=True, metavar="FILE", help="text to validate on")
    parser.add_argument("--test", nargs="+", type=Path, metavar="FILE", help="text to test on")
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="DIR-OR-FILE", help="see above")
    parser.add_argument("--destdir", type=Path, required=True, metavar="DATA_BIN", help="folder for the output")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--workers", type=positive, default=1, metavar="N", help="processes (default: %(default)s)")
    engine.add_argument(
        "--dask", metavar="ADDRESS", help="use the workers of this Dask scheduler instead, such as tcp://10.0.0.1:8786"
    )
    parser.add_argument("--shards", type=positive, metavar="N", help="split the training text into this many folders")
    parser.add_argument("--text-only", action="store_true", help="write pieces as text instead of .bin and .idx")
    parser.add_argument(
        "--dict",
        metavar="FILE",
        help="a released dict.txt to use, such as RoBERTa's (default: made from the tokenizer)",
    )
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Binarize, and print what was written and what was dropped."""
    args = get_parser().parse_args(argv)
    splits = {split: getattr(args, split) for split in ("train", "valid", "test") if getattr(args, split)}
    tokenizer = load_tokenizer(args.tokenizer)
    print(f"tokenizer: {tokenizer.description}", flush=True)
    start = time.perf_counter()
    counts = binarize(
        splits,
        tokenizer,
        args.destdir,
        workers=args.workers,
        text_only=args.text_only,
        dict_path=args.dict,
        dask=args.dask,
        shards=args.shards,
    )
    seconds = time.perf_counter() - start
    folders = [args.destdir / name for name in shard_names(args.shards)]
    size = len(load_dictionary(folders[0] / "dict.txt"))
    print(f"dictionary: {size:,} symbols including fairseq's special symbols and <mask>")
    print(*_table(counts), sep="\n")
    kinds = ("txt",) if args.text_only else ("bin", "idx")
    names = ", ".join(f"{split}.{kind}" for split in splits for kind in kinds)
    if args.shards is None:
        print(f"wrote dict.txt, {names} and tokenizer/ to {args.destdir} in {seconds:.1f} s")
        return
    tokens = counts["train"].shard_tokens
    print(
        f"wrote {args.shards} shards of {min(tokens):,} to {max(tokens):,} training tokens in {seconds:.1f} s, each "
        f"with dict.txt, {names} and tokenizer/; fairseq-train reads one per epoch:"
    )
    print(*folders, sep=os.pathsep)


def _table(counts: dict[str, SplitCounts]) -> list[str]:
    """One row for each split; the last three columns count the lines that were dropped, by reason."""
    rows = [("",) * 5 + ("dropped lines:", "", "")]
    rows += [("split", "documents", "sentences", "tokens", "unknown", "no pieces", "blank repeated", "blank at ends")]
    for split, count in counts.items():
        unknown = f"{100 * count.unknown / count.pieces:.3f}%"
        numbers = (count.documents, count.sentences, count.tokens)
        dropped = (count.nothing_kept, count.repeated_blanks, count.outer_blanks)
        rows.append((split, *(f"{n:,}" for n in numbers), unknown, *(f"{n:,}" for n in dropped)))
    return align(rows)
