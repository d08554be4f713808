"""The commands from files of GLUE and SQuAD to tables, as a user runs them."""

import json
import random
import re

import pytest
from files import refused
from helpers import PLUGIN, WORDS, run_command, train_here, write_squad, write_tsv

from tn_fairseq.__main__ import main
from tn_fairseq.tools.evaluate.finetuning import CHECKPOINT, MARKER, RESULTS
from tn_fairseq.tools.results.report import FILES, TABLE
from tn_fairseq.tools.results.table import read_table

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "good", "bad"]
pytestmark = pytest.mark.xdist_group("evaluation")  # the tests share training runs
SHORT = ["--batch-size", 8, "--max-update", 4]


def preprocess(*words):
    main(["data", *map(str, words)])


def evaluate(*words):
    main(["evaluate", *map(str, words)])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A tokenizer, two checkpoints with its dictionary, and small versions of SST-2, STS-B and SQuAD."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    rng = random.Random(1)
    sentence = lambda: " ".join(rng.choices(WORDS, k=rng.randint(3, 8)))  # noqa: E731
    (folder / "text").write_text("".join(f"{sentence()} good bad\n" for _ in range(64)))
    preprocess("binarize", *["--train", folder / "text", "--valid", folder / "text"], *tokenizer_to(folder, "data-bin"))
    for family, length in (("electra", 32), ("bert", 16)):  # pairs of sentences are longer than 16 tokens
        flags = ["--task", "electra", "--arch", f"{family}_tiny", "--criterion", "electra", "--max-update", 1]
        flags += ["--tokens-per-sample", length]
        train_here(folder / "data-bin", folder / family, *flags)

    for split, count in (("train", 80), ("dev", 24), ("test", 8)):
        labeled = split != "test"
        labels = [rng.randrange(2) for _ in range(count)]
        texts = [f"{sentence()} {'good' if label else 'bad'}" for label in labels]
        rows = [("sentence", "label"), *zip(texts, labels)] if labeled else [("index", "sentence"), *enumerate(texts)]
        write_tsv(folder / "glue" / "SST-2" / f"{split}.tsv", rows)
        columns = "index genre filename year old_index source1 source2 sentence1 sentence2 score".split()
        rows = [[n, *["x"] * 6, sentence(), sentence(), f"{rng.uniform(0, 5):.3f}"] for n in range(count)]
        rows = [row if labeled else row[:-1] for row in (columns, *rows)]
        write_tsv(folder / "glue" / "STS-B" / f"{split}.tsv", rows)
    preprocess("glue", "--glue-dir", folder / "glue", "--task", "all", *tokenizer_to(folder, "glue-bin"))

    texts = [sentence() for _ in range(40)]
    answers = [text.split()[number % len(text.split())] for number, text in enumerate(texts)]
    write_squad(folder / "squad.json", [(text, f"good {answer}?", answer) for text, answer in zip(texts, answers)])
    sources = ["--train", folder / "squad.json", "--valid", folder / "squad.json"]
    preprocess("squad", *sources, *tokenizer_to(folder, "squad-bin"))
    return folder


def tokenizer_to(folder, name):
    return ["--tokenizer", folder / "vocab.txt", "--destdir", folder / name]


@pytest.fixture(scope="module")
def checkpoints(world):
    return [f"{family}={world / family / 'checkpoint_last.pt'}" for family in ("electra", "bert")]


@pytest.fixture(scope="module")
def glue(world, checkpoints):
    """Two checkpoints on two tasks, compared with a baseline."""
    words = ["evaluate", "glue", *checkpoints, "--data", world / "glue-bin", "--seeds", "1", *SHORT]
    run = run_command("tn-fairseq", *words, "--baseline", "bert", "--output", world / "scores")
    assert run.code == 0, run.output
    return run


def score_of(folder, measure):
    """The score in the folder of a run."""
    table, _ = read_table(folder / RESULTS)
    return table.set_index("measure")["value"][measure]


