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
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from ..arguments import positive
from ..errors import PREPROCESSING, InputError, one_line_errors


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and print its table."""
    argv = list(sys.argv[1:] if argv is None else argv)
    own, more_flags = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = get_parser()
    args, unknown = parser.parse_known_args(own)
    if unknown:
        hint = '; flags for fairseq-train go last, after "--"' if args.run is fine_tune else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if more_flags and args.run is not fine_tune:
        raise InputError(f"{args.command} takes no flags for fairseq-train")
    args.more_flags = tuple(more_flags)
    logging.disable(logging.INFO)
    try:
        print(args.run(args))
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the same command again")


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.evaluation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    compared = argparse.ArgumentParser(add_help=False)
    compared.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for what is written")
    compared.add_argument("--baseline", metavar="NAME", help="checkpoint to compare the others with")
    with_paper = argparse.ArgumentParser(add_help=False, parents=[compared])
    with_paper.add_argument("--paper", action="store_true", help="show the paper's numbers below ours")

    for name, title in (("glue", "GLUE"), ("squad", "SQuAD")):
        command = commands.add_parser(
            name,
            help=f"fine-tune on {title}",
            epilog='Flags for fairseq-train go after "--": -- --dropout 0.2',
            parents=[with_paper],
        )
        command.set_defaults(run=fine_tune)
        command.add_argument("checkpoints", nargs="+", metavar="[NAME=]CHECKPOINT.pt", help="checkpoints to fine-tune")
        data = f"output of {PREPROCESSING} {name}"
        command.add_argument("--data", type=Path, required=True, metavar="DIR", help=data)
        if name == "glue":
            command.add_argument("--tasks", default="all", metavar="T,T", help="(default: all in --data)")
        command.add_argument("--seeds", type=_seeds, default="1,2,3", metavar="N,N", help="(default: %(default)s)")
        command.add_argument("--epochs", type=positive, metavar="N", help="(default: the task's)")
        command.add_argument("--max-update", type=positive, metavar="N", help="maximum updates (default: no limit)")
        command.add_argument("--batch-size", type=positive, default=32, metavar="N", help="(default: %(default)s)")
        command.add_argument("--lr", type=float, metavar="X", help="(default: 3e-4 small, 1e-4 base, 5e-5 large)")
        command.add_argument("--keep-checkpoints", action="store_true", help="also of finished runs")

    scoring = commands.add_parser("squad-score", help="exact match and F1 of a file of predictions")
    scoring.set_defaults(run=score)
    scoring.add_argument("data", type=Path, metavar="DATA.json", help="data in the format of SQuAD 1.1")
    scoring.add_argument("predictions", type=Path, metavar="PREDICTIONS.json", help="an object that maps ids to texts")

    robustness = commands.add_parser(
        "robustness", help="score fine-tuned checkpoints on attacked data", parents=[with_paper]
    )
    robustness.set_defaults(run=measure_robustness)
    runs = "--output of glue or squad, or [NAME=]CHECKPOINT.pt of one run"
    robustness.add_argument("runs", nargs="+", metavar="SCORES", help=runs)
    original = "what was attacked: a file in the format of SQuAD 1.1, or a GLUE folder"
    robustness.add_argument("--original", type=Path, metavar="DATA", help=original)
    attacked = "attacked files or folders, or AdvGLUE's dev.json, which needs no --original"
    robustness.add_argument("--attacked", nargs="+", type=Path, required=True, metavar="DATA", help=attacked)

    table = f"output of {PREPROCESSING} build-synonym-table"
    swords = "such as swords-v1.1_dev.json.gz"
    lexical = commands.add_parser(
        "lexical", help="measure substitutes, word similarities and minimal pairs", parents=[compared]
    )
    lexical.set_defaults(run=measure_words)
    checkpoints = "checkpoints; with a name, a quoted pattern of its seeds"
    lexical.add_argument("checkpoints", nargs="*", metavar="[NAME=]CKPT", help=checkpoints)
    lexical.add_argument("--swords", type=Path, metavar="FILE", help=swords)
    lexical.add_argument(
        "--synonym-table", nargs="+", type=Path, default=[], metavar="TABLE", help=f"{table}, to compare with --swords"
    )
    lexical.add_argument(
        "--word-pairs", nargs="+", type=Path, default=[], metavar="FILE", help="such as SimLex-999.txt"
    )
    lexical.add_argument("--blimp", type=Path, metavar="FILE", help="BLiMP.zip")
    lexical.add_argument(
        "--blimp-pairs", type=positive, default=100, metavar="N", help="of each of BLiMP's files (default: %(default)s)"
    )

    judge = commands.add_parser("judge", help="compare a judge of corrections with people")
    judge.set_defaults(run=measure_judge)
    judge.add_argument("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="the file for --correction-judge")
    judge.add_argument("--swords", type=Path, required=True, metavar="FILE", help=swords)
    judge.add_argument("--synonym-table", nargs="+", type=Path, required=True, metavar="TABLE", help=table)
    for command in (lexical, judge):
        data = f"output of {PREPROCESSING} binarize"
        command.add_argument("--data", type=Path, required=True, metavar="DATA_BIN", help=data)
        command.add_argument("--encoder-json", type=Path, metavar="FILE", help="GPT-2's, for a dictionary of numbers")
    return parser


# The modules are imported when they are used, because fairseq takes seconds to import.


def fine_tune(args: argparse.Namespace) -> str:
    """The commands glue and squad."""
    from .finetuning import Evaluation
    from .glue import evaluate_glue
    from .squad import evaluate_squad

    evaluation = Evaluation(**{field.name: getattr(args, field.name) for field in fields(Evaluation)})
    return evaluate_glue(evaluation, args.tasks) if args.command == "glue" else evaluate_squad(evaluation)


def measure_robustness(args: argparse.Namespace) -> str:
    """The command robustness."""
    from .robustness.report import write_report

    return write_report(args)


def measure_words(args: argparse.Namespace) -> str:
    """The command lexical."""
    from .lexical.report import write_report

    return write_report(args)


def measure_judge(args: argparse.Namespace) -> str:
    """The command judge."""
    from .lexical.judge import judge_report

    return judge_report(args)


def score(args: argparse.Namespace) -> str:
    """The command squad-score, in the format of the official script; missing predictions go to standard error."""
    from ..formats.squad import read_labeled_squad
    from .squad_score import read_predictions, squad_score

    answers = {example.id: [text for text, _ in example.answers] for example in read_labeled_squad(args.data)}
    found = squad_score(answers, read_predictions(args.predictions, answers))
    if found.missing:
        print(f"{found.missing:,} of {found.questions:,} questions have no prediction and count as 0", file=sys.stderr)
    return json.dumps({"exact_match": found.exact_match, "f1": found.f1})


def _seeds(text: str) -> list[int]:
    seeds = [int(seed) for seed in text.split(",") if seed.isdecimal()]
    if len(set(seeds)) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different numbers such as 1,2,3")
    return seeds


if __name__ == "__main__":
    main()
