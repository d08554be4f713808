"""Convert raw text into the files that fairseq-train reads. Each command explains itself with --help."""

import sys
from collections.abc import Sequence
from importlib import import_module

from ..errors import PREPROCESSING, InputError, one_line_errors

COMMANDS = {
    "train-tokenizer": "train a WordPiece or SentencePiece tokenizer on text",
    "binarize": "turn text into dict.txt, train.bin, train.idx, valid.bin ...",
    "twins": "give words exact synonyms, to measure what false negatives cost",
    "build-synonym-table": "build a synonym table for a dictionary or a tokenizer, or print its rows",
    "glue": "turn GLUE into what --task sentence_prediction reads",
    "squad": "turn SQuAD 1.1 into what --task squad reads",
    "swap-synonyms": "attack SQuAD or GLUE: swap words for synonyms",
    "add-distractors": "attack SQuAD: add a sentence that looks like the answer",
}


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command named by the first argument; an unknown command raises InputError (a one-line exit)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["-h"], ["--help"]):
        print(f"usage: {PREPROCESSING} COMMAND ...\n\n{__doc__}\ncommands:")
        for command, summary in COMMANDS.items():
            print(f"  {command:21}{summary}")
        return
    if not words or words[0] not in COMMANDS:
        problem = f"{words[0]!r} is not a command" if words else "no command given"
        raise InputError(f"{problem}; give one of {', '.join(COMMANDS)}, or --help")
    command, *options = words
    # Import only this command: the imports of the others are slow.
    import_module(f".commands.{command.replace('-', '_')}", __package__).main(options)


if __name__ == "__main__":
    main()