def test_glue_fine_tunes_scores_and_compares(world, glue):
    text, listed = glue.stdout.split(f"  {world / 'scores'}", 1)
    assert all(title in text for title in ("SST-2 (%)", "STS-B (%)", "average of SST-2, STS-B (%)", "\n  electra "))
    assert all(name in listed for name in FILES) and all((world / "scores" / name).exists() for name in FILES)
    table, about = read_table(world / "scores" / TABLE)
    measures = {"SST-2", "STS-B", "STS-B pearson", "average"}
    assert set(map(tuple, table[["arm", "seed", "data", "measure"]].to_numpy())) == {
        (arm, 1, "glue", measure) for arm in ("electra", "bert") for measure in measures
    }
    assert about["report"] == "GLUE" and len(about) == 5 and about["electra SST-2 seed 1"]["--max-update"] == "4"
    lines = [line for line in glue.stderr.splitlines() if line.startswith("[")]
    assert [line.split()[0] for line in lines] == [f"[{number}/4]" for number in range(1, 5)]
    assert lines[0].startswith("[1/4] electra SST-2 seed 1: ")
    warned = [line.partition(": ") for line in glue.stderr.splitlines() if "pre-training reached" in line]
    assert [name for name, _, _ in warned] == ["bert STS-B seed 1"]
    assert all(warning.startswith("fine-tuning on sequences of more than 16 tokens") for _, _, warning in warned)
    for checkpoint, task in ((checkpoint, task) for checkpoint in ("electra", "bert") for task in ("SST-2", "STS-B")):
        folder = world / "scores" / checkpoint / task / "seed1"
        assert {path.name for path in folder.iterdir()} == {RESULTS, MARKER, "train.log", "valid.tsv", f"{task}.tsv"}
        assert "'save_interval_updates': 500" in (folder / "train.log").read_text()
        predicted = (folder / f"{task}.tsv").read_text().splitlines()
        assert predicted[0] == "index\tprediction" and len(predicted) == 1 + 8
        values = [line.split("\t")[1] for line in predicted[1:]]
        assert all(v in "01" if task == "SST-2" else 0 <= float(v) <= 5 for v in values)

    # the score matches the written predictions
    gold = [line.split("\t")[1] for line in (world / "glue/SST-2/dev.tsv").read_text().splitlines()[1:]]
    folder = world / "scores/electra/SST-2/seed1"
    predicted = [line.split("\t")[1] for line in (folder / "valid.tsv").read_text().splitlines()[1:]]
    accuracy = 100 * sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold)
    assert score_of(folder, "SST-2") == pytest.approx(accuracy)


@pytest.mark.usefixtures("served_programs")
def test_an_interrupted_run_resumes_and_gives_the_same_result(world, glue, checkpoints, tmp_path):
    """Make the first half of a run by hand, as the interrupted command leaves it, then run the command."""
    whole = world / "scores/electra/STS-B/seed1"
    marker = json.loads((whole / MARKER).read_text())
    folder = tmp_path / "electra" / "STS-B" / "seed1"
    folder.mkdir(parents=True)
    (folder / MARKER).write_text(json.dumps(marker | {"state": "started"}))
    path = checkpoints[0].split("=")[1]
    flags = [f"{flag}={value}" if value else flag for flag, value in marker["fingerprint"].items() if flag[0] == "-"]
    half = [world / "glue-bin/STS-B", *flags, "--finetune-from-model", path, "--user-dir", PLUGIN, "--cpu"]
    half += ["--save-dir", folder / "checkpoints", "--stop-min-lr", "-1", "--max-update", 2]
    stopped = run_command("fairseq-train", *half, "--num-workers", 0, "--no-epoch-checkpoints", "--disable-validation")
    assert stopped.code == 0, stopped.output
    words = ["glue", checkpoints[0], "--data", world / "glue-bin", "--tasks", "STS-B", "--seeds", "1", *SHORT]
    evaluate(*words, "--output", tmp_path, "--keep-checkpoints")
    loaded = re.findall(r"Loaded checkpoint (\S+) \(epoch \d+ @ (\d+) updates\)", (folder / "train.log").read_text())
    assert loaded == [(str(folder / CHECKPOINT), "2")]
    assert score_of(folder, "STS-B") == score_of(whole, "STS-B")
    assert (folder / "valid.tsv").read_text() == (whole / "valid.tsv").read_text()
    assert (folder / CHECKPOINT).exists()


