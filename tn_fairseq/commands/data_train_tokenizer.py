"""Train a WordPiece or SentencePiece tokenizer on text, in all the formats that binarize reads.

    tn-fairseq data train-tokenizer --input train.txt --type wordpiece --vocab-size 8192 \\
        --output tokenizer

WordPiece writes vocab.txt, tokenizer.json and tokenizer_config.json, which transformers.AutoTokenizer.from_pretrained
also reads; SentencePiece writes sentencepiece.model and sentencepiece.vocab. The vocabulary size counts the special
tokens, so it is the size of the model's dictionary. The same input always gives the same files.

Rare characters may be left out; they become unknown. The command prints how many. --character-coverage 1 keeps all.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import InputError, one_line_errors
from ..core.files import publish, write_folder
from ..tokenizers import load_tokenizer
from ..tools.preprocessing.text_files import find_files
from ..tools.preprocessing.tokenizer_training import (
    FILES,
    MIN_CHARACTER_COUNT,
    MOST_FREQUENT,
    MOST_PIECES,
    SENTENCEPIECE_COVERAGE,
    Lines,
    count_characters,
    train_sentencepiece,
    train_wordpiece,
    unknown_characters,
)
from .arguments import command_parser, share
from .binarizing import add_reading_options, reading


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("data train-tokenizer", __doc__)
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="text to train on")
    parser.add_argument("--type", choices=("wordpiece", "sentencepiece"), required=True, help="kind of tokenizer")
    text = "number of pieces, including special tokens"
    parser.add_argument("--vocab-size", type=int, required=True, metavar="N", help=text)
    parser.add_argument("--cased", action="store_true", help="WordPiece only: keep uppercase and accents")
    text = (
        "share of the text whose characters are pieces, the most frequent ones first (default: for sentencepiece "
        f"0.9995; for wordpiece, the {MOST_FREQUENT:,} most frequent characters, and those that occur at least "
        f"{MIN_CHARACTER_COUNT} times, up to half of the vocabulary)"
    )
    parser.add_argument("--character-coverage", type=share, metavar="SHARE", help=text)
    add_reading_options(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the tokenizer's files")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Train, write the files, and print what was written."""
    parser = get_parser()
    args = parser.parse_args(argv)
    if args.cased and args.type == "sentencepiece":
        parser.error("--cased is only for wordpiece; sentencepiece always keeps uppercase")
    _check_folder(args.output)
    if not 1 <= args.vocab_size <= MOST_PIECES:
        raise InputError(f"--vocab-size {args.vocab_size}: must be between 1 and {MOST_PIECES:,}")
    if args.type == "sentencepiece" and (args.character_coverage or 1) < SENTENCEPIECE_COVERAGE:
        given = f"--character-coverage {args.character_coverage}"
        raise InputError(f"{given}: must be between {SENTENCEPIECE_COVERAGE} and 1 for sentencepiece")
    start = time.perf_counter()
    how = reading(args)
    inputs = find_files(args.input, how.format, no_pipes="the text is read twice")
    texts = [Path(file.path).resolve() for file in inputs if file.system is None]
    for name in FILES:
        if (args.output / name).resolve() in texts:
            raise InputError(f"--output {args.output}: would replace the text {name}; give another folder")
    characters, size, bad = count_characters(inputs, how)
    if args.type == "wordpiece":
        files = train_wordpiece(
            Lines(inputs, how), characters, args.vocab_size, not args.cased, args.character_coverage
        )
    else:
        files = train_sentencepiece(Lines(inputs, how), args.vocab_size, args.character_coverage)
    with write_folder(args.output, "--output") as staging:
        for name, content in files.items():
            (staging / name).write_bytes(content)
        # tokenizer.json before vocab.txt: a tokenizer read from vocab.txt alone would have another description
        publish(staging, args.output, last=next(iter(files)), old=[args.output / name for name in FILES])
    seconds = time.perf_counter() - start
    tokenizer = load_tokenizer(args.output)
    print(f"trained on {size / 1e6:,.1f} MB in {seconds:.1f} s: {tokenizer.description}")
    left_out = unknown_characters(tokenizer, characters)
    if left_out:
        example = max(left_out, key=left_out.__getitem__)
        total = sum(count for character, count in characters.items() if not character.isspace())
        print(
            f"left out: {len(left_out):,} character{'s' * (len(left_out) > 1)}, unknown, "
            f"{sum(left_out.values()) / total:.3%} of the text, such as {example!r} ({left_out[example]:,} times); "
            "keep more with --character-coverage"
        )
    if args.skip_bad_records:
        print(f"skipped bad records: {bad:,}")
    print(f"wrote {', '.join(files)} to {args.output}")


def _check_folder(folder: Path) -> None:
    """Raises InputError for a folder with a model, or with a tokenizer that others wrote."""
    if (folder / "config.json").exists():
        raise InputError(f"--output {folder}: holds a model, which needs its own tokenizer; give another folder")
    others = [path.name for path in folder.glob("*.model") if path.name not in FILES]
    there = [name for name in FILES if (folder / name).exists()]
    if there in (["vocab.txt"], ["sentencepiece.model"]):  # we write these last, so others wrote them
        others += there
    if others:
        raise InputError(f"--output {folder}: holds {others[0]}, another tokenizer; give another folder")
