"""The figures of a study: what its logs and measures say about each run, and paired comparisons with the baseline."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from ...core.errors import InputError
from ...core.files import read_json, read_json_object
from ..reporting.comparison import DROP, ORIGINAL, UNDER, Comparison, read_report
from ..reporting.paper import AVERAGE, SQUAD_METRICS
from ..reporting.statistics import compare_paired, detectable_difference, holm, is_equivalent, summarize
from ..reporting.training_log import read_records
from .measures import COMMAND, LOG, RESTART, RESULTS, STATE, is_finished, place, place_of_run, result_of
from .plan import ELSEWHERE, Measure, Plan, Run, Start, Step, kind_of, runs_of, updates_of_arm
from .progress import wall
from .runner import read_record

RECOVERED = "share of the oracle's gain"
HELD_OUT = "masked language modeling on held-out text"
OTHER_TEXT = "masked language modeling on other text"
IN_TRAINING = "masked language modeling during training"
FALSE_NEGATIVES = "false negatives on held-out text"
DETECTION = "replaced token detection on held-out text"
WORDS = "words, without fine-tuning"
FINE_TUNING = "fine-tuning"
COST = "cost"
TO_REACH = "updates to reach an accuracy of"
MOST_POINTS = 125  # of a curve, so that study.json and the plots stay small
# column of the analysis -> group, name, unit, and whether more is better (1), worse (-1) or neither (0)
RATES = {
    "accuracy": (HELD_OUT, "accuracy", "%", 1),
    "loss": (HELD_OUT, "loss", "bits", -1),
    "merged_accuracy": (HELD_OUT, "accuracy if synonyms are right", "%", 1),
    "merged_loss": (HELD_OUT, "loss if synonyms are right", "bits", -1),
    "prediction_rate": (FALSE_NEGATIVES, "wrong predictions that are synonyms", "%", 0),
    "sequence_rate": (FALSE_NEGATIVES, "sequences with such a prediction", "%", 0),
    "mistaken_rate": (FALSE_NEGATIVES, "masked words with synonyms that are mistaken for one", "%", 0),
    "synonym_probability": (FALSE_NEGATIVES, "probability of the masked word's synonyms", "%", 0),
    "pair_cosine": (FALSE_NEGATIVES, "mean cosine of a word and its synonym", "", 0),
    "other_cosine": (FALSE_NEGATIVES, "mean cosine of all words with a synonym", "", 0),
    "detection_recall": (DETECTION, "replaced tokens found", "%", 1),
    "detection_precision": (DETECTION, "replaced ones of those called replaced", "%", 1),
    "detection_auc": (DETECTION, "area under the ROC curve", "%", 1),
    "synonyms_detected": (DETECTION, "synonyms called replaced", "%", 0),
}
# lexical measure -> the same without the group; all others are details, which stay in their own table
LEXICAL = {
    "leniency": ("acceptable substitutes (leniency)", "", 0),
    "rejected": ("rejected substitutes", "", -1),
    "GAP": ("ranking of substitutes (GAP)", "%", 1),
    "RTD AUC": ("discriminator on substitutes (RTD AUC)", "%", 1),
    "Spearman": ("similarity of words (Spearman)", "", 1),
    "mean cosine": ("mean cosine of all pairs of words", "", 0),
    "accuracy": ("grammatical sentences preferred", "%", 1),
}

MEASURE_AGAIN = f"delete {COMMAND} in its folder to measure again"  # without fine-tuning again

# what ``collect_start`` returns
START_KEYS = {"runs", "curves", "rates", "elsewhere", "comparisons", "tokens_per_second"}

# columns of a comparison that study.json omits if there is nothing to say
OPTIONAL = ("values", "difference", "low", "high", "p", "holm", "margin", "equivalent", "detectable")

Key = tuple[str, str, str, int]  # group, name, unit, and whether more is better
Values = dict[str, dict[int, float]]  # arm -> seed -> value
Curve = dict[str, list[float]]


def collect(plan: Plan, folder: Path, machine: dict[str, str], earlier: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything that the report shows, as JSON."""
    # the hours of the runs are those of their logs
    seconds = sum(one["seconds"] for one in read_record(folder) if not Path(one["log"]).is_relative_to("runs"))
    machines = [machine, *(study["machine"] for study in earlier)]  # an earlier study may have joined several
    processors = dict.fromkeys(name for one in machines for name in one["processor"].split("; "))
    everything = {
        "plan": asdict(plan) | {"sources": list(plan.sources)},  # not the paths of this machine
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine | {"processor": "; ".join(processors)},
        "other_hours": seconds / 3600 + sum(study["other_hours"] for study in earlier),
        "starts": {
            name: collect_start(
                name, start, folder, [study["starts"][name] for study in earlier if name in study["starts"]]
            )
            for name, start in plan.starts.items()
        },
    }
    return rounded(everything)


