"""The page on scale: its Slurm example runs, and its commands exist."""

import os
import signal
import sys
from importlib.util import find_spec

import pytest
from guides import guide
from helpers import PLUGIN, commands_of, load_script, run_command, write_programs

from tn_fairseq.commands.arguments import parse_options
from tn_fairseq.commands.data_binarize import BinarizeOptions

FOLDER = PLUGIN.parent / "examples" / "scale"
SLURM_EXAMPLE = FOLDER / "dask_on_slurm.py"


# looks for it without importing it, because it replaces the handler of Ctrl-C
needs_dask_jobqueue = pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="dask_jobqueue is not installed")


@pytest.fixture
def slurm(tmp_path):
    """A machine where sbatch starts a job immediately and scancel kills it."""
    start = f"setsid sh {tmp_path}/job.sh >{tmp_path}/job.log 2>&1 &"
    sbatch = f'cp "$1" {tmp_path}/job.sh\n{start}\necho "Submitted batch job $!"'
    return write_programs(tmp_path, sbatch=sbatch, scancel='kill -- -"$1"')


@needs_dask_jobqueue
@pytest.mark.slow
def test_the_slurm_example(slurm, monkeypatch):
    (slurm / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]) + "\n")
    (slurm / "text").write_text("the cat\n\nthe the cat\n")
    options = ["--train", slurm / "text", "--valid", slurm / "text", "--tokenizer", slurm / "vocab.txt"]
    assert "sbatch is not on the PATH" in run_command(sys.executable, SLURM_EXAMPLE, "--", "--train", "x").error()
    monkeypatch.setenv("PATH", str(slurm), prepend=os.pathsep)
    flags = ["--cores", 1, "--partition", "night", "--interface", "lo", "--", *options, "--destdir", slurm / "out"]
    run = run_command(sys.executable, SLURM_EXAMPLE, *flags, fresh=True)  # its job is killed by process group
    assert run.code == 0, run.output
    assert (slurm / "out" / "train.bin").stat().st_size == 2 * (3 + 1 + 4)
    job = (slurm / "job.sh").read_text()
    for line in ("#SBATCH -p night", "#SBATCH --cpus-per-task=1", "#SBATCH --requeue"):
        assert line in job.splitlines()
    assert sys.executable in job


@needs_dask_jobqueue
def test_the_command_of_the_page_is_parsed(monkeypatch):
    (words,) = (words for words in commands_of(guide("train", "Large corpora")) if str(words[1]).endswith("slurm.py"))
    monkeypatch.setattr(sys, "argv", words[1:])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    args = load_script("examples/scale/dask_on_slurm.py").parse_args()
    assert (args.jobs, args.cores) == (4, 16)
    assert parse_options(BinarizeOptions, "data binarize", None, args.binarize).shards == 10
