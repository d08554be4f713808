"""Export a checkpoint of fairseq-train to folders for transformers.

    tn-fairseq exchange export CHECKPOINT.pt --output DIR [--half]

Every tensor is copied bit for bit, except with --half. Writes DIR/discriminator and DIR/generator for ELECTRA, or DIR
for BERT.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from .arguments import command_parser


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("exchange export", __doc__)
    add = parser.add_argument
    add("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="of an electra_* or bert_* model")
    add("--output", type=Path, required=True, metavar="DIR", help="folder to write")
    add("--data", type=Path, metavar="DATA_BIN", help="folder with dict.txt and tokenizer/ (default: as in training)")
    add("--half", action="store_true", help="store the weights as float16: half of the size, rounded")
    add("--user-dir", metavar="DIR", help="plugin that defines the criterion, if it is not ours")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Convert, and print what was written."""
    args = get_parser().parse_args(argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..core.configuration import import_plugin
    from ..huggingface.exporting import export_model

    import_plugin(args.user_dir)
    for folder in export_model(args.checkpoint, args.output, args.data, half=args.half):
        print(f"wrote {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
