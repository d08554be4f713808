"""Exact match and F1 of a file of predictions for SQuAD 1.1.

tn-fairseq evaluate squad-score DATA.json PREDICTIONS.json
"""

from dataclasses import dataclass
from pathlib import Path

from ..core.options import option
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class SquadScoreOptions:
    """The questions, and the predictions to score."""

    data: Path = option("data in the format of SQuAD 1.1", positional=True, metavar="DATA.json")
    predictions: Path = option("an object that maps ids to texts", positional=True, metavar="PREDICTIONS.json")


def squad_score(options: SquadScoreOptions) -> None:
    """Print the scores."""
    from ..tools.evaluate.squad_score import score_files

    print(score_files(options.data, options.predictions))


main = command_line("evaluate squad-score", __doc__, squad_score)
