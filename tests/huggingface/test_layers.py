"""Smaller models with some of the layers of a larger one of ``transformers``."""

from functools import partial

import numpy as np
import pytest
import torch
from files import refused
from huggingface_models import PIECES, SIZES, make_bert, make_electra, make_other

from tn_fairseq.huggingface import keep_layers
from tn_fairseq.huggingface.layers import find_layers

transformers = pytest.importorskip("transformers")
KINDS = ["RobertaForMaskedLM", "DebertaV2ForMaskedLM", "ElectraForMaskedLM"]
WORDS = torch.tensor([[3, 7, 9, 11, 8, 4], [3, 12, 9, 30, 21, 4]])


def copies(model) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "ElectraForPreTraining", *KINDS])
def test_a_smaller_model_has_the_logits_of_one_cut_by_hand_also_after_it_is_saved(kind, tmp_path):
    if kind == "ElectraForPreTraining":
        model, _ = make_electra(len(PIECES))
    else:
        model = make_bert(len(PIECES)) if kind == "BertForMaskedLM" else make_other(kind, len(PIECES))
    before, expected = copies(model), model(WORDS).logits
    student = keep_layers(torch.nn.DataParallel(model) if kind == "BertForMaskedLM" else model, [1])
    assert type(student) is type(model) and student.config.num_hidden_layers == 1 and not student.training
    if student.get_output_embeddings() is not None:  # tied, as before
        assert student.get_output_embeddings().weight is student.get_input_embeddings().weight
    student.save_pretrained(tmp_path)
    loaded, info = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and len(loaded.base_model.encoder.layer) == 1

    # the given model is as it was, and shares nothing with the student
    with torch.no_grad():
        found = student(WORDS).logits
        for parameter in student.parameters():
            parameter.zero_()
    assert model.config.num_hidden_layers == 2 and torch.equal(model(WORDS).logits, expected)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    model.base_model.encoder.layer = model.base_model.encoder.layer[1:]
    assert torch.equal(model(WORDS).logits, found) and torch.equal(loaded.eval()(WORDS).logits, found)


def test_a_decoder_finds_its_layers_in_the_cache():
    """Without new numbers, the last layer would read and write a place that the cache of the student lacks."""
    model = make_bert(len(PIECES), num_hidden_layers=4, is_decoder=True)
    decoder = transformers.BertLMHeadModel(model.config).eval()
    decoder.load_state_dict(model.state_dict())
    student = keep_layers(decoder, [0, 3])
    assert [layer.attention.self.layer_idx for layer in student.bert.encoder.layer] == [0, 1]
    assert [layer.attention.self.layer_idx for layer in decoder.bert.encoder.layer] == [0, 1, 2, 3]
    start = student(WORDS[:, :3], use_cache=True)
    rest = student(WORDS[:, 3:], past_key_values=start.past_key_values).logits
    torch.testing.assert_close(rest, student(WORDS).logits[:, 3:])


def longformer():
    sizes = {"num_hidden_layers": 3, "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8}
    config = transformers.LongformerConfig(vocab_size=9, attention_window=[4, 4, 4], **sizes)
    return transformers.LongformerForMaskedLM(config)


def esm():
    sizes = {**SIZES, "num_hidden_layers": 4}
    return transformers.EsmForMaskedLM(transformers.EsmConfig(vocab_size=9, pad_token_id=0, **sizes))


@pytest.mark.parametrize(
    "named, make, layers",
    [
        *(("0 to 1", make_bert, layers) for layers in ([0, 2], [1, 1], [1, 0], [], ["a"])),
        ("layers '0,1'", make_bert, "0,1"),
        ("DistilBertForMaskedLM", partial(make_other, "DistilBertForMaskedLM"), [0]),
        ("Linear", lambda size: torch.nn.Linear(1, 1), [0]),
        ("attention_window", lambda size: longformer(), [2]),  # which has a value for each layer
        ("contact_head", lambda size: esm(), [0, 3]),  # which depends on the number of layers
    ],
)
def test_layers_that_a_model_does_not_have_and_models_without_such_layers(named, make, layers):
    assert named in refused(keep_layers, make(len(PIECES)), layers)


def test_the_kinds_of_attention_of_a_deberta_are_no_settings_of_its_layers():
    config = transformers.DebertaV2Config(vocab_size=20, pos_att_type=["p2c", "c2p"], **SIZES)
    assert keep_layers(transformers.DebertaV2ForMaskedLM(config), [1]).config.num_hidden_layers == 1


def test_numbers_of_layers_may_be_text_or_of_other_types():
    for layers in (["0", " 3"], (0, 3), range(0, 4, 3), np.array([0, 3])):
        assert find_layers(layers, 4, "--keep-layers", "model") == [0, 3]
    assert "0 to 0" in refused(find_layers, [1], 1, "--keep-layers", "model")
