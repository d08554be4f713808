"""Import weights from transformers into a checkpoint for fairseq-train; every tensor is copied bit for bit.

    tn-fairseq exchange import DIR [--as electra] [--generator DIR] --data DATA_BIN --output CHECKPOINT.pt

Reads BERT or ELECTRA as written by save_pretrained, with or without a head, and text that was binarized with their
tokenizer.
"""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import InputError, one_line_errors
from .arguments import command_parser


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("exchange import", __doc__)
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="BERT or ELECTRA's discriminator, with its tokenizer")
    add("--as", dest="kind", choices=["electra"], help="make BERT the discriminator of ELECTRA (default: keep BERT)")
    text = "ELECTRA's generator; the same DIR again: a copy (default: a newly initialized one)"
    add("--generator", type=Path, metavar="DIR", help=text)
    add("--data", type=Path, required=True, metavar="DATA_BIN", help="binarized with DIR's tokenizer")
    add("--output", type=Path, required=True, metavar="CHECKPOINT.pt", help="file to write")
    add("--max-positions", type=int, metavar="N", help="keep the first N position embeddings (default: all)")
    text = "keep only these layers of BERT or the discriminator, such as 0,2,4; 0 is the first (default: all); a "
    text += "--generator keeps its own"
    add("--keep-layers", metavar="N,N", help=text)
    text = "give symbols of DATA_BIN/dict.txt that the model lacks new rows"
    add("--new-symbols", action="store_true", help=text)
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Convert, and print what was written and how to use it."""
    args = get_parser().parse_args(argv)
    if args.output.is_file() and args.output.suffix != ".pt":  # such as the model's own weights
        raise InputError(f"--output {args.output}: exists and does not end in .pt; give another file")
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..core.configuration import as_argument
    from ..huggingface.importing import import_model

    imported = import_model(
        args.folder,
        args.data,
        args.output,
        args.generator,
        args.max_positions,
        as_electra=args.kind == "electra",
        new_symbols=args.new_symbols,
        keep_layers=None if args.keep_layers is None else args.keep_layers.split(","),
    )
    for path, names in imported.left_out.items():
        print(f"left out of {path}: {', '.join(names)}")
    for path, rows in imported.cut_rows.items():
        if rows:
            print(
                f"left out of {path}: the last {rows} rows of its embeddings, which belong to no token of its "
                "tokenizer; they are padding, unless the tokenizer lacks tokens that the model was trained with"
            )
    if imported.cut_positions:
        print(f"removed: the last {imported.cut_positions} position embeddings")
    if imported.gaps:
        print(f"removed: the rows of {imported.gaps:,} token ids without a piece")
    if imported.cut_layers:
        layers = imported.model.cfg.encoder_layers
        print(f"kept {layers} of {layers + imported.cut_layers} layers: {args.keep_layers}")
    generator = [name for name in imported.fresh if name.startswith("generator") and not args.generator]
    if generator:
        print(f"new generator, because there is no --generator: {len(generator)} tensors, and the same embeddings")
    heads = [name for name in imported.fresh if name not in generator]
    if heads:
        print(f"newly initialized, because no folder has them: {', '.join(heads)}")
    parameters = sum(parameter.numel() for parameter in imported.model.parameters())
    print(f"wrote {args.output}: {imported.arch}, {parameters:,} parameters")
    words = ["fairseq-train", as_argument(args.data), "--user-dir", "tn_fairseq", *imported.flags]
    words += ["--finetune-from-model", as_argument(args.output)]
    print(f"continue with: {shlex.join(words)} ...")
