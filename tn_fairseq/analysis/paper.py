"""The figures of the paper's Table 2 (Zhang et al. 2023, arXiv 2212.00460), to stand beside ours.

Per cent of sequences with a correction, and of mismatching predictions that are corrected ("Iter." and "Pred." in the
paper), by the share of the training that the checkpoint had seen.
"""

from typing import NamedTuple


class Figures(NamedTuple):
    """One checkpoint's line, all in per cent; ``checkpoint`` is the share of the training steps."""

    model: str
    checkpoint: float
    sequence_rate: float
    prediction_rate: float


def _figures(model: str, text: str) -> tuple[Figures, ...]:
    return tuple(Figures(model, *map(float, line.split())) for line in text.strip().splitlines())


TABLE_2 = _figures(
    "BERT-base",
    """
      6.25  6.90 1.31
     12.5   6.96 1.34
     25     6.97 1.36
     50     7.05 1.36
     80     7.06 1.40
    100     7.07 1.41
    """,
) + _figures(
    "BERT-large",
    """
      6.25  7.46 1.50
     12.5   7.58 1.55
     25     7.31 1.49
     50     7.46 1.56
     80     7.38 1.57
    100     7.44 1.60
    """,
)
NOTE = """\
Of BERT-base and BERT-large, continued for 200k steps, after so many per cent of them; on wikitext-2-raw-v1, synonyms
from WordNet. The paper gives one figure each, without an interval."""
