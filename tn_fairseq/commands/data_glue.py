"""Convert GLUE into what fairseq's --task sentence_prediction reads: a folder for each task.

The input is the GLUE download: a folder with CoLA/, SST-2/, MRPC/ ..., each with train.tsv, dev.tsv and, optionally,
test.tsv. The tokenizer is that of the pre-trained model, in any form that binarize accepts; its files are copied to
GLUE_BIN/tokenizer.

    tn-fairseq data glue --glue-dir glue_data --task all --tokenizer vocab.txt --destdir glue-bin
    fairseq-train glue-bin/CoLA --task sentence_prediction --init-token 0 --num-classes 2 ...

With --from-hub, GLUE is downloaded from the Hugging Face Hub: pip install 'tn_fairseq[hub]'.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import one_line_errors
from ..tools.formats.glue import (
    TASKS,
    Examples,
    GlueTask,
    check_files,
    choose_tasks,
    examples_from_hub,
    read_task,
)
from ..tools.reporting.layout import align
from .binarizing import binarizing_parser, cells, percentage, start

if TYPE_CHECKING:
    from ..tools.preprocessing.glue_data import GlueCounts


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = binarizing_parser("glue", __doc__, "GLUE_BIN")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--glue-dir", type=Path, metavar="DIR", help="the GLUE download")
    source.add_argument("--from-hub", action="store_true", help="download the tasks instead of reading --glue-dir")
    text = f"tasks ({', '.join(TASKS)}), or all that are in --glue-dir or on the Hub"
    parser.add_argument("--task", nargs="+", required=True, choices=[*TASKS, "all"], metavar="TASK", help=text)
    text = "maximum input length in tokens, including <s> and every </s> (default: %(default)s)"
    parser.add_argument("--max-length", type=int, default=128, metavar="N", help=text)
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Binarize, and print what was written and what was lost."""
    args, tokenizer, began = start(get_parser(), argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing.glue_data import binarize_task

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
    print(f"\nwrote {names} and tokenizer/ to {args.destdir} in {time.perf_counter() - began:.1f} s")


def _tasks(args: argparse.Namespace) -> list[GlueTask]:
    """The tasks to write; prints which are missing, and raises InputError if all are."""
    there = list(TASKS)  # the files of named tasks are checked below
    if args.glue_dir and "all" in args.task:
        there = [name for name in TASKS if (args.glue_dir / name).is_dir()]
    tasks = choose_tasks(args.task, there, str(args.glue_dir), "give the folder of the GLUE download")
    for task in tasks if args.glue_dir else []:  # before the first of them is written
        check_files(args.glue_dir / task.name, task)
    missing = [name for name in TASKS if name not in there]
    if missing:
        print(f"not in {args.glue_dir}: {', '.join(missing)}")
    if args.glue_dir and "all" in args.task:
        folders = sorted(path.name for path in args.glue_dir.iterdir() if path.is_dir() and path.name not in TASKS)
        if folders := [name for name in folders if not name.startswith(".")]:
            print(f"other folders, not read: {', '.join(folders)}")
    return tasks


def _table(task: GlueTask, splits: dict[str, Examples], counts: dict[str, "GlueCounts"]) -> list[str]:
    """One row for each split."""
    rows = [["split", "examples", "tokens", "unknown", "truncated", "no pieces", "broken rows", "labels"]]
    for split, n in counts.items():
        lost = (percentage(n.unknown, n.pieces), n.truncated, n.empty, splits[split].broken_rows)
        rows.append(cells(split, n.examples, n.tokens, *lost, _labels(task, splits[split].labels)))
    return align(rows, left=(0, len(rows[0]) - 1))


def _labels(task: GlueTask, labels: Sequence[str] | None) -> str:
    """The distribution of the labels, as text."""
    if labels is None:
        return "none"
    if not task.labels:
        scores = [float(score) for score in labels]
        return f"{min(scores):g} to {max(scores):g}, mean {sum(scores) / len(scores):.3f}"
    frequency = Counter(labels)
    return ", ".join(f"{label}: {100 * frequency[label] / len(labels):.1f}%" for label in task.labels)
