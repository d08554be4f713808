"""The options of the lexical measures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....core.options import option


@dataclass(frozen=True, kw_only=True)
class LexicalOptions:
    """What to measure of which checkpoints and synonym tables, and the folder of the report."""

    checkpoints: Sequence[str] = option(
        "checkpoints; with a name, a quoted pattern of its seeds",
        default=(),
        positional=True,
        flag="CHECKPOINT.pt",
        metavar="[NAME=]CKPT",
    )
    data: Path = option("output of tn-fairseq data binarize", metavar="DATA_BIN")
    encoder_json: Path | None = option("that of GPT-2, if dict.txt has numbers", default=None)
    output: Path = option("folder for what is written", metavar="DIR")
    baseline: str | None = option(
        "checkpoint to compare the others with", default=None, needs="checkpoints", metavar="NAME"
    )
    swords: Path | None = option("substitutes that people judged: a file of SWORDS", default=None)
    synonym_table: Sequence[Path] = option(
        "output of tn-fairseq synonyms build, to compare with --swords",
        default=(),
        needs="swords",
        unless="checkpoints",
        metavar="TABLE",
    )
    judge: Path | None = option(
        "a file for --correction-judge: what would it accept of the tables' synonyms in SWORDS?",
        default=None,
        needs="synonym_table",
        metavar="CKPT",
    )
    word_pairs: Sequence[Path] = option(
        "pairs with similarities, such as SimLex-999.txt", default=(), needs="checkpoints"
    )
    blimp: Path | None = option("pairs of sentences: BLiMP.zip", default=None, needs="checkpoints")
    blimp_pairs: int = option("pairs of each of BLiMP's files", default=100, at_least=1, needs="blimp")
