"""The README keeps its word: its commands run, its options exist, and no option of the plugin is missing from it."""

import re
import shlex
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from helpers import PLUGIN, run_command

import tn_fairseq  # noqa: F401  registers what the README describes

ROOT = PLUGIN.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(command)
    for block in re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    for command in block.replace("\\\n", " ").splitlines()
    if command.strip()
]
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
INTERPOLATED = {"_name", "data", "seed", "lr"}  # positional, or fairseq's own options


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def test_every_option_of_the_plugin_is_in_the_readme_with_its_default():
    assert len(OURS) == 4 + 7 + 1 + 1  # criteria, models, optimizer, task
    mentioned = set(re.findall(r"--[a-z][a-z0-9-]*", README))
    missing = {flag(field.name) for dataclass in OURS for field in fields(dataclass)} - mentioned
    assert missing == {flag(name) for name in INTERPOLATED} - mentioned
    for dataclass in OURS:
        for field in fields(dataclass):
            if field.name.startswith(("soft_reg", "sent_kl", "hard_correction", "rtd_")) and field.default is not False:
                default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
                assert f"`{flag(field.name)} {default}`" in README, field.name


def test_every_option_in_the_readme_exists(data_bin):
    helps = [run_command(sys.executable, script, "--help") for script in sorted((ROOT / "preprocess").glob("*.py"))]
    known = "".join(run.output for run in helps) + run_command("fairseq-train", "--help").output
    known += run_command("fairseq-preprocess", "--help").output
    known += " ".join(flag(field.name) for dataclass in OURS for field in fields(dataclass))
    known += " --warmup-updates --total-num-update"  # of --lr-scheduler polynomial_decay, hidden like a plugin's
    existing = set(re.findall(r"--[a-z][a-z0-9-]*", known))
    assert set(re.findall(r"--[a-z][a-z0-9-]*", README)) - existing == set()


def test_names_in_the_readme_exist():
    for module, name in re.findall(r"`(objectives|corruption)\.(\w+)`", README):
        assert hasattr(import_module(f"tn_fairseq.{module}"), name), name
    for path in re.findall(r"`((?:synonyms|criterions|models|tasks|optim)/\w+\.py)`", README):
        assert (PLUGIN / path).exists(), path
    for link in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / link).exists(), link
    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), target


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
    """A folder with a corpus of its own, and the repository's folders beside it."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("preprocess", "tn_fairseq"):
        (folder / name).symlink_to(ROOT / name)
    sentences = [f"{a} {b} {c}" for a in SUBJECTS for b in VERBS for c in OBJECTS]
    documents = ["\n".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6)]
    (folder / "corpus.train.txt").write_text("\n\n".join(documents * 4) + "\n")
    (folder / "corpus.valid.txt").write_text("\n\n".join(documents[::5]) + "\n")
    return folder


SMALLER = {"30522": "160", "electra_small": "electra_tiny", "128": "16", "1000000": "4", "10000": "2", "100": "1"}


def test_your_own_corpus_in_four_commands(corpus):
    """The README's commands as they stand there, but for the sizes."""
    four = [command for command in COMMANDS if command[0] in ("python", "fairseq-train")]
    assert len(four) == 4
    for command in four:
        words = [SMALLER.get(word, word) for word in command]
        words[0] = sys.executable if words[0] == "python" else words[0]
        run = run_command(*words, *(["--cpu", "--num-workers", 0] if words[0] == "fairseq-train" else []), cwd=corpus)
        assert run.code == 0, run.output
    assert (corpus / "checkpoints" / "checkpoint_last.pt").exists()
    assert "num_updates 4" in run.output and "false_negative_rate" in run.output

    show = re.search(r"`(python preprocess/build_synonym_table.py [^`]*--show[^`]*)`", README).group(1)
    run = run_command(sys.executable, *shlex.split(show)[1:], cwd=corpus)
    assert run.code == 0 and "primary: " in run.output, run.output


def test_other_commands_are_the_ones_that_ci_runs():
    others = [command for command in COMMANDS if command[0] not in ("python", "fairseq-train")]
    assert others == [["make", "demo"], ["make", "test"]]
    assert Path(ROOT / ".ci" / "run").read_text().rstrip().endswith("make test")
