"""Which files are accepted as checkpoints, and the errors for the others."""

import re
from argparse import Namespace

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from files import refused
from helpers import FAMILIES, WORDS, write_data_bin
from omegaconf import OmegaConf

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.models.loading import find_checkpoints, load


@pytest.fixture
def save(build, data_bin, tmp_path):
    """Save a new model of a family as fairseq-train does; return its path, the model and the arguments."""

    def save_one(family: str, name: str, updates: int = 1, **more):
        _, model, _ = build(family)
        flags = [data_bin, *FAMILIES[family].split(), "--tokens-per-sample", 32, "--batch-size", 8]
        args = options.parse_args_and_arch(options.get_training_parser(), [str(flag) for flag in flags])
        cfg = OmegaConf.to_container(convert_namespace_to_omegaconf(args), resolve=True, enum_to_str=True)
        state = {"args": None, "cfg": cfg, "model": model.state_dict()}
        state |= {"optimizer_history": [{"num_updates": updates}], **more}
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        torch.save(state, path)
        return path, model, args

    return save_one


def refusal(dictionary, *patterns):
    return refused(find_checkpoints, list(map(str, patterns)), dictionary)


def test_names_and_patterns_are_sorted_by_updates_without_copies(save, dictionary, tmp_path):
    last, _, _ = save("electra", "checkpoint_1_100.pt", 100)
    first, _, _ = save("electra", "checkpoint_1_20.pt", 20)
    other, _, _ = save("bert", "other/checkpoint_1_10.pt", 10)
    (tmp_path / "checkpoint_last.pt").write_bytes(last.read_bytes())
    patterns = [tmp_path / "checkpoint*.pt", tmp_path / "**" / "checkpoint_1_*.pt"]
    found = find_checkpoints(list(map(str, patterns)), dictionary)
    assert found == [(first, 20), (last, 100), (other, 10)]


def test_a_file_name_that_looks_like_a_pattern_is_a_file_name(save, dictionary):
    path, _, _ = save("bert", "model[1].pt", 3)
    assert find_checkpoints([str(path)], dictionary) == [(path, 3)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loaded_model_is_the_saved_one(save, dictionary, data_bin, family):
    path, model, _ = save(family, "model.pt")
    loaded = load(find_checkpoints([str(path)], dictionary)[0], data_bin)
    assert not loaded.model.training and loaded.batching.batch_size_valid == 8
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.model.state_dict()[name]), name


def test_the_older_layout_of_the_released_roberta_is_read(save, dictionary, data_bin, tmp_path):
    path, model, args = save("roberta", "new.pt")
    older = {
        "args": Namespace(**{**vars(args), "lr": 0.1, "data": [str(data_bin)]}),
        "model": {name.replace("encoder.", "decoder.", 1): value for name, value in model.state_dict().items()},
        "optimizer_history": [{"num_updates": 7, "best_loss": 1.0}],
        "extra_state": {},
        "last_optimizer_state": None,
    }
    torch.save(older, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    (checkpoint,) = find_checkpoints([str(tmp_path / "old.pt")], dictionary)
    assert checkpoint.updates == 7
    loaded = load(checkpoint, data_bin)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.model.state_dict()[name]), name


def test_a_file_that_is_not_a_masked_language_model_is_rejected(save, dictionary, tmp_path):
    assert "no such checkpoint" in refusal(dictionary, tmp_path / "*.pt")
    assert "is a folder; give the checkpoints in it, such as" in refusal(dictionary, tmp_path)
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "config.json").touch()
    assert "is a folder; first tn-fairseq exchange import this folder" in refusal(dictionary, tmp_path / "exported")
    (tmp_path / "log.txt").write_text("loss 3")
    assert "damaged, or not a checkpoint" in refusal(dictionary, tmp_path / "log.txt")

    path, _, _ = save("bert", "translation.pt")
    state = torch.load(path, weights_only=True)
    state["cfg"]["model"] = Namespace(arch="transformer")
    state["cfg"]["task"] = {"_name": "translation"}
    torch.save(state, path)
    assert "holds transformer trained with --task translation" in refusal(dictionary, path)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_with_another_dictionary_is_rejected(save, tmp_path, family):
    path, _, _ = save(family, "model.pt")
    other = load_dictionary(write_data_bin(tmp_path / "other", WORDS[:-1]) / "dict.txt")
    assert "of another dictionary (of 125 symbols; yours has 124" in refusal(other, path)


def test_a_checkpoint_that_does_not_fit_its_configuration_or_this_version_gets_one_line(save, dictionary, data_bin):
    path, _, _ = save("electra", "model.pt")
    path_of_roberta, _, _ = save("roberta", "roberta.pt")
    with torch.serialization.safe_globals([Namespace]):
        ours, roberta = (torch.load(file, weights_only=True) for file in (path, path_of_roberta))
    ours["cfg"]["task"]["sample_break_mode"] = "unheard of"
    roberta["model"].popitem()
    for file, state, expected in (
        (path, ours, "model.pt: was trained with an option .*'unheard of'"),
        (path_of_roberta, roberta, "roberta.pt: its parameters do not match its configuration"),
    ):
        torch.save(state, file)
        assert re.search(expected, refused(load, find_checkpoints([str(file)], dictionary)[0], data_bin))
