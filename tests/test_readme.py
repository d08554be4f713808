"""The pages keep their word: commands run, options and links exist, and no option of the plugin is missing."""

import csv
import json
import re
import subprocess
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path

import pytest
from fairseq import options
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from guides import headings_of, section
from helpers import OBJECTS, PLUGIN, SUBJECTS, VERBS, commands_of, load_script, run_command

import tn_fairseq  # noqa: F401  registers what the README describes
from tn_fairseq.__main__ import COMMANDS, main
from tn_fairseq.commands import arguments
from tn_fairseq.commands.arguments import parse_options
from tn_fairseq.commands.data_binarize import JOIN
from tn_fairseq.core.configuration import training_config
from tn_fairseq.core.options import choices_of, flag_of
from tn_fairseq.objectives import OBJECTIVES
from tn_fairseq.objectives.base import ObjectiveConfig
from tn_fairseq.synonyms.lists import SynonymList

ROOT = PLUGIN.parent
FRONT, CARD = "README.md", "examples/small_model/model/README.md"
FOLDERS = ("docs", "preprocess", "tn_fairseq", "examples")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
}
GUIDES = sorted(page for page in PAGES if page.startswith("docs/"))
TEXT = "\n".join(PAGES.values())
# options of torchrun, Slurm, Dask, pip, the hub, and Hydra
FOREIGN = "--nnodes --nproc-per-node --no-python --rdzv-backend --rdzv-endpoint --standalone --requeue --nworkers "
FOREIGN += "--nthreads --no-deps --target --force-reinstall --local-dir --config-dir --config-name "


def commands(page: str, title: str | None = None) -> list[list[str]]:
    """The words of each command in a page, or in the section with this title, but for those of make."""
    text = PAGES[page] if title is None else section(PAGES[page], title)
    return [words for words in commands_of(text) if words[0] != "make"]


REGISTRIES = [CRITERION_DATACLASS_REGISTRY, MODEL_DATACLASS_REGISTRY]
REGISTRIES += [OPTIMIZER_DATACLASS_REGISTRY, TASK_DATACLASS_REGISTRY]
OURS = [
    dataclass
    for registry in REGISTRIES
    for name, dataclass in registry.items()
    if dataclass.__module__.startswith("tn_fairseq") or name.startswith(("bert_", "electra_"))
]
# options of every criterion
SHARED = {field.name for field in fields(ObjectiveConfig)} | {"_name", "synonym_table", "save_dir"}
INTERPOLATED = {"_name", "data", "seed", "lr", "train_subset", "max_update", "save_dir"}  # positional, or fairseq's own


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def test_the_pages_are_short():
    lines = {page: PAGES[page].splitlines() for page in (FRONT, *GUIDES)}
    assert len(lines[FRONT]) <= 120 and sum(map(len, lines.values())) <= 1400


def test_every_option_of_the_plugin_is_in_the_pages_with_its_default():
    mentioned = set(re.findall(r"--[a-z][a-z0-9-]*", TEXT))
    missing = {flag(field.name) for dataclass in OURS for field in fields(dataclass)} - mentioned
    assert missing == {flag(name) for name in INTERPOLATED} - mentioned


def shown(default: object) -> str:
    """A default as in the tables."""
    return f"{default:g}".replace("e-0", "e-") if isinstance(default, float) else str(default)


def described(option) -> str:
    """An option of an objective as in the table: its default, its other choices, and its help."""
    default = "" if option.default in (None, False) else f" {shown(option.default)}"
    others = [f"`{choice}`" for choice in choices_of(option) if choice != option.default]
    text = option.metadata["help"].replace("|", r"\|")
    return f"{', '.join([f'`{flag_of(option)}{default}`', *others])}: {text}"


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_options_of_an_objective_are_in_its_row(name):
    (row,) = re.findall(rf"^\| `{name}`.*\|$", section(PAGES["docs/objectives.md"], "Options"), flags=re.MULTILINE)
    own = [option for option in fields(OBJECTIVES[name].config) if option.name not in SHARED]
    cell = "<br>".join(map(described, own))
    assert row.removesuffix(" |").rpartition(" |")[2].strip() == cell, f"write this into the row: {cell}"


def test_the_defaults_in_the_tables_of_options_are_those_of_the_fields():
    defaults = {
        flag_of(option): option.default for dataclass in [*OURS, ObjectiveConfig] for option in fields(dataclass)
    }
    tables = section(PAGES["docs/train.md"], "Task, models, optimizer")
    tables += section(PAGES["docs/objectives.md"], "Options")
    rows = re.findall(r"^\| (`--[^|]*`) \| ([^|]*) \| .*\|$", tables, flags=re.MULTILINE)
    checked = 0
    for flags, cell in rows:
        values = re.split(r", (?![^(]*\))", cell.replace("`", ""))
        for name, value in zip(re.findall(r"--[a-z-]+", flags), values):
            default = defaults.get(name)
            if default not in (None, MISSING) and not value.startswith(("by ", "--")):
                assert value == ("off" if default is False else shown(default)), name
                checked += 1
    assert checked > 15


