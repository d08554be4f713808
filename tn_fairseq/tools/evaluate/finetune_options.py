"""The options of the evaluations that fine-tune. Importing them is fast, which ``--help`` needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.options import option


def read_seeds(text: str) -> tuple[int, ...]:
    """The numbers in a list with commas; raises ValueError unless they are different."""
    seeds = tuple(int(seed) for seed in text.split(",") if seed.isdecimal())
    if len(set(seeds)) != len(text.split(",")):
        raise ValueError("different numbers, such as 1,2,3")
    return seeds


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Where to write the report, and what to compare with."""

    output: Path = option("folder for what is written", metavar="DIR")
    baseline: str | None = option("checkpoint to compare the others with", default=None, metavar="NAME")

    def notes(self) -> list[str]:
        """What a report says about them."""
        return [] if self.baseline is None else [f"The baseline is {self.baseline}."]


@dataclass(frozen=True, kw_only=True)
class FineTuningOptions(ReportOptions):
    """Which checkpoints to fine-tune on which data, and how."""

    checkpoints: Sequence[str] = option("checkpoints to fine-tune", positional=True, metavar="[NAME=]CHECKPOINT.pt")
    data: Path = option("output of tn-fairseq data glue or data squad", metavar="DIR")
    seeds: Sequence[int] = option(
        "random seeds (default: 1,2,3)", default=(1, 2, 3), parse=read_seeds, below=2**31, metavar="N,N"
    )
    epochs: int | None = option("passes over the training data (default: the task's)", default=None, at_least=1)
    max_update: int | None = option("maximum updates (default: no limit)", default=None, at_least=1)
    batch_size: int = option("examples per update", default=32, at_least=1)
    lr: float | None = option(
        "peak learning rate (default: 3e-4 for small models, 1e-4 base, 5e-5 large)", default=None, above=0
    )
    parallel: int = option("runs at the same time", default=1, at_least=1)
    keep_checkpoints: bool = option("keep the last one of each run, such as for robustness", default=False)
    more_flags: Sequence[str] = option("flags for fairseq-train, such as -- --dropout 0.2", default=(), rest=True)


@dataclass(frozen=True, kw_only=True)
class GlueOptions(FineTuningOptions):
    """Which tasks, too."""

    tasks: str = option("such as CoLA,RTE (default: all in --data)", default="all", metavar="T,T")


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions(ReportOptions):
    """Which fine-tuned checkpoints to score on which attacked questions."""

    runs: Sequence[str] = option(
        "--output of squad, or [NAME=]CHECKPOINT.pt of one run", positional=True, metavar="SCORES"
    )
    original: Path = option("what was attacked, in SQuAD 1.1's format")
    attacked: Sequence[Path] = option("output of swap-synonyms or add-distractors", metavar="FILE")
