"""The tables of the paper next to our figures, and what it would cost to repeat the paper's rows."""

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

from figures import FINE_TUNING
from plan import Plan

from tn_fairseq.reporting.paper import (
    AVERAGE,
    GLUE_ROWS,
    GLUE_TASKS,
    RATES_NOTE,
    ROBUSTNESS_NOTE,
    SCORES_NOTE,
    SQUAD_METRICS,
    SQUAD_ROWS,
    TABLE_2,
    TABLE_5,
)
from tn_fairseq.reporting.statistics import mean_interval

NOTHING, REPEAT = "-", "H100 hours"
# the floating-point operations per second of an H100 in bfloat16, and the share of them that a good training reaches
PEAK, SHARE = 989e12, 0.4
# model -> the parameters of its layers (of ELECTRA with the generator's), and the tokens of the paper's training
TRAINING = {
    "BERT-base": (85e6, 200_000 * 128 * 512),
    "BERT-large": (302e6, 200_000 * 128 * 512),
    "ELECTRA-small": (10e6, 1_000_000 * 128 * 128),
    "ELECTRA-base": (94e6, 200_000 * 128 * 512),
}
NOTE = (
    f"{REPEAT} estimates what it takes to train a model of the paper once: 6 operations per parameter and token, at "
    f"{SHARE:.0%} of the peak. Fine-tuning a base model on GLUE adds less than half an hour. Our models are smaller, "
    "and were trained for minutes, so only the signs of differences can be compared. We have no data for QQP, MNLI "
    "and QNLI."
)
Values = Dict[Tuple[str, str], Dict[str, Dict[str, float]]]  # (group, measure) -> arm -> seed -> value


@dataclass
class Table:
    """A table of texts: the paper's rows, then ours."""

    title: str
    header: List[str]
    rows: List[List[str]]
    note: str


def repeat(model: str) -> str:
    """What a row of the paper would cost to repeat: hours of an H100 for one seed."""
    size, _, objective = model.partition(" ")
    parameters, tokens = TRAINING[size]
    passes = 2 if "sentence" in objective else 1  # the encoder reads the text with the predictions, too
    return f"{passes * 6 * parameters * tokens / (SHARE * PEAK) / 3600:.1f}"


def paper_tables(plan: Plan, results: Dict[str, Any]) -> List[Table]:
    """Tables 2 to 6 of the paper, each with our rows of the arms that resemble a model of the paper."""
    two = [[row.model, f"{row.checkpoint:g}%", row.sequence_rate, row.prediction_rate] for row in TABLE_2]
    five = [[row.model, row.attack, row.em_attacked, row.em_drop, row.f1_attacked, row.f1_drop] for row in TABLE_5]
    variants = [f"ELECTRA-small{objective}" for objective in ("", " HC", " HC, embedding", " SR", " SR, sentence")]
    three = [name for name in GLUE_ROWS if name not in variants[2::2]]
    columns = [*GLUE_TASKS, AVERAGE]
    return [
        Table(
            "Table 2: corrections by WordNet, in percent of the sequences and of the wrong predictions",
            ["model", "of the training", "sequences", "wrong predictions", REPEAT],
            [_row(*row, decimals=2) for row in two] + our_rates(plan, results),
            RATES_NOTE.replace("\n", " "),
        ),
        Table(
            "Table 3: GLUE, development data",
            ["model", *columns, REPEAT],
            [_row(name, *GLUE_ROWS[name].values()) for name in three] + our_scores(plan, results, columns),
            f"{SCORES_NOTE} Our average is over the tasks that we have.",
        ),
        Table(
            "Table 4: SQuAD 1.1, development data",
            ["model", *SQUAD_METRICS, REPEAT],
            [_row(name, *row.values()) for name, row in SQUAD_ROWS.items()]
            + our_scores(plan, results, [f"SQuAD {metric}" for metric in SQUAD_METRICS]),
            SCORES_NOTE,
        ),
        Table(
            "Table 5: SQuAD 1.1 under attack",
            ["model", "attack", "EM", "lost", "F1", "lost", REPEAT],
            [_row(*row, decimals=2) for row in five] + our_attacks(plan, results),
            ROBUSTNESS_NOTE.replace("\n", " "),
        ),
        Table(
            "Table 6: variants on GLUE",
            ["model", *columns, REPEAT],
            [_row(name, *GLUE_ROWS[name].values()) for name in variants]
            + our_scores(plan, results, columns, variants_only=True),
            SCORES_NOTE,
        ),
    ]