def test_every_option_in_the_pages_exists(capsys):
    helps = [(main, command.split()) for command in COMMANDS]
    helps += [(parser().parse_args, []) for parser in (options.get_training_parser, options.get_preprocessing_parser)]
    for show, words in helps:
        with pytest.raises(SystemExit, match="0"):
            show([*words, "--help"])
    known = capsys.readouterr().out + FOREIGN
    known += " ".join(flag(field.name) for dataclass in OURS for field in fields(dataclass))
    known += " --warmup-updates --total-num-update"  # of --lr-scheduler polynomial_decay, hidden like a plugin's
    known += " --init-token --num-classes"  # of fairseq's --task sentence_prediction
    known += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.py"))
    known += " --json"  # of WikiExtractor
    known += " --table --other-starts --paper"  # of earlier versions, in CHANGELOG.md
    existing = set(re.findall(r"--[a-z][a-z0-9-]*", known))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", TEXT)) - existing == set()


@pytest.mark.parametrize("page", PAGES)
def test_names_and_links_in_the_pages_exist(page):
    text = PAGES[page]
    for module, name in re.findall(r"`(objectives\.functional|core\.\w+)\.(\w+)`", text):
        assert hasattr(import_module(f"tn_fairseq.{module}"), name), name
    for path in re.findall(r"`((?:core|synonyms|criterions|objectives|models|tasks|optim)/\w+\.py)`", text):
        assert (PLUGIN / path).exists(), path
    for link in re.findall(r"\]\((?!http)([^)]+)\)", text):
        path, _, heading = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_dir() if link.endswith("/") else target.is_file(), link
        if heading:
            titles = [title for *_, title in headings_of(target.read_text(encoding="utf-8"))]
            assert heading in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles], link
    for target in re.findall(r"`make ([\w-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), target


def test_the_front_page_leads_to_every_page():
    linked = {link.partition("#")[0] for link in re.findall(r"\]\((?!http)([^)]+)\)", PAGES[FRONT])}
    assert {page for page in PAGES if "/" not in page or page.startswith("docs/")} - linked == {FRONT}
    assert {CARD, "examples/study/results/"} <= linked
    rows = re.findall(r"^\| \[[^]]+\]\((docs/[^)#]+)\) \|", section(PAGES[FRONT], "Guides"), flags=re.MULTILINE)
    assert sorted(rows) == GUIDES and len(GUIDES) <= 14  # one line for each


SMALLER = {"30522": "140", "electra_small": "electra_tiny", "128": "16", "1000000": "2", "10000": "2", "100": "1"}


def test_train_on_your_own_text_and_use_the_model(tmp_path, monkeypatch, capsys):
    (tmp_path / "tn_fairseq").symlink_to(PLUGIN)
    text = "\n\n".join(f"{a} {b} {c} ." for a in SUBJECTS for b in VERBS for c in OBJECTS)
    (tmp_path / "corpus.train.txt").write_text(text)
    (tmp_path / "corpus.valid.txt").write_text(text[:2000])
    four = commands(FRONT, "Train on your own text")
    assert len(four) == 4
    for command in four:
        more = ["--cpu"] if command[0] == "fairseq-train" else []
        run = run_command(*(SMALLER.get(word, word) for word in command), *more, cwd=tmp_path)
        assert run.code == 0, run.output
    assert "num_updates 2" in run.output and "false_negative_rate" in run.output

    monkeypatch.chdir(tmp_path)
    analysis, _ = commands("docs/false-negatives.md")
    main(analysis[1:])
    assert "wrong predictions that are synonyms" in capsys.readouterr().out and Path("false-negatives").is_dir()

    (snippet,) = re.findall(r"```python\n(.*?)```", PAGES["docs/train.md"], flags=re.DOTALL)
    names = {}
    exec(snippet, names)
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r"\d+\.\d%  .+", line) for line in lines)
    assert lines[0].endswith(" leads to the big city.") and lines[5].endswith("  road") and len(lines) == 3 + 9
    assert names["sentences"] == ["the main road", "it leads to the big city."]
    assert names["features"].shape == (1, len(names["tokens"]), 128)


class Parsed(Exception):
    """Raised instead of running a command."""


def parse(words: list[str]) -> None:
    """Parse a command as its program does, with the flags of the front page where dots stand for them."""
    if words[0] == "fairseq-train":
        flags = [*commands(FRONT, "Train on your own text")[-1][1:], *words[2:]] if words[1] == "..." else words[1:]
        place = flags.index("--user-dir")  # is loaded already
        training_config(flags[:place] + flags[place + 2 :])
    else:
        with pytest.raises(Parsed):
            main(words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_are_parsed_or_in_a_test_of_their_script(page, monkeypatch):
    def stop(*words: object) -> None:
        parse_options(*words)
        raise Parsed

    monkeypatch.setattr(arguments, "parse_options", stop)
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "examples").glob("*.py"))
    for words in commands(page):
        if words[0] in ("tn-fairseq", "fairseq-train") and "mlm_confidence_penalty" not in words:
            parse(words)
        elif words[0] not in ("awk", "tr", "hf") and words[:3] != ["python", "-m", "pip"]:
            script = next(word for word in words if word.startswith("examples/"))
            assert (ROOT / script).exists() and Path(script).name in tests, script


