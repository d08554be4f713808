"""The quickstart as `make demo` runs it, with less text and fewer updates, and the commands of its page."""

import itertools
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from helpers import load_script, run_command

from tn_fairseq.reporting.training_log import read_records

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "quickstart"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
UPDATES = "2"


@pytest.fixture
def folder(tmp_path) -> Path:
    """The --output of a run whose first stage is done: a short corpus. test_wordnet_corpus.py writes the real one."""
    corpus = tmp_path / "demo folder" / "corpus"
    corpus.mkdir(parents=True)
    subjects = ("the main road", "a large house", "an old man", "every good student", "the primary function")
    verbs = ("begins in", "leads to", "goes to", "stays in", "comes from", "ends in")
    objects = ("the city .", "a small river .", "the main street .", "a great house .", "the old town .")
    sentences = [" ".join(words) for words in itertools.product(subjects, verbs, objects)]
    for split, count in (("train", 8), ("valid", 1)):
        documents = ["\n".join(sentences[start : start + 10]) for start in range(0, len(sentences), 10)]
        (corpus / f"{split}.txt").write_text("\n\n".join(documents * count) + "\n")
    return corpus.parent


def commands_of_the_page(folder: Path) -> dict[str, list[str]]:
    """The words of each command by the name of its script, with one short run in ``folder`` in place of all runs."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL)).replace("\\\n", " ")
    lines = [shlex.split(line) for line in blocks.splitlines() if line.startswith("python ")]
    changed = {"2500": UPDATES, "8000": UPDATES, "demo": str(folder)}
    changed |= {f"demo/{name}": str(folder) for name in ("scratch", "longer")}
    changed |= {f"demo/{name}": str(folder / name) for name in ("false-negatives", "pictures")}
    found = {
        Path(script).stem: [sys.executable, str(ROOT / script), *(changed.get(word, word) for word in words)]
        for _, script, *words in lines
    }
    assert set(found) == {"quickstart", "losses", "pictures"}
    return found


def test_the_demo_compares_plain_and_corrected_training(folder):
    command = [sys.executable, str(FOLDER / "quickstart.py"), "--output", folder, "--max-update", UPDATES]
    first = run_command(*command)
    assert first.code == 0, first.output
    report = (folder / "report.txt").read_text(encoding="utf-8")
    assert report in first.stdout
    assert "150 sentences" in report and "the same for both" in report and "known to WordNet" in report
    assert report.count(" gold ") == report.count("     synonyms of ") == 5
    (row,) = (line.split() for line in report.splitlines() if line.startswith("  masked words predicted, in %"))
    plain, corrected, difference = map(float, row[-3:])
    assert 20 < plain < 100 and corrected - plain == pytest.approx(difference, abs=0.011)
    for name in ("data-bin", "synonyms.safetensors", "corrected/checkpoint_last.pt", "plain.log") + (
        "false-negatives/cases.html",
        "false-negatives/training.png",
    ):
        assert (folder / name).exists() and str(folder / name) in report
    # the same data, order and masks: in the first updates, the corrections change little
    losses = [
        float(read_records(folder / f"{arm}.log", "train_inner")[0]["nll_loss"]) for arm in ("plain", "corrected")
    ]
    assert losses[0] == pytest.approx(losses[1], abs=0.005)

    again = run_command(*command)
    assert again.code == 0, again.output
    assert again.stdout.count("already there") == 5 and again.stdout.count("already done") == 2
    assert "$ " not in again.stdout and report in again.stdout

    pictures = run_command(*commands_of_the_page(folder)["pictures"])
    if BROWSER is None:
        assert "no browser found" in pictures.error()
    else:
        assert pictures.code == 0 and (folder / "pictures" / "cases.png").exists(), pictures.output

    other = run_command(*command, "--from-scratch")
    assert other.error().endswith("holds a run without --from-scratch; give another folder")
    for checkpoint in (folder / "plain").iterdir():  # so that no other checkpoint can replace a damaged one
        checkpoint.write_bytes(b"damaged")
    (folder / "plain.done").unlink()
    broken = run_command(*command)
    assert broken.error().endswith("run this again to resume") and "plain.log; run" in broken.error()


def test_from_scratch(folder, tmp_path):
    with open(folder / "corpus" / "train.txt", "a") as text:  # the vocabulary of 8,192 pieces needs more words
        syllables = ["".join(letters) for letters in itertools.product("bcdfghjklmnprstvwxyz", "aeiou")]
        lines = [f"{' '.join(first + second for second in syllables)}\n" for first in syllables]
        text.writelines(lines * 2)  # pieces must occur twice
    commands = commands_of_the_page(folder)
    run = run_command(*commands["quickstart"])
    assert run.code == 0 and "--from-scratch" in commands["quickstart"], run.output
    report = (folder / "report.txt").read_text(encoding="utf-8")
    assert report in run.stdout and "pre-training (losses" in report and "8,192 symbols" in report
    losses = run_command(*commands["losses"], cwd=tmp_path)
    assert losses.code == 0, losses.output
    curve = report[report.index("pre-training") : report.index("\n\nfalse negatives")]
    assert losses.stdout.count(f"{folder}:\n{curve}\n") == 2  # both runs of the page are this one
    assert (tmp_path / "examples" / "quickstart" / "losses.png").read_bytes().startswith(b"\x89PNG")
    other = run_command(sys.executable, FOLDER / "quickstart.py", "--output", folder)
    assert other.error().endswith("holds a run with --from-scratch; give another folder")


def test_an_interruption_ends_the_trainings(monkeypatch, tmp_path):
    quickstart = load_script("examples/quickstart/quickstart.py")
    processes = []

    class Interrupted(quickstart.Training):
        def wait(self) -> int:
            processes.append(self._process)
            if len(processes) == 1:
                raise KeyboardInterrupt
            return super().wait()

    def sleep(folder, updates):
        words = ["python", "-c", "import time; time.sleep(600)"]
        quickstart.train("training", {folder / "plain": words, folder / "corrected": words}, updates)

    monkeypatch.setattr(quickstart, "Training", Interrupted)
    monkeypatch.setattr(quickstart, "continued", sleep)
    with pytest.raises(SystemExit, match="^error: interrupted; run the same command again to resume$"):
        quickstart.main(["--output", str(tmp_path)])
    assert len(set(processes)) == 2 and all(process.poll() is not None for process in processes)
    assert not list(tmp_path.glob("*.done"))


@pytest.fixture
def losses():
    return load_script("examples/quickstart/losses.py")


def record(update: int, loss: float) -> str:
    return f'2026-01-01 | INFO | train_inner | {{"num_updates": "{update}", "nll_loss": "{loss}"}}\n'


def test_a_point_of_the_plot_is_the_mean_of_a_hundred_updates(losses, tmp_path):
    log = tmp_path / "pretraining.log"
    lines = [record(update, loss) for update, loss in ((20, 9), (100, 5), (120, 4), (200, 3), (220, 8), (120, 2))]
    log.write_text("started\n" + "".join(lines))  # the last line is from a resumed run, which replaces the earlier one
    assert losses.curve(log) == (220, [60, 160, 220], [7, 2.5, 8])


def test_runs_without_losses_and_an_output_that_cannot_be_written_get_one_line(losses, tmp_path, monkeypatch):
    monkeypatch.setattr(losses, "loss_curve", lambda log: [])
    log = tmp_path / "pretraining.log"
    with pytest.raises(SystemExit, match="^error: .*pretraining.log: No such file .*; give the --output of quickstart"):
        losses.main([str(tmp_path), "--output", str(tmp_path / "losses.png")])
    log.write_text("started\n")
    with pytest.raises(SystemExit, match="^error: .*pretraining.log: no losses in it; "):
        losses.main([str(tmp_path), "--output", str(tmp_path / "losses.png")])
    log.write_text(record(20, 9))
    with pytest.raises(SystemExit, match="^error: .*pretraining.log/losses.png: cannot be written"):
        losses.main([str(tmp_path), "--output", str(log / "losses.png")])
