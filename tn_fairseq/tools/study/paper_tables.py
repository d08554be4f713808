"""The tables of all starts: ours, and those of the paper next to ours, with what it would cost to repeat its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..reporting.layout import cell
from ..reporting.paper import (
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
from ..reporting.statistics import mean_interval
from .figures import FINE_TUNING, HELD_OUT, RATES, RECOVERED
from .plan import Plan, updates_of_arm
from .statements import Row, short

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
PAPER = "The tables of the paper, next to ours"
NOTE = (
    f"{REPEAT} estimates what it takes to train a model of the paper once: 6 operations per parameter and token, at "
    f"{SHARE:.0%} of the peak. Fine-tuning a base model on GLUE adds less than half an hour. Our models are smaller, "
    "and were trained for minutes, so only the signs of differences can be compared. We have no data for QQP, MNLI "
    "and QNLI."
)


# column of the table of all starts -> group, measure (of the shares, how it begins), and that of starts with an oracle
HEADLINES = {
    "accuracy (%)": (HELD_OUT, RATES["accuracy"][1], RATES["merged_accuracy"][1]),
    "loss (bits)": (HELD_OUT, RATES["loss"][1], RATES["merged_loss"][1]),
    "recovered accuracy (%)": (RECOVERED, "", "of the accuracy"),
    "recovered loss (%)": (RECOVERED, "", "of the loss"),
    "GLUE": (FINE_TUNING, AVERAGE, AVERAGE),
    "SQuAD F1": (FINE_TUNING, "SQuAD F1", "SQuAD F1"),
}
GLANCE = (
    "The first arm of a start shows means, the others differences from it, with 95% intervals over the seeds. A "
    "difference is in bold if its interval excludes zero. Accuracy and loss are those of held-out text. In starts with "
    "an oracle, synonyms of the masked word count as right."
)


def glance(results: dict[str, Any]) -> str:
    """How to read the table of all starts, and of which tasks GLUE is the average in each."""
    starts: dict[str, list[str]] = {}
    for name, start_results in results["starts"].items():
        measured = {row["measure"] for row in start_results["comparisons"] if row["group"] == FINE_TUNING}
        starts.setdefault(", ".join(task for task in GLUE_TASKS if task in measured), []).append(name)
    averages = "; ".join(f"{', '.join(names)}: {tasks}" for tasks, names in starts.items() if tasks)
    return GLANCE + (f" GLUE is the average of some of its tasks ({averages})." if averages else "")


def at_a_glance(plan: Plan, results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of one table for all starts: what each arm changes in the most important measures."""
    by_column: dict[str, dict[tuple[str, str], Row]] = {column: {} for column in HEADLINES}
    for name, start in plan.starts.items():
        for column, (group, plain, with_oracle) in HEADLINES.items():
            measure = with_oracle if start.oracle else plain
            for row in results["starts"][name]["comparisons"]:
                same = row["measure"].startswith(measure) if group == RECOVERED else row["measure"] == measure
                if row["group"] == group and same:
                    by_column[column][name, row["arm"]] = row  # of shares at several updates, the last one
    columns = [column for column, cells in by_column.items() if cells]
    lines = []
    for name, start in plan.starts.items():
        for arm in start.arms:
            runs = results["starts"][name]["runs"]
            finished = sum(run["arm"] == arm and run["state"] == "finished" for run in runs)
            cells = [short(by_column[column].get((name, arm))) for column in columns]
            lines += [[f"{name}: {arm}", str(finished), *cells]] if finished else []
    return ["start: arm", "seeds", *columns], lines


