"""Fine-tune and score checkpoints as in the paper: every checkpoint on every task with every seed.

    python -m tn_fairseq.evaluation glue CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data GLUE_BIN --output DIR
    python -m tn_fairseq.evaluation squad CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data SQUAD_BIN --output DIR
    python -m tn_fairseq.evaluation squad-score DATA.json PREDICTIONS.json
    python -m tn_fairseq.evaluation robustness SCORES --original DATA --attacked DATA [DATA ...] --output DIR
    python -m tn_fairseq.evaluation judge CHECKPOINT.pt --data DATA_BIN --swords FILE --synonym-table TABLE [TABLE ...]
    python -m tn_fairseq.evaluation lexical [CHECKPOINT.pt ...] [NAME='SEEDS*.pt' ...] --data DATA_BIN --output DIR

After an interruption of glue and squad, run the same command again to resume. Finished runs are not repeated, so you
can add seeds, tasks and checkpoints later. Flags for fairseq-train go after "--". The command lexical trains nothing:
it measures what synonym tables and checkpoints know about words. The command judge compares what --correction-judge
would accept with what people accept. The command robustness scores fine-tuned checkpoints on attacked data.
"""

import argparse
import logging
import math
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ..arguments import command_parser, positive
from ..errors import PREPROCESSING, InputError, one_line_errors

# The module and the function of each command, which are imported when they are used: fairseq takes seconds to import.
COMMANDS = {
    "glue": (".glue", "evaluate_glue"),
    "squad": (".squad", "evaluate_squad"),
    "squad-score": (".squad_score", "score_files"),
    "robustness": (".robustness.report", "write_report"),
    "lexical": (".lexical.report", "write_report"),
    "judge": (".lexical.judge", "judge_report"),
}
TRAINS = ("glue", "squad")
SWORDS, TABLE = "such as swords-v1.1_dev.json.gz", f"output of {PREPROCESSING} build-synonym-table"


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and print its table."""
    argv = list(sys.argv[1:] if argv is None else argv)
    own, more_flags = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = get_parser()
    options, unknown = parser.parse_known_args(own)
    if unknown:
        hint = '; flags for fairseq-train go last, after "--"' if options.command in TRAINS else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if more_flags and options.command not in TRAINS:
        raise InputError(f"{options.command} takes no flags for fairseq-train")
    options.more_flags = tuple(more_flags)
    logging.disable(logging.INFO)
    module, function = COMMANDS[options.command]
    try:
        print(getattr(import_module(module, __package__), function)(options))
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the same command again")


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("python -m tn_fairseq.evaluation", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compared = argparse.ArgumentParser(add_help=False)
    compared.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for what is written")
    compared.add_argument("--baseline", metavar="NAME", help="checkpoint to compare the others with")
    with_paper = argparse.ArgumentParser(add_help=False, parents=[compared])
    with_paper.add_argument("--paper", action="store_true", help="show the paper's numbers below ours")

    flags = 'Flags for fairseq-train go after "--": -- --dropout 0.2'
    for name, title in (("glue", "GLUE"), ("squad", "SQuAD")):
        text = f"fine-tune on {title}"
        _add_fine_tuning(commands.add_parser(name, help=text, epilog=flags, parents=[with_paper]), name)
    scoring = commands.add_parser("squad-score", help="exact match and F1 of a file of predictions")
    scoring.add_argument("data", type=Path, metavar="DATA.json", help="data in the format of SQuAD 1.1")
    scoring.add_argument("predictions", type=Path, metavar="PREDICTIONS.json", help="an object that maps ids to texts")
    text = "score fine-tuned checkpoints on attacked data"
    _add_robustness(commands.add_parser("robustness", help=text, parents=[with_paper]))
    text = "measure substitutes, word similarities and minimal pairs"
    lexical = commands.add_parser("lexical", help=text, parents=[compared])
    _add_lexical(lexical)
    judge = commands.add_parser("judge", help="compare a judge of corrections with people")
    judge.add_argument("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="the file for --correction-judge")
    judge.add_argument("--swords", type=Path, required=True, metavar="FILE", help=SWORDS)
    judge.add_argument("--synonym-table", nargs="+", type=Path, required=True, metavar="TABLE", help=TABLE)
    for command in (lexical, judge):
        data = f"output of {PREPROCESSING} binarize"
        command.add_argument("--data", type=Path, required=True, metavar="DATA_BIN", help=data)
        command.add_argument("--encoder-json", type=Path, metavar="FILE", help="GPT-2's, for a dictionary of numbers")
    return parser


def _add_fine_tuning(command: argparse.ArgumentParser, name: str) -> None:
    add = command.add_argument
    add("checkpoints", nargs="+", metavar="[NAME=]CHECKPOINT.pt", help="checkpoints to fine-tune")
    add("--data", type=Path, required=True, metavar="DIR", help=f"output of {PREPROCESSING} {name}")
    if name == "glue":
        add("--tasks", default="all", metavar="T,T", help="(default: all in --data)")
    add("--seeds", type=_seeds, default="1,2,3", metavar="N,N", help="(default: %(default)s)")
    add("--epochs", type=positive, metavar="N", help="(default: the task's)")
    add("--max-update", type=positive, metavar="N", help="maximum updates (default: no limit)")
    add("--batch-size", type=positive, default=32, metavar="N", help="(default: %(default)s)")
    add("--lr", type=_rate, metavar="X", help="(default: 3e-4 small, 1e-4 base, 5e-5 large)")
    add("--keep-checkpoints", action="store_true", help="keep the last one of each run, for robustness")


def _add_robustness(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    text = "--output of glue or squad, or [NAME=]CHECKPOINT.pt of one run"
    add("runs", nargs="+", metavar="SCORES", help=text)
    text = "what was attacked: a file in the format of SQuAD 1.1, or a GLUE folder"
    add("--original", type=Path, metavar="DATA", help=text)
    text = "attacked files or folders, or AdvGLUE's dev.json, which needs no --original"
    add("--attacked", nargs="+", type=Path, required=True, metavar="DATA", help=text)


def _add_lexical(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    text = "checkpoints; with a name, a quoted pattern of its seeds"
    add("checkpoints", nargs="*", metavar="[NAME=]CKPT", help=text)
    add("--swords", type=Path, metavar="FILE", help=SWORDS)
    text = f"{TABLE}, to compare with --swords"
    add("--synonym-table", nargs="+", type=Path, default=[], metavar="TABLE", help=text)
    add("--word-pairs", nargs="+", type=Path, default=[], metavar="FILE", help="such as SimLex-999.txt")
    add("--blimp", type=Path, metavar="FILE", help="BLiMP.zip")
    text = "of each of BLiMP's files (default: %(default)s)"
    add("--blimp-pairs", type=positive, default=100, metavar="N", help=text)


def _rate(text: str) -> float:
    if not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"must be positive, not {text}")
    return float(text)


def _seeds(text: str) -> list[int]:
    seeds = [int(seed) for seed in text.split(",") if seed.isdecimal()]
    if len(set(seeds)) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different numbers such as 1,2,3")
    return seeds


if __name__ == "__main__":
    main()
