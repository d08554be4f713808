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
from pathlib import Path

from ..arguments import positive
from ..errors import PREPROCESSING, InputError, one_line_errors

TRAINS_NOTHING = ("squad-score", "robustness", "lexical", "judge")


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and print its table."""
    argv = list(sys.argv[1:] if argv is None else argv)
    own, more_flags = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = get_parser()
    args, unknown = parser.parse_known_args(own)
    if unknown:
        hint = "" if args.command in TRAINS_NOTHING else '; flags for fairseq-train go last, after "--"'
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if args.command in TRAINS_NOTHING and more_flags:
        raise InputError(f"{args.command} takes no flags for fairseq-train")
    if args.command == "squad-score":
        score(args.data, args.predictions)
        return
    logging.disable(logging.INFO)
    if args.command == "robustness":
        measure_robustness(args)
        return
    if args.command == "lexical":
        measure_words(args)
        return
    if args.command == "judge":
        from .lexical.judge import judge_report

        print(judge_report(args.checkpoint, args.data, args.swords, args.synonym_table, args.encoder_json))
        return
    # imported here because fairseq takes seconds to import and squad-score does not need it
    from .finetuning import Evaluation, Recipe
    from .glue import evaluate_glue
    from .squad import evaluate_squad

    recipe = Recipe(args.batch_size, args.lr, args.epochs, args.max_update, tuple(more_flags))
    evaluation = Evaluation(
        args.checkpoints,
        args.data,
        args.output,
        args.seeds,
        recipe,
        baseline=args.baseline,
        show_paper=args.paper,
        keep_checkpoints=args.keep_checkpoints,
    )
    if args.command == "glue":
        print(evaluate_glue(evaluation, args.tasks))
    else:
        print(evaluate_squad(evaluation))


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.evaluation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    epilog = 'Flags for fairseq-train go after "--": -- --dropout 0.2'
    glue = commands.add_parser("glue", help="fine-tune on GLUE", epilog=epilog)
    squad = commands.add_parser("squad", help="fine-tune on SQuAD", epilog=epilog)
    for command, data in ((glue, "glue"), (squad, "squad")):
        command.add_argument("checkpoints", nargs="+", metavar="[NAME=]CHECKPOINT.pt", help="checkpoints to fine-tune")
        command.add_argument(
            "--data", type=Path, required=True, metavar="DIR", help=f"output of {PREPROCESSING} {data}"
        )
        command.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for runs and tables")
        command.add_argument("--seeds", type=_seeds, default="1,2,3", metavar="N,N", help="(default: %(default)s)")
        command.add_argument("--baseline", metavar="NAME", help="checkpoint to compare the others with")
        command.add_argument("--paper", action="store_true", help="show the paper's numbers below ours")
        command.add_argument("--epochs", type=positive, metavar="N", help="(default: the task's)")
        command.add_argument("--max-update", type=positive, metavar="N", help="maximum updates (default: no limit)")
        command.add_argument("--batch-size", type=positive, default=32, metavar="N", help="(default: %(default)s)")
        command.add_argument("--lr", type=float, metavar="X", help="(default: 3e-4 small, 1e-4 base, 5e-5 large)")
        command.add_argument("--keep-checkpoints", action="store_true", help="also of finished runs")
    glue.add_argument("--tasks", default="all", metavar="T,T", help="(default: all in --data)")
    scoring = commands.add_parser("squad-score", help="exact match and F1 of a file of predictions")
    scoring.add_argument("data", type=Path, metavar="DATA.json", help="data in the format of SQuAD 1.1")
    scoring.add_argument("predictions", type=Path, metavar="PREDICTIONS.json", help="an object that maps ids to texts")
    robustness = commands.add_parser("robustness", help="score fine-tuned checkpoints on attacked data")
    robustness.add_argument(
        "runs", nargs="+", metavar="SCORES", help="--output of glue or squad, or [NAME=]CHECKPOINT.pt of one run"
    )
    robustness.add_argument(
        "--original",
        type=Path,
        metavar="DATA",
        help="what was attacked: a file in the format of SQuAD 1.1, or a GLUE folder",
    )
    robustness.add_argument(
        "--attacked",
        nargs="+",
        type=Path,
        required=True,
        metavar="DATA",
        help="attacked files or folders, or AdvGLUE's dev.json, which needs no --original",
    )
    robustness.add_argument("--baseline", metavar="NAME", help="checkpoint to compare the others with")
    robustness.add_argument("--paper", action="store_true", help="show the paper's numbers below ours")
    robustness.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the report")
    lexical = commands.add_parser("lexical", help="measure substitutes, word similarities and minimal pairs")
    lexical.add_argument(
        "checkpoints", nargs="*", metavar="[NAME=]CKPT", help="checkpoints; with a name, a quoted pattern of its seeds"
    )
    lexical.add_argument(
        "--data", type=Path, required=True, metavar="DATA_BIN", help=f"output of {PREPROCESSING} binarize"
    )
    lexical.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the report")
    lexical.add_argument("--baseline", metavar="NAME", help="checkpoint to compare the others with")
    lexical.add_argument("--swords", type=Path, metavar="FILE", help="such as swords-v1.1_dev.json.gz")
    lexical.add_argument(
        "--synonym-table",
        nargs="+",
        type=Path,
        default=[],
        metavar="TABLE",
        help=f"output of {PREPROCESSING} build-synonym-table, to compare with --swords",
    )
    lexical.add_argument(
        "--word-pairs", nargs="+", type=Path, default=[], metavar="FILE", help="such as SimLex-999.txt"
    )
    lexical.add_argument("--blimp", type=Path, metavar="FILE", help="BLiMP.zip")
    lexical.add_argument(
        "--blimp-pairs", type=positive, default=100, metavar="N", help="of each of BLiMP's files (default: %(default)s)"
    )
    judge = commands.add_parser("judge", help="compare a judge of corrections with people")
    judge.add_argument("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="the file for --correction-judge")
    judge.add_argument(
        "--data", type=Path, required=True, metavar="DATA_BIN", help=f"output of {PREPROCESSING} binarize"
    )
    judge.add_argument("--swords", type=Path, required=True, metavar="FILE", help="such as swords-v1.1_dev.json.gz")
    judge.add_argument(
        "--synonym-table",
        nargs="+",
        type=Path,
        required=True,
        metavar="TABLE",
        help=f"output of {PREPROCESSING} build-synonym-table",
    )
    for command in (lexical, judge):
        command.add_argument("--encoder-json", type=Path, metavar="FILE", help="GPT-2's, for a dictionary of numbers")
    return parser


def measure_words(args: argparse.Namespace) -> None:
    """Write the report of the command lexical and print its tables."""
    from .lexical.report import Sources, write_report

    sources = Sources(
        args.data,
        args.swords,
        args.synonym_table,
        args.word_pairs,
        args.blimp,
        args.blimp_pairs,
        args.encoder_json,
    )
    try:
        print(write_report(args.checkpoints, sources, args.baseline, args.output))
    except KeyboardInterrupt:
        sys.exit(f"error: interrupted; nothing was written to {args.output}")


def measure_robustness(args: argparse.Namespace) -> None:
    """Write the report of the command robustness and print its tables."""
    from .robustness.report import write_report

    try:
        print(write_report(args.runs, args.original, args.attacked, args.baseline, args.paper, args.output))
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the same command again to resume")


def score(data: Path, predictions: Path) -> None:
    """Print the score in the format of the official script, and the number of missing predictions on standard error."""
    from ..formats.squad import read_labeled_squad
    from .squad_score import read_predictions, squad_score

    answers = {example.id: [text for text, _ in example.answers] for example in read_labeled_squad(data)}
    found = squad_score(answers, read_predictions(predictions, answers))
    if found.missing:
        print(f"{found.missing:,} of {found.questions:,} questions have no prediction and count as 0", file=sys.stderr)
    print(json.dumps({"exact_match": found.exact_match, "f1": found.f1}))


def _seeds(text: str) -> list[int]:
    seeds = [int(seed) for seed in text.split(",") if seed.isdecimal()]
    if len(set(seeds)) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different numbers such as 1,2,3")
    return seeds


if __name__ == "__main__":
    main()
