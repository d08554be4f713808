"""The quickstart as `make demo` runs it, with less text and fewer updates, and the commands of its page."""

import itertools
import json
import os
import re
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from guides import guide
from helpers import BROWSER, OBJECTS, SUBJECTS, VERBS, commands_of, load_script, run_command
from tn_fairseq.tools.launching import launching
from tn_fairseq.tools.reporting.training_log import read_records

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "quickstart"
UPDATES = "2"


@pytest.fixture
def folder(tmp_path) -> Path:
    """The --output of a run whose first stage is done: a short corpus. test_wordnet_corpus.py writes the real one."""
    corpus = tmp_path / "demo folder" / "corpus"
    corpus.mkdir(parents=True)
    sentences = [" ".join(words) for words in itertools.product(SUBJECTS, VERBS, OBJECTS, ".")]
    for split, count in (("train", 8), ("valid", 1)):
        documents = ["\n".join(sentences[start : start + 10]) for start in range(0, len(sentences), 10)]
        (corpus / f"{split}.txt").write_text("\n\n".join(documents * count) + "\n")
    return corpus.parent


def commands_of_the_page(folder: Path) -> dict[str, list[str]]:
    """The words of each command by the name of its script, with one short run in ``folder`` in place of all runs."""
    lines = [words for words in commands_of(guide("quickstart")) if words[0] == "python"]
    changed = {"2500": UPDATES, "demo": str(folder), "demo/scratch": str(folder)}
    changed |= {f"demo/{name}": str(folder / name) for name in ("false-negatives", "pictures")}
    found = {
        Path(script).stem: [sys.executable, str(ROOT / script), *(changed.get(word, word) for word in words)]
        for _, script, *words in lines
    }
    assert set(found) == {"quickstart", "losses", "pictures"}
    return found


def test_the_demo_compares_three_objectives(folder, monkeypatch):
    command = [sys.executable, str(FOLDER / "quickstart.py"), "--output", folder, "--max-update", UPDATES]
    monkeypatch.setenv("BROWSER", "echo opened %s")
    first = run_command(*command, "--open")
    assert first.code == 0 and not first.stderr, first.output  # no progress bar, because this is no terminal
    report = (folder / "report.txt").read_text(encoding="utf-8")
    page = folder / "false-negatives" / "cases.html"
    # as long as with `make demo`, which also prints up to seven lines of its installation
    assert len(first.stdout.splitlines()) == 24 + 1
    assert report in first.stdout and f"all results on one page: {page} (" in first.stdout
    assert f"opened {page.as_uri()}" in first.stdout.splitlines()
    assert report.count("     teacher: ") == 3
    log = (folder / "demo.log").read_text(encoding="utf-8")
    assert log.count("$ tn-fairseq ") == 6 and log.count("$ fairseq-train ") == 9 and "known to WordNet" in log
    text = page.read_text(encoding="utf-8")
    assert all(f'"name":"{arm}","points":[[2,' in text for arm in ("plain", "corrected", "taught"))
    for name in ("data-bin", "synonyms.safetensors", "seed3/corrected/checkpoint_last.pt", "seed3/plain.log") + (
        "false-negatives/cases.html",
        "false-negatives/index.html",
    ):
        assert (folder / name).exists()
    # the same data, order and masks: in the first updates, the corrections change little, and another seed more
    losses = [
        float(read_records(folder / f"{run}.log", "train_inner")[0]["nll_loss"])
        for run in ("seed1/plain", "seed1/corrected", "seed2/plain")
    ]
    assert losses[0] == pytest.approx(losses[1], abs=0.005) and losses[0] != pytest.approx(losses[2], abs=0.005)

    again = run_command(*command)
    assert again.code == 0, again.output
    assert again.stdout.count("already there") == 6 and report in again.stdout
    assert (folder / "demo.log").read_text(encoding="utf-8") == log

    with nullcontext() if BROWSER else pytest.raises(SystemExit, match="no browser found"):
        load_script("examples/pictures.py").main(commands_of_the_page(folder)["pictures"][2:])
        assert (folder / "pictures" / "cases.png").exists()

    with pytest.raises(SystemExit, match="holds a run without --from-scratch; give another folder$"):
        load_script("examples/quickstart/quickstart.py").main(["--output", str(folder), "--from-scratch"])
    for checkpoint in (folder / "seed1" / "plain").iterdir():  # so that no other checkpoint can replace a damaged one
        checkpoint.write_bytes(b"damaged")
    (folder / "seed1" / "plain.done").unlink()
    broken = run_command(*command)
    error = broken.error()
    assert f"{folder}/seed1/plain.log: fairseq-train failed: " in error and error.endswith("delete it to start over")


@pytest.mark.soak
def test_the_discriminator_from_scratch_finds_replaced_words(tmp_path):
    """It finds most of them before it learns anything, so this trains for a third of the updates."""
    quickstart = load_script("examples/quickstart/quickstart.py")
    with launching(tmp_path / "demo.log", "locked") as launcher:
        quickstart.from_scratch(quickstart.Stages(tmp_path, launcher), 800)
    last = read_records(tmp_path / "pretraining.log", "valid")[-1]
    assert float(last["valid_rtd_recall"]) > 5 and float(last["valid_rtd_precision"]) > 50


