"""A study: train the same model with several objectives and several seeds, measure all of them, and write a report."""

import json
import logging
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from ...core import PLUGIN
from ...core.configuration import import_plugin, parse_training_flags
from ...core.errors import InputError, exits_as_errors, if_interrupted, naming
from ...core.files import read_json_object, write_text
from ..launching import last_line, launching
from .figures import finished_of, read_earlier
from .measures import (
    LAST,
    LOG,
    RESTART,
    STATE,
    forget_measures,
    is_finished,
    keep_weights,
    measure_run,
    measure_together,
    measures_left,
    prepare_measures,
    updates_in,
)
from .plan import Plan, Run, Start, hint, read_plan, runs_of, training_command, updates_of_arm
from .progress import clock, hours_left
from .runner import LOCK, Runner, is_prepared, say, shown
from .study_report import JSON, check_free, write_study

_FILE = re.compile(r"\bsources/[^\s'\"<>|;&()]+")  # in a command, also in one of a shell
SECONDS = 30  # between two updates of the line that says how much time is left
PLANS = PLUGIN.parent / "examples" / "study" / "plans"  # in a clone


@dataclass(frozen=True)
class StudyOptions:
    """What to run of a plan, and where."""

    plan: Path  # of a YAML file, or the name of one in PLANS
    output: Path
    source: Sequence[tuple[str, str]] = ()  # names and paths
    start: Sequence[str] | None = None  # only these
    earlier: Sequence[Path] = ()  # study.json of other folders, whose runs are not repeated
    parallel: int | None = None  # runs at the same time, by default the plan's number
    no_training: bool = False
    dry_run: bool = False


def run_study(options: StudyOptions) -> None:
    """Train, measure and report what is left; raises InputError if anything fails."""
    if options.output.exists() and not options.output.is_dir():
        raise InputError(f"--output {options.output}: is not a folder; name another one")
    path = options.plan if options.plan.suffix else PLANS / f"{options.plan}.yaml"
    sources = dict(options.source)
    if len(sources) < len(options.source):
        raise InputError("--source names a source twice; give each once")
    plan = read_plan(path, sources)
    for name in options.start or []:
        if name not in plan.starts:
            raise InputError(f"--start {name}: not in {path}, which has {', '.join(plan.starts)}")
    places = [place.resolve() for place in options.earlier]
    for place in places:
        if place == (options.output / JSON).resolve() or places.count(place) > 1:
            raise InputError(f"--earlier {place}: would count twice; give the study.json of another folder, once")
    earlier = [read_earlier(path, plan) for path in options.earlier]
    runs, known = runs_left(plan, options, earlier)
    for name, start_runs in runs.items():
        for run in start_runs:  # before hours of training
            check_settings(options.output, plan.starts[name], run)
        arms = plan.starts[name].arms
        left = [run for run in start_runs if not (options.no_training or is_finished(options.output, run))]
        # a plugin stays imported, so those without one come first
        for run in sorted({run.arm: run for run in left}.values(), key=lambda run: bool(arms[run.arm].user_dir)):
            with naming(f"{path}: starts.{name}.arms.{run.arm}, or what all arms share:"):
                check_flags(plan, options.output, plan.starts[name], run)
    if options.dry_run:
        commands = remaining_commands(options.output, plan, runs, not options.no_training)
        print("\n".join(commands) or f"nothing is left to do in {options.output}")
        return
    if options.no_training and not (runs or earlier):
        raise InputError(f"--output {options.output}: has no finished run of {path}, so there is nothing to report")
    check_free(options.output, path)
    busy = f"{options.output}: another study, or a run that it started, is still working there; wait for it to end"
    resume = if_interrupted("run the same command again to resume")
    with resume, launching(options.output / LOCK, busy, options.output) as launcher:
        runner = Runner(options.output, launcher, plan.threads)
        if runs:
            link_sources(plan, path, options.output, [plan.starts[name] for name in runs])
        failed = carry_out(plan, runs, runner, options.parallel or plan.parallel, not options.no_training, known)
        write_study(plan, path, options.output, machine(), earlier)
    if failed:
        raise InputError(f"{failed[0]}{f' (and {len(failed) - 1} more)' if failed[1:] else ''}; run again to retry")


