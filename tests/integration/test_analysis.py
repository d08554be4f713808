"""The analysis as a user runs it: its rates match the training log, and its files agree with each other."""

import csv
import json
import subprocess
import urllib.request
from collections import Counter
from statistics import fmean

import nltk
import pytest
import torch
from files import refused
from helpers import FAMILIES, WORDS, save_random_model, synonyms_of, train_here, write_data_bin
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.commands.look_analysis import main
from tn_fairseq.core.configuration import training_config
from tn_fairseq.models.loading import Checkpoint, load
from tn_fairseq.tools.analysis.cases import SAME_PAIR
from tn_fairseq.tools.analysis.predictions import batches_of, load_split
from tn_fairseq.tools.analysis.rates import TEACHER

# the tests share training runs
pytestmark = pytest.mark.xdist_group("analysis")
RATES = {
    "accuracy": "valid_mlm_accuracy",
    "prediction_rate": "valid_false_negative_rate",
    "sequence_rate": "valid_false_negative_sequences",
}


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request, tmp_path_factory, data_bin, synonym_table):
    """A run that saves and validates every other update; return its folder and the logged validations."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = [*FAMILIES[request.param].split(), "--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    intervals = ["--save-interval-updates", 2, "--validate-interval-updates", 2]
    temperature = ["--generator-temperature", 0.5] if request.param == "electra" else []
    records = train_here(data_bin, folder, *flags, *intervals, "--dropout", 0, "--lr", 1e-2, *temperature)["valid"]
    # the last validation is logged again when training ends
    logged = {int(record["valid_num_updates"]): record for record in records}
    assert sorted(logged) == [2, 4, 6]
    return folder, logged


def test_the_rates_match_those_logged_by_validation(trained, data_bin, synonym_table, empty_table, tmp_path, capsys):
    checkpoints, logged = trained
    output = tmp_path / "report folder"
    words = [data_bin, "--path", checkpoints / "checkpoint*.pt", "--synonym-table", synonym_table, empty_table]
    is_electra = checkpoints.name.startswith("electra")
    detects = ["--detection"] if is_electra else []
    main([str(word) for word in (*words, "--output", output, "--mask-seeds", 1, "--paper", *detects)])
    printed = capsys.readouterr().out
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
        assert (output / name).stat().st_size > 1000 and name in printed
    assert "from the paper (not ours)" in printed and "1.41" in printed
    assert not [path for path in output.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("trained", ["electra", "bert"], indirect=True)
def test_the_counts_of_a_teacher_are_those_of_a_loop_over_positions(trained, data_bin, synonym_table, tmp_path):
    """The report says of an early checkpoint, with the last one as its teacher, what a naive loop says."""
    checkpoints, _ = trained
    (student,) = checkpoints.glob("checkpoint_*_4.pt")
    teacher = checkpoints / "checkpoint_last.pt"
    words = [data_bin, "--path", student, "--synonym-table", synonym_table, "--mask-seeds", 2]
    for name, flags in (("plain", []), ("judged", ["--teacher", teacher])):
        main([str(word) for word in (*words, "--output", tmp_path / name, *flags)])

    loaded, judge = (load(Checkpoint(path, None), data_bin) for path in (student, teacher))
    dataset = load_split(loaded, data_bin, "valid")
    symbols, rates, best = loaded.task.source_dictionary, [], {}
    for seed in (1, 2):
        dataset.set_epoch(seed)
        wrong = []
        for members in batches_of(loaded, dataset, None):
            batch = dataset.collater([dataset[index] for index in members])
            masked = batch["target"].ne(symbols.pad())
            with torch.no_grad():
                ours, theirs = (one.model(**batch["net_input"])[0].softmax(dim=-1) for one in (loaded, judge))
            for row, place in masked.nonzero().tolist():
                gold, prediction = batch["target"][row, place].item(), ours[row, place].argmax().item()
                if prediction != gold:
                    wrong.append((theirs[row, place, gold].item(), theirs[row, place, prediction].item()))
                    of_gold, of_prediction = wrong[-1]
                    case = of_prediction, symbols[gold], symbols[prediction]
                    if set(case[1:]) <= set(WORDS) and (of_prediction >= 0.1 or of_prediction >= of_gold):
                        key = batch["id"][row].item(), place  # may be masked twice
                        best[key] = max(case, best.get(key, case))
        of_golds, of_predictions = zip(*wrong)
        as_likely = [prediction >= gold for gold, prediction in wrong]
        likely = [prediction >= 0.1 for prediction in of_predictions]
        rates.append([100 * fmean(values) for values in (as_likely, likely, of_predictions, of_golds)])
    (row,) = json.loads((tmp_path / "judged" / "false_negatives.json").read_text())
    assert [row[rate] for rate in TEACHER] == pytest.approx([fmean(values) for values in zip(*rates)], rel=1e-4)
    assert all(row[f"{rate}_low"] <= row[rate] <= row[f"{rate}_high"] for rate in TEACHER)
    assert 0 < row["teacher_as_likely_rate"] < 100

    # the cases, and nothing else changes
    cases = json.loads((tmp_path / "judged" / "cases.json").read_text())
    of_teacher = [case for case in cases if "teacher" in case]
    found = [case["teacher_prediction_probability"] for case in of_teacher]
    assert found == sorted(found, reverse=True)
    pairs = Counter(case[1:] for case in best.values())
    assert Counter((case["gold"], case["prediction"]) for case in of_teacher) == {
        pair: min(count, SAME_PAIR) for pair, count in pairs.items()
    }
    for case in of_teacher:
        assert (case["prediction"] in synonyms_of(case["gold"])) == (case["synonym_in"] == ["synonyms"])
    assert [case for case in cases if "teacher" not in case] == json.loads((tmp_path / "plain/cases.json").read_text())
    (plain,) = json.loads((tmp_path / "plain" / "false_negatives.json").read_text())
    row["by_mask_seed"] = {key: rates for key, rates in row["by_mask_seed"].items() if not key.startswith("teacher")}
    assert plain == {key: value for key, value in row.items() if not key.startswith("teacher")}


def test_a_model_finds_its_own_predictions_likely(trained, data_bin, synonym_table, tmp_path, capsys):
    checkpoint = trained[0] / "checkpoint_last.pt"
    words = [data_bin, "--path", checkpoint, "--synonym-table", synonym_table, "--teacher", checkpoint]
    main([str(word) for word in (*words, "--mask-seeds", 1, "--output", tmp_path / "report")])
    assert "teacher: finds 100.00% of mismatches as likely as the gold token" in capsys.readouterr().out
    (row,) = json.loads((tmp_path / "report" / "false_negatives.json").read_text())
    assert row["teacher_as_likely_rate"] == 100 and row["teacher_probability"] > row["teacher_gold_probability"] > 0
    for case in json.loads((tmp_path / "report" / "cases.json").read_text()):
        if "teacher" in case:
            for symbol in ("gold", "prediction"):
                assert case[f"teacher_{symbol}_probability"] == pytest.approx(case[f"{symbol}_probability"], rel=1e-4)


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
    assert line.startswith("parts of speech are unknown: ") and "tn-fairseq synonyms fetch-wordnet" in line


@pytest.mark.parametrize("trained", ["bert"], indirect=True)
def test_invalid_input_gets_one_line_and_writes_nothing(trained, data_bin, synonym_table, tmp_path):
    checkpoints, _ = trained
    (tmp_path / "file").write_text("in the way")
    fewer = write_data_bin(tmp_path / "fewer", WORDS[1:])
    task = ["--task", "masked_lm", "--arch", "bert_tiny", "--optimizer", "adam", "--tokens-per-sample", 8]
    cfgs = [training_config([data, *task, "--max-positions", 8]) for data in (fewer, data_bin, data_bin)]
    other, short, headless = (
        save_random_model(tmp_path / f"{name}.pt", cfg, seed=1)
        for name, cfg in zip(("other", "short", "headless"), cfgs)
    )
    state = torch.load(headless)
    state["cfg"]["task"]["_name"] = "sentence_prediction"
    torch.save(state, headless)
    good = [data_bin, "--path", checkpoints / "checkpoint_last.pt", "--synonym-table", synonym_table]
    for wrong, said in (
        (["--split", "tset"], "--split tset"),
        (["--path", tmp_path / "checkpoint_9*.pt"], "checkpoint_9*.pt"),
        (["--path", tmp_path / "file"], "file"),
        (["--model", tmp_path / "none"], "none"),
        (["--output", tmp_path / "file"], "--output"),
        (["--synonym-table", tmp_path / "none.safetensors"], "none.safetensors"),
        (["--encoder-json", tmp_path / "file"], "--encoder-json"),
        (["--detection"], "checkpoint_last.pt"),
        (["--teacher", tmp_path / "none.pt"], "none.pt"),
        (["--teacher", tmp_path], "config.json"),
        (["--teacher", other], "other.pt"),
        (["--teacher", headless], "headless.pt"),
        (["--teacher", short], "short.pt: has 8 trained positions"),
    ):
        assert said in refused(main, [str(word) for word in (*good, "--output", tmp_path / "new", *wrong)])
        assert not (tmp_path / "new").exists()
