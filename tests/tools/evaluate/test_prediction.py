"""Predictions of a model in the order of the data."""

import numpy as np
import pytest
import torch
from fairseq import tasks
from fairseq.data import Dictionary
from helpers import random_sentences, write_data_bin, write_split
from omegaconf import OmegaConf

from tn_fairseq.core.configuration import training_config
from tn_fairseq.tools.evaluate import predictor
from tn_fairseq.tools.evaluate.predictor import Predictor

HEAD = "sentence_classification_head"


@pytest.fixture(scope="module")
def flags(tmp_path_factory) -> list[object]:
    """The flags of a run on labeled sentences, whose weights are in weights.pt."""
    folder = tmp_path_factory.mktemp("data")
    sentences = [words for words in random_sentences(24, seed=3) if words]
    dictionary = Dictionary.load(str(write_data_bin(folder / "input0", sentences=0) / "dict.txt"))
    write_split(folder / "input0", "valid", dictionary, sentences)
    labels = [[str(number % 3 % 2)] for number in range(len(sentences))]
    (folder / "label").mkdir()
    (folder / "label" / "dict.txt").write_text("0 1\n1 1\n")
    write_split(folder / "label", "valid", Dictionary.load(str(folder / "label" / "dict.txt")), labels)

    flags = [folder, "--task", "sentence_prediction", "--num-classes", 2, "--criterion", "sentence_prediction"]
    flags += ["--arch", "bert_tiny", "--optimizer", "electra_adamw", "--lr", 1]
    cfg = training_config(flags)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    torch.save(model.state_dict(), folder / "weights.pt")
    return flags


def predict(flags: list[object]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Predict with the model of a run with these flags."""
    content = OmegaConf.to_container(training_config(flags), resolve=True, enum_to_str=True)
    torch.save({"cfg": content, "model": torch.load(flags[0] / "weights.pt")}, flags[0] / "model.pt")
    return Predictor(flags[0] / "model.pt").predict("valid", HEAD, flags[0])


def test_predictions_do_not_depend_on_the_shuffling_for_training(flags):
    logits, targets = predict([*flags, "--seed", 1])
    assert [int(target) for (target,) in targets] == [number % 3 % 2 for number in range(len(logits))]
    assert not np.allclose(logits[0], logits[1])
    for more in (["--seed", 2], ["--no-shuffle"]):
        others, other_targets = predict([*flags, *more])
        assert np.array_equal(others, logits) and other_targets == targets


def test_predictions_do_not_depend_on_the_batches(flags, monkeypatch):
    logits, _ = predict(flags)
    for most in (16, 1):  # less than any example
        for device in ("cpu", "cuda"):
            monkeypatch.setitem(predictor.MAX_TOKENS, device, most)
        assert np.allclose(predict(flags)[0], logits, atol=1e-5) and len(logits) == 24


@pytest.mark.skipif(torch.cuda.is_available(), reason="bfloat16 only on a CPU")
@pytest.mark.parametrize("is_fast", [True, False])
def test_bfloat16_if_trained_with_it_and_the_cpu_is_faster(flags, monkeypatch, is_fast):
    monkeypatch.setattr(predictor, "has_fast_bf16", lambda: is_fast)
    logits, _ = predict(flags)
    rounded, _ = predict([*flags, "--bf16"])
    assert np.allclose(rounded, logits, atol=0.05)
    assert np.array_equal(rounded, logits) != is_fast
