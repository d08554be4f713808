"""The scores before and after an attack, and the drop, each with its interval."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...reporting.comparison import ATTACKED, DROP, ORIGINAL, UNDER, Comparison
from ..bootstrap import Measure, Statistic, compare_items, mean
from ..squad import SQUAD
from ..squad_score import best_score, exact_match, f1
from .attacks import Attack

SCORES = {"EM": exact_match, "F1": f1}
# of the scores of each question before and after the attack, (seeds, questions, 2)
KINDS: dict[str, Statistic] = {
    ORIGINAL: lambda values: mean(values[..., 0]),
    ATTACKED: lambda values: mean(values[..., 1]),
    DROP: lambda values: mean(values[..., 0] - values[..., 1]),
}
Predictions = Mapping[tuple[str, str], str]  # by question and context


def attack_rows(
    attack: Attack, groups: Mapping[str, Sequence[Predictions]], baseline: str | None = None
) -> list[Comparison]:
    """The rows of EM and F1: on the original and the attacked questions, and the drop, in percent.

    ``groups`` has the predictions of each seed of each checkpoint. Intervals are None for a single context, and
    differences without a ``baseline``.
    """
    # before the attack, which may change the context of each question in another way
    contexts = [example.texts[1] for example in attack.originals]
    sides = (attack.originals, attack.attacked)
    rows: list[Comparison] = []
    for name, score in SCORES.items():
        values = {
            of: 100.0
            * np.array(
                [
                    [[best_score(score, seed[one.texts], one.golds) for one in side] for side in sides]
                    for seed in predictions
                ]
            ).swapaxes(1, 2)
            for of, predictions in groups.items()
        }
        for kind, statistic in KINDS.items():
            measure = Measure(f"{SQUAD}{UNDER}{attack.name}", f"{name} {kind}", "", "%", statistic)
            # all with the same resamples, so that differences of drops are those of the scores
            rows += compare_items(measure, values, baseline, contexts)
    return rows