def rounded(value: Any) -> Any:
    """JSON with seven digits of each float, half as long as all; noise begins with the third or fourth."""
    if isinstance(value, float):
        value = float(f"{value:.7g}")
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return list(map(rounded, value)) if isinstance(value, list) else value


def read_earlier(path: Path, plan: Plan) -> dict[str, Any]:
    """The study.json of another folder.

    Raises InputError if it is not one, has none of the plan's starts, or has trained a run of the plan in another way.
    """
    hint = "give the study.json of another folder"
    study = read_json_object(path, hint)
    try:
        theirs = {name: start for name, start in study["plan"]["starts"].items() if name in plan.starts}
        is_study = {"other_hours", "machine"} <= study.keys()
        is_study &= all(study["starts"][name].keys() >= START_KEYS for name in theirs)
        trained = [name for name in theirs if finished_of(study["starts"][name], runs_of(name, plan.starts[name]))]
        differing = [
            key
            for name in trained
            for key in _differences(name, plan.starts[name], theirs[name], study["starts"][name])
        ]
    except (KeyError, TypeError, AttributeError):
        is_study = False
    if not is_study:
        raise InputError(f"{path}: is not the study.json of a study; {hint}")
    if not theirs:
        raise InputError(f"{path}: has none of the plan's starts {', '.join(plan.starts)}; use the same plan")
    if differing:
        raise InputError(f"{path}: starts.{differing[0]}: differs from that of the plan; use the same plan")
    return study


def _differences(name: str, start: Start, there: dict[str, Any], start_results: dict[str, Any]) -> list[str]:
    """What makes the runs of a start, or what was measured of them, different from those of another study.

    ``there`` is the other plan's start, and ``start_results`` are its results.
    """
    arms = [arm for arm in start.arms if arm in there["arms"]]
    differences = [
        f"{name}.{key}" for key in ("data", "train", "updates", "baseline") if getattr(start, key) != there[key]
    ]
    if _prepared_differently(start.prepare, there["prepare"]):
        differences.append(f"{name}.prepare")
    tuned = [row["measure"] for row in start_results["comparisons"] if row["group"] == FINE_TUNING]
    on_squad = [measure.startswith("SQuAD") for measure in tuned]
    is_known = {"glue": not all(on_squad), "squad": any(on_squad), "robustness": any(on_squad)}
    for measure in [one for one in start.measures if one in there["measures"] and is_known.get(one, True)]:
        if start.measures[measure].flags != there["measures"][measure]["flags"]:
            differences.append(f"{name}.measures.{measure}.flags")
        if _prepared_differently(start.measures[measure].prepare, there["measures"][measure]["prepare"]):
            differences.append(f"{name}.measures.{measure}.prepare")
    return differences + [
        f"{name}.arms.{arm}"
        for arm in arms
        if start.arms[arm].flags != there["arms"][arm]["flags"]
        or start.arms[arm].updates != there["arms"][arm].get("updates")
        or start.arms[arm].user_dir != there["arms"][arm].get("user_dir")
    ]


def _prepared_differently(steps: Sequence[Step], there: Sequence[dict[str, str]]) -> bool:
    """Whether any output of both is from different commands."""
    commands = {step["output"]: step["command"] for step in there}
    return any(step.command != commands.get(step.output, step.command) for step in steps)


def finished_of(study: dict[str, Any], runs: Sequence[Run]) -> list[Run]:
    """Those of the runs that are finished in a start of an earlier study."""
    finished = {(run["arm"], run["seed"]) for run in study["runs"] if run["state"] == "finished"}
    return [run for run in runs if (run.arm, run.seed) in finished]


def _rows_by_run(rows: Sequence[dict[str, Any]], runs: Sequence[Run]) -> dict[Run, dict[str, Any]]:
    """The rows of an earlier study that are about one of the runs."""
    by_key = {(row["arm"], row["seed"]): row for row in rows}
    return {run: by_key[run.arm, run.seed] for run in runs if (run.arm, run.seed) in by_key}