def runs_left(
    plan: Plan, options: StudyOptions, earlier: Sequence[dict[str, Any]]
) -> tuple[dict[str, list[Run]], dict[str, list[float]]]:
    """The runs of each start that this folder has or should have, and the hours of finished ones in earlier studies."""
    runs, known = {}, {}
    for name in options.start or plan.starts:
        there = [study["starts"][name] for study in earlier if name in study["starts"]]
        known[name] = [run["hours"] for study in there for run in study["runs"] if run["state"] == "finished"]
        wanted = runs_of(name, plan.starts[name])
        done = {run for study in there for run in finished_of(study, wanted)}
        here = {run for run in wanted if is_finished(options.output, run)}
        left = [run for run in wanted if run not in done or run in here]
        if here or left and not options.no_training:
            runs[name] = left
    return runs, known


def carry_out(
    plan: Plan, runs: dict[str, list[Run]], runner: Runner, parallel: int, training: bool, known: dict[str, list[float]]
) -> list[str]:
    """Prepare, train and measure what is left of each start; return what failed."""
    failed = []

    def left() -> str:
        return clock(hours_left(plan, chain(*runs.values()), runner.folder, parallel, known))

    count = sum(not is_finished(runner.folder, run) for run in chain(*runs.values()))
    if training and count:
        print(f"runs left: {count}; {left()} with {parallel} at a time", flush=True)
    for name, start_runs in runs.items():
        start = plan.starts[name]
        runner.prepare(name, start.prepare)
        prepare_measures(name, start, runner)
        failed += train_all(start, start_runs, runner, parallel, training, left)
        failed += measure_together(name, start, runner)
    return failed


def link_sources(plan: Plan, path: Path, folder: Path, starts: Sequence[Start]) -> None:
    """Link each source that the starts use as sources/NAME, so that commands need no paths of this machine.

    A link of an earlier sitting is used if the source is not given now. Raises InputError if a source, or a file of it
    that a command reads, is missing.
    """
    used = str(starts)
    for name, place in plan.sources.items():
        link = folder / "sources" / name
        if not re.search(rf"sources/{re.escape(name)}(?![\w.-])", used):
            continue
        if place is None:
            if not link.exists():
                raise InputError(f"{path}: sources.{name}: is missing; give --source {name}=PATH{hint(plan, name)}")
            continue
        if not Path(place).exists():
            raise InputError(f"{path}: sources.{name}: {place} does not exist; give --source {name}=PATH")
        link.parent.mkdir(exist_ok=True)
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            raise InputError(f"{link}: not a link, as in a folder that was copied; delete it")
        link.symlink_to(place)
    commands = [step.command for start in starts for step in start.steps() if not is_prepared(folder, step)]
    commands += [measure.flags for start in starts for measure in start.measures.values()]
    words = (word for command in commands for word in shlex.split(command))
    # A word that is a file may have spaces. os.path.exists, because a whole command is too long for the name of a file.
    for file in _FILE.findall(" ".join(word for word in words if not os.path.exists(folder / word))):
        if not ("*" in file or "?" in file or (folder / file).exists()):
            name = file.removeprefix("sources/")
            raise InputError(f"{(folder / file).resolve()}: is missing{hint(plan, name)}")


# Training


def check_settings(folder: Path, start: Start, run: Run) -> None:
    """Raises InputError if a run in the folder of a study was trained with another command."""
    path = folder / run.folder / STATE
    if not path.exists():
        return
    if read_json_object(path, RESTART).get("command") != shown(training_command(start, run)):
        raise InputError(
            f"{folder / run.folder}: was trained with another command; give another --output, or delete the "
            f"folder to train it again (see {STATE} in it)"
        )


def check_flags(plan: Plan, folder: Path, start: Start, run: Run) -> None:
    """Raises InputError if the plugin cannot be imported, or fairseq-train would refuse a flag of a run."""
    logging.getLogger("fairseq.utils").setLevel(logging.WARNING)  # it says that the plugin is already imported
    words = training_command(start, run)[1:]
    if user_dir := start.arms[run.arm].user_dir:
        # linked later, or by an earlier call
        place = Path(plan.sources[Path(user_dir).name] or folder / user_dir)
        if place.name != Path(user_dir).name:
            raise InputError(f"user_dir: its folder is {place.name}, so the source must also have this name")
        import_plugin(place)
        words[words.index("--user-dir") + 1] = str(place)
    with exits_as_errors():
        parse_training_flags(words)


