"""An objective in a folder outside the package: it trains, logs its metric, and is in the model card."""

import math
import shutil

import pytest
import torch
from guides import guide
from helpers import PLUGIN, commands_of, load_script, run_command
from huggingface_models import write_bin, write_vocabulary

EXAMPLE = PLUGIN.parent / "examples" / "own_objective"
PAGE = guide("objectives", "Add your own objective")
SMALLER = {"128": "16", "1000000": "2", "5e-4": "1e-3"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example's folder as a user has it, next to data."""
    folder = tmp_path_factory.mktemp("own")
    write_bin(folder, write_vocabulary(folder / "vocabulary"))
    shutil.copytree(EXAMPLE, folder / "examples" / "own_objective")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    command, _ = commands_of(PAGE)
    words = [SMALLER.get(word, word) for word in command]
    return run_command(*words, "--cpu", "--log-format", "json", "--log-interval", 1, cwd=folder)


def test_it_trains_and_its_metric_is_logged(trained):
    assert trained.code == 0, trained.output
    records = trained.records("train_inner")
    assert len(records) == 2
    for record in records:  # the dictionary has 134 symbols, and an untrained model prefers none
        assert 0.8 * math.log2(134) < float(record["entropy"]) <= math.log2(134) + 1e-3
        assert float(record["loss"]) == pytest.approx(
            float(record["nll_loss"]) - 0.1 * float(record["entropy"]), abs=2e-3
        )


def test_the_model_card_names_it(trained, folder):
    _, words = commands_of(PAGE)
    run = run_command(*words, cwd=folder)
    assert run.code == 0, run.output
    card = (folder / "own-model" / "README.md").read_text()
    assert (
        "| objective | masked language modeling with a confidence penalty (`--criterion mlm_confidence_penalty`)"
        in card
    )
    assert "confidence_penalty_weight 0.1" in card

    words[words.index("own-model")] = "other-model"
    run = run_command(*words[: words.index("--user-dir")], cwd=folder)  # its class is not needed
    assert run.code == 0, run.output
    assert "| objective | `--criterion mlm_confidence_penalty` |" in (folder / "other-model" / "README.md").read_text()


def test_entropy_by_hand():
    objective = load_script("examples/own_objective/my_objectives/mlm_confidence_penalty.py")
    logits = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    expected = torch.tensor([math.log(2), -0.75 * math.log(0.75) - 0.25 * math.log(0.25)])
    torch.testing.assert_close(objective.entropy(logits), expected)
