"""The quickstart as `make demo` runs it, with less text and fewer updates, and the commands of its page."""

import itertools
import json
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from files import read_commands, refused, write
from guides import guide
from helpers import BROWSER, OBJECTS, SUBJECTS, VERBS, commands_of, load_script, run_command

from tn_fairseq.tools import jobs
from tn_fairseq.tools.jobs import Job
from tn_fairseq.tools.training_log import read_records

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "quickstart"
UPDATES = "2"


quickstart = load_script("examples/quickstart/quickstart.py")
report = load_script("examples/quickstart/report.py")
losses = load_script("examples/quickstart/losses.py")


def with_short_corpus(stages: dict[str, list[Job]], folder: Path) -> None:
    """Do the first stage with a short corpus. test_wordnet_corpus.py writes the real one."""
    sentences = [" ".join(words) for words in itertools.product(SUBJECTS, VERBS, OBJECTS, ".")]
    documents = ["\n".join(sentences[start : start + 10]) for start in range(0, len(sentences), 10)]

    def write_corpus() -> None:
        for split, count in (("train", 8), ("valid", 1)):
            write(folder / "corpus" / f"{split}.txt", "\n\n".join(documents * count) + "\n")

    ((corpus,), *_) = stages.values()
    assert not jobs.run([replace(corpus, run=write_corpus)], folder, quiet=True)


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


@pytest.mark.usefixtures("served_programs")
def test_the_demo_compares_three_objectives(tmp_path, monkeypatch, capsys, caplog):
    """With two seeds."""
    caplog.set_level("WARNING")  # as the demo does, but not for other tests
    for script in (quickstart, report):
        monkeypatch.setattr(script, "SEEDS", (1, 2))
    monkeypatch.setitem(sys.modules, "report", report)
    opened = []
    monkeypatch.setattr(quickstart.webbrowser, "open", lambda address: not opened.append(address))
    folder = tmp_path / "demo folder"
    with_short_corpus(quickstart.continued(folder, int(UPDATES)), folder)
    words = ["--output", str(folder), "--max-update", UPDATES]
    quickstart.main([*words, "--open"])
    printed, errors = capsys.readouterr()
    assert not errors  # no progress bar, because this is no terminal
    text = (folder / "report.txt").read_text(encoding="utf-8")
    page = folder / "false-negatives" / "cases.html"
    # `make demo` also prints up to seven lines of its installation
    assert len(printed.splitlines()) == 24
    assert text in printed and f"all results on one page: {page} (" in printed
    assert opened == [page.as_uri()]
    assert text.count("     teacher: ") == 3
    commands = read_commands(folder)
    assert [one["command"].split()[0] for one in commands].count("fairseq-train") == 6 and len(commands) == 6 + 6
    assert all((folder / one["log"]).exists() and one["exit_code"] == 0 for one in commands)
    html = page.read_text(encoding="utf-8")
    assert all(f'"name":"{arm}","points":[[2,' in html for arm in ("plain", "corrected", "taught"))
    # the same data, order and masks: in the first updates, the corrections change little, and another seed more
    first_losses = [
        float(read_records(folder / f"{run}.log", "train_inner")[0]["nll_loss"])
        for run in ("seed1/plain", "seed1/corrected", "seed2/plain")
    ]
    assert first_losses[0] == pytest.approx(first_losses[1], abs=0.005)
    assert first_losses[0] != pytest.approx(first_losses[2], abs=0.005)

    quickstart.main(words)
    printed = capsys.readouterr().out
    assert printed.count("already there") == 6 and text in printed
    assert read_commands(folder) == commands

    with nullcontext() if BROWSER else pytest.raises(SystemExit, match="no browser found"):
        load_script("examples/pictures.py").main(commands_of_the_page(folder)["pictures"][2:])
        assert (folder / "pictures" / "cases.png").exists()

    assert "--from-scratch" in refused(quickstart.main, ["--output", str(folder), "--from-scratch"])
    run = folder / "seed1" / "plain"
    assert str(folder / "seed1") in refused(quickstart.main, [*words[:2], "--max-update", "3"])
    for checkpoint in run.iterdir():  # so that no other checkpoint can replace a damaged one
        checkpoint.write_bytes(b"damaged")
    assert f"{run}/checkpoint_last.pt.job.json" in refused(quickstart.main, words)


@pytest.mark.soak
def test_the_discriminator_from_scratch_finds_replaced_words(tmp_path):
    """It finds most of them before it learns anything, so this trains for a third of the updates."""
    quickstart.run_stages(quickstart.from_scratch(tmp_path, 800), tmp_path)
    last = read_records(tmp_path / "pretraining.log", "valid")[-1]
    assert float(last["valid_rtd_recall"]) > 5 and float(last["valid_rtd_precision"]) > 50


