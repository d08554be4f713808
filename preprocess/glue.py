#!/usr/bin/env python3
"""Turn GLUE into what fairseq's --task sentence_prediction reads: a folder for each task.

The input is GLUE's download: a folder that holds CoLA/, SST-2/, MRPC/ ..., each with train.tsv, dev.tsv and, if wanted,
test.tsv. The tokenizer is that of the pre-trained model, as binarize.py takes it; its files are copied to
GLUE_BIN/tokenizer.

    python preprocess/glue.py --glue-dir glue_data --task all --tokenizer vocab.txt --destdir glue-bin
    fairseq-train glue-bin/CoLA --task sentence_prediction --init-token 0 --num-classes 2 ...

With --from-hub GLUE is fetched from the Hugging Face hub: pip install 'tn_fairseq[hub]'.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tn_fairseq.errors import InputError, one_line_errors
from tn_fairseq.glue import TASKS, Examples, GlueTask, SplitCounts, binarize_task, examples_from_hub, read_task
from tn_fairseq.tokenization import load_tokenizer


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--glue-dir", type=Path, metavar="DIR", help="GLUE's download")
    source.add_argument("--from-hub", action="store_true", help="fetch the tasks in place of --glue-dir")
    parser.add_argument(
        "--task", required=True, choices=[*TASKS, "all"], help="a task, or all that --glue-dir or the hub holds"
    )
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="DIR-OR-FILE", help="see above")
    parser.add_argument("--dict", metavar="FILE", help="the pre-trained model's dict.txt (default: the tokenizer's)")
    parser.add_argument("--destdir", type=Path, required=True, metavar="GLUE_BIN", help="folder for the output")
    parser.add_argument(
        "--max-length",
        type=int,
        default=128,
        metavar="N",
        help="longest input in tokens, <s> and every </s> included (default: %(default)s)",
    )
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Binarize, and say what was written and what was lost."""
    args = get_parser().parse_args(argv)
    start = time.perf_counter()
    tokenizer = load_tokenizer(args.tokenizer)
    print(f"tokenizer: {tokenizer.description}")
    tasks = _tasks(args)
    for task in tasks:
        if args.from_hub:
            splits = {split: examples_from_hub(task, split) for split in task.splits}
        else:
            splits = read_task(args.glue_dir / task.name, task)
        counts = binarize_task(task, splits, tokenizer, args.destdir, args.max_length, args.dict)
        orders = ", training pairs in both orders" if task.both_orders else ""
        print(f"\n{task.name}{orders}", *_table(task, splits, counts), sep="\n", flush=True)
    names = ", ".join(task.name for task in tasks)
    print(f"\nwrote {names} and tokenizer/ to {args.destdir} in {time.perf_counter() - start:.1f} s")


def _tasks(args: argparse.Namespace) -> list[GlueTask]:
    """The tasks to write; says which are missing, and raises InputError where all are."""
    if args.task != "all":
        return [TASKS[args.task]]
    if args.from_hub:
        return list(TASKS.values())
    tasks = [task for name, task in TASKS.items() if (args.glue_dir / name).is_dir()]
    if not tasks:
        raise InputError(f"{args.glue_dir}: holds none of {', '.join(TASKS)}; name the folder of GLUE's download")
    missing = [name for name, task in TASKS.items() if task not in tasks]
    if missing:
        print(f"not in {args.glue_dir}: {', '.join(missing)}")
    return tasks


def _table(task: GlueTask, splits: dict[str, Examples], counts: dict[str, SplitCounts]) -> list[str]:
    """One row for each split."""
    rows = [("split", "examples", "tokens", "unknown", "truncated", "no pieces", "broken rows", "labels")]
    for split, count in counts.items():
        examples = splits[split]
        unknown = f"{100 * count.unknown / max(count.pieces, 1):.3f} %"
        numbers = (count.truncated, count.empty, examples.broken_rows)
        labels = _labels(task, examples.labels)
        rows.append((split, f"{count.examples:,}", f"{count.tokens:,}", unknown, *(f"{n:,}" for n in numbers), labels))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:-1]), row[-1]]) for row in rows]


def _labels(task: GlueTask, labels: Sequence[str] | None) -> str:
    """How the labels are distributed, in words."""
    if labels is None:
        return "none"
    if not task.labels:
        scores = [float(score) for score in labels]
        return f"{min(scores):g} to {max(scores):g}, mean {sum(scores) / len(scores):.3f}"
    frequency = Counter(labels)
    return ", ".join(f"{label}: {100 * frequency[label] / len(labels):.1f} %" for label in task.labels)


if __name__ == "__main__":
    main()
