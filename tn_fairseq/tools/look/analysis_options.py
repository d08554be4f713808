"""The options of the analysis."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...core.options import option


@dataclass(frozen=True, kw_only=True)
class AnalysisOptions:
    """What to analyze with which synonym tables, how, and the folder of the report."""

    data_bin: Path = option("output of tn-fairseq data binarize", positional=True, metavar="DATA_BIN")
    split: str = option("part of the data to analyze", default="valid", metavar="NAME")
    path: Sequence[str] = option(
        "checkpoints of fairseq-train, or quoted patterns such as 'ck/*.pt'",
        default=(),
        unless="model",
        metavar="CKPT",
    )
    model: Sequence[str] = option(
        "folders of transformers with the tokenizer of DATA_BIN, or quoted patterns", default=(), metavar="FOLDER"
    )
    synonym_table: Sequence[Path] = option("output of tn-fairseq synonyms build", metavar="TABLE")
    output: Path = option("folder for the report", metavar="DIR")
    training_log: Sequence[Path] = option(
        "logs of fairseq-train --log-format json, whose losses cases.html shows", default=(), metavar="LOG"
    )
    mask_seeds: int = option("number of maskings", default=5, at_least=1)
    max_sequences: int | None = option("number of sequences of the split (default: all)", default=None, at_least=1)
    max_cases: int = option(
        "maximum number of corrections and near misses per table, and of the teacher's cases", default=200, at_least=1
    )
    prediction_mode: Literal["argmax", "sample"] = option(
        "the most likely token, or a sample from the softmax", default="argmax"
    )
    detection: bool = option(
        "also measure ELECTRA's discriminator: the replaced tokens that it finds, without synonyms", default=False
    )
    teacher: Path | None = option(
        "also count the wrong predictions that this checkpoint or folder, with the same dictionary, finds likely",
        default=None,
        metavar="CKPT",
    )
    encoder_json: Path | None = option("that of GPT-2, if dict.txt has numbers", default=None)