@pytest.mark.slow
def test_from_scratch(folder, tmp_path):
    with open(folder / "corpus" / "train.txt", "a") as text:  # the vocabulary of 8,192 pieces needs more words
        syllables = ["".join(letters) for letters in itertools.product("bcdfghjklmnprstvwxyz", "aeiou")]
        lines = [f"{' '.join(first + second for second in syllables)}\n" for first in syllables]
        text.writelines(lines * 2)  # pieces must occur twice
    commands = commands_of_the_page(folder)
    run = run_command(*commands["quickstart"])
    assert run.code == 0 and "--from-scratch" in commands["quickstart"], run.output
    report = (folder / "report.txt").read_text(encoding="utf-8")
    assert report in run.stdout and "pre-training (losses" in report
    assert "8,192 symbols" in (folder / "demo.log").read_text(encoding="utf-8")
    assert re.search(r"it finds [\d.]+% of the replaced words", report)
    assert len(run.stdout.splitlines()) <= 30
    losses = run_command(*commands["losses"], cwd=tmp_path)
    assert losses.code == 0, losses.output
    curve = report[report.index("pre-training") : report.index("\ndiscriminator: ")]
    assert f"{folder}:\n{curve}\n" in losses.stdout
    assert (tmp_path / "examples" / "quickstart" / "losses.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit, match="holds a run with --from-scratch; give another folder$"):
        load_script("examples/quickstart/quickstart.py").main(["--output", str(folder)])


def test_an_interruption_ends_the_trainings(monkeypatch, tmp_path):
    quickstart = load_script("examples/quickstart/quickstart.py")
    start, started = quickstart.Launcher.start, []

    def interrupted(*args: object):
        """The signal arrives when the second training has just started."""
        started.append(start(*args))
        if len(started) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    def sleep(stages, updates):
        words = ["python", "-c", "import time; time.sleep(600)"]
        stages.train("training", dict.fromkeys((tmp_path / "plain", tmp_path / "corrected"), words), updates)

    monkeypatch.setattr(quickstart.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(quickstart.Launcher, "start", interrupted)
    monkeypatch.setattr(quickstart, "continued", sleep)
    with pytest.raises(SystemExit, match="^error: interrupted; run the same command again to resume$"):
        quickstart.main(["--output", str(tmp_path)])
    assert len(started) == 2 and all(command.process.returncode == -signal.SIGTERM for command in started)
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


def test_no_browser_and_a_stage_that_fails_get_one_line(monkeypatch, tmp_path):
    quickstart = load_script("examples/quickstart/quickstart.py")
    monkeypatch.setattr(quickstart.webbrowser, "open", lambda address: False)
    assert not quickstart.opens(tmp_path / "cases.html")

    def fails(stages, updates):
        code = "import sys; print('started'); sys.exit('error: no corpus; give one')"
        stages.run("1/6 corpus: a text", {tmp_path / "corpus": ["python", "-c", code]})

    monkeypatch.setattr(quickstart, "continued", fails)
    with pytest.raises(SystemExit, match=f"^error: 1/6 corpus: no corpus; give one .all output: {tmp_path}/demo.log.$"):
        quickstart.main(["--output", str(tmp_path)])
    assert "started\nerror: no corpus" in (tmp_path / "demo.log").read_text()
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="^error: --output .*file: File exists; give a folder that you can write to$"):
        quickstart.main(["--output", str(tmp_path / "file")])


def test_the_report_has_intervals_over_the_seeds(tmp_path):
    report = load_script("examples/quickstart/report.py")
    (tmp_path / "draws.done").write_text("14")
    accuracies = {"plain": (40, 41, 42), "corrected": (40, 41, 42), "taught": (41, 42.5, 44)}
    for arm, values in accuracies.items():
        for seed, accuracy in enumerate(values, start=1):
            (tmp_path / f"seed{seed}").mkdir(exist_ok=True)
            names = {"nll_loss": 4, "mlm_accuracy": accuracy, "false_negative_rate": 0.1}
            valid = json.dumps({"valid_num_updates": "9", **{f"valid_{name}": str(of) for name, of in names.items()}})
            train = json.dumps({"train_num_updates": "9", "train_train_wall": f"{40 + 2 * (arm == 'taught')}"})
            lines = f"x | INFO | train | {train}\nx | INFO | valid | {valid}\n"
            (tmp_path / f"seed{seed}" / f"{arm}.log").write_text(lines)
    heading, columns, loss, accuracy, rate, time, before = (
        " ".join(line.split()) for line in report.comparison(tmp_path)
    )
    assert "means of 3 seeds" in heading and columns == "plain corrected taught"
    assert loss.endswith(" 4.000 +0.000 ± 0.000 +0.000 ± 0.000") and rate.endswith(" 0.10 +0.00 ± 0.00 +0.00 ± 0.00")
    assert time.endswith(" 40 +0 ± 0 +2 ± 0") and before.endswith(" in 14 seconds.")
    # the differences are 1, 1.5 and 2: a standard error of 0.5 / sqrt(3), times Student's 4.303
    assert accuracy.endswith(" 41.00 +0.00 ± 0.00 +1.50 ± 1.24")


def test_the_report_says_whether_the_discriminator_finds_replaced_words(tmp_path):
    report = load_script("examples/quickstart/report.py")
    log = tmp_path / "pretraining.log"
    valid = '"valid_rtd_recall": "{}", "valid_rtd_precision": "50", "valid_replaced_rate": "30"'
    line = 'x | INFO | valid | {{"valid_num_updates": "9", ' + valid + "}}\n"
    log.write_text(line.format("12.34"))
    recall, precision = report.discriminator(log)
    assert "it finds 12.3% of the replaced words" in recall and precision.startswith("  50.0% of the words that it")
    log.write_text(line.format("0"))
    recall, remark = report.discriminator(log)
    assert "it finds 0.0% of the replaced words" in recall and "needs far longer training" in remark
