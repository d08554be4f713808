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
TRAINING = (
    "data-bin --user-dir tn_fairseq --task electra --arch electra_tiny --tokens-per-sample 32 --batch-size 8 "
    "--criterion mlm_hard_correction --synonym-table synonyms.safetensors --max-update 2 --cpu "
    "--optimizer electra_adamw --lr 1e-3 --save-dir checkpoints"
).split()
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


def build_wheel(folder: Path) -> Path:
    """A wheel built from a copy of the sources, so that it contains no files of an earlier build."""
    source = folder / "source"
    shutil.copytree(PLUGIN, source / "tn_fairseq", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    (path,) = folder.glob("tn_fairseq-*.whl")
    return path


@pytest.mark.slow
def test_the_commands_run_from_a_wheel(tmp_path):
    installed = Installation(tmp_path, build_wheel(tmp_path))
    folder = write_sources(installed.folder)
    write_squad(folder / "dev.json", ANSWERED)
    commands = [
        "data train-tokenizer --input text --type wordpiece --vocab-size 60 --output tokenizer",
        "data binarize --train text --valid text --tokenizer vocab.txt --destdir data-bin",
        "synonyms build --dict data-bin/dict.txt --source vectors --vectors vectors --output synonyms.safetensors",
        "data glue --glue-dir glue --task SST-2 --tokenizer vocab.txt --destdir glue-bin",
        "data squad --train squad.json --valid squad.json --tokenizer vocab.txt --destdir squad-bin",
        "evaluate swap-synonyms --squad dev.json --output swapped.json",
        "evaluate add-distractors --squad dev.json --output distractors.json",
    ]
    run = installed.modules(*(f"tn_fairseq {command}" for command in ["user-dir", *commands]))
    assert run.stdout.startswith(f"{installed.packages / 'tn_fairseq'}\n")  # the folder for --user-dir
    names = "tokenizer/vocab.txt data-bin/train.bin glue-bin/SST-2/label/train.bin squad-bin/train.bin"
    for name in [*names.split(), "swapped.json", "distractors.json"]:
        assert (folder / name).stat().st_size > 0, name

    # the script that pip writes for fairseq's entry point
    run = installed.run("-c", "import sys; from fairseq_cli.train import cli_main; sys.exit(cli_main())", *TRAINING)
    assert "num_updates 2" in run.output

    checkpoint, table = "checkpoints/checkpoint_last.pt", "--synonym-table synonyms.safetensors"
    installed.modules(
        f"tn_fairseq look analysis data-bin --path {checkpoint} {table} --mask-seeds 1 --output false-negatives",
        f"tn_fairseq exchange export {checkpoint} --data data-bin --output exported",
        f"tn_fairseq data teach data-bin --teacher {checkpoint} --tokens-per-sample 16 --output draws",
        f"tn_fairseq evaluate glue tiny={checkpoint} --data glue-bin --seeds 1 --max-update 2 "
        "--output glue-scores -- --cpu",
    )
    assert (folder / "draws" / "draws.json").exists()
    assert "SST-2" in (folder / "glue-scores" / "index.html").read_text(encoding="utf-8")
    assert "<script" in (folder / "false-negatives" / "cases.html").read_text(encoding="utf-8")
    assert (folder / "exported" / "discriminator" / "model.safetensors").exists()
