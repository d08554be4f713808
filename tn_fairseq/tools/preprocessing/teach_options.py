"""The options of ``data teach``; a module of its own, because --help must not import torch."""

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from ...core.options import flag_of, option

GROUP = "options of --task electra, with its defaults"
masking = partial(option, "", default=None, group=GROUP)


def part_of(text: str) -> tuple[int, int]:
    """The part I of N in "I/N"; raises ValueError for anything else."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError("such as 1/8, the first of eight parts")
    return int(part), int(parts)


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
