"""The scores of a task before and after an attack, and the drop, each with its interval."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ...formats.glue import TASKS
from ...reporting.comparison import ATTACKED, DROP, ORIGINAL, UNDER, Comparison
from ...reporting.paper import SQUAD_METRICS
from ..bootstrap import Measure, Statistic, compare_items, mean
from ..metrics import metric
from ..squad import SQUAD
from ..squad_score import best_score, exact_match, f1
from .attacks import Attack, Example

# how well a prediction fits a correct answer, between 0 and 1; such a score is a mean over examples
Score = Callable[[str, str], float]
MEANS: dict[str, Score] = {"EM": exact_match, "F1": f1, "accuracy": operator.eq}
# which of the texts others share, if it is not the first
CONTEXT = {SQUAD: 1, "QNLI": 1}
Predictions = Mapping[tuple[str, ...], str]  # by texts


def attack_rows(
    attack: Attack, groups: Mapping[str, Sequence[Predictions]], baseline: str | None = None
) -> list[Comparison]:
    """The rows of each score of a task: on the original and the attacked examples, and the drop, in percent.

    ``groups`` has the predictions of each seed of each checkpoint. Data without originals has only the attacked ones.
    Intervals are None for a single context, and differences without a ``baseline`` or if it has no run on the task.
    """
    # before the attack, which may change the context of each question in another way
    place = CONTEXT.get(attack.task, 0)
    contexts = [example.texts[place] for example in attack.originals or attack.attacked]
    names = SQUAD_METRICS if attack.task == SQUAD else TASKS[attack.task].metrics
    rows: list[Comparison] = []
    for name in names:
        values_of = _scores_of_examples if name in MEANS else _classes_of_examples
        values = {of: values_of(name, attack, predictions) for of, predictions in groups.items()}
        for kind, statistic in _statistics(name):
            if kind == ATTACKED or attack.originals is not None:
                measure = Measure(f"{attack.data}{UNDER}{attack.name}", f"{name} {kind}", "", "%", statistic)
                # all with the same resamples, so that differences of drops are those of the scores
                rows += compare_items(measure, values, baseline, contexts)
    return rows


def _statistics(name: str) -> Iterator[tuple[str, Statistic]]:
    """How each measure of a score follows from the values of the examples."""
    if name in MEANS:
        yield ORIGINAL, lambda values: mean(values[..., 0])
        yield ATTACKED, lambda values: mean(values[..., 1])
        yield DROP, lambda values: mean(values[..., 0] - values[..., 1])
    else:
        yield ORIGINAL, lambda classes: _metric(name, classes, 0)
        yield ATTACKED, lambda classes: _metric(name, classes, 1)
        yield DROP, lambda classes: _metric(name, classes, 0) - _metric(name, classes, 1)


def _pairs(attack: Attack) -> list[tuple[Example, Example]]:
    """Each example before and after the attack; data without originals has the attacked one twice."""
    return list(zip(attack.originals or attack.attacked, attack.attacked, strict=True))


def _scores_of_examples(name: str, attack: Attack, predictions: Sequence[Predictions]) -> np.ndarray:
    """The score of each example in percent, before and after the attack: (seeds, examples, 2)."""
    score = MEANS[name]
    return np.array(
        [
            [
                [100.0 * best_score(score, seed_predictions[one.texts], one.golds) for one in pair]
                for pair in _pairs(attack)
            ]
            for seed_predictions in predictions
        ]
    )


def _classes_of_examples(name: str, attack: Attack, predictions: Sequence[Predictions]) -> np.ndarray:
    """For a metric of all examples together, such as F1: (seeds, examples, 3) with the classes 0 and 1.

    They are the predicted ones before and after the attack, and the correct one.
    """
    positive = TASKS[attack.task].labels[1]
    return np.array(
        [
            [
                [
                    seed_predictions[one.texts] == positive,
                    seed_predictions[other.texts] == positive,
                    other.golds[0] == positive,
                ]
                for one, other in _pairs(attack)
            ]
            for seed_predictions in predictions
        ],
        dtype=int,
    )


def _metric(name: str, classes: np.ndarray, side: int) -> np.ndarray:
    """A metric in percent of the predictions before (0) or after (1) the attack: (seeds, examples, 3) -> (seeds,)."""
    return np.array([metric(name, seed_classes[:, side], seed_classes[:, 2]) for seed_classes in classes])
