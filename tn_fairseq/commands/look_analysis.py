"""Find false negatives: how often predictions are synonyms of the gold word during training, and which ones.

    tn-fairseq look analysis DATA_BIN --split valid --path 'checkpoints/checkpoint*.pt' \\
        --synonym-table synonyms.safetensors --output false-negatives

    tn-fairseq look analysis DATA_BIN --model 'trained/checkpoint-*' \\
        --synonym-table synonyms.safetensors --output false-negatives

Predicts the masked words of a split with each checkpoint of fairseq-train (ELECTRA's generator, BERT, RoBERTa) or each
masked language model of transformers. Nothing is trained. The text is masked several times; the first masking is the
one that validation during training uses. Writes the rates (the paper's Table 2) to false_negatives.csv and .json, plots
of them over training to training.png and .svg, and a comparison of the tables to sources.csv. For the checkpoint
trained longest, writes pairs of words to pairs.csv and cases with their sentences to cases.html. With --teacher,
another model reads the same masked text, and the report says which wrong predictions it finds likely.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import if_interrupted, one_line_errors
from .arguments import command_parser, positive


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Write the report and print its tables."""
    parser = get_parser()
    options = parser.parse_args(argv)
    if not options.path + options.model:
        parser.error("give --path or --model, or both")
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.analysis.rates_report import AnalysisOptions, analyze

    with if_interrupted(f"nothing was written to {options.output}"):
        print(analyze(AnalysisOptions(**vars(options))))


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("look analysis", __doc__)
    add = parser.add_argument
    add("data_bin", type=Path, metavar="DATA_BIN", help="output of tn-fairseq data binarize")
    add("--split", default="valid", help="part of the data to analyze (default: %(default)s)")
    checkpoints = "checkpoints of fairseq-train, or quoted patterns such as 'ck/*.pt'"
    add("--path", nargs="+", default=[], metavar="CKPT", help=checkpoints)
    models = "folders of transformers with the tokenizer of DATA_BIN, or quoted patterns"
    add("--model", nargs="+", default=[], metavar="FOLDER", help=models)
    table = "output of tn-fairseq synonyms build"
    add("--synonym-table", nargs="+", required=True, type=Path, metavar="TABLE", help=table)
    add("--output", required=True, type=Path, metavar="DIR", help="folder for the report")
    log = "logs of fairseq-train --log-format json, whose losses cases.html shows"
    add("--training-log", nargs="+", default=[], type=Path, metavar="LOG", help=log)
    add("--mask-seeds", type=positive, default=5, metavar="N", help="number of maskings (default: %(default)s)")
    add("--max-sequences", type=positive, metavar="N", help="number of sequences of the split (default: all)")
    limit = "maximum number of corrections and near misses per table, and of the teacher's cases (default: %(default)s)"
    add("--max-cases", type=positive, default=200, metavar="N", help=limit)
    mode = "the most likely token, or a sample from the softmax (default: %(default)s)"
    add("--prediction-mode", choices=("argmax", "sample"), default="argmax", help=mode)
    finds = "also measure ELECTRA's discriminator: the replaced tokens that it finds, without synonyms"
    add("--detection", action="store_true", help=finds)
    judge = "also count the wrong predictions that this checkpoint or folder, with the same dictionary, finds likely"
    add("--teacher", type=Path, metavar="CKPT", help=judge)
    add("--encoder-json", type=Path, metavar="FILE", help="that of GPT-2, if dict.txt has numbers")
    add("--paper", action="store_true", help="show the paper's Table 2 below ours")
    return parser
