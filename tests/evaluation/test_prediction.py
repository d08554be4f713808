"""Predictions of a model in the order of the data."""

import numpy as np
import torch
from fairseq import tasks
from fairseq.data import Dictionary
from helpers import random_sentences, write_data_bin, write_split

from tn_fairseq.configuration import training_config
from tn_fairseq.evaluation.prediction import Predictor

HEAD = "sentence_classification_head"


def test_predictions_do_not_depend_on_the_shuffling_for_training(tmp_path):
    sentences = [words for words in random_sentences(24, seed=3) if words]
    dictionary = Dictionary.load(str(write_data_bin(tmp_path / "input0", sentences=0) / "dict.txt"))
    write_split(tmp_path / "input0", "valid", dictionary, sentences)
    labels = [[str(number % 3 % 2)] for number in range(len(sentences))]
    (tmp_path / "label").mkdir()
    (tmp_path / "label" / "dict.txt").write_text("0 1\n1 1\n")
    write_split(tmp_path / "label", "valid", Dictionary.load(str(tmp_path / "label" / "dict.txt")), labels)

    flags = [tmp_path, "--task", "sentence_prediction", "--num-classes", 2, "--criterion", "sentence_prediction"]
    flags += ["--arch", "bert_tiny", "--optimizer", "electra_adamw", "--lr", 1]
    cfg = training_config(flags)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    torch.save({"cfg": {"model": {}}, "model": model.state_dict()}, tmp_path / "model.pt")

    logits, targets = Predictor(tmp_path / "model.pt", training_config([*flags, "--seed", 1])).predict("valid", HEAD)
    assert [[str(target)] for (target,) in targets] == labels
    assert not np.allclose(logits[0], logits[1])
    for more in (["--seed", 2], ["--no-shuffle"]):
        others, other_targets = Predictor(tmp_path / "model.pt", training_config([*flags, *more])).predict(
            "valid", HEAD
        )
        assert np.array_equal(others, logits) and other_targets == targets
