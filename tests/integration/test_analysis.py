"""The analysis as a user runs it: its rates match the training log, and its files agree with each other."""

import csv
import json
import subprocess
import urllib.request
from statistics import fmean

import nltk
import pandas as pd
import pytest
import torch
from files import refused
from helpers import FAMILIES, WORDS, save_random_model, train_here, write_data_bin
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.commands.look_analysis import main
from tn_fairseq.core.configuration import training_config
from tn_fairseq.models.loading import Checkpoint, load
from tn_fairseq.tools.look.analysis import FILES
from tn_fairseq.tools.look.counting import OF_TEACHER
from tn_fairseq.tools.look.predictions import batches_of, load_split
from tn_fairseq.tools.results.table import read_table

# the tests share training runs
pytestmark = pytest.mark.xdist_group("analysis")
RATES = {
    "accuracy": "valid_mlm_accuracy",
    "prediction_rate": "valid_false_negative_rate",
    "sequence_rate": "valid_false_negative_sequences",
}


def values_of(report) -> tuple[dict, pd.DataFrame]:
    """The mean over the maskings by arm, measure and part, and the table."""
    table, _ = read_table(report / "results.parquet")
    return table.groupby(["arm", "measure", "part"])["value"].mean().to_dict(), table


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
    main([str(word) for word in (*words, "--output", output, "--mask-seeds", 1, *detects)])
    printed = capsys.readouterr().out
    found, table = values_of(output)
    assert {path.name for path in output.iterdir()} == set(FILES)
    assert list(table["checkpoint"].unique()) == ["2", "4", "6", ""]  # the last are the tables
    rest = table[table["arm"].str.startswith(str(checkpoints))]
    arms = dict(zip(rest["checkpoint"], rest["arm"]))
    for updates, arm in arms.items():
        for rate, name in RATES.items():
            part = "" if rate == "accuracy" else "synonyms"
            assert round(found[arm, rate, part], 3) == float(logged[int(updates)][name]), (rate, arm)
        assert found[arm, "corrected", "empty"] == 0 and (arm, "accuracy", "empty") not in found
        for rate in ("recall", "precision") if is_electra else ():  # training calls synonyms replaced, too
            assert round(found[arm, f"detection_{rate}", "empty"], 3) == float(
                logged[int(updates)][f"valid_rtd_{rate}"]
            )
    corrected = found[arms["6"], "corrected", "synonyms"]
    assert any(found[arm, "corrected", "synonyms"] for arm in arms.values())
    comparisons = pd.read_csv(output / "comparisons.csv")
    assert comparisons["low"].isna().all() and arms["6"] in set(comparisons["arm"])

    cases = json.loads((output / "cases.json").read_text())
    assert sum(case["corrected"] for case in cases) == min(corrected, 200) and cases
    for case in cases:
        assert case["gold"] != case["prediction"] and case["table"] == "synonyms"
        assert (case["prediction"] in case["synonyms"]) == case["corrected"]
        assert [text.strip() for text, kind in case["context"] if kind == 2] == [case["gold"]]
    with open(output / "pairs.csv", newline="") as file:
        pairs = list(csv.DictReader(file))
    assert sum(int(pair["count"]) for pair in pairs if pair["list"] == "corrected") == corrected
    with open(output / "sources.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3
    assert all(f"{output / name}" in printed for name in FILES) and "<svg" in (output / "index.html").read_text()
    assert max(map(len, printed.split(f"  {output}")[0].splitlines())) <= 120


@pytest.mark.parametrize("trained", ["electra"], indirect=True)
def test_the_counts_of_a_teacher_are_those_of_a_loop_over_positions(trained, data_bin, synonym_table, tmp_path):
    """The report says of an early checkpoint, with the last one as its teacher, what a naive loop says."""
    checkpoints, _ = trained
    (student,) = checkpoints.glob("checkpoint_*_4.pt")
    teacher = checkpoints / "checkpoint_last.pt"
    words = [data_bin, "--path", student, "--synonym-table", synonym_table, "--mask-seeds", 2]
    for name, flags in (("plain", []), ("judged", ["--teacher", teacher])):
        main([str(word) for word in (*words, "--output", tmp_path / name, *flags)])

    loaded, judge = (load(Checkpoint(path, None), data_bin) for path in (student, teacher))
    dataset, rates = load_split(loaded, data_bin, "valid"), []
    for seed in (1, 2):
        dataset.set_epoch(seed)
        wrong = []
        for members in batches_of(loaded, dataset, None):
            batch = dataset.collater([dataset[index] for index in members])
            masked = batch["target"].ne(loaded.task.source_dictionary.pad())
            with torch.no_grad():
                ours, theirs = (one.model(**batch["net_input"])[0].softmax(dim=-1) for one in (loaded, judge))
            for row, place in masked.nonzero().tolist():
                gold, prediction = batch["target"][row, place].item(), ours[row, place].argmax().item()
                if prediction != gold:
                    wrong.append((theirs[row, place, gold].item(), theirs[row, place, prediction].item()))
        of_golds, of_predictions = zip(*wrong)
        as_likely = [prediction >= gold for gold, prediction in wrong]
        likely = [prediction >= 0.1 for prediction in of_predictions]
        rates.append([100 * fmean(values) for values in (as_likely, likely, of_predictions, of_golds)])
    found, table = values_of(tmp_path / "judged")
    of_teacher = [found[str(student), rate, ""] for rate in OF_TEACHER]
    assert of_teacher == pytest.approx([fmean(values) for values in zip(*rates)], rel=1e-4)
    assert 0 < of_teacher[0] < 100
    comparisons = pd.read_csv(tmp_path / "judged" / "comparisons.csv").set_index("measure").loc[list(OF_TEACHER)]
    assert (comparisons["low"] <= comparisons["value"]).all() and (comparisons["value"] <= comparisons["high"]).all()

    # the teacher's cases are added, and nothing else changes
    cases, plain_cases = (json.loads((tmp_path / name / "cases.json").read_text()) for name in ("judged", "plain"))
    found = [case["teacher_prediction_probability"] for case in cases if "teacher" in case]
    assert found and found == sorted(found, reverse=True)
    assert [case for case in cases if "teacher" not in case] == plain_cases
    _, plain = values_of(tmp_path / "plain")
    rest = table[~table["measure"].isin(OF_TEACHER)].reset_index(drop=True)
    pd.testing.assert_frame_equal(plain, rest)


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
        (["--path", tmp_path / "checkpoint_9*.pt"], "checkpoint_9*.pt"),
        (["--model", tmp_path / "none"], "none"),
        (["--output", tmp_path / "file"], "--output"),
        (["--encoder-json", tmp_path / "file"], "--encoder-json"),
        (["--detection"], "checkpoint_last.pt"),
        (["--teacher", tmp_path], "config.json"),
        (["--teacher", other], "other.pt"),
        (["--teacher", headless], "headless.pt"),
        (["--teacher", short], "short.pt: has 8 trained positions"),
    ):
        assert said in refused(main, [str(word) for word in (*good, "--output", tmp_path / "new", *wrong)])
        assert not (tmp_path / "new").exists()
