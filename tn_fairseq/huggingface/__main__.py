"""Released weights in and out, without drift: every tensor bit for bit.

    python -m tn_fairseq.huggingface import DIR [--generator DIR] --data DATA_BIN --output CHECKPOINT.pt
    python -m tn_fairseq.huggingface export CHECKPOINT.pt --output DIR

Import takes BERT or ELECTRA as save_pretrained writes them, and text binarised with their tokenizer; fairseq-train goes
on from the checkpoint. Export writes folders for transformers: DIR/discriminator and DIR/generator, or DIR for BERT.
"""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..configuration import as_argument
from ..errors import one_line_errors
from .exporting import export_model
from .importing import import_model


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.huggingface",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("import", help="from folders of save_pretrained to a checkpoint of fairseq-train")
    taking.add_argument("folder", type=Path, metavar="DIR", help="BERT, or ELECTRA's discriminator, with its tokenizer")
    taking.add_argument(
        "--generator", type=Path, metavar="DIR", help="ELECTRA's generator (default: a fresh one on the embeddings)"
    )
    taking.add_argument("--data", type=Path, required=True, metavar="DATA_BIN", help="binarised with DIR's tokenizer")
    taking.add_argument("--output", type=Path, required=True, metavar="CHECKPOINT.pt", help="file to write")
    taking.add_argument(
        "--max-positions", type=int, metavar="N", help="keep the first N position embeddings (default: all)"
    )
    giving = commands.add_parser("export", help="from a checkpoint of fairseq-train to folders for transformers")
    giving.add_argument("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="of an electra_* or bert_* model")
    giving.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write")
    giving.add_argument(
        "--data", type=Path, metavar="DATA_BIN", help="where dict.txt and tokenizer/ lie (default: as in training)"
    )
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Convert, and say what was written and what to do with it."""
    args = get_parser().parse_args(argv)
    if args.command == "export":
        for folder in export_model(args.checkpoint, args.output, args.data):
            print(f"wrote {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
        return

    imported = import_model(args.folder, args.data, args.output, args.generator, args.max_positions)
    if imported.left_out:
        print(f"left out, for our BERT predicts no next sentence: {', '.join(imported.left_out)}")
    if imported.cut_positions:
        print(f"cut: the last {imported.cut_positions} position embeddings")
    if imported.fresh:
        print(f"fresh: no --generator, so ours starts on the same embeddings with {len(imported.fresh)} new tensors")
    print(f"wrote {args.output}: {imported.arch}, {imported.parameters:,} parameters")
    words = ["fairseq-train", as_argument(args.data), "--user-dir", "tn_fairseq"]
    words += ["--task", "electra", "--arch", imported.arch, *imported.size_flags]
    words += ["--finetune-from-model", as_argument(args.output)]
    print(f"go on with: {shlex.join(words)} ...")


if __name__ == "__main__":
    main()
