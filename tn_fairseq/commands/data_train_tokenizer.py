"""Train a WordPiece or SentencePiece tokenizer on text, in all the formats that binarize reads.

    tn-fairseq data train-tokenizer --input train.txt --type wordpiece --vocab-size 8192 \\
        --output tokenizer

WordPiece writes vocab.txt, tokenizer.json and tokenizer_config.json, which transformers.AutoTokenizer.from_pretrained
also reads; SentencePiece writes sentencepiece.model and sentencepiece.vocab. The vocabulary size counts the special
tokens, so it is the size of the model's dictionary. The same input always gives the same files.

Rare characters may be left out; they become unknown. The command prints how many. --character-coverage 1 keeps all.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..core.errors import InputError
from ..core.files import publish, write_folder
from ..core.options import option
from ..tokenizers import load_tokenizer
from ..tools.preprocessing.text import Reading
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
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class TokenizerOptions(Reading):
    """The text, how to read it, and the tokenizer to train."""

    input: Sequence[str] = option("text to train on", metavar="FILE")
    type: Literal["wordpiece", "sentencepiece"] = option("kind of tokenizer")
    vocab_size: int = option("number of pieces, including special tokens", at_least=1, at_most=MOST_PIECES)
    cased: bool = option("keep uppercase and accents", default=False, needs={"type": "wordpiece"})
    character_coverage: float | None = option(
        "share of the text whose characters are pieces, the most frequent ones first (default: for sentencepiece "
        f"0.9995; for wordpiece, the {MOST_FREQUENT:,} most frequent characters, and those that occur at least "
        f"{MIN_CHARACTER_COUNT} times, up to half of the vocabulary)",
        default=None,
        metavar="SHARE",
        above=0,
        at_most=1,
    )
    output: Path = option("folder for the tokenizer's files", metavar="DIR")


def train_tokenizer(options: TokenizerOptions) -> None:
    """Train, write the files, and print what was written."""
    _check_folder(options.output)
    if options.type == "sentencepiece" and (options.character_coverage or 1) < SENTENCEPIECE_COVERAGE:
        given = f"--character-coverage {options.character_coverage}"
        raise InputError(f"{given}: must be between {SENTENCEPIECE_COVERAGE} and 1 for sentencepiece")
    start = time.perf_counter()
    inputs = find_files(options.input, options.format, no_pipes="the text is read twice")
    texts = [Path(file.path).resolve() for file in inputs if file.system is None]
    for name in FILES:
        if (options.output / name).resolve() in texts:
            raise InputError(f"--output {options.output}: would replace the text {name}; give another folder")
    characters, size, bad = count_characters(inputs, options)
    if options.type == "wordpiece":
        files = train_wordpiece(
            Lines(inputs, options), characters, options.vocab_size, not options.cased, options.character_coverage
        )
    else:
        files = train_sentencepiece(Lines(inputs, options), options.vocab_size, options.character_coverage)
    with write_folder(options.output, "--output") as staging:
        for name, content in files.items():
            (staging / name).write_bytes(content)
        # tokenizer.json before vocab.txt: a tokenizer read from vocab.txt alone would have another description
        publish(staging, options.output, last=next(iter(files)), old=[options.output / name for name in FILES])
    seconds = time.perf_counter() - start
    tokenizer = load_tokenizer(options.output)
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
    if options.skip_bad_records:
        print(f"skipped bad records: {bad:,}")
    print(f"wrote {', '.join(files)} to {options.output}")


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


main = command_line("data train-tokenizer", __doc__, train_tokenizer)