@dataclass
class Figures:
    """What is known about a start, before it is compared: of this folder, and then also of earlier studies."""

    about: dict[Run, dict[str, Any]]
    curves: dict[Run, Curve]  # of finished runs
    rates: list[dict[str, Any]]
    elsewhere: list[dict[str, Any]]
    scores: list[tuple[Key, Run, float]]  # of fine-tuning
    words: list[dict[str, Any]]
    costs: list[dict[str, Any]]
    speeds: dict[str, float]


def collect_start(name: str, start: Start, folder: Path, earlier: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The runs of a start with their curves, the rates over training, and the comparisons with the baseline.

    A run that is not finished in ``folder`` is taken from the first of the ``earlier`` studies that has it.
    """
    runs = runs_of(name, start)
    finished = [run for run in runs if is_finished(folder, run)]
    speeds, costs = cost_rows(name, start, folder)
    logs = start.measures.get("logs", Measure())
    figures = Figures(
        about={run: about_run(run, folder) for run in runs},
        curves={run: thinned(read_curve(folder / run.folder / LOG), logs.window) for run in finished},
        # rounded before they are compared, so that an earlier study's figures give the same comparisons
        rates=rounded([row for run in finished for row in read_rates(folder, run)]),
        elsewhere=rounded(elsewhere_rows(start, finished, folder)),
        scores=[(key, run, rounded(value)) for run in finished for key, value in fine_tuned(folder, run)],
        words=lexical_rows(name, start, folder),
        costs=costs,
        speeds=speeds,
    )
    for study in earlier:
        add_earlier(figures, study, [run for run in finished_of(study, runs) if run not in finished])
    # the measure may leave an arm out
    figures.curves = {run: curve for run, curve in figures.curves.items() if run.arm in (logs.arms or start.arms)}
    # an earlier study may have measured other arms, too
    words, costs = ([row for row in rows if row["arm"] in start.arms] for rows in (figures.words, figures.costs))
    comparisons = compare_all(figures, start)
    correct(comparisons + words)
    comparisons += words + costs
    # in the order of the plan, also if some arms are from earlier studies
    comparisons.sort(key=lambda row: list(start.arms).index(row["arm"]))
    return {
        "runs": list(figures.about.values()),
        "curves": [{"arm": run.arm, "seed": run.seed, **curve} for run, curve in figures.curves.items()],
        "rates": figures.rates,
        "elsewhere": figures.elsewhere,
        "comparisons": comparisons,
        "tokens_per_second": figures.speeds,
    }


def compact(results: dict[str, Any]) -> dict[str, Any]:
    """The results as study.json has them: rows without empty columns, and one number for regular updates."""
    starts = {}
    for name, start_results in results["starts"].items():
        rows = {
            key: [_without_none(row) for row in start_results[key]] for key in ("rates", "elsewhere", "comparisons")
        }
        curves = [_compact_curve(curve) for curve in start_results["curves"]]
        starts[name] = start_results | rows | {"curves": curves}
    return results | {"starts": starts}


def _compact_curve(curve: dict[str, Any]) -> dict[str, Any]:
    """A curve with the distance of its points, ``every``, instead of their updates, if all are this far apart."""
    updates = curve["updates"]
    if not updates or updates != [updates[0] * number for number in range(1, len(updates) + 1)]:
        return curve
    return {"every": updates[0]} | {key: value for key, value in curve.items() if key != "updates"}


def _complete_curve(curve: dict[str, Any]) -> dict[str, Any]:
    if "every" not in curve:
        return curve
    updates = [curve["every"] * number for number in range(1, len(curve["loss"]) + 1)]
    return {key: value for key, value in curve.items() if key != "every"} | {"updates": updates}


def _without_none(row: dict[str, Any]) -> dict[str, Any]:
    return {column: value for column, value in row.items() if value is not None}


def add_earlier(figures: Figures, study: dict[str, Any], runs: Sequence[Run]) -> None:
    """Add the ``runs`` of a start of an earlier study that are not there yet."""
    new = [run for run in runs if run not in figures.curves]
    figures.about |= _rows_by_run(study["runs"], new)
    figures.curves |= _rows_by_run([_complete_curve(curve) for curve in study["curves"]], new)
    by_key = {(run.arm, run.seed): run for run in runs}
    for rows, measure in ((figures.rates, "rates"), (figures.elsewhere, "elsewhere")):
        rows += [row for row in study[measure] if by_key.get((row["arm"], row["seed"])) in new]
    for row in study["comparisons"]:
        key = (row["group"], row["measure"], row["unit"], row["better"])
        by_seed = row["values"] if row["group"] == FINE_TUNING else {}
        by_run = {by_key.get((row["arm"], int(seed))): value for seed, value in by_seed.items()}
        figures.scores += [(key, run, value) for run, value in by_run.items() if run is not None]
    # these intervals are from comparisons of all runs of a study, so only arms can be joined
    for rows, group in ((figures.words, WORDS), (figures.costs, COST)):
        known = {row["arm"] for row in rows}
        new_rows = [row for row in study["comparisons"] if row["group"] == group and row["arm"] not in known]
        rows += [dict.fromkeys(OPTIONAL) | row for row in new_rows]
    figures.speeds = study["tokens_per_second"] | figures.speeds


def compare_all(figures: Figures, start: Start) -> list[dict[str, Any]]:
    """The comparisons of all figures that each run has of its own."""
    measured: dict[Key, Values] = {}

    def add(key: Key, arm: str, seed: int, value: float | None) -> None:
        if value is not None:
            measured.setdefault(key, {}).setdefault(arm, {}).setdefault(seed, value)

    for row in figures.rates:
        if row["updates"] == updates_of_arm(start, row["arm"]):
            for column, key in RATES.items():
                add(key, row["arm"], row["seed"], row.get(column))
    for row in figures.elsewhere:
        for column in ("accuracy", "loss"):
            _, title, unit, better = RATES[column]
            key = (OTHER_TEXT, f"{title} on {row['text']}", unit, better)
            add(key, row["arm"], row["seed"], row[column])
    for key, values in recovered(figures.rates, start).items():
        measured[key] = values
    logs = start.measures.get("logs")
    for run, curve in figures.curves.items():
        for key, value in curve_figures(curve, logs) if logs else ():
            add(key, run.arm, run.seed, value)
    for key, run, score in figures.scores:
        add(key, run.arm, run.seed, score)
    for key, values in measured.items():
        if key[1].startswith(TO_REACH):  # an arm whose seeds do not all reach a level has no mean
            for arm in [arm for arm in values if len(values[arm]) < sum(run.arm == arm for run in figures.curves)]:
                del values[arm]
    return [
        row
        for key, values in measured.items()
        for row in compared(key, values, start.baseline, start.margins.get(key[1], start.margins.get(key[0])))
    ]


def about_run(run: Run, folder: Path) -> dict[str, Any]:
    """The state of a run, and its hours so far, over all sittings."""
    path = folder / run.folder / STATE
    state = read_json_object(path, RESTART) if path.exists() else {}
    return {
        "arm": run.arm,
        "seed": run.seed,
        "state": state.get("state", "left"),
        "error": state.get("error"),
        "hours": wall(folder / run.folder / LOG) / 3600,
    }


def read_curve(log: Path) -> Curve:
    """The accuracy and the loss of each interval of a training log, measured before the model saw the text."""
    # fairseq's masked_lm logs no accuracy
    records = [record for record in read_records(log, "train_inner") if "mlm_accuracy" in record]
    columns = {"updates": "num_updates", "accuracy": "mlm_accuracy", "loss": "nll_loss"}
    return {name: [float(record[column]) for record in records] for name, column in columns.items()}


def thinned(curve: Curve, window: int) -> Curve:
    """A curve of points that are means of as many neighbors each, up to the last one.

    It has about ``MOST_POINTS`` points, or more if the last ``window`` updates were no multiple of a point's.
    """
    points = len(curve["updates"])
    sizes = range(math.ceil(points / MOST_POINTS), 1, -1)
    spacing = curve["updates"][1] - curve["updates"][0] if sizes else 1
    size = next((size for size in sizes if window % (size * spacing) == 0), 1)
    if size == 1:
        return curve
    groups = [slice(max(end - size, 0), end) for end in reversed(range(points, 0, -size))]
    means = {column: [round(fmean(curve[column][group]), 3) for group in groups] for column in ("accuracy", "loss")}
    return {"updates": [curve["updates"][group.stop - 1] for group in groups]} | means


def smoothed(curve: Curve, window: int, column: str = "accuracy") -> tuple[list[float], list[float]]:
    """The mean of a column over the last ``window`` updates, at each point that has so many before it."""
    updates, values = curve["updates"], curve[column]
    points = [(at, [v for u, v in zip(updates, values) if at - window < u <= at]) for at in updates if at >= window]
    return [at for at, _ in points], [fmean(window_values) for _, window_values in points]


def updates_to_reach(level: float, updates: Sequence[float], values: Sequence[float]) -> float | None:
    """When a curve first reaches a level, interpolated between its points; None if it never does."""
    for number, (at, value) in enumerate(zip(updates, values)):
        if value >= level:
            if number == 0:
                return at
            before, earlier = values[number - 1], updates[number - 1]
            return earlier + (at - earlier) * (level - before) / (value - before)
    return None


def curve_figures(curve: Curve, measure: Measure) -> list[tuple[Key, float | None]]:
    """The figures of a training log: the end of its curve, its mean, and the updates to reach each level."""
    updates, accuracies = smoothed(curve, measure.window)
    if not updates:
        return []
    figures: list[tuple[Key, float | None]] = [
        ((IN_TRAINING, f"accuracy of the last {measure.window} updates", "%", 1), accuracies[-1]),
        ((IN_TRAINING, "mean accuracy of all updates", "%", 1), fmean(curve["accuracy"])),
        (
            (IN_TRAINING, f"loss of the last {measure.window} updates", "bits", -1),
            smoothed(curve, measure.window, "loss")[1][-1],
        ),
    ]
    for level in measure.levels:
        key = (IN_TRAINING, f"{TO_REACH} {level:g}%", "updates", -1)
        figures.append((key, updates_to_reach(level, updates, accuracies)))
    return figures


def read_rates(folder: Path, run: Run, measure: str = "rates") -> list[dict[str, Any]]:
    """The rates of each checkpoint of a run with the first table, or nothing if they are not measured yet."""
    path = result_of(folder, place_of_run(run, measure), measure)
    rows = read_json(path, RESTART) if path else []
    return [
        {"arm": run.arm, "seed": run.seed, "updates": row["updates"], **{column: row.get(column) for column in RATES}}
        for row in rows
        if row["table"] == rows[0]["table"]
    ]


def elsewhere_rows(start: Start, runs: Sequence[Run], folder: Path) -> list[dict[str, Any]]:
    """The rates on other texts: elsewhere_training_novels is about "training novels"."""
    return [
        {**row, "text": measure.removeprefix(ELSEWHERE).replace("_", " ").strip() or "other text"}
        for measure in start.measures
        if kind_of(measure) == ELSEWHERE
        for run in runs
        for row in read_rates(folder, run, measure)
    ]


def recovered(rates: list[dict[str, Any]], start: Start) -> dict[Key, Values]:
    """The share of the distance from the baseline to the oracle that each run goes, in percent, at each checkpoint."""
    measured: dict[Key, Values] = {}
    for column in ("merged_accuracy", "merged_loss") if start.oracle else ():
        for updates in sorted({row["updates"] for row in rates}):
            values: Values = {}
            for row in rates:
                if row["updates"] == updates and row.get(column) is not None:
                    values.setdefault(row["arm"], {})[row["seed"]] = row[column]
            plain, oracle = (values.get(arm, {}) for arm in (start.baseline, str(start.oracle)))
            shares = {
                arm: {
                    seed: 100 * ((value - plain[seed]) / (oracle[seed] - plain[seed]))
                    for seed, value in by_seed.items()
                    if seed in plain and plain[seed] != oracle.get(seed, plain[seed])
                }
                for arm, by_seed in values.items()
            }
            key = (RECOVERED, f"of the {RATES[column][1]}, after {updates:,} updates", "%", 1)
            measured[key] = {arm: by_seed for arm, by_seed in shares.items() if by_seed}
    return measured


def fine_tuned(folder: Path, run: Run) -> list[tuple[Key, float]]:
    """The scores of a run on GLUE and SQuAD, averaged over fine-tuning seeds, GLUE's average over tasks, and attacks.

    An attack has the scores on attacked examples, and how much lower they are than on the same examples before.
    """
    paths = [result_of(folder, place_of_run(run, measure), measure) for measure in ("glue", "squad", "robustness")]
    rows = [row for path in paths if path for row in read_report(path, MEASURE_AGAIN)]
    keys = [_score_key(row) for row in rows]
    return [(key, row.value) for key, row in zip(keys, rows) if key is not None and row.value is not None]


def _score_key(row: Comparison) -> Key | None:
    """What a score of fine-tuning is called; None for the score before an attack."""
    data, _, attack = row.data.partition(UNDER)
    if attack:
        score, _, kind = row.measure.rpartition(" ")
        title, is_drop = f"{data} {score}{UNDER}{attack}", kind == DROP
        return None if kind == ORIGINAL else (FINE_TUNING, title + ", drop" * is_drop, "%", -1 if is_drop else 1)
    if row.measure in SQUAD_METRICS:
        return FINE_TUNING, f"{data} {row.measure}", "%", 1
    return FINE_TUNING, AVERAGE if row.measure == AVERAGE else data, "%", 1


def correct(rows: list[dict[str, Any]]) -> None:
    """Add Holm's p values, over all arms and measures of a group."""
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["p"] is not None:
            families.setdefault(row["group"], []).append(row)
    for family in families.values():
        for row, p in zip(family, holm([row["p"] for row in family])):
            row["holm"] = p


def compared(key: Key, values: Values, baseline: str, margin: float | None = None) -> list[dict[str, Any]]:
    """A row for each arm of a measure: its mean, and the difference from the baseline over the seeds of both.

    ``p`` is that of a paired t test. ``equivalent`` says whether the difference is smaller than the ``margin`` by two
    one-sided tests; None without a margin, or if the spread is unknown.
    The smallest detectable difference is computed from the standard deviation that all arms share.
    """
    rows, spreads = [], []
    for arm, by_seed in values.items():
        seeds = sorted(by_seed.keys() & values.get(baseline, {}).keys())
        row = {**_about(key), "arm": arm, "seeds": len(by_seed), "value": fmean(by_seed.values())}
        row |= {"values": by_seed, "pairs": 0, "difference": None, "low": None, "high": None}
        row |= {"p": None, "holm": None, "margin": margin, "equivalent": None}
        if arm != baseline and seeds:
            differences = [by_seed[seed] - values[baseline][seed] for seed in seeds]
            paired = compare_paired(differences)
            row |= {"pairs": len(seeds), "difference": paired.difference, "low": paired.low, "high": paired.high}
            row["p"] = paired.p
            if paired.low is not None and margin is not None:
                row["equivalent"] = is_equivalent(differences, margin)
            if len(seeds) > 1:
                spreads.append((len(seeds) - 1, summarize(differences).sd))
        rows.append(row)
    freedom = sum(n for n, _ in spreads)
    sd = math.sqrt(sum(n * sd**2 for n, sd in spreads) / freedom) if freedom else None
    for row in rows:
        # if all pairs agree, the spread is unknown
        row["detectable"] = detectable_difference(row["pairs"], sd) if sd and row["difference"] is not None else None
    return rows


def _about(key: Key) -> dict[str, Any]:
    return dict(zip(("group", "measure", "unit", "better"), key, strict=True)) | {"interval": "seeds"}


def lexical_rows(name: str, start: Start, folder: Path) -> list[dict[str, Any]]:
    """The lexical measures in LEXICAL, whose intervals resample items and seeds."""
    path = result_of(folder, place(name, "lexical"), "lexical")
    rows = []
    for row in read_report(path, MEASURE_AGAIN) if path else []:
        if row.measure not in LEXICAL:
            continue
        title, unit, better = LEXICAL[row.measure]
        title = title if row.data == "word embeddings" else f"{row.data}: {title}"
        low, high = row.difference_low, row.difference_high
        # a normal approximation: 1.96 and 0.84 standard errors
        detectable = None if low is None or high is None else (high - low) / (2 * 1.96) * (1.96 + 0.84)
        rows.append(
            {"group": WORDS, "measure": title, "unit": unit, "better": better}
            | {"interval": "items and seeds", "arm": row.name}
            | {"seeds": row.seeds, "value": row.value, "values": None, "pairs": row.seeds}
            | {"difference": row.difference, "low": low, "high": high, "detectable": detectable}
            | {"p": row.p, "holm": None}
        )
    return rows


def cost_rows(name: str, start: Start, folder: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The median tokens per second of each arm, and the time of an update compared with the baseline's."""
    path = folder / place(name, "cost") / RESULTS["cost"]
    if not path.exists():
        return {}, []
    speeds = read_json_object(path, RESTART)["tokens_per_second"]
    times: Values = {
        arm: {number: 100 * plain / own for number, (own, plain) in enumerate(zip(arm_speeds, speeds[start.baseline]))}
        for arm, arm_speeds in speeds.items()
    }
    rows = compared((COST, f"time of an update, that of {start.baseline} = 100", "%", -1), times, start.baseline)
    for row in rows:
        row["interval"] = "rounds"
    return {arm: median(arm_speeds) for arm, arm_speeds in speeds.items()}, rows
