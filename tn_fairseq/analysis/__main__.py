"""See the false negatives: how often predictions are synonyms of the gold word, over training, and which ones.

    python -m tn_fairseq.analysis DATA_BIN --split valid --path 'checkpoints/checkpoint*.pt' \\
        --synonym-table synonyms.safetensors --output false-negatives

Predicts the masked words of a split with each checkpoint (ELECTRA's generator, BERT, fairseq's RoBERTa), without any
training, under several maskings of the text; the first is the one that validation during training uses. Writes the
rates (the paper's Table 2) as false_negatives.csv and .json, and over training as training.png and .svg; the tables
compared as sources.csv; and of the checkpoint trained longest the pairs of words as pairs.csv and the cases in their
sentences as cases.html.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import one_line_errors


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Write the report, and print its tables."""
    args = get_parser().parse_args(argv)
    logging.disable(logging.INFO)
    # imported here: fairseq takes seconds, and --help needs none of it
    from .counting import Options
    from .report import write_report

    options = Options(
        args.data_bin, args.split, args.mask_seeds, args.max_sequences, sample=args.prediction_mode == "sample"
    )
    try:
        print(
            write_report(
                options, args.path, args.synonym_table, args.output, args.max_cases, args.paper, args.encoder_json
            )
        )
    except KeyboardInterrupt:
        sys.exit(f"error: interrupted; nothing was written to {args.output}")


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.analysis",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data_bin", type=Path, metavar="DATA_BIN", help="what binarize.py wrote")
    parser.add_argument("--split", default="valid", help="(default: %(default)s)")
    parser.add_argument(
        "--path", nargs="+", required=True, metavar="CKPT", help="checkpoints, or quoted patterns such as 'ck/*.pt'"
    )
    parser.add_argument(
        "--synonym-table", nargs="+", required=True, type=Path, metavar="TABLE", help="of build_synonym_table.py"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for the report")
    parser.add_argument(
        "--mask-seeds", type=_positive, default=5, metavar="N", help="maskings of the text (default: %(default)s)"
    )
    parser.add_argument(
        "--max-sequences", type=_positive, metavar="N", help="sequences of the split (default: all of them)"
    )
    parser.add_argument(
        "--max-cases",
        type=_positive,
        default=200,
        metavar="N",
        help="corrections shown of each table, and near misses (default: %(default)s)",
    )
    parser.add_argument(
        "--prediction-mode",
        choices=("argmax", "sample"),
        default="argmax",
        help="the likeliest token, or a draw from the softmax (default: %(default)s)",
    )
    parser.add_argument("--encoder-json", type=Path, metavar="FILE", help="GPT-2's, for a dictionary of numbers")
    parser.add_argument("--paper", action="store_true", help="show the paper's Table 2 below ours")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


if __name__ == "__main__":
    main()
