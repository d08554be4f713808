"""Measure finished runs: which commands to run, and where their results are."""

import json
import shlex
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from ...core.checkpoints import load_checkpoint, save_checkpoint, updates_of
from ...core.errors import InputError
from ...core.files import read_json_object, write_text
from ..launching import last_line
from ..reporting.training_log import read_records
from .plan import ELSEWHERE, MEASURES, Measure, Run, Start, command_of_arm, kind_of, runs_of, updates_of_arm
from .runner import Runner, say, shown

STATE, LOG, LAST, RESTART = "run.json", "train.log", "checkpoint_last.pt", "delete its folder to start over"
RESULTS = {
    "rates": "false_negatives.json",
    ELSEWHERE: "false_negatives.json",
    "lexical": "lexical.json",
    "glue": "glue.json",
    "squad": "squad.json",
    "robustness": "robustness.json",
    "cost": "cost.json",
}
# these measure one run, as soon as it is trained, in this order; the others compare all runs
BY_RUN = ("rates", ELSEWHERE, "glue", "squad", "robustness")
COMMAND = "command.txt"  # in the folder of a measure: the command that wrote it, and the runs that it measured


def is_finished(folder: Path, run: Run) -> bool:
    """Whether a run of the study in ``folder`` is trained, and its checkpoints hold only weights."""
    path = folder / run.folder / STATE
    return path.exists() and read_json_object(path, RESTART).get("state") == "finished"


def updates_in(checkpoint: Path) -> int:
    """The number of updates of a checkpoint, or 0 if there is none that can be read."""
    try:
        return updates_of(load_checkpoint(checkpoint)) or 0
    except InputError:
        return 0


def keep_weights(folder: Path) -> None:
    """Drop the optimizer's state from the checkpoints of a finished run, and keep the last one only once.

    That leaves a third of their size. They can be measured and fine-tuned, but not resumed.
    """
    updates = updates_in(folder / LAST)
    for path in folder.glob("checkpoint*.pt"):
        state = load_checkpoint(path)
        if path.name != LAST and updates_of(state) == updates:
            path.unlink()
        elif state.get("last_optimizer_state") is not None:
            save_checkpoint({**state, "last_optimizer_state": None}, path)


def place(start: str, measure: str) -> Path:
    """The folder of a measure, relative to that of the study."""
    return Path("measures", start, measure)


def place_of_run(run: Run, measure: str) -> Path:
    """The folder of a measure in BY_RUN, relative to that of the study."""
    return place(run.start, measure) / run.arm / f"seed{run.seed}"


def log_of(output: Path) -> Path:
    """The log of the command that writes a measure to a folder, relative to the folder of the study."""
    return Path("logs", *output.parts).with_suffix(".log")


def result_of(folder: Path, output: Path, measure: str) -> Path | None:
    """The result of a measure, or None if it is missing, or if its last command failed."""
    path = folder / output / RESULTS[kind_of(measure)]
    return path if path.exists() and path.with_name(COMMAND).exists() else None


def forget_measures(folder: Path, run: Run) -> None:
    """Delete what was measured of earlier weights of a run."""
    for path in folder.glob(str(place(run.start, "*"))):
        if kind_of(path.name) in BY_RUN:
            shutil.rmtree(folder / place_of_run(run, path.name), ignore_errors=True)
    (folder / place(run.start, "lexical") / COMMAND).unlink(missing_ok=True)


def measures_of_runs(start: Start) -> dict[str, Measure]:
    """The measures of a start that measure one run, in the order of BY_RUN."""
    names = (name for name in start.measures if kind_of(name) in BY_RUN)
    return {name: start.measures[name] for name in sorted(names, key=lambda name: BY_RUN.index(kind_of(name)))}


def prepare_measures(name: str, start: Start, runner: Runner) -> None:
    """Prepare the measures in BY_RUN; raises InputError if that fails."""
    for measure, settings in measures_of_runs(start).items():
        runner.prepare(f"{name}.{measure}", settings.prepare)


def measure_run(start: Start, run: Run, runner: Runner) -> list[str]:
    """Take the measures in BY_RUN of one run; return what failed."""
    failed = []
    for measure, settings in measures_of_runs(start).items():
        if run not in measured_runs(run.start, start, settings):
            continue
        if measure == "robustness" and result_of(runner.folder, place_of_run(run, "squad"), "squad") is None:
            continue  # SQuAD failed
        output = place_of_run(run, measure)
        words = _words_of_run(measure, settings.flags, start, run, output)
        failed.append(_measure(f"{measure} of {run}", words, output, RESULTS[kind_of(measure)], [run], runner))
    return [message for message in failed if message]


def _words_of_run(measure: str, flags: str, start: Start, run: Run, output: Path) -> list[str]:
    """The command of a measure in BY_RUN."""
    if measure == "rates":
        words = ["tn-fairseq", "look", "analysis", start.data, "--path", f"{run.folder}/checkpoint*.pt"]
        return [*words, *shlex.split(flags), "--output", str(output)]
    if kind_of(measure) == ELSEWHERE:  # the flags begin with the data
        words = ["tn-fairseq", "look", "analysis", *shlex.split(flags), "--path", str(run.folder / LAST)]
        return [*words, "--output", str(output)]
    if measure == "robustness":
        words = ["tn-fairseq", "evaluate", measure, str(place_of_run(run, "squad"))]
        return [*words, *shlex.split(flags), "--output", str(output)]
    own, sign, more = flags.partition(" -- ")  # flags for fairseq-train go last
    words = ["tn-fairseq", "evaluate", measure, f"{run.arm}.seed{run.seed}={run.folder / LAST}"]
    return [*words, *shlex.split(own), "--output", str(output), *(["--", *shlex.split(more)] if sign else [])]


