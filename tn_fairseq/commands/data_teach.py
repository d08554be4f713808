"""Let a teacher read the training text once, and store what it says about the masked words.

    tn-fairseq data teach data-bin --teacher teacher.pt --output draws

    fairseq-train data-bin --user-dir tn_fairseq --task electra --criterion mlm_distillation \\
        --distillation-draws draws ...

Masks each block of the training text, reads it with the teacher, and draws words from its distribution at each masked
position. Training with --distillation-draws then needs no teacher. The options of --task electra below decide blocks
and masks, and must be the same in training. The draws do not depend on the batches, their order, or the workers.

Several processes can share the work: start each with --shard, or all with torchrun -m tn_fairseq data teach. After an
interruption, the same command continues.
"""

import argparse
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import if_interrupted, one_line_errors
from .arguments import command_parser, positive

# options of --task electra, which checks them
VALUES = (
    *("tokens-per-sample", "sample-break-mode", "mask-prob", "leave-unmasked-prob", "random-token-prob", "mask-seed"),
    "train-subset",
)
SWITCHES = ("mask-whole-words", "document-attention")


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Write the draws, and print what the teacher knows about the text."""
    options = vars(get_parser().parse_args(argv))
    masking = [f"--{name}={value}" for name in VALUES if (value := options.pop(name.replace("-", "_"))) is not None]
    masking += [f"--{name}" for name in SWITCHES if options.pop(name.replace("-", "_"))]
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing.teaching import TeachOptions, teach

    with if_interrupted("run the same command again to continue"):
        print(teach(TeachOptions(**options, masking=masking)))


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("data teach", __doc__)
    add = parser.add_argument
    add("data", metavar="DATA_BIN", help="output of tn-fairseq data binarize, or several, separated by colons")
    add("--teacher", required=True, type=Path, metavar="CKPT", help="a checkpoint with the same dictionary")
    add("--output", required=True, type=Path, metavar="FOLDER", help="folder for the draws")
    add("--draws", type=draws, default=50, metavar="N", help="draws at each masked position (default: %(default)s)")
    versions = "times that each block is masked; epochs read them in turn (default: %(default)s)"
    add("--versions", type=positive, default=1, metavar="K", help=versions)
    add("--batch-size", type=positive, default=32, metavar="N", help="blocks read at a time (default: %(default)s)")
    add("--num-workers", type=int, default=1, metavar="N", help="processes that make batches (default: %(default)s)")
    part = "do the I-th of N parts of the work (default: as torchrun says)"
    add("--shard", type=shard, default=launched(), metavar="I/N", help=part)
    add("--cpu", action="store_true", help="use no GPU")
    add("--bf16", action="store_true", help="let the teacher read in bfloat16")
    group = parser.add_argument_group("options of --task electra, with its defaults")
    for name in VALUES:
        group.add_argument(f"--{name}")
    for name in SWITCHES:
        group.add_argument(f"--{name}", action="store_true")
    return parser


def draws(text: str) -> int:
    """A number of draws whose counts fit into a byte; raises argparse.ArgumentTypeError for any other."""
    number = positive(text)
    if number > 255:
        raise argparse.ArgumentTypeError(f"must be at most 255, not {text}")
    return number


def shard(text: str) -> tuple[int, int]:
    """The part I of N in "I/N"; raises argparse.ArgumentTypeError for anything else."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"must be such as 1/8, the first of eight parts, not {text}")
    return int(part), int(parts)


def launched() -> tuple[int, int]:
    """The part of this process, and the number of processes that torchrun started."""
    return int(os.environ.get("RANK", 0)) + 1, int(os.environ.get("WORLD_SIZE", 1))
