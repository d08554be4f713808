"""A study: train the same model with several objectives and several seeds, measure all of them, and write a report.

    tn-fairseq study cpu --output study --source data=DATA --source encoder=FOLDER

The first argument is a plan: a YAML file, or in a clone the name of one in examples/study/plans. The study prepares its
data, trains what is missing, measures it, and writes results.parquet, comparisons.csv and index.html. After an
interruption, run the same command again to go on. Finished runs are not repeated, so you can add arms, seeds and
measures later.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.options import option
from ..tools.evaluate.finetune_options import FineTuningOptions, GlueOptions, RobustnessOptions
from ..tools.evaluate.lexical.lexical_options import LexicalOptions
from ..tools.look.analysis_options import AnalysisOptions
from .arguments import command_line, parse_options


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
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluate.finetune_glue import evaluate_glue
    from ..tools.evaluate.finetune_squad import evaluate_squad
    from ..tools.evaluate.lexical.lexical import lexical_rows
    from ..tools.evaluate.robustness import evaluate_robustness
    from ..tools.look.analysis import analyze_rows
    from ..tools.results.report import TABLE
    from ..tools.results.table import read_table
    from ..tools.study.study import run_study

    def reported(evaluate: Callable[[Any], str]) -> Callable[[Any], Any]:
        return lambda options: (evaluate(options), read_table(options.output / TABLE)[0])[1]

    measures: dict[str, tuple[type, Callable[[Any], Any]]] = {
        "analysis": (AnalysisOptions, analyze_rows),
        "lexical": (LexicalOptions, lexical_rows),
        "glue": (GlueOptions, reported(evaluate_glue)),
        "squad": (FineTuningOptions, reported(evaluate_squad)),
        "robustness": (RobustnessOptions, reported(evaluate_robustness)),
    }

    def command(name: str) -> Callable[[Sequence[str]], Any]:
        kind, measure = measures[name]
        return lambda words: measure(parse_options(kind, name, None, words))

    run_study(**vars(options), commands={name: command(name) for name in measures})


main = command_line("study", __doc__, study)
