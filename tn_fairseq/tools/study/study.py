"""A study: train the same model with several objectives and several seeds, measure all of them, and write a report.

Each step of preparation, each run, and each measure is a job. The table of a run or measure is its output. All work is
done in the study's folder, so that commands and their records have no paths of this machine.
"""

import logging
import os
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from ...core import PLUGIN
from ...core.checkpoints import load_checkpoint, save_checkpoint, updates_of
from ...core.configuration import import_plugin, parse_training_flags
from ...core.errors import InputError, exits_as_errors, if_interrupted, naming
from ...core.files import read_json_object
from .. import jobs
from ..jobs import Job, is_done, shown
from ..results.measures import DETAILS, WORDS, names_of
from ..results.report import TABLE
from ..results.table import column_table, join, read_table, table_of, write_table
from ..training_log import read_records
from .earlier import read_earlier
from .plan import Evaluation, Plan, Run, Start, Step, command_of_arm, read_plan, runs_of, training_command
from .study_report import check_free, write_study
from .study_rows import TRAINING_TEXT, finished_runs, log_rows

LAST = "checkpoint_last.pt"
PLANS = PLUGIN.parent / "examples" / "study" / "plans"  # in a clone
_FILE = re.compile(r"\bsources/[^\s'\"<>|;&()]+")  # in a command, also in one of a shell
# what one of our commands measures, as rows, for the words of its command line
Command = Callable[[Sequence[str]], pd.DataFrame]


