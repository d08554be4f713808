"""What the commands that binarize share: their options, and how they start and report."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ..tokenizers.base import Tokenizer
from ..tokenizers.pretrained import load_pretrained
from ..tools.preprocessing.text import Reading
from ..tools.preprocessing.text_files import FORMATS
from ..tools.reporting.layout import percent
from .arguments import command_parser


def binarizing_parser(command: str, description: str | None, destdir: str) -> argparse.ArgumentParser:
    """A parser with the options for the vocabulary and the output; ``destdir`` is what the help calls the folder."""
    parser = command_parser(f"data {command}", description)
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="DIR-OR-FILE", help="see above")
    text = "the dict.txt of a released or pre-trained model (default: made from the tokenizer)"
    parser.add_argument("--dict", metavar="FILE", help=text)
    parser.add_argument("--destdir", type=Path, required=True, metavar=destdir, help="folder for the output")
    return parser


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading text, which ``reading`` collects."""
    options = parser.add_argument_group("reading")
    text = "what the files are (default: what their suffixes say below those of compressions, such as .gz, else text)"
    options.add_argument("--format", choices=FORMATS, help=text)
    text = "the field or column with the text of a record (default: %(default)s)"
    options.add_argument("--text-field", default="text", metavar="NAME", help=text)
    text = "split each line into sentences, by the rules of a language, such as de (default: en)"
    options.add_argument("--split-sentences", nargs="?", const="en", metavar="LANGUAGE", help=text)
    text = "skip and count records that are not valid JSON, or lack the field"
    options.add_argument("--skip-bad-records", action="store_true", help=text)


def reading(args: argparse.Namespace) -> Reading:
    """How the options say to read text."""
    return Reading(args.text_field, args.split_sentences, args.skip_bad_records, args.format)


def start(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> tuple[argparse.Namespace, Tokenizer, float]:
    """Parse the options and load the tokenizer; also returns the time at which the work began."""
    args = parser.parse_args(argv)
    began = time.perf_counter()
    tokenizer = load_pretrained(args.tokenizer)
    print(f"tokenizer: {tokenizer.description}", flush=True)
    return args, tokenizer, began


def cells(*values: str | int) -> list[str]:
    """A row of a table: integers with thousands separators."""
    return [value if isinstance(value, str) else f"{value:,}" for value in values]


def percentage(part: int, whole: int) -> str:
    """A share with three digits."""
    return f"{percent(part, whole) or 0:.3f}%"