def _row(model: str, *cells: object, decimals: int = 1) -> List[str]:
    texts = [f"{cell:.{decimals}f}" if isinstance(cell, float) else str(cell) for cell in cells]
    return [model, *texts, repeat(model)]


def _arms(plan: Plan, results: Dict[str, Any]) -> List[Tuple[str, str, str, str]]:
    """The start, the name, the label and the objective of each arm that resembles a model of the paper."""
    return [
        (name, arm, f"ours, {name}: {arm}", settings.resembles.partition(" ")[2])
        for name, start in plan.starts.items()
        for arm, settings in start.arms.items()
        if settings.resembles
    ]


def _values(results: Dict[str, Any], name: str) -> Values:
    """The values of each measure of a start by arm and seed."""
    found: Values = {}
    for row in results["starts"][name]["comparisons"]:
        if row["interval"] == "seeds":
            found.setdefault((row["group"], row["measure"]), {})[row["arm"]] = row["values"]
    return found


def _cell(of_arm: Dict[Any, float], decimals: int = 1) -> str:
    """The mean over the seeds, with half of its 95% interval."""
    if not of_arm:
        return NOTHING
    values = list(of_arm.values())
    text = f"{sum(values) / len(values):.{decimals}f}"
    if len(values) > 1:
        low, high = mean_interval(values)
        text += f" ± {(high - low) / 2:.{decimals}f}"
    return text


def our_rates(plan: Plan, results: Dict[str, Any]) -> List[List[str]]:
    """The rates of plain masked LM at each checkpoint, over the seeds."""
    lines = []
    for name, arm, label, objective in _arms(plan, results):
        if objective:
            continue
        of_arm: Dict[int, List[Dict[str, Any]]] = {}
        for row in results["starts"][name]["rates"]:
            if row["arm"] == arm:
                of_arm.setdefault(row["updates"], []).append(row)
        for updates, rows in sorted(of_arm.items()):
            cells = [
                _cell({str(row["seed"]): row[rate] for row in rows}, decimals=2)
                for rate in ("sequence_rate", "prediction_rate")
            ]
            lines.append([label, f"{100 * updates / plan.starts[name].updates:.3g}%", *cells, ""])
    return lines


def our_scores(
    plan: Plan, results: Dict[str, Any], columns: Sequence[str], variants_only: bool = False
) -> List[List[str]]:
    """The scores of fine-tuning of each arm that has any."""
    lines = []
    for name, arm, label, _ in _arms(plan, results):
        if variants_only and not (plan.starts[name].arms[arm].resembles or "").startswith("ELECTRA-small"):
            continue
        values = _values(results, name)
        cells = [_cell(values.get((FINE_TUNING, column), {}).get(arm, {})) for column in columns]
        if any(cell != NOTHING for cell in cells):
            lines.append([label, *cells, ""])
    return lines


def our_attacks(plan: Plan, results: Dict[str, Any]) -> List[List[str]]:
    """The scores of SQuAD under each attack, and how much lower they are."""
    lines = []
    for name, arm, label, _ in _arms(plan, results):
        values = _values(results, name)
        for _, measure in values:
            title, found, attack = measure.partition(" under ")
            if title != "SQuAD EM" or not found or attack.endswith(", drop"):
                continue
            scores = [f"SQuAD {metric} under {attack}" for metric in SQUAD_METRICS]
            measures = [name for score in scores for name in (score, f"{score}, drop")]
            cells = [_cell(values[FINE_TUNING, one].get(arm, {})) for one in measures]
            if cells[0] != NOTHING:
                lines.append([label, attack, *cells, ""])
    return lines