def test_commands_that_two_pages_show_are_the_same():
    front = commands(FRONT, "Train on your own text")
    assert [words for words in commands("docs/prepare-data.md", "Text") if words[0] == "tn-fairseq"] == front[:2]
    assert commands("docs/synonyms.md", "Build a table")[0] == front[2]
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()


def test_distill_a_larger_model(tmp_path, monkeypatch, capsys):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    for split in ("train", "valid"):
        Path(f"corpus.{split}.txt").write_text("the main road leads to the city.\n")
    binarize, _, half, _, train, _ = commands("docs/objectives.md", "Distill a larger model")
    for words in (binarize, half):
        main(words[1:])
    flags = re.search(r"--arch .*--attention-dropout \S+ --finetune-from-model half.pt", capsys.readouterr().out)
    assert flags and flags[0] in " ".join(train)  # what import prints is what the page shows
    page = section(PAGES["docs/objectives.md"], "A teacher that has read the text")
    old, new = re.findall(r"`(--distillation-.*?)`", page)[:2]
    other = " ".join(train).replace(" ".join(old.split()), new)
    assert new in other
    parse(other.split())


def test_hold_out_documents_and_join_the_lines_of_wrapped_text(tmp_path):
    (tmp_path / "corpus.txt").write_text("".join(f"document {n}\nhas two lines\n\n" for n in range(1, 251)))
    (tmp_path / "book.txt").write_bytes(b"It was late,\r\nand they left.\r\n\r\n\r\nNobody saw\r\nthem.\r\n")
    hold_out, join = re.findall(r"^(?:awk|tr) .*$", section(PAGES["docs/prepare-data.md"], "Text"), flags=re.MULTILINE)
    assert join == JOIN.replace("FILE", "book.txt") + " > corpus.txt"
    subprocess.run(["bash", "-c", hold_out], cwd=tmp_path, check=True)
    texts = {split: (tmp_path / f"corpus.{split}.txt").read_text().split("\n\n")[:-1] for split in ("train", "valid")}
    assert texts["valid"] == ["document 100\nhas two lines", "document 200\nhas two lines"]
    assert len(texts["train"]) == 248
    subprocess.run(["bash", "-c", join], cwd=tmp_path, check=True)
    assert (tmp_path / "corpus.txt").read_text() == "It was late, and they left.\nNobody saw them.\n"


def test_conversions_of_other_lists(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    page = section(PAGES["docs/synonyms.md"], "Convert other formats")
    Path("cells.csv").write_text("word,pos,synonyms\nbig,adj,large|huge\nnull,noun,none|zero\n")
    rows = [("/r/Synonym", "/c/en/big/a", "/c/en/large/a/wn"), ("/r/Antonym", "/c/en/big", "/c/en/small")]
    rows += [("/r/Synonym", "/c/en/big", "/c/fr/grand"), ("/r/Synonym", "/c/en/null", "/c/en/none")]
    Path("assertions.csv").write_text("".join("\t".join(["/a/", *row, '{"weight": 1.0}\n']) for row in rows))
    senses = [{"glosses": ["large"], "synonyms": [{"word": "large"}, {"word": "huge"}]}, {"glosses": ["adult"]}]
    records = [{"word": "big", "lang": "English", "senses": senses}, {"word": "gros", "senses": [{}]}]
    Path("kaikki.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (snippet,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(snippet, {})
    words = ["big", "large", "huge", "small", "grand", "null", "none", "zero"]
    read = {
        name: SynonymList(f"{name}.synonyms.csv", words, "csv").synonyms for name in ("cells", "assertions", "kaikki")
    }
    assert read["cells"] == {"big": ["large", "huge"], "null": ["none", "zero"]}
    assert read["assertions"] == {"big": ["large"], "null": ["none"]} and read["kaikki"] == {"big": ["large", "huge"]}
    Path("mthesaur.txt").write_text("big,large,huge\n")
    (command,) = re.findall(r"`(sed .*?)`", page)
    subprocess.run(["bash", "-c", command], check=True)
    assert SynonymList("groups.txt", words, "groups").synonyms == {"big": ["large", "huge"]}


def test_the_page_shows_tables_of_the_comparison():
    with open(ROOT / "examples" / "synonym_tables.csv", newline="") as file:
        columns, *rows = csv.reader(file)
    script = load_script("examples/synonym_tables.py")
    assert tuple(columns) == script.COLUMNS and tuple(row[0] for row in rows) == script.TABLES
    shown = re.findall(r"^\| `(.*?)` \| ([\d,]+ \|.*) \|$", PAGES["docs/synonyms.md"], flags=re.MULTILINE)
    assert 1 < len(shown) <= 8
    assert all([options, *cells.replace(",", "").split(" | ")] in rows for options, cells in shown)


def test_use_the_small_model(monkeypatch, capsys):
    pytest.importorskip("transformers")
    monkeypatch.chdir(ROOT)
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGES[CARD], flags=re.DOTALL)
    exec(snippet, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and re.fullmatch(r"\d\d\.\d%  door", lines[0])
