"""The numbers of the paper (Zhang et al. 2023, arXiv 2212.00460), to compare with ours.

``TABLE_2`` is Table 2: the percentage of sequences with a correction, and of wrong predictions that are corrected
("Iter." and "Pred." in the paper), after different shares of the training steps.

``GLUE_ROWS`` is Table 3 with the two rows of Table 6 that Table 3 lacks (its other rows repeat Table 3): dev sets, CoLA
by Matthews correlation, STS-B by Spearman correlation, the others by accuracy. ``SQUAD_ROWS`` is Table 4: SQuAD 1.1
dev. HC is hard correction, SR is soft regularization. All numbers are in percent, and averages are as printed.

``TABLE_5`` is Table 5: small models on questions of SQuAD 1.1 dev before and after two of TextFlint's transformations.
The paper does not say how many questions: all its EM are multiples of 1/293 and 1/300.
"""

from typing import NamedTuple

HEADING = "from the paper (not ours)"

GLUE_TASKS = ("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE")  # in the paper's order
SQUAD_METRICS = ("EM", "F1")
AVERAGE = "average"


def _rows(columns: tuple[str, ...], text: str) -> dict[str, dict[str, float]]:
    rows = (line.split("|") for line in text.strip().splitlines())
    return {name.strip(): dict(zip(columns, map(float, values.split()), strict=True)) for name, values in rows}


GLUE_ROWS = _rows(
    (*GLUE_TASKS, AVERAGE),
    """
    BERT-base                    | 61.1 93.0 86.8 87.1 90.8 84.7 91.4 67.9 82.9
    BERT-base HC                 | 62.9 93.2 87.5 87.4 90.9 84.9 91.5 69.3 83.5
    BERT-base SR                 | 61.2 93.5 89.0 87.5 90.9 84.8 91.6 68.6 83.4
    BERT-large                   | 61.7 93.7 88.5 90.1 91.3 86.7 92.4 72.9 84.7
    BERT-large HC                | 62.3 93.4 89.0 90.5 91.5 87.0 93.0 73.7 85.1
    BERT-large SR                | 62.3 94.2 89.2 90.1 91.4 87.0 92.8 74.0 85.1
    ELECTRA-small                | 56.8 88.3 87.4 86.8 88.3 78.9 87.9 68.5 80.4
    ELECTRA-small HC             | 62.0 89.8 87.0 86.7 89.0 80.4 88.0 67.9 81.4
    ELECTRA-small HC, embedding  | 59.0 88.5 87.0 86.4 88.8 79.6 87.9 67.1 80.6
    ELECTRA-small SR             | 61.1 90.1 89.5 87.0 89.4 80.8 88.8 68.6 81.9
    ELECTRA-small SR, sentence   | 59.5 89.6 90.0 86.7 89.1 80.4 90.0 68.2 81.6
    ELECTRA-base                 | 68.3 95.3 90.9 91.3 91.7 88.5 93.0 82.3 87.7
    ELECTRA-base HC              | 70.9 95.6 91.2 91.3 92.0 88.7 93.6 83.8 88.4
    ELECTRA-base SR              | 70.4 95.4 90.4 91.2 91.9 89.1 93.4 84.8 88.3
    """,
)
SQUAD_ROWS = _rows(
    SQUAD_METRICS,
    """
    ELECTRA-small     | 75.8 83.9
    ELECTRA-small HC  | 77.7 85.6
    ELECTRA-small SR  | 76.0 84.2
    ELECTRA-base      | 85.1 91.6
    ELECTRA-base HC   | 85.7 92.1
    ELECTRA-base SR   | 85.6 92.0
    """,
)
SCORES_NOTE = "The paper gives single numbers, without their spread or the number of seeds."
GLUE_NOTE = (
    f"{SCORES_NOTE}\n"
    "Its ELECTRA-small baseline is digit for digit the row ELECTRA-Small-OWT in the README of Google's release,\n"
    "so it was probably not retrained."
)


class Rates(NamedTuple):
    """The row of one checkpoint, in percent; ``checkpoint`` is the share of the training steps."""

    model: str
    checkpoint: float
    sequence_rate: float
    prediction_rate: float


TABLE_2 = (
    Rates("BERT-base", 6.25, 6.90, 1.31),
    Rates("BERT-base", 12.5, 6.96, 1.34),
    Rates("BERT-base", 25, 6.97, 1.36),
    Rates("BERT-base", 50, 7.05, 1.36),
    Rates("BERT-base", 80, 7.06, 1.40),
    Rates("BERT-base", 100, 7.07, 1.41),
    Rates("BERT-large", 6.25, 7.46, 1.50),
    Rates("BERT-large", 12.5, 7.58, 1.55),
    Rates("BERT-large", 25, 7.31, 1.49),
    Rates("BERT-large", 50, 7.46, 1.56),
    Rates("BERT-large", 80, 7.38, 1.57),
    Rates("BERT-large", 100, 7.44, 1.60),
)
RATES_NOTE = """\
BERT-base and BERT-large, trained for another 200k steps; the percentage is the share of these steps. The text is
wikitext-2-raw-v1, the synonyms are from WordNet. The paper gives single numbers, without intervals."""


class Robustness(NamedTuple):
    """The row of one model and attack, in percent; ``drop`` is original - attacked as printed."""

    attack: str
    questions: int
    model: str
    em_original: float
    em_attacked: float
    em_drop: float
    f1_original: float
    f1_attacked: float
    f1_drop: float


TABLE_5 = (
    Robustness("AddSentenceDiverse", 293, "ELECTRA-small", 80.55, 25.60, 54.95, 85.10, 26.43, 58.67),
    Robustness("AddSentenceDiverse", 293, "ELECTRA-small HC", 82.59, 34.13, 48.46, 86.78, 36.60, 50.18),
    Robustness("AddSentenceDiverse", 293, "ELECTRA-small SR", 78.84, 37.20, 41.64, 80.84, 38.29, 42.55),
    Robustness("SwapSynWordNet", 300, "ELECTRA-small", 80.67, 74.67, 6.00, 85.38, 80.43, 4.95),
    Robustness("SwapSynWordNet", 300, "ELECTRA-small HC", 82.33, 79.67, 2.66, 86.68, 83.65, 3.03),
    Robustness("SwapSynWordNet", 300, "ELECTRA-small SR", 78.67, 75.67, 3.00, 80.88, 78.51, 2.37),
)
ROBUSTNESS_NOTE = """\
The paper does not say how many questions it used, and gives no intervals: all its EM are multiples of 1/293 and 1/300.
With so few, one standard error is about 2.5 EM, so differences below about 7 EM between its rows are within chance."""
