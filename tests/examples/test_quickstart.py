"""The quickstart as `make demo` runs it, with fewer updates."""

import sys
from pathlib import Path

from helpers import run_command

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "quickstart.py"


def test_the_quickstart_reports_skips_finished_stages_and_names_the_log_of_a_failure(tmp_path):
    folder = tmp_path / "demo folder"
    command = [sys.executable, QUICKSTART, "--output", folder, "--max-update", 60]
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

    for checkpoint in (folder / "checkpoints").iterdir():  # so that no other checkpoint can replace a damaged one
        checkpoint.write_bytes(b"damaged")
    (folder / "pretraining.done").unlink()
    broken = run_command(*command)
    assert broken.error().endswith("run this again to resume") and "pretraining.log; run" in broken.error()
