"""The analysis as a user runs it: its rates match the training log, and its files agree with each other."""

import csv
import json
import subprocess
import sys
import urllib.request

import nltk
import pytest
from helpers import FAMILIES, run_command, train_here
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from preprocessed import refused

from tn_fairseq.analysis.__main__ import main

# the tests share training runs
pytestmark = [pytest.mark.xdist_group("analysis"), pytest.mark.usefixtures("keep_logging")]
RATES = {
    "accuracy": "valid_mlm_accuracy",
    "prediction_rate": "valid_false_negative_rate",
    "sequence_rate": "valid_false_negative_sequences",
}


def analysis(*words, **options):
    return run_command(sys.executable, "-m", "tn_fairseq.analysis", *words, **options)


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request, tmp_path_factory, data_bin, synonym_table):
    """A run that saves and validates every other update; return its folder and the logged validations."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = [*FAMILIES[request.param].split(), "--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    intervals = ["--save-interval-updates", 2, "--validate-interval-updates", 2]
    records = train_here(
        data_bin, folder, *flags, *intervals, "--dropout", 0, "--lr", 1e-2, "--generator-temperature", 0.5
    )["valid"]
    # the last validation is logged again when training ends
    logged = {int(record["valid_num_updates"]): record for record in records}
    assert sorted(logged) == [2, 4, 6]
    return folder, logged


def test_the_rates_match_those_logged_by_validation(trained, data_bin, synonym_table, empty_table, tmp_path):
    checkpoints, logged = trained
    output = tmp_path / "report folder"
    words = [data_bin, "--path", checkpoints / "checkpoint*.pt", "--synonym-table", synonym_table, empty_table]
    is_electra = checkpoints.name.startswith("electra")
    detects = ["--detection"] if is_electra else []
    run = analysis(*words, "--output", output, "--mask-seeds", 1, "--paper", *detects)
    assert run.code == 0 and not run.stderr, run.output
    rows = json.loads((output / "false_negatives.json").read_text())
    assert [(row["updates"], row["table"]) for row in rows] == [
        (updates, table) for updates in (2, 4, 6) for table in ("synonyms", "empty")
    ]
    for row in rows[::2]:
        for rate, name in RATES.items():
            assert round(row[rate], 3) == float(logged[row["updates"]][name]), (rate, row)
        assert row["prediction_rate_low"] is None
    assert all(row["corrected"] == 0 and row["accuracy"] == other["accuracy"] for other, row in zip(*[iter(rows)] * 2))
    assert any(row["corrected"] for row in rows)
    for row in rows[1::2] if is_electra else ():  # training calls synonyms replaced, too
        for rate in ("recall", "precision"):
            assert round(row[f"detection_{rate}"], 3) == float(logged[row["updates"]][f"valid_rtd_{rate}"])

    with open(output / "false_negatives.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert [(int(row["corrected"]), row["table"]) for row in read] == [(row["corrected"], row["table"]) for row in rows]
    cases = json.loads((output / "cases.json").read_text())
    last = rows[-2]
    assert sum(case["corrected"] for case in cases) == min(last["corrected"], 200) and cases
    for case in cases:
        assert case["gold"] != case["prediction"] and case["table"] == "synonyms"
        assert (case["prediction"] in case["synonyms"]) == case["corrected"]
        assert [text.strip() for text, kind in case["context"] if kind == 2] == [case["gold"]]
    with open(output / "pairs.csv", newline="") as file:
        pairs = list(csv.DictReader(file))
    assert sum(int(pair["count"]) for pair in pairs if pair["list"] == "corrected") == last["corrected"]
    with open(output / "sources.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3
    for name in ("cases.html", "training.png", "training.svg"):
        assert (output / name).stat().st_size > 1000 and name in run.stdout
    assert "from the paper (not ours)" in run.stdout and "1.41" in run.stdout
    assert not [path for path in output.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("trained", ["electra"], indirect=True)
def test_an_analysis_without_wordnet_downloads_nothing(trained, data_bin, synonym_table, tmp_path, monkeypatch, capsys):
    def fetch(*args, **options):
        raise AssertionError(f"fetches {args}")

    checkpoints, _ = trained
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk_data")])
    monkeypatch.setattr(nltk.corpus, "wordnet", nltk.corpus.LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    monkeypatch.setattr(urllib.request, "urlopen", fetch)
    monkeypatch.setattr(subprocess, "run", fetch)
    tables = [tmp_path / name for name in ("one.safetensors", "two.safetensors")]
    for table in tables:
        table.write_bytes(synonym_table.read_bytes())
    words = [data_bin, "--path", checkpoints / "checkpoint_last.pt", "--synonym-table", *tables]
    words += ["--mask-seeds", 1, "--max-sequences", 6, "--output", tmp_path / "report"]
    main([str(word) for word in words])
    cases = json.loads((tmp_path / "report" / "cases.json").read_text())
    assert cases and {case["part_of_speech"] for case in cases} == {"unknown"}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("parts of speech are unknown: ") and "python -m tn_fairseq.synonyms.fetch_wordnet" in line


@pytest.mark.parametrize("trained", ["bert"], indirect=True)
def test_invalid_input_gets_one_line_and_writes_nothing(trained, data_bin, synonym_table, tmp_path):
    checkpoints, _ = trained
    (tmp_path / "file").write_text("in the way")
    good = [data_bin, "--path", checkpoints / "checkpoint_last.pt", "--synonym-table", synonym_table]
    for wrong, said in (
        (["--split", "tset"], "--split tset: not in"),
        (["--path", tmp_path / "checkpoint_9*.pt"], "no such checkpoint"),
        (["--model", tmp_path / "none"], "no such model"),
        (["--output", tmp_path / "file"], "file: File exists; give a --output you can write to"),
        (["--synonym-table", tmp_path / "none.safetensors"], "No such file"),
        (["--encoder-json", tmp_path / "file"], "--encoder-json is only for dictionaries of numbers"),
        (["--detection"], "checkpoint_last.pt has no discriminator; leave the option out"),
    ):
        assert said in refused(main, [str(word) for word in (*good, "--output", tmp_path / "new", *wrong)])
        assert not (tmp_path / "new").exists()
    run = analysis(data_bin, "--path", tmp_path / "file", *["--synonym-table", synonym_table, "--output", tmp_path])
    assert "file: damaged, or not a checkpoint" in run.error()