def train_all(
    start: Start, runs: Sequence[Run], runner: Runner, parallel: int, training: bool, left: Callable[[], str]
) -> list[str]:
    """Train and measure all runs, ``parallel`` at a time, and show what is ``left``; return what failed."""
    failed, done = [], sum(is_finished(runner.folder, run) for run in runs)
    print(f"{done} of {len(runs)} runs of {runs[0].start} are finished", flush=True)
    with ThreadPoolExecutor(parallel) as pool:
        futures = {pool.submit(train_and_measure, start, run, runner, training): run for run in runs}
        try:
            while futures:
                if sys.stdout.isatty():
                    say(f"[{done}/{len(runs)}] {left()} left in all", end="")
                for future in wait(futures, SECONDS, FIRST_COMPLETED).done:
                    run = futures.pop(future)
                    messages, is_new = future.result()
                    failed += messages
                    done += is_new
                    for message in ([f"{run} is finished; {left()} left in all"] if is_new else []) + messages:
                        say(f"[{done}/{len(runs)}] {message}")
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return failed


def train_and_measure(start: Start, run: Run, runner: Runner, training: bool) -> tuple[list[str], bool]:
    """Train one run unless it is finished, and measure it; return what failed, and whether it finished now."""
    is_new = not is_finished(runner.folder, run)
    try:
        if is_new:
            message = train(start, run, runner, training)
            if message or not is_finished(runner.folder, run):
                return [message] if message else [], False
        return measure_run(start, run, runner), is_new
    except (InputError, OSError) as error:  # such as a full disk; the other runs go on
        return [f"{run}: {error}"], False


def train(start: Start, run: Run, runner: Runner, training: bool) -> str | None:
    """Train or resume a run, and keep only the weights of its checkpoints; return what failed."""
    words, folder = training_command(start, run), runner.folder / run.folder
    state = {"command": shown(words)}
    if training and not (folder / STATE).exists():
        forget_measures(runner.folder, run)
    if updates_in(folder / LAST) < updates_of_arm(start, run.arm):  # else, it was killed after its last update
        if not training:
            return None
        write_state(folder, {**state, "state": "started"})
        code = runner.run(words, run.folder / LOG)
        made, wanted = updates_in(folder / LAST), updates_of_arm(start, run.arm)
        if code or made < wanted:
            how = f" with exit code {code}" if code else ""
            error = last_line(folder / LOG) if code else f"it ended after {made:,} of {wanted:,} updates"
            write_state(folder, {**state, "state": "failed", "exit_code": code, "error": error})
            return f"{run} failed{how}: {error} (see {folder / LOG})"
    keep_weights(folder)
    write_state(folder, {**state, "state": "finished"})
    return None


def write_state(folder: Path, state: dict) -> None:
    write_text(folder / STATE, json.dumps({**state, "written": time.strftime("%Y-%m-%d %H:%M:%S")}, indent=2) + "\n")


def remaining_commands(folder: Path, plan: Plan, runs: dict[str, list[Run]], training: bool) -> list[str]:
    """The commands of preparation and training that are left, and a comment that names the measures."""
    lines = []
    for name, start_runs in runs.items():
        start = plan.starts[name]
        lines += [step.command.strip() for step in start.prepare if not is_prepared(folder, step)]
        left = [run for run in start_runs if not is_finished(folder, run)]
        lines += [shown(training_command(start, run)) for run in left if training]
        about = start_runs if training else [run for run in start_runs if run not in left]
        if measures := measures_left(name, start, about, folder):
            lines.append(f"# then these measures of {name}: {', '.join(measures)}")
    return lines


def machine() -> dict[str, str]:
    """The processor with its number of cores and the GPU, as the system gives them, and its and Python's versions."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []  # only on Linux
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    processor = f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"
    if torch.cuda.is_available():
        processor += f", {torch.cuda.get_device_name()}"
    return {"processor": processor, "system": platform.platform(), "python": f"Python {platform.python_version()}"}
