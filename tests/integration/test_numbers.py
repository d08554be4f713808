"""Numbers at their limits: gradients that are none, a corpus of one word, and a table in which all are synonyms."""

import math

import pytest
from fairseq.data import Dictionary
from helpers import FAMILIES, WORDS, fairseq_train, write_split, write_table

from tn_fairseq.dictionary import load_dictionary


def test_a_run_that_diverges_stops_in_one_line_that_names_the_update(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra"]
    run = fairseq_train(data_bin, tmp_path, *flags, "--lr", 1e30, "--clip-norm", 0)
    last = int(run.records("train_inner")[-1]["num_updates"])
    assert run.error().startswith(f"error: update {last + 1}: gradients are Nan/Inf; go on from the last checkpoint")


@pytest.mark.parametrize(("family", "criterion"), [("electra", "mlm_hard_correction"), ("bert", "mlm_sent_kl")])
def test_a_corpus_of_one_word_is_learned(tmp_path, family, criterion):
    data = tmp_path / "data"
    data.mkdir()
    (data / "dict.txt").write_text("word 1\n")
    for split in ("train", "valid"):
        write_split(data, split, Dictionary.load(str(data / "dict.txt")), [["word"] * 9] * 60)
    table = write_table(tmp_path / "t.safetensors", load_dictionary(data / "dict.txt"), {})
    flags = [*FAMILIES[family].split(), "--criterion", criterion, "--synonym-table", table, "--max-update", 20]
    run = fairseq_train(data, tmp_path / "run", *flags)
    assert run.code == 0, run.output
    losses = [float(record["nll_loss"]) for record in run.records("train_inner")]
    assert all(map(math.isfinite, losses)) and losses[-1] < losses[0] / 2
    assert float(run.records("train_inner")[-1]["mlm_accuracy"]) > 80


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_where_every_word_is_a_synonym_of_every_other_only_right_predictions_are_learned(data_bin, tmp_path, family):
    dictionary = load_dictionary(data_bin / "dict.txt")
    table = write_table(tmp_path / "t.safetensors", dictionary, {w: [o for o in WORDS if o != w] for w in WORDS})
    flags = [*FAMILIES[family].split(), "--criterion", "mlm_hard_correction", "--synonym-table", table]
    run = fairseq_train(data_bin, tmp_path / "run", *flags)
    assert run.code == 0, run.output
    records = run.records("train_inner")
    assert all(math.isfinite(float(record["loss"])) for record in records)
    assert max(float(record["false_negative_rate"]) for record in records) > 50
