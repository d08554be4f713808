"""Print the folder of the plugin: fairseq-train DATA_BIN --user-dir "$(tn-fairseq user-dir)" ..."""

from collections.abc import Sequence

from ..core import PLUGIN
from .arguments import command_parser


def main(argv: Sequence[str] | None = None) -> None:
    """Print the folder and nothing else."""
    command_parser("user-dir", __doc__).parse_args(argv)
    print(PLUGIN)