@pytest.mark.usefixtures("served_programs")
def test_squad_fine_tunes_and_scores(world, checkpoints, capsys):
    words = ["squad", checkpoints[0], "--data", world / "squad-bin", "--seeds", "3", *SHORT, "--keep-checkpoints"]
    more = ["--", "--dropout", 0, "--bf16", "--save-interval-updates", 2]
    evaluate(*words, "--output", world / "squad-scores", *more)
    printed = capsys.readouterr().out
    assert "SQuAD EM (%)" in printed and "SQuAD F1 (%)" in printed
    folder = world / "squad-scores" / "electra" / "SQuAD" / "seed3"
    assert "checkpoint_1_2.pt" in (folder / "train.log").read_text()
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["checkpoint_last.pt"]
    predictions = json.loads((folder / "valid.predictions.json").read_text())
    assert list(predictions) == [f"q{number}" for number in range(40)]
    data = json.loads((world / "squad.json").read_text())["data"][0]["paragraphs"]
    assert all(predictions[p["qas"][0]["id"]] in p["context"] for p in data)
    evaluate("squad-score", world / "squad.json", folder / "valid.predictions.json")
    scores = {"exact_match": score_of(folder, "EM"), "f1": score_of(folder, "F1")}
    assert json.loads(capsys.readouterr().out) == scores
    assert json.loads((folder / MARKER).read_text())["fingerprint"]["--dropout"] == "0"

    # the checkpoint scores the same again
    attacked = ["--original", world / "squad.json", "--attacked", world / "squad.json"]
    evaluate("robustness", world / "squad-scores", *attacked, "--output", world / "robust")
    table, _ = read_table(world / "robust" / TABLE)
    figures = table.groupby("measure")["value"].mean()
    assert len(figures) == 2 * 3
    for score, expected in (("EM", scores["exact_match"]), ("F1", scores["f1"])):
        assert figures[f"original {score}"] == figures[f"attacked {score}"] == pytest.approx(expected)
        assert figures[f"{score} drop"] == 0


@pytest.mark.usefixtures("served_programs")
def test_fine_tuning_learns(world, checkpoints):
    """One word decides the label of SST-2 here, so more updates are enough."""
    words = ["glue", checkpoints[1], "--data", world / "glue-bin", "--tasks", "SST-2", "--seeds", "1"]
    evaluate(*words, "--batch-size", 8, "--epochs", 12, "--lr", 1e-3, "--output", world / "learned")
    folder = world / "learned/bert/SST-2/seed1"
    assert score_of(folder, "SST-2") > 90
    assert json.loads((folder / MARKER).read_text())["fingerprint"]["--max-update"] == "120"


@pytest.mark.usefixtures("served_programs")
def test_a_failed_run_names_its_log_and_the_reason(world, checkpoints, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*PIECES, "more"]) + "\n")
    preprocess("glue", "--glue-dir", world / "glue", "--task", "SST-2", "STS-B", *tokenizer_to(tmp_path, "glue-bin"))
    words = ["glue", checkpoints[0], "--data", tmp_path / "glue-bin", *SHORT, "--seeds", 1]
    message = refused(evaluate, *words, "--tasks", "SST-2", "--output", tmp_path / "out")
    assert "train.log" in message and "another vocabulary" in message
    for labels in ("STS-B/label/valid.label", "SST-2/label/valid.idx"):  # only scoring reads them
        (tmp_path / "glue-bin" / labels).unlink()
        message = refused(evaluate, *words, "--output", tmp_path / "more")
        assert f"there is no {tmp_path}/glue-bin/{labels.removesuffix('.idx')}" in message