def run_study(
    plan: Path,
    output: Path,
    commands: Mapping[str, Command],
    source: Sequence[tuple[str, str]] = (),
    start: Sequence[str] = (),
    earlier: Sequence[Path] = (),
    parallel: int | None = None,
    no_training: bool = False,
    dry_run: bool = False,
) -> None:
    """Train, measure and report what is left of a plan, a file or the name of one in PLANS.

    ``commands`` are analysis, glue, squad, robustness and lexical, ``source`` names and paths, ``start`` the starts to
    work on (default: all), and ``earlier`` folders whose runs are not repeated. Raises InputError if anything fails.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"--output {output}: is not a folder; name another one")
    path = (plan if plan.suffix else PLANS / f"{plan}.yaml").absolute()
    if len(dict(source)) < len(source):
        raise InputError("--source names a source twice; give each once")
    study = read_plan(path, dict(source))
    for name in start:
        if name not in study.starts:
            raise InputError(f"--start {name}: not in {path}, which has {', '.join(study.starts)}")
    known = read_earlier(earlier, study, output)
    elsewhere = {run for one in known for run in finished_runs(one.table)}
    check_free(output, path)
    if not dry_run:
        output.mkdir(parents=True, exist_ok=True)
    with chdir(output if output.is_dir() else "."), if_interrupted("run the same command again to resume"):
        training: dict[str, dict[Run, Job]] = {}
        for name in start or study.starts:
            every = training_jobs(name, study.starts[name])
            left = {run: not no_training and run not in elsewhere for run in every}
            training[name] = {run: job for run, job in every.items() if left[run] or is_done(job)}
        for name, runs in training.items():
            for job in runs.values():
                jobs.refuse(job)
            check_flags(study, path, name, [run for run, job in runs.items() if not is_done(job)])
        if dry_run:
            lines = [line for name, runs in training.items() for line in commands_left(study.starts[name], runs)]
            print("\n".join(lines) or f"nothing is left to do in {output}")
            return
        link_sources(study, path, [study.starts[name] for name, runs in training.items() if runs])
        torch.set_num_threads(study.threads)
        do = partial(jobs.run, folder=Path(), parallel=parallel or study.parallel, threads=study.threads)
        failed: list[str] = []
        tables: list[pd.DataFrame] = []
        for name, runs in training.items():
            rates = rate_jobs(study.starts[name], runs, commands)
            failed += do(with_needs([*runs.values(), *rates]))
            runs = {run: job for run, job in runs.items() if is_done(job)}
            others = joint_jobs(name, study.starts[name], runs, commands)
            others += [] if no_training else cost_jobs(name, study.starts[name], runs)
            failed += do(with_needs(others))
            done = [job for job in (*runs.values(), *rates, *others) if is_done(job)]
            tables += [read_table(job.output)[0] for job in done]
            tables += [hours_of(name, job) for job in done if job not in runs.values()]
        rows = join(*tables)
        rows = join(rows, *(one.rows(study, finished_runs(rows)) for one in known))
        if rows.empty:
            raise InputError(f"--output {output}: has no finished run of {path}, so there is nothing to report")
        write_study(study, path, output, rows, known, failed)
    if failed:
        raise InputError(f"{failed[0]}{f' (and {len(failed) - 1} more)' if failed[1:] else ''}; run again to retry")


# Jobs


def with_needs(wanted: Iterable[Job]) -> list[Job]:
    """The jobs that are left, each after those that it needs and that are left."""
    found: dict[Job, None] = {}
    for job in wanted:
        if not is_done(job):
            found |= dict.fromkeys([*with_needs(job.needs), job])
    return list(found)


def prepare_jobs(*steps: Step) -> tuple[Job, ...]:
    """The steps of preparation, each after the one before."""
    made: tuple[Job, ...] = ()
    for step in {step.output: step for step in steps}.values():
        words, log = shlex.split(step.command), Path("logs", f"{step.output.replace('/', '-')}.log")
        job = Job(step.output, words, Path(step.output), {"command": shown(words)}, made[-1:], log, weight=0)
        made += (job,)
    return made


def training_jobs(name: str, start: Start) -> dict[Run, Job]:
    """The training of each run of a start. Its table has the curves, and its checkpoints keep only weights."""
    return {run: _training_job(start, run, prepare_jobs(*start.prepare)) for run in runs_of(name, start)}


def _training_job(start: Start, run: Run, needs: tuple[Job, ...]) -> Job:
    words, updates, log = training_command(start, run), start.updates_of(run.arm), run.folder / "train.log"
    window = start.measures.logs.window if start.measures.logs else 10 * start.log_every

    def check() -> None:
        if (made := updates_in(run.folder / LAST)) < updates:
            raise InputError(f"ended after {made:,} of {updates:,} updates (see {log})")

    def finish() -> None:
        keep_weights(run.folder)
        write_table(log_rows(log, run, window), run.folder / TABLE)

    return Job(str(run), words, run.folder / TABLE, {"command": shown(words)}, needs, log, updates, check, finish)


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


def rate_jobs(start: Start, training: Mapping[Run, Job], commands: Mapping[str, Command]) -> list[Job]:
    """The analysis of each run, on held-out text and on other texts."""
    found = []
    for measure, settings in start.measures.evaluations().items():
        if measure != "rates" and not measure.startswith("elsewhere"):
            continue
        for run in _measured(settings, training):
            path = run.folder / ("checkpoint*.pt" if measure == "rates" else LAST)
            words = [*([start.data] if measure == "rates" else []), *shlex.split(settings.flags), "--path", str(path)]
            output = Path("measures", run.start, measure, run.arm, f"seed{run.seed}.parquet")
            function = partial(_analyze, commands["analysis"], words, measure, run, output)
            needs = (*prepare_jobs(*start.prepare, *settings.prepare), training[run])
            found.append(Job(f"{measure} of {run}", function, output, {"words": words}, needs, weight=0, redo=True))
    return found


def _measured(settings: Evaluation, runs: Iterable[Run]) -> list[Run]:
    return [
        run
        for run in runs
        if (settings.arms is None or run.arm in settings.arms)
        and (settings.seeds is None or run.seed in settings.seeds)
    ]


def _analyze(command: Command, words: Sequence[str], measure: str, run: Run, output: Path) -> None:
    rows = command([*words, "--output", str(output.parent)])
    tables = [part for part in dict.fromkeys(rows["part"]) if part]
    rows = rows[rows["part"].isin(["", *tables[:1]])]  # rates of the first synonym table
    rows = rows.groupby(["checkpoint", "measure"], sort=False, as_index=False)["value"].mean()  # over the maskings
    data = "held-out text"
    if measure != "rates":
        rows = rows[rows["measure"].isin(["accuracy", "loss"])]
        rows["measure"] = "other_" + rows["measure"]
        # elsewhere_training_novels is about "training novels"
        data = measure.removeprefix("elsewhere").replace("_", " ").strip() or "other text"
    output.parent.mkdir(parents=True, exist_ok=True)
    write_table(column_table(rows.to_dict("list") | {"data": data} | run._asdict()), output)


def joint_jobs(name: str, start: Start, training: Mapping[Run, Job], commands: Mapping[str, Command]) -> list[Job]:
    """The evaluations that measure all trained runs together."""
    found: dict[str, Job] = {}
    for measure in ("glue", "squad", "robustness", "lexical"):
        settings: Evaluation | None = getattr(start.measures, measure)
        runs = _measured(settings, training) if settings else []
        if not settings or not runs:
            continue
        folder = Path("measures", name, measure)
        own, sign, more = settings.flags.partition(" -- ")  # flags for fairseq-train go last
        checkpoints = [f"{run.arm}.seed{run.seed}={run.folder / LAST}" for run in runs]
        if measure == "robustness":
            checkpoints = [str(folder.with_name("squad"))]
        words = [*checkpoints, *(["--data", start.data] if measure == "lexical" else []), *shlex.split(own)]
        words += ["--output", str(folder), *(["--", *shlex.split(more)] if sign else [])]
        output = folder.with_suffix(".parquet")
        needs = (*prepare_jobs(*start.prepare, *settings.prepare), *(training[run] for run in runs))
        needs += (found["squad"],) if measure == "robustness" else ()
        function = partial(_evaluate, commands[measure], words, name, output)
        found[measure] = Job(
            f"{measure} of {name}", function, output, {"words": words}, needs, weight=0, redo=True, alone=True
        )
    return list(found.values())


def _evaluate(command: Command, words: Sequence[str], name: str, output: Path) -> None:
    """Measure, with arm and seed from the names of the checkpoints; only the items of words are kept, not averaged."""
    rows = command(words)
    names = rows["arm"].str.extract(r"^(?P<arm>.*)\.seed(?P<seed>\d+)$")
    rows = rows.assign(arm=names["arm"].fillna(rows["arm"]), seed=names["seed"].fillna(0).astype(int))
    rows = rows[rows["measure"].isin(names_of()) & ~rows["measure"].isin(DETAILS)]
    rows = rows.assign(part=rows["part"].where(rows["measure"] != "average", ""))
    of_words = rows["measure"].isin(names_of(WORDS))
    keys = ["arm", "seed", "data", "measure", "part"]
    means = rows[~of_words].groupby(keys, sort=False, as_index=False)["value"].mean()
    output.parent.mkdir(parents=True, exist_ok=True)
    write_table(join(column_table(means.to_dict("list") | {"start": name}), rows[of_words].assign(start=name)), output)


def cost_jobs(name: str, start: Start, training: Mapping[Run, Job]) -> list[Job]:
    """Short training runs of all arms in turns, one at a time, so that other load slows all of them alike."""
    cost = start.measures.cost
    arms = [arm for arm in dict.fromkeys(run.arm for run in training) if cost and arm in (cost.arms or start.arms)]
    if not cost or start.baseline not in arms:
        return []
    found = []
    for turn in range(1, cost.rounds + 1):
        for arm in arms:
            words = [*command_of_arm(start, arm, seed=1), "--total-num-update", str(start.updates_of(arm))]
            words += ["--max-update", str(cost.updates), "--no-save", "--save-dir", "measures", "--disable-validation"]
            words += ["--log-format", "json", "--log-interval", str(max(1, cost.updates // 5))]
            output = Path("measures", name, "cost", f"{arm}.round{turn}.parquet")
            log = output.with_suffix(".log")
            finish = partial(_speed, log, output, name, arm, turn)
            about = {"command": shown(words), "arms": arms, "rounds": cost.rounds}
            needs = prepare_jobs(*start.prepare)
            job = Job(f"{name}: speed of {arm}, {turn}", words, output, about, needs, log, 0, None, finish, True, True)
            found.append(job)
    return found


def _speed(log: Path, output: Path, name: str, arm: str, turn: int) -> None:
    records = read_records(log, "train_inner")[1:]  # the first interval includes warming up
    if not records:
        raise InputError(f"no speeds in {log}; raise measures.cost.updates")
    speed = statistics.median(float(record["wps"]) for record in records)
    row = {"arm": arm, "seed": turn, "data": TRAINING_TEXT, "measure": "tokens_per_second", "value": speed}
    write_table(table_of([row], start=name), output)


def hours_of(name: str, job: Job) -> pd.DataFrame:
    """How long a job took."""
    seconds = read_json_object(job.marker, "delete it").get("seconds", 0)
    return table_of([{"data": "measuring", "measure": "hours", "item": job.name, "value": seconds / 3600}], start=name)


# Checks before anything runs


def check_flags(plan: Plan, path: Path, name: str, runs: Sequence[Run]) -> None:
    """Raises InputError if a plugin cannot be imported, or fairseq-train would refuse a flag of a run."""
    logging.getLogger("fairseq.utils").setLevel(logging.WARNING)  # it says that the plugin is already imported
    start = plan.starts[name]
    # a plugin stays imported, so those without one come first
    for run in sorted({run.arm: run for run in runs}.values(), key=lambda run: bool(start.arms[run.arm].user_dir)):
        with naming(f"{path}: starts.{name}.arms.{run.arm}, or what all arms share:"):
            words = training_command(start, run)[1:]
            if user_dir := start.arms[run.arm].user_dir:
                # linked later, or by an earlier call
                place = Path(plan.sources[Path(user_dir).name] or user_dir)
                if place.name != Path(user_dir).name:
                    raise InputError(f"user_dir: its folder is {place.name}, so the source must also have this name")
                import_plugin(place)
                words[words.index("--user-dir") + 1] = str(place)
            with exits_as_errors():
                parse_training_flags(words)


def link_sources(plan: Plan, path: Path, starts: Sequence[Start]) -> None:
    """Link each source that the starts use as sources/NAME, so that commands need no paths of this machine.

    A link of an earlier sitting is used if the source is not given now. Raises InputError if a source, or a file of it
    that a command reads, is missing.
    """
    used = str(starts)
    for name, place in plan.sources.items():
        link = Path("sources", name)
        if not re.search(rf"sources/{re.escape(name)}(?![\w.-])", used):
            continue
        if place is None:
            if not link.exists():
                raise InputError(f"{path}: sources.{name}: is missing; give --source {name}=PATH{plan.hint(name)}")
            continue
        if not Path(place).exists():
            raise InputError(f"{path}: sources.{name}: {place} does not exist; give --source {name}=PATH")
        link.parent.mkdir(exist_ok=True)
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            raise InputError(f"{link}: not a link, as in a folder that was copied; delete it")
        link.symlink_to(place)
    evaluations = [one for start in starts for one in start.measures.evaluations().values()]
    commands = [step.command for start in starts for step in start.steps() if not is_done(prepare_jobs(step)[0])]
    commands += [one.flags for one in evaluations]
    words = (word for command in commands for word in shlex.split(command))
    # A word that is a file may have spaces. os.path.exists, because a whole command is too long for the name of a file.
    for file in _FILE.findall(" ".join(word for word in words if not os.path.exists(word))):
        if not ("*" in file or "?" in file or Path(file).exists()):
            raise InputError(f"{Path(file).resolve()}: is missing{plan.hint(file.removeprefix('sources/'))}")


def commands_left(start: Start, training: Mapping[Run, Job]) -> list[str]:
    """The commands of preparation and training that are left, and a comment that names the measures."""
    if not training:
        return []
    name = next(iter(training)).start
    kinds = ("analysis", *start.measures.evaluations())
    nothing: dict[str, Command] = {kind: lambda words: table_of([]) for kind in kinds}
    others = [*rate_jobs(start, training, nothing), *joint_jobs(name, start, training, nothing)]
    measures = [job.name.partition(" of ")[0] for job in others if not is_done(job)]
    measures += ["cost"] if any(not is_done(job) for job in cost_jobs(name, start, training)) else []
    comment = f"# then these measures of {name}: {', '.join(dict.fromkeys(measures))}"
    commands = [shown(job.run) for job in with_needs(training.values()) if not callable(job.run)]
    return commands + ([comment] if measures else [])