def measures_left(name: str, start: Start, runs: Sequence[Run], folder: Path) -> list[str]:
    """The measures that ``runs``, or all runs together, still lack; a run without training lacks all of its own."""
    lacking = []
    for measure, settings in measures_of_runs(start).items():
        for run in (run for run in measured_runs(name, start, settings) if run in runs):
            output = place_of_run(run, measure)
            words = _words_of_run(measure, settings.flags, start, run, output)
            if not is_measured(folder / output, RESULTS[kind_of(measure)], words, [run]):
                lacking.append(measure)
                break
    together = [measure for measure in start.measures if measure in COMMANDS and runs]
    return lacking + [one for one in together if not (folder / place(name, one) / RESULTS[one]).exists()]


def is_measured(folder: Path, result: str, words: Sequence[str], runs: Sequence[Run]) -> bool:
    """Whether the folder of a measure has the result of this command about these runs."""
    known = folder / COMMAND
    return (folder / result).exists() and known.exists() and known.read_text("utf-8") == _record(words, runs)


def _record(words: Sequence[str], runs: Sequence[Run]) -> str:
    return "\n".join([shown(words), *map(str, runs)]) + "\n"


def measured_runs(name: str, start: Start, measure: Measure) -> list[Run]:
    """The runs that a measure is about, finished or not."""
    return [
        run
        for run in runs_of(name, start)
        if run.arm in (measure.arms or start.arms) and (measure.seeds is None or run.seed in measure.seeds)
    ]


def measure_together(name: str, start: Start, runner: Runner) -> list[str]:
    """Take the measures that compare all finished runs; return what failed."""
    failed = []
    for measure, settings in start.measures.items():
        runs = [run for run in measured_runs(name, start, settings) if is_finished(runner.folder, run)]
        if measure not in COMMANDS or start.baseline not in [run.arm for run in runs]:
            continue
        try:
            runner.prepare(f"{name}.{measure}", settings.prepare)
            failed.append(COMMANDS[measure](name, start, settings, runs, runner))
        except InputError as error:
            failed.append(str(error))
    return [message for message in failed if message]


def _measure(
    title: str, words: Sequence[str], output: Path, result: str, runs: Sequence[Run], runner: Runner
) -> str | None:
    """Run a command of a measure unless its result is from the same command and the same runs; return what failed."""
    folder = runner.folder / output
    known = folder / COMMAND
    if is_measured(folder, result, words, runs):
        return None
    known.unlink(missing_ok=True)
    say(title)
    log = log_of(output)
    code = runner.run(words, log)
    if code:
        return f"{title} failed with exit code {code}: {last_line(runner.folder / log)} (see {runner.folder / log})"
    write_text(known, _record(words, runs))
    return None


def _lexical(name: str, start: Start, measure: Measure, runs: Sequence[Run], runner: Runner) -> str | None:
    output = place(name, "lexical")
    links = place(name, "checkpoints")
    shutil.rmtree(runner.folder / links, ignore_errors=True)
    for run in runs:  # patterns that match finished runs only
        link = runner.folder / links / run.arm / f"seed{run.seed}.pt"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to((runner.folder / run.folder / LAST).absolute())
    arms = dict.fromkeys(run.arm for run in runs)
    words = ["tn-fairseq", "evaluate", "lexical", *(f"{arm}={links / arm}/*.pt" for arm in arms)]
    words += ["--baseline", start.baseline, "--data", start.data, *shlex.split(measure.flags), "--output", str(output)]
    return _measure(f"lexical of {name}", words, output, RESULTS["lexical"], runs, runner)


def _cost(name: str, start: Start, measure: Measure, runs: Sequence[Run], runner: Runner) -> str | None:
    """Time short training runs of all arms in turns, one at a time, so that other load slows all of them alike."""
    output, arms = place(name, "cost"), list(dict.fromkeys(run.arm for run in runs))
    path = runner.folder / output / RESULTS["cost"]
    flags = {arm: f"{start.train} {start.arms[arm].flags}" for arm in arms}
    settings = {"updates": measure.updates, "rounds": measure.rounds, "flags": flags}
    known = read_json_object(path, RESTART) if path.exists() else {"tokens_per_second": {}}
    if list(known["tokens_per_second"]) == arms and settings.items() <= (settings | known).items():
        return None
    say(f"cost of {name}")
    speeds: dict[str, list[float]] = {arm: [] for arm in arms}
    for number in range(1, measure.rounds + 1):
        for arm in arms:
            words = [*command_of_arm(start, arm, seed=1), "--total-num-update", str(updates_of_arm(start, arm))]
            words += ["--max-update", str(measure.updates), "--no-save", "--disable-validation"]
            words += ["--log-format", "json", "--log-interval", str(max(1, measure.updates // 5))]
            log = Path("logs", *output.parts, f"{arm}.round{number}.log")
            (runner.folder / log).unlink(missing_ok=True)
            if runner.run(words, log):
                return f"cost of {name}/{arm} failed: {last_line(runner.folder / log)} (see {runner.folder / log})"
            # the first interval includes warming up
            records = read_records(runner.folder / log, "train_inner")[1:]
            if not records:
                return f"cost of {name}/{arm}: no speeds in {runner.folder / log}; raise measures.cost.updates"
            speeds[arm].append(statistics.median(float(record["wps"]) for record in records))
    write_text(path, json.dumps({**settings, "tokens_per_second": speeds}, indent=2) + "\n")
    return None


COMMANDS = {"lexical": _lexical, "cost": _cost}
assert {*COMMANDS, *BY_RUN, "logs"} == set(MEASURES)
