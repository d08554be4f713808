"""The figures of the paper (Zhang et al. 2023, arXiv 2212.00460), to stand beside ours.

``GLUE_ROWS`` are Table 3, and of Table 6 the two rows that Table 3 lacks (its others repeat Table 3): dev sets, CoLA by
Matthews' correlation, STS-B by Spearman's, the others by accuracy. ``SQUAD_ROWS`` are Table 4: SQuAD 1.1 dev. HC is
hard correction, SR soft regularization. All in per cent, the averages as the paper prints them.
"""

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
NOTE = "The paper gives one figure each, without its spread or the number of seeds."
GLUE_NOTE = (
    f"{NOTE}\nIts ELECTRA-small baseline equals, digit for digit, the row ELECTRA-Small-OWT in the README of Google's\n"
    "release: it seems not to have been trained anew."
)
