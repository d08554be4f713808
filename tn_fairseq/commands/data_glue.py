"""Convert GLUE into what fairseq's --task sentence_prediction reads: a folder for each task.

The input is the GLUE download: a folder with CoLA/, SST-2/, MRPC/ ..., each with train.tsv, dev.tsv and, optionally,
test.tsv. The tokenizer is that of the pre-trained model, in any form that binarize accepts; its files are copied to
GLUE_BIN/tokenizer.

    tn-fairseq data glue --glue-dir glue_data --task all --tokenizer vocab.txt --destdir glue-bin
    fairseq-train glue-bin/CoLA --task sentence_prediction --init-token 0 --num-classes 2 ...

With --from-hub, GLUE is downloaded from the Hugging Face Hub: pip install 'tn_fairseq[hub]'.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.options import option
from ..tools.formats.glue_tsv import (
    TASKS,
    Examples,
    GlueTask,
    check_files,
    choose_tasks,
    examples_from_hub,
    read_task,
)
from ..tools.results.layout import align
from .arguments import command_line
from .binarizing import BinarizingOptions, cells, percentage

if TYPE_CHECKING:
    from ..tools.preprocessing.glue_data import GlueCounts


@dataclass(frozen=True, kw_only=True)
class GlueOptions(BinarizingOptions):
    """Where the tasks are, and what to write."""

    glue_dir: Path | None = option("the GLUE download", default=None, metavar="DIR", unless="from_hub")
    from_hub: bool = option("download the tasks instead of reading --glue-dir", default=False, not_with="glue_dir")
    task: Sequence[str] = option(
        f"tasks ({', '.join(TASKS)}), or all that are in --glue-dir or on the Hub",
        choices=(*TASKS, "all"),
        metavar="TASK",
    )
    max_length: int = option("maximum input length in tokens, including <s> and every </s>", default=128)


def glue(options: GlueOptions) -> None:
    """Binarize, and print what was written and what was lost."""
    began = time.perf_counter()
    tokenizer = options.load_tokenizer()
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing.glue_data import binarize_task

    tasks = _tasks(options)
    for task in tasks:
        if options.glue_dir:
            splits = read_task(options.glue_dir / task.name, task)
        else:
            splits = {split: examples_from_hub(task, split) for split in task.splits}
        counts = binarize_task(task, splits, tokenizer, options.destdir, options.max_length, options.dict)
        orders = ", training pairs in both orders" if task.both_orders else ""
        print(f"\n{task.name}{orders}", *_table(task, splits, counts), sep="\n", flush=True)
    names = ", ".join(task.name for task in tasks)
    print(f"\nwrote {names} and tokenizer/ to {options.destdir} in {time.perf_counter() - began:.1f} s")


def _tasks(options: GlueOptions) -> list[GlueTask]:
    """The tasks to write; prints which are missing, and raises InputError if all are."""
    there = list(TASKS)  # the files of named tasks are checked below
    if options.glue_dir and "all" in options.task:
        there = [name for name in TASKS if (options.glue_dir / name).is_dir()]
    tasks = choose_tasks(options.task, there, str(options.glue_dir), "give the folder of the GLUE download")
    if options.glue_dir:
        for task in tasks:  # before the first of them is written
            check_files(options.glue_dir / task.name, task)
    if missing := [name for name in TASKS if name not in there]:
        print(f"not in {options.glue_dir}: {', '.join(missing)}")
    if options.glue_dir and "all" in options.task:
        folders = sorted(path.name for path in options.glue_dir.iterdir() if path.is_dir() and path.name not in TASKS)
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


main = command_line("data glue", __doc__, glue)
