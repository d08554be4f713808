"""A command line is made from a dataclass, and what is wrong with it is one line that names the flag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from files import refused

from tn_fairseq.commands.arguments import command_line, parse_options
from tn_fairseq.core.options import check, option


@dataclass(frozen=True, kw_only=True)
class Options:
    """An option of each form."""

    table: Path = option("a table", positional=True)
    words: Sequence[str] = option("words to show", default=(), positional=True)
    dict: Path | None = option("a dictionary", default=None, unless="tokenizer", not_with="tokenizer")
    tokenizer: str | None = option("a tokenizer", default=None, metavar="DIR")
    workers: int = option("processes, 100% of them", default=3, at_least=1, at_most=255)
    rate: float = option("a rate", default=1.0, above=0, below=10)
    shares: Sequence[float] = option("shares", default=(), at_most=1)
    kind: Literal["wordpiece", "sentencepiece"] = option("a kind", default="wordpiece", group="text")
    cased: bool = option("keep uppercase", default=False, needs={"kind": "wordpiece"}, group="text")
    place: str = option("a place", default="context", choices=("context", "question"), flag="--in")
    source: Sequence[str] = option("sources", default=(), choices=("list", "model"))
    format: str | None = option("the format", default=None, needs={"source": "list"}, needed_by={"source": "list"})
    filter: Mapping[str, float] = option("filters", default={}, choices=("model", "vectors"), at_most=1)
    where: Mapping[str, Sequence[str]] = option("values", default={})
    split: str | None = option("split", default=None, const="en", needs={"source": "model", "filter": "model"})
    part: tuple[int, int] = option("a part", default=(1, 1), parse=lambda text: tuple(map(int, text.split("/"))))
    start: Sequence[str] = option("starts", default=(), repeat=True)
    flags: Sequence[str] = option("flags", default=(), rest=True)


def parse(line: str) -> Options:
    return parse_options(Options, "data show", "Show.", line.split())


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("", {}),
        ("a --workers 255 b", {"words": ["a", "b"], "workers": 255}),
        ("--in question --cased --rate 1e-3", {"place": "question", "cased": True, "rate": 0.001}),
        ("--source model list --format tsv", {"source": ["model", "list"], "format": "tsv"}),
        ("--filter model=0.5 --split", {"filter": {"model": 0.5}, "split": "en"}),
        ("--filter model=0.5 vectors=0 --split de", {"filter": {"model": 0.5, "vectors": 0.0}, "split": "de"}),
        ("--where a=1 b=2 --where a=3", {"where": {"a": ["1", "3"], "b": ["2"]}}),
        ("--part 2/8 --shares 0 1", {"part": (2, 8), "shares": [0.0, 1.0]}),
        ("--start x --start y", {"start": ["x", "y"]}),
        ("-- --lr 1 --workers 0", {"flags": ("--lr", "1", "--workers", "0")}),
    ],
)
def test_options_are_read_as_their_types_say(line, given):
    assert parse(f"t --dict d {line}") == Options(table=Path("t"), dict=Path("d"), **given)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("", "--dict or --tokenizer"),
        ("--dict d --tokenizer t", "--dict and --tokenizer"),
        ("--dict d --workers 0", "--workers 0: must be at least 1 and at most 255"),
        ("--dict d --workers 256", "--workers 256"),
        ("--dict d --rate 0", "--rate 0.0: must be above 0 and below 10"),
        ("--dict d --rate 10", "--rate 10.0"),
        ("--dict d --rate nan", "--rate nan"),
        ("--dict d --shares 0.5 2", "--shares 2.0"),
        ("--dict d --kind wordpeice", "did you mean wordpiece"),
        ("--dict d --in x", "--in x: unknown; give one of context, question"),
        ("--dict d --kind sentencepiece --cased", "--cased has no effect without --kind wordpiece"),
        ("--dict d --source list", "--source list needs --format"),
        ("--dict d --format tsv", "--format has no effect without --source list"),
        ("--dict d --split", "--source model or --filter model"),
        ("--dict d --filter modl=1", "--filter modl"),
        ("--dict d --filter model=2", "--filter 2.0"),
        ("--dict d --filter model=x", "--filter model=x"),
        ("--dict d --filter model=1 model=1", "--filter names model twice"),
        # what cannot be read
        ("--dict", "argument --dict: expected one argument"),
        ("--workers 1.5", "argument --workers: '1.5'"),
        ("--filter model", "argument --filter: 'model'"),
        ("--dictt=d", "unrecognized arguments: --dictt=d; did you mean --dict?"),
        ("--nothing", "unrecognized arguments: --nothing"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(line, named):
    assert named in refused(parse, f"t {line}")


def test_an_unknown_option_is_named_before_a_missing_argument():
    assert "FILE" in refused(parse, "--dict d")
    assert "--dictt; did you mean --dict?" in refused(parse, "--dictt d")


def test_a_command_is_a_function_of_its_options(capsys):
    def show(options: Options) -> None:
        print(options.table, options.dict)

    main = command_line("data show", "Show.", show)
    main(["t", "--dict", "d"])
    assert capsys.readouterr().out == "t d\n"
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--workers N processes, 100% of them (default: 3)" in text and "text: --kind {wordpiece," in text
    assert "--tokenizer DIR" in text and "--split [SPLIT]" in text and 'after "--": flags' in text


def test_errors_in_python_name_the_argument():
    for workers in (0, "many"):
        options = Options(table=Path("t"), dict=Path("d"), workers=workers)
        assert refused(check, options, say=str).startswith(f"workers {workers!r}: must be ")
