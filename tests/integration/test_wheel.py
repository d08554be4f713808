"""The commands need only what pip installs: they run from a wheel, in an empty folder, without the repository."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import fairseq
import pytest
from helpers import PLUGIN, Run, write_sources, write_squad

from tn_fairseq.commands import GROUPS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]  # its tests depend on each other's output
ROOT = PLUGIN.parent
# Run all commands in one process: each process would import torch and fairseq again.
MODULES_IN_TURN = """
import json, runpy, sys
for module, *words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert not end.code, (module, words, end.code)
print(*(getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith("tn_fairseq")))
"""
# The script that pip writes for fairseq's entry points.
ENTRY_POINT = "import sys; from fairseq_cli.{} import cli_main; sys.exit(cli_main())"
TRAINING = (
    "data-bin --user-dir tn_fairseq --task electra --arch electra_tiny --tokens-per-sample 32 --batch-size 8 "
    "--criterion mlm_hard_correction --synonym-table synonyms.safetensors --max-update 2 --cpu "
    "--optimizer electra_adamw --lr 1e-3 --save-dir checkpoints"
)
ANSWERED = [
    ("In 1880 Tesla moved to the beautiful city of Prague.", "What city did Tesla move to in 1880?", "Prague"),
    ("Edison opened a large factory in Boston.", "Where did Edison open a large factory?", "Boston"),
]


class Installation:
    """A virtual environment with the wheel and the packages of the tests' environment, and an empty folder."""

    def __init__(self, folder: Path, wheel: Path):
        venv.create(folder / "venv", symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        pip("--python", self.python, "install", "--no-deps", "--no-index", wheel)
        (self.packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
        # Only now, because pip would find an editable installation there. Python reads no .pth files in these folders.
        others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        (self.packages / "others.pth").write_text("".join(f"{path}\n" for path in others))
        # fairseq looks for --user-dir next to its own folder; pip installs both into the same folder
        shutil.copytree(Path(fairseq.__file__).parent, self.packages / "fairseq", copy_function=os.symlink)
        self.folder = folder / "empty"
        self.folder.mkdir()

    def run(self, *words: object) -> Run:
        """Run Python in the folder; nothing there or in the environment points to the repository."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        command = [str(word) for word in (self.python, *words)]
        run = Run(subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=environment))
        assert run.code == 0, run.output
        assert str(ROOT) not in run.output
        return run

    def modules(self, *commands: str) -> Run:
        """Run ``python -m`` with each command in one process, and check that the plugin is that of the wheel."""
        run = self.run("-c", MODULES_IN_TURN, json.dumps([command.split() for command in commands]))
        files = run.stdout.splitlines()[-1].split()
        assert len(files) > 20 and all(Path(file).is_relative_to(self.packages / "tn_fairseq") for file in files)
        return run


def pip(*words: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel built from a copy of the sources, so that it contains no files of an earlier build."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(PLUGIN, source / "tn_fairseq", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    (path,) = folder.glob("tn_fairseq-*.whl")
    return path


@pytest.fixture(scope="module")
def installation(tmp_path_factory, wheel) -> Installation:
    return Installation(tmp_path_factory.mktemp("installation"), wheel)


@pytest.fixture(scope="module")
def preprocessed(installation) -> Installation:
    """The installation, with the output of every preprocessing command in the folder."""
    write_sources(installation.folder)
    write_squad(installation.folder / "dev.json", ANSWERED)
    commands = [
        "data train-tokenizer --input text --type wordpiece --vocab-size 60 --output tokenizer",
        "data binarize --train text --valid text --tokenizer vocab.txt --destdir data-bin",
        "synonyms build --dict data-bin/dict.txt --source vectors --vectors vectors --output synonyms.safetensors",
        "data glue --glue-dir glue --task SST-2 --tokenizer vocab.txt --destdir glue-bin",
        "data squad --train squad.json --valid squad.json --tokenizer vocab.txt --destdir squad-bin",
        "evaluate swap-synonyms --squad dev.json --output swapped.json",
        "evaluate add-distractors --squad dev.json --output distractors.json",
    ]
    tried = {command.split()[1] for command in commands if command.startswith("data")}
    assert tried == GROUPS["data"].keys() - {"teach"}  # which needs a model
    run = installation.modules(*(f"tn_fairseq {command}" for command in ["user-dir", *commands]))
    assert run.stdout.startswith(f"{installation.packages / 'tn_fairseq'}\n")  # the folder for --user-dir
    return installation


@pytest.fixture(scope="module")
def trained(preprocessed) -> Installation:
    """The installation, with a checkpoint that fairseq-train wrote with ``--user-dir`` as in the docs."""
    run = preprocessed.run("-c", ENTRY_POINT.format("train"), *TRAINING.split())
    assert "num_updates 2" in run.output
    return preprocessed


def test_every_preprocessing_command(preprocessed):
    names = "tokenizer/vocab.txt data-bin/train.bin glue-bin/SST-2/label/train.bin squad-bin/train.bin"
    for name in [*names.split(), "swapped.json", "distractors.json"]:
        assert (preprocessed.folder / name).stat().st_size > 0, name


def test_analysis_export_and_fine_tuning(trained):
    checkpoint, table = "checkpoints/checkpoint_last.pt", "--synonym-table synonyms.safetensors"
    trained.modules(
        f"tn_fairseq look analysis data-bin --path {checkpoint} {table} --mask-seeds 1 --output false-negatives",
        f"tn_fairseq exchange export {checkpoint} --data data-bin --output exported",
        f"tn_fairseq data teach data-bin --teacher {checkpoint} --tokens-per-sample 16 --output draws",
        f"tn_fairseq evaluate glue tiny={checkpoint} --data glue-bin --seeds 1 --max-update 2 "
        "--output glue-scores -- --cpu",
    )
    assert (trained.folder / "draws" / "draws.json").exists()
    assert "SST-2" in (trained.folder / "glue-scores" / "index.html").read_text(encoding="utf-8")
    assert "<script" in (trained.folder / "false-negatives" / "cases.html").read_text(encoding="utf-8")
    assert (trained.folder / "exported" / "discriminator" / "model.safetensors").exists()


def test_a_yaml_recipe(preprocessed, quickstart_recipe):
    """Hydra runs in its own folder, so paths are absolute, but the plugin is found by name."""
    folder = preprocessed.folder
    shutil.copy(quickstart_recipe, folder)
    preprocessed.run(
        *["-c", ENTRY_POINT.format("hydra_train"), "--config-dir", folder, "--config-name", quickstart_recipe.stem],
        *["common.user_dir=tn_fairseq", f"task.data={folder / 'data-bin'}"],
        *[f"criterion.synonym_table={folder / 'synonyms.safetensors'}", "optimization.max_update=2"],
        f"checkpoint.save_dir={folder / 'by-recipe'}",
    )
    assert (folder / "by-recipe" / "checkpoint_last.pt").exists()
