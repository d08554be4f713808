"""Fine-tune and score checkpoints as the paper does, with spread: every checkpoint, task and seed.

    python -m tn_fairseq.evaluation glue CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data GLUE_BIN --output DIR
    python -m tn_fairseq.evaluation squad CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data SQUAD_BIN --output DIR
    python -m tn_fairseq.evaluation squad-score DATA.json PREDICTIONS.json

The same command goes on where it was interrupted; what is finished is not done again, so that more seeds, tasks and
checkpoints can join later. Flags of fairseq-train may follow behind a lone "--".
"""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError, one_line_errors


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print its table."""
    argv = list(sys.argv[1:] if argv is None else argv)
    own, more_flags = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = get_parser()
    args, unknown = parser.parse_known_args(own)
    if unknown:
        hint = "" if args.command == "squad-score" else '; flags for fairseq-train go last, behind a lone "--"'
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if args.command == "squad-score":
        if more_flags:
            raise InputError("squad-score takes no flags of fairseq-train")
        score(args.data, args.predictions)
        return
    logging.disable(logging.INFO)
    # imported here: fairseq takes seconds, and scoring needs none of it
    from .finetuning import Recipe
    from .glue import evaluate_glue
    from .squad import evaluate_squad

    recipe = Recipe(args.batch_size, args.lr, args.epochs, args.max_update, tuple(more_flags))
    options = args.data, args.output, args.seeds, recipe, args.baseline, args.paper, args.keep_checkpoints
    if args.command == "glue":
        print(evaluate_glue(args.checkpoints, args.tasks, *options))
    else:
        print(evaluate_squad(args.checkpoints, *options))


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.evaluation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    epilog = 'Flags for fairseq-train may follow behind a lone "--": -- --dropout 0.2'
    glue = commands.add_parser("glue", help="fine-tune on GLUE's tasks", epilog=epilog)
    squad = commands.add_parser("squad", help="fine-tune on SQuAD", epilog=epilog)
    for command, data in ((glue, "preprocess/glue.py"), (squad, "preprocess/squad.py")):
        command.add_argument("checkpoints", nargs="+", metavar="[NAME=]CHECKPOINT.pt", help="what to fine-tune")
        command.add_argument("--data", type=Path, required=True, metavar="DIR", help=f"what {data} wrote")
        command.add_argument("--output", type=Path, required=True, metavar="DIR", help="a folder for each run, tables")
        command.add_argument("--seeds", type=_seeds, default="1,2,3", metavar="N,N", help="(default: %(default)s)")
        command.add_argument("--baseline", metavar="NAME", help="compare the other checkpoints with this one")
        command.add_argument("--paper", action="store_true", help="show the paper's figures below ours")
        command.add_argument("--epochs", type=_positive, metavar="N", help="(default: the task's)")
        command.add_argument("--max-update", type=_positive, metavar="N", help="stop there (default: no limit)")
        command.add_argument("--batch-size", type=_positive, default=32, metavar="N", help="(default: %(default)s)")
        command.add_argument("--lr", type=float, metavar="X", help="(default: 3e-4 small, 1e-4 base, 5e-5 large)")
        command.add_argument("--keep-checkpoints", action="store_true", help="of finished runs, too")
    glue.add_argument("--tasks", default="all", metavar="T,T", help="(default: all that --data holds)")
    scoring = commands.add_parser("squad-score", help="exact match and F1 of any predictions")
    scoring.add_argument("data", type=Path, metavar="DATA.json", help="in the format of SQuAD 1.1")
    scoring.add_argument("predictions", type=Path, metavar="PREDICTIONS.json", help="an object: id to text")
    return parser


def score(data: Path, predictions: Path) -> None:
    """Print the score in the official script's format, and what it does not say on standard error."""
    from ..squad import read_squad
    from .squad_score import read_predictions, squad_score

    answers = {example.id: [text for text, _ in example.answers] for example in read_squad(data)}
    unanswered = [id for id, texts in answers.items() if not texts]
    if unanswered:
        raise InputError(f"{data}: no answers to compare with, first of {unanswered[0]}; name a labelled file")
    found = squad_score(answers, read_predictions(predictions, answers))
    if found.missing:
        print(f"{found.missing:,} of {found.questions:,} questions have no prediction and count as 0", file=sys.stderr)
    print(json.dumps({"exact_match": found.exact_match, "f1": found.f1}))


def _seeds(text: str) -> list[int]:
    seeds = [int(seed) for seed in text.split(",") if seed.isdecimal()]
    if len(set(seeds)) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of different numbers such as 1,2,3")
    return seeds


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return int(text)


if __name__ == "__main__":
    main()
