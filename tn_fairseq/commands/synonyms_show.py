"""Print where a synonym table is from, and the rows of some words.

tn-fairseq synonyms show synonyms.safetensors primary stay --dict DATA_BIN/dict.txt
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import InputError, naming
from ..core.options import option
from .arguments import command_line

if TYPE_CHECKING:
    from torch import Tensor

    from ..core.dictionary import Symbols


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions:
    """What the rows of a table belong to."""

    dict: str | None = option(
        "the dict.txt of the training data", default=None, metavar="FILE", unless="tokenizer", not_with="tokenizer"
    )
    tokenizer: str | None = option(
        "a folder of save_pretrained, or a name on the Hugging Face Hub", default=None, metavar="DIR"
    )
    encoder_json: str | None = option(
        "GPT-2's encoder.json, for a dictionary of numbers", default=None, metavar="FILE", needs="dict"
    )


@dataclass(frozen=True, kw_only=True)
class ShowOptions(VocabularyOptions):
    """The table, and the words whose rows are printed."""

    table: str = option("output of tn-fairseq synonyms build", metavar="TABLE", positional=True)
    words: Sequence[str] = option("words whose rows are printed", default=(), metavar="WORD", positional=True)


def show(options: ShowOptions) -> None:
    """Print the description of the table and the rows.

    Raises InputError, at the end, for words that are not whole words of the dictionary.
    """
    # imported here because torch takes seconds to import and --help does not need it
    from ..core.synonym_table import load_synonym_table
    from ..core.vocabulary import STOP_WORDS

    dictionary, words = read_words(options)
    table, _, description = load_synonym_table(options.table, dictionary)
    for name, value in sorted(description.items()):
        print(f"{name:24}{value}")
    ours = {"lang", "stop_words"}.isdisjoint(json.loads(description.get("options", "{}")))
    known = set(words.values())
    for word in options.words:
        if word in known:
            print(row_of(word, words, table, STOP_WORDS if ours else ()))
    if unknown := [repr(word) for word in options.words if word not in known]:
        problem = "is not a whole word" if len(unknown) == 1 else "are not whole words"
        raise InputError(f"{', '.join(unknown)} {problem} in {options.dict or options.tokenizer}")


def read_words(options: VocabularyOptions) -> tuple["Symbols", Mapping[int, str]]:
    """The symbols of a dict.txt or of a tokenizer, and those that are whole words, by index."""
    from ..core.dictionary import read_symbols
    from ..core.vocabulary import whole_words
    from ..huggingface.model_loading import load_tokenizer
    from ..huggingface.synonyms import TokenizerSymbols

    if options.dict:
        symbols = read_symbols(options.dict)
        return symbols, whole_words(symbols, options.encoder_json)
    with naming("--tokenizer"):
        tokenizer_symbols = TokenizerSymbols(load_tokenizer(str(options.tokenizer)))
    return tokenizer_symbols, tokenizer_symbols.words


def row_of(word: str, words: Mapping[int, str], table: "Tensor", stop_words: Collection[str]) -> str:
    """The row of ``word`` as one line of text."""
    from ..core.synonym_table import PADDING

    index = next(index for index, entry in words.items() if entry == word)
    synonyms = [words[synonym] for synonym in table[index].tolist() if synonym != PADDING]
    nothing = "(a stop word)" if word.lower() in stop_words else "(no synonym)"
    return f"{word}: {', '.join(synonyms) or nothing}"


main = command_line("synonyms show", __doc__, show)
