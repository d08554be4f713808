"""``--store-ema``: the average of the weights, by hand."""

import pytest
import torch
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema.ema import EMA


@pytest.mark.parametrize("half_precision", [False, True])
@pytest.mark.parametrize("family", ["electra", "bert"])
def test_only_weights_are_averaged(build, family, half_precision):
    model = build(family, "--criterion", "electra")[1]
    if half_precision:
        model.half()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    average = EMA(model, EMAConfig(store_ema=True, ema_decay=0.75, ema_fp32=half_precision))
    for parameter in model.parameters():
        parameter.data.add_(1)
    average.step(model)
    for name, tensor in average.get_model().state_dict().items():
        averaged = name in dict(model.named_parameters())
        expected = before[name] + 0.25 if averaged else before[name]
        torch.testing.assert_close(tensor, expected, rtol=1e-3, atol=1e-3)
    assert "dictionary_fingerprint" in before


def test_fairseqs_skip_keys_are_copied(build):
    model = build("bert", "--criterion", "electra")[1]
    copied = "embeddings.word_embeddings.weight"
    average = EMA(model, EMAConfig(store_ema=True, ema_decay=0.75), skip_keys={copied})
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.data.add_(1)
    average.step(model)
    for name, parameter in average.get_model().named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name] + (1 if name == copied else 0.25))
