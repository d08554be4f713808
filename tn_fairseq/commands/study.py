"""A study: train the same model with several objectives and several seeds, measure all of them, and write a report.

    tn-fairseq study cpu --output study --source data=DATA --source encoder=FOLDER

The first argument is a plan: a YAML file, or in a clone the name of one in examples/study/plans. The study prepares its
data, trains what is missing, measures it, and writes results.parquet, comparisons.csv and index.html. After an
interruption, run the same command again to go on. Finished runs are not repeated, so you can add arms, seeds and
measures later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.options import option
from . import evaluate_glue, evaluate_lexical, evaluate_robustness, evaluate_squad, look_analysis
from .arguments import command_line


def source(text: str) -> tuple[str, str]:
    """The name and the path in NAME=PATH; raises ValueError for anything else."""
    name, sign, path = text.partition("=")
    if not (name and sign and path):
        raise ValueError("NAME=PATH")
    return name, path


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What to run of a plan, and where."""

    plan: Path = option("a YAML file, or one of cpu, gpu, tiny", positional=True)
    output: Path = option("folder for all output", metavar="DIR")
    source: Sequence[tuple[str, str]] = option(
        "where a source of the plan is; repeatable", default=(), parse=source, repeat=True, metavar="NAME=PATH"
    )
    start: Sequence[str] = option(
        "prepare, train and measure only this start; the report shows all; repeatable",
        default=(),
        repeat=True,
        metavar="NAME",
    )
    earlier: Sequence[Path] = option(
        "the folder of another study: report its runs, and do not repeat them; repeatable",
        default=(),
        repeat=True,
        metavar="FOLDER",
    )
    parallel: int | None = option("runs at the same time (default: the plan's)", default=None, at_least=1)
    no_training: bool = option("measure and report the finished runs only", default=False)
    dry_run: bool = option("print the commands that are left, and run nothing", default=False)


def study(options: StudyOptions) -> None:
    """Run the study."""
    from ..tools.study.study import run_study

    commands = {
        "analysis": look_analysis.rows,
        "glue": evaluate_glue.rows,
        "squad": evaluate_squad.rows,
        "robustness": evaluate_robustness.rows,
        "lexical": evaluate_lexical.rows,
    }
    run_study(**vars(options), commands=commands)


main = command_line("study", __doc__, study)
