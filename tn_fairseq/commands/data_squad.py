"""Convert SQuAD 1.1 into what --task squad reads: windows of question and context in dict.txt, train.bin, train.idx ...

The input is in SQuAD 1.1's JSON format. Only the questions of --train must have answers, but evaluate squad also needs
those of --valid. The tokenizer is that of the pre-trained model, in any form that binarize accepts; its files are
copied to DATA_BIN/tokenizer.

    tn-fairseq data squad --train train-v1.1.json --valid dev-v1.1.json --tokenizer vocab.txt \\
        --destdir squad-bin

With --from-hub, SQuAD 1.1 is downloaded from the Hugging Face Hub: pip install 'tn_fairseq[hub]'.
"""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.options import option
from ..tools.formats.squad_json import SPLITS, SquadExample, examples_from_hub, read_squad
from ..tools.results.layout import align
from .arguments import command_line
from .binarizing import BinarizingOptions, cells, percentage

if TYPE_CHECKING:
    from ..tools.preprocessing.squad_data import SquadCounts

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SquadOptions(BinarizingOptions):
    """The questions, and what to write."""

    train: Path | None = option("questions to train on", default=None, unless="from_hub", not_with="from_hub")
    valid: Path | None = option("questions to validate on", default=None, unless="from_hub", not_with="from_hub")
    test: Path | None = option("questions to test on", default=None, not_with="from_hub")
    from_hub: bool = option("download train and valid instead of reading files", default=False)
    max_length: int = option("maximum input length in tokens, including <s> and both </s>", default=512)
    doc_stride: int = option("context tokens between the starts of two windows", default=128, at_least=1)
    max_question_length: int = option("maximum question length in tokens; the rest is cut off", default=64, at_least=1)


def squad(options: SquadOptions) -> None:
    """Binarize, and print what was written and what was lost."""
    began = time.perf_counter()
    tokenizer = options.load_tokenizer()
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing.squad_data import binarize_squad

    lengths = (options.max_length, options.doc_stride, options.max_question_length)
    counts = binarize_squad(_examples(options), tokenizer, options.destdir, *lengths, options.dict)
    print(*_table(counts), sep="\n")
    names = ", ".join(f"{split}.*" for split in counts)
    print(f"wrote dict.txt, {names} and tokenizer/ to {options.destdir} in {time.perf_counter() - began:.1f} s")


def _examples(options: SquadOptions) -> dict[str, list[SquadExample]]:
    """The examples of each split."""
    if options.from_hub:
        return {"train": examples_from_hub("train"), "valid": examples_from_hub("validation")}
    paths = {split: getattr(options, split) for split in SPLITS if getattr(options, split)}
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


main = command_line("data squad", __doc__, squad)