@dataclass
class Table:
    """A table of texts: the paper's rows, then ours."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str


def repeat(model: str) -> str:
    """What a row of the paper would cost to repeat: hours of an H100 for one seed."""
    size, _, objective = model.partition(" ")
    parameters, tokens = TRAINING[size]
    passes = 2 if "sentence" in objective else 1  # the encoder reads the text with the predictions, too
    return f"{passes * 6 * parameters * tokens / (SHARE * PEAK) / 3600:.1f}"


def paper_tables(plan: Plan, results: dict[str, Any]) -> list[Table]:
    """Tables 2 to 6 of the paper, each with our rows of the arms that resemble a model of the paper."""
    two = [[row.model, f"{row.checkpoint:g}%", row.sequence_rate, row.prediction_rate] for row in TABLE_2]
    five = [[row.model, row.attack, row.em_attacked, row.em_drop, row.f1_attacked, row.f1_drop] for row in TABLE_5]
    variants = [f"ELECTRA-small{objective}" for objective in ("", " HC", " HC, embedding", " SR", " SR, sentence")]
    three = [name for name in GLUE_ROWS if "," not in name]  # the variants are only in Table 6
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
            + our_scores(plan, results, columns, "ELECTRA-small"),
            SCORES_NOTE,
        ),
    ]


def _row(model: object, *cells: object, decimals: int = 1) -> list[str]:
    texts = [f"{value:.{decimals}f}" if isinstance(value, float) else str(value) for value in cells]
    return [str(model), *texts, repeat(str(model))]


def _arms(plan: Plan) -> list[tuple[str, str, str, str]]:
    """The start, the name and the label of each arm that resembles a model of the paper, and this model."""
    return [
        (name, arm, f"ours, {name}: {arm}", settings.resembles)
        for name, start in plan.starts.items()
        for arm, settings in start.arms.items()
        if settings.resembles
    ]


def _fine_tuned(results: dict[str, Any], name: str, arm: str) -> dict[str, str]:
    """The cell of each score of fine-tuning of an arm."""
    rows = [row for row in results["starts"][name]["comparisons"] if row["group"] == FINE_TUNING and row["arm"] == arm]
    return {row["measure"]: _cell(list(row["values"].values())) for row in rows}


def _cell(values: Sequence[float], decimals: int = 1) -> str:
    """The mean over the seeds, with half of its 95% interval."""
    return cell(fmean(values), f".{decimals}f", *mean_interval(values))


def our_rates(plan: Plan, results: dict[str, Any]) -> list[list[str]]:
    """The rates of plain masked LM at each checkpoint, over the seeds."""
    lines = []
    for name, arm, label, model in _arms(plan):
        if " " in model:  # with an objective
            continue
        by_updates: dict[int, list[dict[str, Any]]] = {}
        for row in results["starts"][name]["rates"]:
            if row["arm"] == arm:
                by_updates.setdefault(row["updates"], []).append(row)
        for updates, rows in sorted(by_updates.items()):
            cells = [_cell([row[rate] for row in rows], 2) for rate in ("sequence_rate", "prediction_rate")]
            lines.append([label, f"{100 * updates / updates_of_arm(plan.starts[name], arm):.3g}%", *cells, ""])
    return lines


def our_scores(plan: Plan, results: dict[str, Any], columns: Sequence[str], size: str = "") -> list[list[str]]:
    """The scores of fine-tuning of each arm that has any and resembles a model of this size."""
    lines = []
    for name, arm, label, model in _arms(plan):
        scores = _fine_tuned(results, name, arm)
        if model.startswith(size) and scores.keys() & set(columns):
            lines.append([label, *(scores.get(column, NOTHING) for column in columns), ""])
    return lines


def our_attacks(plan: Plan, results: dict[str, Any]) -> list[list[str]]:
    """The scores of SQuAD under each attack, and how much lower they are."""
    lines = []
    for name, arm, label, _ in _arms(plan):
        scores = _fine_tuned(results, name, arm)
        for measure in scores:
            title, _, attack = measure.partition(" under ")
            if title == "SQuAD EM" and attack and not attack.endswith(", drop"):
                measures = [f"SQuAD {metric} under {attack}{end}" for metric in SQUAD_METRICS for end in ("", ", drop")]
                lines.append([label, attack, *(scores[one] for one in measures), ""])
    return lines
