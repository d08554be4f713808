"""The scores of a task before and after an attack, and the drop, each with its interval."""

import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...formats.glue import TASKS
from ...reporting.paper import SQUAD_METRICS
from ..bootstrap import Estimate, Statistic, estimate, mean
from ..metrics import metric
from ..squad_score import best_score, exact_match, f1
from ..squad_scores import SQUAD
from .attacks import Attack, Example

# how well a prediction fits a correct answer, between 0 and 1; such a score is a mean over examples
Score = Callable[[str, str], float]
MEANS: dict[str, Score] = {"EM": exact_match, "F1": f1, "accuracy": operator.eq}
# which of the texts others share, if it is not the first
CONTEXT = {SQUAD: 1, "QNLI": 1}
Predictions = Mapping[tuple[str, ...], str]  # by texts
MEASURES = ("original", "attacked", "drop")


def score_estimates(
    attack: Attack, groups: Sequence[Sequence[Predictions]], baseline: int | None
) -> dict[str, dict[str, list[Estimate]]]:
    """The estimates of each score of the attacked task, by MEASURES, for each group of seeds, in percent.

    Data without originals has only "attacked".
    """
    # before the attack, which may change the context of each question in another way
    place = CONTEXT.get(attack.task, 0)
    contexts = [example.texts[place] for example in attack.originals or attack.attacked]
    names = SQUAD_METRICS if attack.task == SQUAD else TASKS[attack.task].metrics
    return {
        name: _means(MEANS[name], attack, groups, baseline, contexts)
        if name in MEANS
        else _metrics(name, attack, groups, baseline, contexts)
        for name in names
    }


def _means(
    score: Score, attack: Attack, groups: Sequence[Sequence[Predictions]], baseline: int | None, contexts: Sequence[str]
) -> dict[str, list[Estimate]]:
    """The estimates of a score that is a mean over examples, by the name of a measure."""

    def values(examples: Sequence[Example]) -> list[np.ndarray]:
        """The score of each example in percent for each seed of each group: (seeds, examples)."""
        return [
            np.array(
                [[100.0 * best_score(score, found[one.texts], one.golds) for one in examples] for found in predictions]
            )
            for predictions in groups
        ]

    measures = {"attacked": values(attack.attacked)}
    if attack.originals is not None:
        measures["original"] = values(attack.originals)
        measures["drop"] = [
            before - after for before, after in zip(measures["original"], measures["attacked"], strict=True)
        ]
    # all with the same resamples, so that differences of drops are those of the scores
    return {key: estimate(of_groups, mean, baseline, clusters=contexts) for key, of_groups in measures.items()}


def _metrics(
    name: str, attack: Attack, groups: Sequence[Sequence[Predictions]], baseline: int | None, contexts: Sequence[str]
) -> dict[str, list[Estimate]]:
    """The estimates of a metric of all examples together, such as F1, by the name of a measure.

    Each item is the class before the attack plus twice the class after it.
    """
    positive = TASKS[attack.task].labels[1]
    before = attack.originals or attack.attacked
    classes = [
        np.array(
            [
                [
                    (found[one.texts] == positive) + 2 * (found[other.texts] == positive)
                    for one, other in zip(before, attack.attacked, strict=True)
                ]
                for found in predictions
            ]
        )
        for predictions in groups
    ]
    gold = np.array([3 * (one.golds[0] == positive) for one in attack.attacked])

    def original(items: np.ndarray) -> np.ndarray:
        return _metric(name, items % 2)

    def attacked(items: np.ndarray) -> np.ndarray:
        return _metric(name, items // 2)

    def drop(items: np.ndarray) -> np.ndarray:
        return original(items) - attacked(items)

    measures: dict[str, Statistic] = {"attacked": attacked}
    if attack.originals is not None:
        measures |= {"original": original, "drop": drop}
    return {key: estimate(classes, measure, baseline, gold, contexts) for key, measure in measures.items()}


def _metric(name: str, classes: np.ndarray) -> np.ndarray:
    """A metric in percent of each row after the first, which has the targets: (1 + seeds, examples) -> (seeds,)."""
    return np.array([metric(name, predictions, classes[0]) for predictions in classes[1:]])
