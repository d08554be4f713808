"""The plan of a study: a YAML file, whose interpolations OmegaConf resolves and whose settings pydantic checks."""

import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)
from yaml import YAMLError

from ...core import PLUGIN
from ...core.errors import InputError, first_line
from ...core.files import read_text

ELSEWHERE = "elsewhere"  # the only measure that a start can have several times: elsewhere_NAME for each text
# flags that the study sets itself
FIXED = {
    *("--seed", "--save-dir", "--max-update", "--total-num-update", "--user-dir", "--log-format", "--log-interval"),
    *("--save-interval-updates", "--no-epoch-checkpoints", "--no-save", "--disable-validation", "--restore-file"),
    *("--no-last-checkpoints", "--checkpoint-suffix", "--max-epoch", "--stop-time-hours", "--stop-min-lr"),
    *("--patience", "--reset-optimizer", "--reset-lr-scheduler", "--reset-meters", "--reset-dataloader"),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def _is_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name}: must consist of letters, digits, '.', '_' and '-', because folders have it")
    return name


def _are_words(text: str) -> str:
    shlex.split(text)  # raises ValueError
    return text


def _are_flags(text: str) -> str:
    for word in shlex.split(text):
        if (flag := word.partition("=")[0]) in FIXED:
            advice = "give an arm a user_dir instead" if flag == "--user-dir" else "remove it"
            raise ValueError(f"the study sets {flag} itself; {advice}")
    return text


