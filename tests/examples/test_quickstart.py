"""The quickstart as `make demo` runs it, with fewer updates, and the commands of its page."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from helpers import load_script, run_command

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "quickstart"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def commands_of_the_page(folder: Path) -> dict[str, list[str]]:
    """The words of each command by the name of its script, with one short run in ``folder`` in place of all runs."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL)).replace("\\\n", " ")
    lines = [shlex.split(line) for line in blocks.splitlines() if line.startswith("python ")]
    changed = {"8000": "60", "demo": str(folder), "demo/longer": str(folder)}
    changed |= {f"demo/{name}": str(folder / name) for name in ("false-negatives", "pictures")}
    return {
        Path(script).stem: [sys.executable, str(ROOT / script), *(changed.get(word, word) for word in words)]
        for _, script, *words in lines
    }


def test_the_quickstart_reports_skips_finished_stages_and_names_the_log_of_a_failure(tmp_path):
    folder = tmp_path / "demo folder"
    commands = commands_of_the_page(folder)
    command = commands.pop("quickstart")
    first = run_command(*command)
    assert first.code == 0, first.output
    report = (folder / "report.txt").read_text(encoding="utf-8")
    assert report in first.stdout
    for line in ("corpus and vocabulary", "115,380 sentences", "known to WordNet", "pre-training", "masked LM"):
        assert line in report
    assert report.count(" gold ") == report.count("     synonyms of ") == 5
    for name in ("data-bin", "synonyms.safetensors", "checkpoints/checkpoint_last.pt", "pretraining.log") + (
        "false-negatives/cases.html",
        "false-negatives/training.png",
    ):
        assert (folder / name).exists() and str(folder / name) in report

    again = run_command(*command)
    assert again.code == 0, again.output
    assert again.stdout.count("already there") == 5 and again.stdout.count("already done") == 1
    assert "$ " not in again.stdout and report in again.stdout

    losses = run_command(*commands.pop("losses"), cwd=tmp_path)
    assert losses.code == 0, losses.output
    curve = report[report.index("pre-training") : report.index("\n\nfalse negatives")]
    assert losses.stdout.count(f"{folder}:\n{curve}\n") == 2  # both runs of the page are this one
    assert (tmp_path / "examples" / "quickstart" / "losses.png").read_bytes().startswith(b"\x89PNG")
    pictures = run_command(*commands.pop("pictures"), cwd=tmp_path)
    if BROWSER is None:
        assert "no browser found" in pictures.error()
    else:
        assert pictures.code == 0 and (folder / "pictures" / "cases.png").exists(), pictures.output
    assert not commands

    for checkpoint in (folder / "checkpoints").iterdir():  # so that no other checkpoint can replace a damaged one
        checkpoint.write_bytes(b"damaged")
    (folder / "pretraining.done").unlink()
    broken = run_command(*command)
    assert broken.error().endswith("run this again to resume") and "pretraining.log; run" in broken.error()


@pytest.fixture
def losses(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))  # it imports its neighbors, as a script does
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
