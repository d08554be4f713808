"""Exact match and F1 of a file of predictions for SQuAD 1.1.

tn-fairseq evaluate squad-score DATA.json PREDICTIONS.json
"""

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from .arguments import command_parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Print the scores."""
    parser = command_parser("evaluate squad-score", __doc__)
    parser.add_argument("data", type=Path, metavar="DATA.json", help="data in the format of SQuAD 1.1")
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS.json", help="an object that maps ids to texts")
    options = parser.parse_args(argv)
    from ..tools.evaluation.squad_score import score_files

    print(score_files(options.data, options.predictions))
