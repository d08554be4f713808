"""Import weights from and export weights to transformers; every tensor is copied bit for bit (except with --half).

    python -m tn_fairseq.huggingface import DIR [--as electra] [--generator DIR] --data DATA_BIN --output CHECKPOINT.pt
    python -m tn_fairseq.huggingface export CHECKPOINT.pt --output DIR [--half]

Import reads BERT or ELECTRA as written by save_pretrained, with or without a head, and text that was binarized with
their tokenizer, and writes a checkpoint for fairseq-train. Export writes folders for transformers: DIR/discriminator
and DIR/generator for ELECTRA, or DIR for BERT.
"""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from fairseq.utils import import_user_module

from ..arguments import command_parser
from ..configuration import as_argument
from ..errors import InputError, one_line_errors
from .exporting import export_model
from .importing import import_model


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("python -m tn_fairseq.huggingface", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("import", help="convert folders of save_pretrained to a checkpoint for fairseq-train")
    add = taking.add_argument
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
    giving = commands.add_parser("export", help="convert a checkpoint of fairseq-train to folders for transformers")
    add = giving.add_argument
    add("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="of an electra_* or bert_* model")
    add("--output", type=Path, required=True, metavar="DIR", help="folder to write")
    add("--data", type=Path, metavar="DATA_BIN", help="folder with dict.txt and tokenizer/ (default: as in training)")
    add("--half", action="store_true", help="store the weights as float16: half of the size, rounded")
    add("--user-dir", metavar="DIR", help="plugin that defines the criterion, if it is not ours")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Convert, and print what was written and how to use it."""
    args = get_parser().parse_args(argv)
    if args.command == "export":
        try:
            import_user_module(args)
        except (ImportError, OSError) as error:
            problem = f"--user-dir {args.user_dir}: cannot be imported ({error}); give a plugin's folder"
            raise InputError(problem) from None
        for folder in export_model(args.checkpoint, args.output, args.data, half=args.half):
            print(f"wrote {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
        return

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


if __name__ == "__main__":
    main()
