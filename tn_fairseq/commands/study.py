"""A study: train the same model with several objectives and several seeds, measure all of them, and write a report.

    tn-fairseq study cpu --output study --source data=DATA --source encoder=FOLDER

The first argument is a plan: a YAML file, or in a clone the name of one in examples/study/plans. The study prepares its
data, trains what is missing, measures it, and writes study.json, summary.md and index.html. After an interruption, run
the same command again to go on. Finished runs are not repeated, so you can add arms, seeds and measures later.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from .arguments import command_parser, positive


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("study", __doc__)
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN", help="a YAML file, or one of cpu, gpu, tiny")
    add("--output", required=True, type=Path, metavar="DIR", help="folder for all output")
    text = "where a source of the plan is; repeat for several sources"
    add("--source", action="append", default=[], type=_source, metavar="NAME=PATH", help=text)
    text = "prepare, train and measure only this start; the report shows all; repeatable"
    add("--start", action="append", metavar="NAME", help=text)
    text = "the study.json of another folder or machine: report its runs, and do not repeat them; repeatable"
    add("--earlier", action="append", default=[], type=Path, metavar="STUDY.json", help=text)
    add("--parallel", type=positive, metavar="N", help="runs at the same time (default: the plan's)")
    add("--no-training", action="store_true", help="measure and report the finished runs only")
    add("--dry-run", action="store_true", help="print the commands that are left, and run nothing")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = get_parser().parse_args(argv)
    # imported here because torch takes seconds to import and --help does not need it
    from ..tools.study.run_study import StudyOptions, run_study

    run_study(StudyOptions(**vars(options)))


def _source(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if not (name and sign and path):
        raise argparse.ArgumentTypeError(f"must be NAME=PATH, not {text}")
    return name, path
