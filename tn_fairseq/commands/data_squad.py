"""Convert SQuAD 1.1 into what --task squad reads: windows of question and context in dict.txt, train.bin, train.idx ...

The input is in SQuAD 1.1's JSON format. Only the questions of --train must have answers, but evaluate squad also needs
those of --valid. The tokenizer is that of the pre-trained model, in any form that binarize accepts; its files are
copied to DATA_BIN/tokenizer.

    tn-fairseq data squad --train train-v1.1.json --valid dev-v1.1.json --tokenizer vocab.txt \\
        --destdir squad-bin

With --from-hub, SQuAD 1.1 is downloaded from the Hugging Face Hub: pip install 'tn_fairseq[hub]'.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError, one_line_errors
from ..tools.formats.squad import SPLITS, SquadExample, examples_from_hub, read_squad
from ..tools.reporting.layout import align
from .binarizing import binarizing_parser, cells, percentage, start

if TYPE_CHECKING:
    from ..tools.preprocessing.squad_data import SquadCounts

logger = logging.getLogger(__name__)


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = binarizing_parser("squad", __doc__, "DATA_BIN")
    for split, use in zip(SPLITS, ("train", "validate", "test")):
        parser.add_argument(f"--{split}", type=Path, metavar="FILE", help=f"questions to {use} on")
    parser.add_argument("--from-hub", action="store_true", help="download train and valid instead of reading files")
    for flag, default, text in (
        ("--max-length", 512, "maximum input length in tokens, including <s> and both </s>"),
        ("--doc-stride", 128, "context tokens between the starts of two windows"),
        ("--max-question-length", 64, "maximum question length in tokens; the rest is cut off"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{text} (default: %(default)s)")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Binarize, and print what was written and what was lost."""
    args, tokenizer, began = start(get_parser(), argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing.squad_data import binarize_squad

    lengths = (args.max_length, args.doc_stride, args.max_question_length)
    counts = binarize_squad(_examples(args), tokenizer, args.destdir, *lengths, args.dict)
    print(*_table(counts), sep="\n")
    names = ", ".join(f"{split}.*" for split in counts)
    print(f"wrote dict.txt, {names} and tokenizer/ to {args.destdir} in {time.perf_counter() - began:.1f} s")


def _examples(args: argparse.Namespace) -> dict[str, list[SquadExample]]:
    """The examples of each split; raises InputError if --from-hub and files are combined, or a split is missing."""
    paths = {split: getattr(args, split) for split in SPLITS if getattr(args, split)}
    if args.from_hub:
        if paths:
            flags = ", ".join(f"--{split}" for split in paths)
            raise InputError(f"--from-hub cannot be combined with files; omit {flags}")
        return {"train": examples_from_hub("train"), "valid": examples_from_hub("validation")}
    for split in ("train", "valid"):
        if split not in paths:
            raise InputError(f"no --{split}; give --train and --valid, or --from-hub")
    examples = {split: read_squad(path) for split, path in paths.items()}
    if unanswered := [example.id for example in examples["valid"] if not example.answers]:
        some = f"{len(unanswered):,} of {len(examples['valid']):,} questions have no answers, such as {unanswered[0]}"
        logger.warning(f"{paths['valid']}: {some}; evaluate squad needs them, and does not support SQuAD 2.0")
    return examples


def _table(counts: dict[str, "SquadCounts"]) -> list[str]:
    """One row for each split; only the first answer of each question is counted, and each context once."""
    titles = ("questions", "cut", "windows", "per question", "unknown", "in no window", "inside tokens")
    rows = [[""] * 6 + ["answers:", ""], ["split", *titles]]
    for split, n in counts.items():
        ratio, unknown = f"{n.windows / n.questions:.3f}", percentage(n.unknown, n.pieces)
        lost = (n.answers_in_no_window, n.answers_inside_tokens)
        rows.append(cells(split, n.questions, n.questions_cut, n.windows, ratio, unknown, *lost))
    return align(rows)