@pytest.mark.slow
def test_from_scratch(tmp_path):
    folder = tmp_path / "demo folder"
    with_short_corpus(quickstart.from_scratch(folder, int(UPDATES)), folder)
    with open(folder / "corpus" / "train.txt", "a") as text:  # the vocabulary of 8,192 pieces needs more words
        syllables = ["".join(letters) for letters in itertools.product("bcdfghjklmnprstvwxyz", "aeiou")]
        lines = [f"{' '.join(first + second for second in syllables)}\n" for first in syllables]
        text.writelines(lines * 2)  # pieces must occur twice
    commands = commands_of_the_page(folder)
    run = run_command(*commands["quickstart"])
    assert run.code == 0 and "--from-scratch" in commands["quickstart"], run.output
    text = (folder / "report.txt").read_text(encoding="utf-8")
    assert text in run.stdout and "pre-training (losses" in text
    assert "8,192 symbols" in (folder / "logs" / "data.log").read_text(encoding="utf-8")
    assert re.search(r"it finds [\d.]+% of the replaced words", text)
    plotted = run_command(*commands["losses"], cwd=tmp_path)
    assert plotted.code == 0, plotted.output
    curve = text[text.index("pre-training") : text.index("\ndiscriminator: ")]
    assert f"{folder}:\n{curve}\n" in plotted.stdout
    assert (tmp_path / "examples" / "quickstart" / "losses.png").read_bytes().startswith(b"\x89PNG")
    assert "--from-scratch" in refused(quickstart.main, ["--output", str(folder)])


def failing(folder: Path, updates: int) -> dict[str, list[Job]]:
    words = ["python", "-c", "import sys; print('started'); sys.exit('error: no corpus; give one')"]
    return {"corpus: a text": [Job("corpus", words, folder / "corpus", {})]}


def test_an_interruption_a_failure_and_a_wrong_output_get_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(quickstart, "run_stages", Mock(side_effect=KeyboardInterrupt))
    assert "run the same command again" in refused(quickstart.main, ["--output", str(tmp_path / "demo")])
    monkeypatch.undo()
    monkeypatch.setattr(quickstart, "continued", failing)
    message = refused(quickstart.main, ["--output", str(tmp_path / "demo")])
    assert f"no corpus; give one (see {tmp_path}/demo/corpus.log)" in message
    (tmp_path / "file").touch()
    assert "--output" in refused(quickstart.main, ["--output", str(tmp_path / "file")])
    monkeypatch.setattr(quickstart.webbrowser, "open", lambda address: False)
    assert not quickstart.opens(tmp_path / "cases.html")


def record(update: int, loss: float) -> str:
    return f'2026-01-01 | INFO | train_inner | {{"num_updates": "{update}", "nll_loss": "{loss}"}}\n'


def test_a_point_of_the_plot_is_the_mean_of_a_hundred_updates(tmp_path):
    log = tmp_path / "pretraining.log"
    lines = [record(update, loss) for update, loss in ((20, 9), (100, 5), (120, 4), (200, 3), (220, 8), (120, 2))]
    log.write_text("started\n" + "".join(lines))  # the last line is from a resumed run, which replaces the earlier one
    assert losses.curve(log) == (220, [60, 160, 220], [7, 2.5, 8])


def test_a_run_without_losses_gets_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(losses, "loss_curve", lambda log: [])
    (tmp_path / "pretraining.log").write_text("started\n")
    words = [str(tmp_path), "--output", str(tmp_path / "losses.png")]
    assert str(tmp_path / "pretraining.log") in refused(losses.main, words)


def test_the_report_has_intervals_over_the_seeds(tmp_path):
    write(tmp_path / "draws.job.json", {"seconds": 14.2})
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
    assert loss.endswith(" 4.000 +0.000 +0.000") and rate.endswith(" 0.100 +0.000 +0.000")  # all seeds agree
    assert time.endswith(" 40 +0 +2") and before.endswith(" in 14 seconds.")
    # the differences are 1, 1.5 and 2: a standard error of 0.5 / sqrt(3), times Student's 4.303
    assert accuracy.endswith(" 41.00 +0.00 +1.50 ± 1.24")


def test_the_report_says_whether_the_discriminator_finds_replaced_words(tmp_path):
    log = tmp_path / "pretraining.log"
    valid = '"valid_rtd_recall": "{}", "valid_rtd_precision": "50", "valid_replaced_rate": "30"'
    line = 'x | INFO | valid | {{"valid_num_updates": "9", ' + valid + "}}\n"
    log.write_text(line.format("12.34"))
    recall, precision = report.discriminator(log)
    assert "12.3%" in recall and "50.0%" in precision
    log.write_text(line.format("0"))
    recall, remark = report.discriminator(log)
    assert "0.0%" in recall and "%" not in remark
