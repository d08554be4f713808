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

import logging
import os
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from ..core.errors import if_interrupted
from ..core.options import flag_of, option
from .arguments import command_line

GROUP = "options of --task electra, with its defaults"
masking = partial(option, "", default=None, group=GROUP)


def part_of(text: str) -> tuple[int, int]:
    """The part I of N in "I/N"; raises ValueError for anything else."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError("such as 1/8, the first of eight parts")
    return int(part), int(parts)


def launched() -> tuple[int, int]:
    """The part of this process, and the number of processes that torchrun started."""
    return int(os.environ.get("RANK", 0)) + 1, int(os.environ.get("WORLD_SIZE", 1))


@dataclass(frozen=True, kw_only=True)
class TeachOptions:
    """What to read with which teacher, and where to store it."""

    data: str = option(
        "output of tn-fairseq data binarize, or several, separated by colons", metavar="DATA_BIN", positional=True
    )
    teacher: Path = option("a checkpoint with the same dictionary", metavar="CKPT")
    output: Path = option("folder for the draws", metavar="FOLDER")
    draws: int = option("draws at each masked position", default=50, at_least=1, at_most=255)  # counts are bytes
    versions: int = option("times that each block is masked; epochs read them in turn", default=1, at_least=1)
    batch_size: int = option("blocks read at a time", default=32, at_least=1)
    num_workers: int = option("processes that make batches", default=1, at_least=0)
    shard: tuple[int, int] | None = option(
        "do the I-th of N parts of the work (default: as torchrun says)", default=None, parse=part_of, metavar="I/N"
    )
    cpu: bool = option("use no GPU", default=False)
    bf16: bool = option("let the teacher read in bfloat16", default=False)
    # of --task electra, which checks them
    tokens_per_sample: str | None = masking()
    sample_break_mode: str | None = masking()
    mask_prob: str | None = masking()
    leave_unmasked_prob: str | None = masking()
    random_token_prob: str | None = masking()
    mask_seed: str | None = masking()
    train_subset: str | None = masking()
    mask_whole_words: bool = masking(default=False)
    document_attention: bool = masking(default=False)

    def flags(self) -> list[str]:
        """What is given of them."""
        given = [
            (flag_of(entry), getattr(self, entry.name))
            for entry in fields(self)
            if entry.metadata.get("group") == GROUP
        ]
        return [flag if value is True else f"{flag}={value}" for flag, value in given if value not in (None, False)]


def teach(options: TeachOptions) -> None:
    """Write the draws, and print what the teacher knows about the text."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing import teaching

    with if_interrupted("run the same command again to continue"):
        print(teaching.teach(options, options.shard or launched()))


main = command_line("data teach", __doc__, teach)
