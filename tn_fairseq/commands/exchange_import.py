"""Import weights from transformers into a checkpoint for fairseq-train; every tensor is copied bit for bit.

    tn-fairseq exchange import DIR [--as electra] [--generator DIR] --data DATA_BIN --output CHECKPOINT.pt

Reads BERT or ELECTRA as written by save_pretrained, with or without a head, and text that was binarized with their
tokenizer.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..core.errors import InputError
from ..core.options import option
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """What to import, and where to."""

    folder: Path = option("BERT or ELECTRA's discriminator, with its tokenizer", metavar="DIR", positional=True)
    kind: Literal["electra"] | None = option(
        "make BERT the discriminator of ELECTRA (default: keep BERT)", default=None, flag="--as"
    )
    generator: Path | None = option(
        "ELECTRA's generator; the same DIR again: a copy (default: a newly initialized one)",
        default=None,
        metavar="DIR",
    )
    data: Path = option("binarized with DIR's tokenizer", metavar="DATA_BIN")
    output: Path = option("file to write", metavar="CHECKPOINT.pt")
    max_positions: int | None = option("keep the first N position embeddings (default: all)", default=None, at_least=1)
    keep_layers: str | None = option(
        "keep only these layers of BERT or the discriminator, such as 0,2,4; 0 is the first (default: all); a "
        "--generator keeps its own",
        default=None,
        metavar="N,N",
    )
    new_symbols: bool = option("give symbols of DATA_BIN/dict.txt that the model lacks new rows", default=False)


def import_(options: ImportOptions) -> None:
    """Convert, and print what was written and how to use it."""
    if options.output.is_file() and options.output.suffix != ".pt":  # such as the model's own weights
        raise InputError(f"--output {options.output}: exists and does not end in .pt; give another file")
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..core.configuration import as_argument
    from ..huggingface.importing import import_model

    imported = import_model(
        options.folder,
        options.data,
        options.output,
        options.generator,
        options.max_positions,
        as_electra=options.kind == "electra",
        new_symbols=options.new_symbols,
        keep_layers=None if options.keep_layers is None else options.keep_layers.split(","),
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
        print(f"kept {layers} of {layers + imported.cut_layers} layers: {options.keep_layers}")
    generator = [name for name in imported.fresh if name.startswith("generator") and not options.generator]
    if generator:
        print(f"new generator, because there is no --generator: {len(generator)} tensors, and the same embeddings")
    heads = [name for name in imported.fresh if name not in generator]
    if heads:
        print(f"newly initialized, because no folder has them: {', '.join(heads)}")
    parameters = sum(parameter.numel() for parameter in imported.model.parameters())
    print(f"wrote {options.output}: {imported.arch}, {parameters:,} parameters")
    words = ["fairseq-train", as_argument(options.data), "--user-dir", "tn_fairseq", *imported.flags]
    words += ["--finetune-from-model", as_argument(options.output)]
    print(f"continue with: {shlex.join(words)} ...")


main = command_line("exchange import", __doc__, import_)