def _differ(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("must be different numbers, such as [1, 2, 3]")
    return seeds


Name = Annotated[str, AfterValidator(_is_name)]
Flags = Annotated[str, AfterValidator(_are_flags)]
Seeds = Annotated[list[NonNegativeInt], Field(min_length=1), AfterValidator(_differ)]


class Settings(BaseModel):
    """Settings of which no other ones exist."""

    model_config = ConfigDict(extra="forbid")


class Step(Settings):
    """A command that prepares data, and the file that it writes last."""

    output: str
    command: Annotated[str, Field(min_length=1), AfterValidator(_are_words)]


class Arm(Settings):
    """One of the objectives to compare: its flags for fairseq-train.

    Its seeds and updates are those of the start unless it has its own. ``user_dir`` is a plugin with an objective that
    is not ours, such as sources/NAME. ``resembles`` names the row of the paper's tables with this objective.
    """

    about: str
    flags: Flags
    seeds: Seeds | None = None
    updates: PositiveInt | None = None
    user_dir: str | None = None
    resembles: str | None = None


class Logs(Settings):
    """Figures of the training logs: accuracies in percent to reach, and how many updates are averaged."""

    arms: list[str] | None = None
    levels: list[float] = []
    window: PositiveInt = 100


class Cost(Settings):
    """The time of an update: short runs of all arms in turns."""

    arms: list[str] | None = None
    updates: PositiveInt = 20
    rounds: PositiveInt = 3


class Evaluation(Settings):
    """What to measure of the runs of some arms and seeds, all by default, with the flags of our command."""

    flags: Annotated[str, Field(min_length=1), AfterValidator(_are_words)]
    arms: list[str] | None = None
    seeds: Seeds | None = None
    prepare: list[Step] = []


class Measures(BaseModel):
    """What a study measures, in this order."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Evaluation] = Field(init=False)  # elsewhere_NAME

    logs: Logs | None = None
    rates: Evaluation | None = None
    elsewhere: Evaluation | None = None
    glue: Evaluation | None = None
    squad: Evaluation | None = None
    robustness: Evaluation | None = None
    lexical: Evaluation | None = None
    cost: Cost | None = None

    @model_validator(mode="after")
    def _check(self) -> "Measures":
        for name in self.__pydantic_extra__:
            _is_name(name)
            if not name.removeprefix(f"{ELSEWHERE}_") or not name.startswith(f"{ELSEWHERE}_"):
                known = ", ".join([*Measures.model_fields, f"{ELSEWHERE}_NAME"])
                raise ValueError(f"{name}: not a measure; the measures are {known}")
        if self.robustness:
            if not self.squad or "--keep-checkpoints" not in shlex.split(self.squad.flags):
                raise ValueError("robustness: needs squad with the flag --keep-checkpoints")
            for what in ("arms", "seeds"):
                ours, theirs = getattr(self.robustness, what), getattr(self.squad, what)
                if theirs is not None and not (ours and set(ours) <= set(theirs)):
                    raise ValueError(f"robustness.{what}: must be among those of squad, {theirs}")
        return self

    def evaluations(self) -> dict[str, Evaluation]:
        """Those that measure a run with the flags of a command."""
        named = {name: getattr(self, name) for name in Measures.model_fields} | self.__pydantic_extra__
        return {name: one for name, one in named.items() if isinstance(one, Evaluation)}


class Start(Settings):
    """Where training starts, and everything that all arms share.

    The arm ``oracle`` shows what can be gained at most: the report says which share of it each arm gains. ``margins``
    are the largest differences that do not matter, by measure or group of measures, fixed before the runs.
    """

    about: str
    data: str
    train: Flags
    updates: PositiveInt
    save_every: PositiveInt
    log_every: PositiveInt = 10
    seeds: Seeds
    baseline: str
    oracle: str | None = None
    margins: dict[str, PositiveFloat] = {}
    arms: dict[Name, Arm]
    prepare: list[Step] = []
    measures: Measures = Measures()

    @model_validator(mode="after")
    def _check(self) -> "Start":
        seeds = {seed for arm in self.arms.values() for seed in arm.seeds or self.seeds}
        arms = [("baseline", self.baseline), ("oracle", self.oracle or self.baseline)]
        named: dict[str, Any] = self.measures.evaluations()
        named |= {name: one for name in ("logs", "cost") if (one := getattr(self.measures, name))}
        arms += [(f"measures.{name}.arms", arm) for name, one in named.items() for arm in one.arms or ()]
        for key, arm in arms:
            if arm not in self.arms:
                raise ValueError(f"{key}: {arm} is not one of the arms {', '.join(self.arms)}")
        for name, measure in named.items():
            if measure.arms is not None and self.baseline not in measure.arms:
                raise ValueError(f"measures.{name}.arms: must include the baseline {self.baseline}")
            if isinstance(measure, Evaluation) and not seeds >= {*(measure.seeds or ())}:
                raise ValueError(f"measures.{name}.seeds: must be among those of the runs, {sorted(seeds)}")
        return self

    def steps(self) -> list[Step]:
        """All commands that prepare data, also those for measures only."""
        return self.prepare + [step for one in self.measures.evaluations().values() for step in one.prepare]

    def updates_of(self, arm: str) -> int:
        """The updates of each run of an arm."""
        return self.arms[arm].updates or self.updates


class Plan(Settings):
    """A study: what it asks, the files that it needs, and its starts.

    ``sources`` are files and folders by name, linked as sources/NAME in the study's folder; they are relative to the
    plan, and None if they are not known. ``hints`` say how to get a source, or its files that match NAME/PATTERN.
    ``paper`` is a CSV of published tables (table, row, column, value) to show with ours.
    """

    title: str
    question: str
    sources: dict[str, str | None] = {}
    hints: dict[str, str] = {}
    paper: str | None = None
    parallel: PositiveInt = 1
    threads: PositiveInt = 1
    starts: Annotated[dict[Name, Start], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "Plan":
        commands: dict[str, str] = {}
        for name, start in self.starts.items():
            for step in start.steps():
                if commands.setdefault(step.output, step.command) != step.command:
                    raise ValueError(f"starts.{name}: two commands write {step.output}; give each its own output")
            for arm, settings in start.arms.items():
                prefix, _, source = (settings.user_dir or "").partition("/")
                if settings.user_dir is not None and (prefix != "sources" or source not in self.sources):
                    raise ValueError(f"starts.{name}.arms.{arm}.user_dir: must be sources/NAME of the plan's sources")
        return self

    def hint(self, name: str) -> str:
        """How to get a source or a file of it, for the end of an error message."""
        return next((f"; to get it: {how}" for pattern, how in self.hints.items() if fnmatch(name, pattern)), "")


class Run(NamedTuple):
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
        content = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
        plan = Plan.model_validate(content)
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {error.full_key or 'the plan'}: {first_line(error)}") from None
    except (YAMLError, AssertionError) as error:  # an assertion of OmegaConf for a single number
        reason = " ".join(str(error).split()) or "a number"
        raise InputError(f"{path}: not valid YAML of a plan ({reason}); compare it with plans/tiny.yaml") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"] if part != "[key]")
        kind = {"extra_forbidden": "unknown setting; check its name", "missing": "is missing"}
        message = kind.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise InputError(f"{path}: {key}{': ' if key else ''}{message}") from None
    for name in sources:
        if name not in plan.sources:
            raise InputError(f"{path}: sources: has no {name}, only {', '.join(plan.sources)}; check --source")
    for name, place in plan.sources.items():
        place = sources.get(name) or (str(path.parent / place) if place else None)
        plan.sources[name] = place and str(Path(place).absolute())
    plan.paper = plan.paper and str(path.parent / plan.paper)
    if plan.paper and not Path(plan.paper).exists():
        raise InputError(f"{path}: paper: {plan.paper} does not exist; give a path relative to the plan, or delete it")
    return plan


def runs_of(name: str, start: Start) -> list[Run]:
    """The runs of a start, seed by seed, so that an unfinished study has complete comparisons."""
    seeds = {arm: settings.seeds or start.seeds for arm, settings in start.arms.items()}
    most = max(map(len, seeds.values()))
    return [Run(name, arm, of[number]) for number in range(most) for arm, of in seeds.items() if number < len(of)]


def training_command(start: Start, run: Run) -> list[str]:
    """The command of fairseq-train for a run, in the folder of the study."""
    words = command_of_arm(start, run.arm, run.seed)
    updates = str(start.updates_of(run.arm))
    words += ["--save-dir", str(run.folder), "--total-num-update", updates, "--max-update", updates]
    words += ["--save-interval-updates", str(start.save_every), "--no-epoch-checkpoints", "--disable-validation"]
    return [*words, "--log-format", "json", "--log-interval", str(start.log_every)]


def command_of_arm(start: Start, arm: str, seed: int) -> list[str]:
    """The command of fairseq-train for an arm, without how long it trains and what it writes."""
    user_dir = start.arms[arm].user_dir or str(PLUGIN)
    words = ["fairseq-train", start.data, "--user-dir", user_dir, *shlex.split(start.train)]
    return [*words, *shlex.split(start.arms[arm].flags), "--seed", str(seed)]
