"""The plan of a study: a YAML file, read with OmegaConf and checked before anything runs."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path

from omegaconf import MISSING, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException, ValidationError
from yaml import YAMLError

from ...core import PLUGIN
from ...core.errors import InputError, first_line
from ...core.files import read_text

ELSEWHERE = "elsewhere"  # the only measure that a start can have several times: elsewhere_NAME for each text
# what the study can measure, and whether it needs flags
MEASURES = {
    "logs": False,
    "rates": True,
    ELSEWHERE: True,
    "lexical": True,
    "glue": True,
    "squad": True,
    "robustness": True,
    "cost": False,
}
# settings that not all measures have
ONLY_OF = {
    "flags": [kind for kind, needs_flags in MEASURES.items() if needs_flags],
    **dict.fromkeys(("seeds", "prepare"), [kind for kind in MEASURES if kind != "logs"]),
    **dict.fromkeys(("levels", "window"), ["logs"]),
    **dict.fromkeys(("updates", "rounds"), ["cost"]),
}
# flags that the study sets itself
FIXED = {
    *("--seed", "--save-dir", "--max-update", "--total-num-update", "--user-dir", "--log-format", "--log-interval"),
    *("--save-interval-updates", "--no-epoch-checkpoints", "--no-save", "--disable-validation", "--restore-file"),
    *("--no-last-checkpoints", "--checkpoint-suffix", "--max-epoch", "--stop-time-hours", "--stop-min-lr"),
    *("--patience", "--reset-optimizer", "--reset-lr-scheduler", "--reset-meters", "--reset-dataloader"),
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass
class Step:
    """A command that prepares data, and the file that it writes last."""

    output: str = MISSING
    command: str = MISSING


@dataclass
class Arm:
    """One of the objectives to compare: its flags for fairseq-train.

    Its seeds and updates are those of the start unless it has its own. ``user_dir`` is a plugin with an objective that
    is not ours, such as sources/NAME. ``resembles`` names the model of the paper's Table 3 with this objective.
    """

    about: str = MISSING
    flags: str = MISSING
    seeds: list[int] | None = None
    updates: int | None = None
    user_dir: str | None = None
    resembles: str | None = None


@dataclass
class Measure:
    """What to measure after training, for which arms and seeds (all by default), with which flags of the command."""

    flags: str = ""
    arms: list[str] | None = None
    seeds: list[int] | None = None
    prepare: list[Step] = field(default_factory=list)
    # of "logs": accuracies in percent to reach, and how many updates are averaged
    levels: list[float] = field(default_factory=list)
    window: int = 100
    # of "cost"
    updates: int = 20
    rounds: int = 3


@dataclass
class Start:
    """Where training starts, and everything that all arms share.

    The arm ``oracle`` shows what can be gained at most: the report says which share of it each arm gains.
    ``hours`` estimates a run with its measures, if as many run at the same time as the plan says.
    """

    about: str = MISSING
    data: str = MISSING
    train: str = MISSING
    updates: int = MISSING
    save_every: int = MISSING
    log_every: int = 10
    hours: float | None = None
    seeds: list[int] = MISSING
    baseline: str = MISSING
    oracle: str | None = None
    # measure, or group of measures -> the largest difference that does not matter, fixed before the runs
    margins: dict[str, float] = field(default_factory=dict)
    arms: dict[str, Arm] = MISSING
    prepare: list[Step] = field(default_factory=list)
    measures: dict[str, Measure] = field(default_factory=dict)

    def steps(self) -> list[Step]:
        """All steps of preparation, also those of the measures."""
        return [*self.prepare, *(step for measure in self.measures.values() for step in measure.prepare)]


@dataclass
class Plan:
    """A study: what it asks, the files that it needs, and its starts."""

    title: str = MISSING
    question: str = MISSING
    # files and folders by name: linked as sources/NAME in the study's folder; relative to the plan, None if not known
    sources: dict[str, str | None] = field(default_factory=dict)
    # NAME, or a pattern of files as NAME/FILE, of the sources -> how to get it
    hints: dict[str, str] = field(default_factory=dict)
    parallel: int = 1
    threads: int = 1
    starts: dict[str, Start] = MISSING


@dataclass(frozen=True)
class Run:
    """One training run, in its folder below the folder of the study."""

    start: str
    arm: str
    seed: int

    @property
    def folder(self) -> Path:
        return Path("runs", self.start, self.arm, f"seed{self.seed}")

    def __str__(self) -> str:
        return f"{self.start}/{self.arm}/seed{self.seed}"


def read_plan(path: Path, sources: Mapping[str, str]) -> Plan:
    """Read a plan, with some of its ``sources`` replaced; raises InputError that names the file and the key."""
    text = read_text(path, "give a plan: tiny, cpu, gpu, or a file such as plans/tiny.yaml")
    try:
        plan = OmegaConf.merge(OmegaConf.structured(Plan), OmegaConf.create(text))
        unknown = sorted(sources.keys() - plan.sources.keys())
        if unknown:
            raise InputError(f"{path}: sources: has no {unknown[0]}, only {_listed(plan.sources)}; check --source")
        parsed_plan: Plan = OmegaConf.to_object(plan)
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {error.full_key or 'the plan'}: {_explain(error)}") from None
    except AssertionError:  # of OmegaConf, for a single number
        raise InputError(f"{path}: has no settings such as title and starts; compare it with plans/tiny.yaml") from None
    except YAMLError as error:
        raise InputError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    for name, place in parsed_plan.sources.items():
        place = sources.get(name, str(path.parent / place) if place else None)
        parsed_plan.sources[name] = None if place is None else str(Path(place).absolute())
    try:
        _check(parsed_plan)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return parsed_plan


def _explain(error: OmegaConfBaseException) -> str:
    """What is wrong, in the words of a plan."""
    if isinstance(error, ConfigKeyError) and is_dataclass(error.object_type):
        names = [setting.name for setting in fields(error.object_type)]
        similar = get_close_matches(str(error.key), names, 1)
        advice = f"did you mean {similar[0]}?" if similar else f"the settings are {_listed(names)}"
        return f"unknown; {advice}"
    if isinstance(error, ValidationError) and "is not a ListConfig" in str(error):
        return "must be a list, such as [1, 2]"
    return first_line(error)


def _check(plan: Plan) -> None:
    for key in ("parallel", "threads"):
        _positive(key, getattr(plan, key))
    if not plan.starts:
        raise InputError("starts: is empty; add a start")
    for name, start in plan.starts.items():
        key = f"starts.{name}"
        _name("starts", name)
        for what in ("updates", "save_every", "log_every"):
            _positive(f"{key}.{what}", getattr(start, what))
        if start.hours is not None and not start.hours > 0:
            raise InputError(f"{key}.hours: must be positive, not {start.hours:g}")
        _seeds(f"{key}.seeds", start.seeds)
        _flags(f"{key}.train", start.train)
        for what, margin in start.margins.items():
            if not margin > 0:
                raise InputError(f"{key}.margins.{what}: must be positive, not {margin:g}")
        for role, arm in (("baseline", start.baseline), ("oracle", start.oracle or start.baseline)):
            if arm not in start.arms:
                raise InputError(f"{key}.{role}: {arm} is not one of the arms {_listed(start.arms)}")
        for arm, settings in start.arms.items():
            _name(f"{key}.arms", arm)
            _flags(f"{key}.arms.{arm}.flags", settings.flags)
            if settings.seeds is not None:
                _seeds(f"{key}.arms.{arm}.seeds", settings.seeds)
            prefix, _, source = (settings.user_dir or "").partition("/")
            if settings.user_dir is not None and (prefix != "sources" or source not in plan.sources):
                raise InputError(f"{key}.arms.{arm}.user_dir: must be sources/NAME, with a NAME of the plan's sources")
            if settings.updates is not None:
                _positive(f"{key}.arms.{arm}.updates", settings.updates)
        _check_steps(f"{key}.prepare", start.prepare)
        for kind, measure in start.measures.items():
            _check_measure(f"{key}.measures", kind, measure, start)
        if "robustness" in start.measures:
            _check_robustness(f"{key}.measures", start.measures["robustness"], start.measures.get("squad", Measure()))


def _check_measure(key: str, name: str, measure: Measure, start: Start) -> None:
    kind = kind_of(name)
    if kind not in MEASURES:
        raise InputError(f"{key}.{name}: not a measure; the measures are {_listed(MEASURES)}")
    _name(key, name)
    key = f"{key}.{name}"
    for arm in measure.arms or []:
        if arm not in start.arms:
            raise InputError(f"{key}.arms: {arm} is not one of the arms {_listed(start.arms)}")
    if measure.arms is not None and start.baseline not in measure.arms:
        raise InputError(f"{key}.arms: must include {start.baseline}, with which the others are compared")
    if measure.seeds is not None:
        _seeds(f"{key}.seeds", measure.seeds)
        seeds = {run.seed for run in runs_of(name, start)}
        if not set(measure.seeds) <= seeds:
            raise InputError(f"{key}.seeds: must be among those of the runs, {_listed(map(str, sorted(seeds)))}")
    _check_steps(f"{key}.prepare", measure.prepare)
    for what, kinds in ONLY_OF.items():
        if kind not in kinds and getattr(measure, what) != getattr(Measure(), what):
            raise InputError(f"{key}.{what}: has no effect on {kind}, only on {_listed(kinds)}; delete it")
    for what in ("window", "updates", "rounds"):
        _positive(f"{key}.{what}", getattr(measure, what))
    if MEASURES[kind] and not measure.flags.strip():
        raise InputError(f"{key}.flags: is missing; give the flags of the command, such as its data")
    _words(f"{key}.flags", measure.flags)


def _check_robustness(key: str, robustness: Measure, squad: Measure) -> None:
    """Raises InputError if runs are not fine-tuned on SQuAD, or their checkpoints are not kept."""
    if "--keep-checkpoints" not in shlex.split(squad.flags):
        raise InputError(f"{key}.squad.flags: must have --keep-checkpoints, because robustness needs it")
    for what in ("arms", "seeds"):
        ours, theirs = getattr(robustness, what), getattr(squad, what)
        if theirs is not None and (ours is None or not set(ours) <= set(theirs)):
            raise InputError(f"{key}.robustness.{what}: must be among those of squad, {_listed(map(str, theirs))}")


def _check_steps(key: str, steps: list[Step]) -> None:
    for number, step in enumerate(steps):
        if not _words(f"{key}[{number}].command", step.command):
            raise InputError(f"{key}[{number}].command: is empty; give the command that writes {step.output}")


def _positive(key: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{key}: must be positive, not {value}")


def _name(key: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise InputError(f"{key}.{name}: must consist of letters, digits, '.', '_' and '-', because folders have it")


def _seeds(key: str, seeds: list[int]) -> None:
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError(f"{key}: must be different numbers, such as [1, 2, 3], not {seeds}")


def _flags(key: str, flags: str) -> None:
    for word in _words(key, flags):
        flag = word.partition("=")[0]
        if flag in FIXED:
            advice = "; give an arm a user_dir instead" if flag == "--user-dir" else "; remove it"
            raise InputError(f"{key}: the study sets {flag} itself{advice}")


def _words(key: str, command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(f"{key}: {error} in {command.strip()!r}") from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def runs_of(name: str, start: Start) -> list[Run]:
    """The runs of a start, seed by seed, so that an unfinished study has complete comparisons."""
    seeds = {arm: settings.seeds or start.seeds for arm, settings in start.arms.items()}
    most = max(map(len, seeds.values()))
    return [
        Run(name, arm, arm_seeds[number])
        for number in range(most)
        for arm, arm_seeds in seeds.items()
        if number < len(arm_seeds)
    ]


def kind_of(measure: str) -> str:
    """What a measure is: ``elsewhere`` for elsewhere_NAME, otherwise its name."""
    kind, _, name = measure.partition("_")
    return ELSEWHERE if kind == ELSEWHERE and name else measure


def updates_of_arm(start: Start, arm: str) -> int:
    """The updates of each run of an arm."""
    return start.arms[arm].updates or start.updates


def hint(plan: Plan, name: str) -> str:
    """How to get a source or a file of it, as the plan says, for the end of an error message."""
    return next((f"; to get it: {how}" for pattern, how in plan.hints.items() if fnmatch(name, pattern)), "")


def command_of_arm(start: Start, arm: str, seed: int) -> list[str]:
    """The command of fairseq-train for an arm, without how long it trains and what it writes."""
    user_dir = start.arms[arm].user_dir or str(PLUGIN)
    words = ["fairseq-train", start.data, "--user-dir", user_dir, *shlex.split(start.train)]
    return [*words, *shlex.split(start.arms[arm].flags), "--seed", str(seed)]


def training_command(start: Start, run: Run) -> list[str]:
    """The command of fairseq-train for a run, in the folder of the study."""
    words = [*command_of_arm(start, run.arm, run.seed), "--save-dir", str(run.folder)]
    updates = str(updates_of_arm(start, run.arm))
    words += ["--total-num-update", updates, "--max-update", updates]
    words += ["--save-interval-updates", str(start.save_every), "--no-epoch-checkpoints", "--disable-validation"]
    return [*words, "--log-format", "json", "--log-interval", str(start.log_every)]
