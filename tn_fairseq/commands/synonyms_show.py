"""Print where a synonym table is from, and the rows of some words.

tn-fairseq synonyms show synonyms.safetensors primary stay --dict DATA_BIN/dict.txt
"""

import argparse
import json
from collections.abc import Collection, Mapping, Sequence

from torch import Tensor

from ..core.dictionary import Symbols, read_symbols
from ..core.errors import InputError, naming, one_line_errors
from ..core.synonym_table import PADDING, load_synonym_table
from ..core.vocabulary import STOP_WORDS, whole_words
from ..huggingface.loading import load_tokenizer
from ..huggingface.synonyms import TokenizerSymbols
from .arguments import command_parser


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("synonyms show", __doc__)
    parser.add_argument("table", metavar="TABLE", help="output of tn-fairseq synonyms build")
    parser.add_argument("words", nargs="*", metavar="WORD", help="words whose rows are printed")
    add_vocabulary_options(parser)
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Print the description of the table and the rows.

    Raises InputError, at the end, for words that are not whole words of the dictionary.
    """
    parser = get_parser()
    args = parser.parse_intermixed_args(argv)
    if args.tokenizer and args.encoder_json:
        parser.error("--encoder-json needs --dict")
    dictionary, words = read_words(args)
    table, _, description = load_synonym_table(args.table, dictionary)
    for name, value in sorted(description.items()):
        print(f"{name:24}{value}")
    ours = {"lang", "stop_words"}.isdisjoint(json.loads(description.get("options", "{}")))
    known = set(words.values())
    for word in args.words:
        if word in known:
            print(row_of(word, words, table, STOP_WORDS if ours else ()))
    if unknown := [repr(word) for word in args.words if word not in known]:
        problem = "is not a whole word" if len(unknown) == 1 else "are not whole words"
        raise InputError(f"{', '.join(unknown)} {problem} in {args.dict or args.tokenizer}")


def add_vocabulary_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name what the rows of a table belong to."""
    vocabulary = parser.add_mutually_exclusive_group(required=True)
    vocabulary.add_argument("--dict", metavar="FILE", help="the dict.txt of the training data")
    text = "a folder of save_pretrained, or a name on the Hugging Face Hub"
    vocabulary.add_argument("--tokenizer", metavar="DIR", help=text)
    parser.add_argument("--encoder-json", metavar="FILE", help="GPT-2's encoder.json, for a dictionary of numbers")


def read_words(args: argparse.Namespace) -> tuple[Symbols, Mapping[int, str]]:
    """The symbols of a dict.txt or of a tokenizer, and those that are whole words, by index."""
    if args.dict:
        symbols = read_symbols(args.dict)
        return symbols, whole_words(symbols, args.encoder_json)
    with naming("--tokenizer"):
        tokenizer_symbols = TokenizerSymbols(load_tokenizer(args.tokenizer))
    return tokenizer_symbols, tokenizer_symbols.words


def row_of(word: str, words: Mapping[int, str], table: Tensor, stop_words: Collection[str]) -> str:
    """The row of ``word`` as one line of text."""
    index = next(index for index, entry in words.items() if entry == word)
    synonyms = [words[synonym] for synonym in table[index].tolist() if synonym != PADDING]
    nothing = "(a stop word)" if word.lower() in stop_words else "(no synonym)"
    return f"{word}: {', '.join(synonyms) or nothing}"
