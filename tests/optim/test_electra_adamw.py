import math

import pytest
import torch
from fairseq import utils
from files import refused
from omegaconf import OmegaConf

from tn_fairseq.models.base import tag_layer_depth
from tn_fairseq.optim.electra_adamw import ElectraAdamW, ElectraAdamWConfig, parameter_groups


def optimizer(parameters, lr=(0.1,), **options) -> ElectraAdamW:
    return ElectraAdamW(OmegaConf.structured(ElectraAdamWConfig(lr=list(lr), **options)), parameters)


def matrix_and_vector():
    torch.manual_seed(0)
    return torch.nn.Parameter(torch.randn(3, 2)), torch.nn.Parameter(torch.randn(3))


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.0)])
def test_two_updates_by_the_formula(betas):
    parameters, (beta1, beta2) = matrix_and_vector(), betas
    expected = [parameter.detach().clone() for parameter in parameters]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in expected]
    ours = optimizer(parameters, adam_betas=str(betas))
    for step in range(2):
        for parameter, p, (m, v), decay in zip(parameters, expected, moments, (0.01, 0.0)):
            gradient = torch.full_like(p, 0.5 - 2 * step)
            parameter.grad = gradient.clone()
            m.mul_(beta1).add_((1 - beta1) * gradient)
            v.mul_(beta2).add_((1 - beta2) * gradient**2)
            p.sub_(0.1 * (m / (v.sqrt() + 1e-6) + decay * p))  # no bias correction
        ours.step()
    torch.testing.assert_close([parameter.detach() for parameter in parameters], expected)


def test_with_bias_correction_it_equals_torchs_adamw():
    ours, theirs = matrix_and_vector(), matrix_and_vector()
    one = optimizer(ours, adam_bias_correction=True, weight_decay=0.0)
    other = torch.optim.AdamW(theirs, lr=0.1, eps=1e-6, weight_decay=0.0)
    for _ in range(3):
        for a, b in zip(ours, theirs):
            a.grad, b.grad = torch.ones_like(a), torch.ones_like(b)
        one.step()
        other.step()
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b)


def test_state_survives_a_checkpoint():
    straight, resumed = matrix_and_vector(), matrix_and_vector()
    one, other = optimizer(straight), optimizer(resumed)
    for step in range(4):
        if step == 2:
            state, other = other.state_dict(), optimizer(resumed)
            other.load_state_dict(state)
        for a, b in zip(straight, resumed):
            a.grad, b.grad = torch.full_like(a, step - 1.0), torch.full_like(b, step - 1.0)
        one.step()
        other.step()
    assert all(torch.equal(a, b) for a, b in zip(straight, resumed))


def test_biases_and_layer_norm_are_not_decayed(build):
    _, model, _ = build("electra")
    decayed = {
        id(p)
        for group in parameter_groups(model.parameters(), 0.01, 1.0)
        if group["weight_decay"]
        for p in group["params"]
    }
    for name, parameter in model.named_parameters():
        assert (id(parameter) in decayed) == (not name.endswith("bias") and "layer_norm" not in name), name


def test_layer_wise_rates_as_numbers(build):
    _, model, _ = build("bert")  # two layers
    head = torch.nn.Linear(128, 3)
    parameters = [*model.embeddings.parameters(), *model.encoder.parameters(), *head.parameters()]
    ours = optimizer(parameters, layerwise_lr_decay=0.8)
    ours.set_lr(1e-4)
    rate = {id(p): group["lr"] for group in ours.param_groups for p in group["params"]}
    assert ours.get_lr() == pytest.approx(1e-4)
    assert rate[id(model.embeddings.word_embeddings.weight)] == pytest.approx(1e-4 * 0.8**4)
    assert rate[id(model.encoder.layers[0].ffn_in.weight)] == pytest.approx(1e-4 * 0.8**3)
    assert rate[id(model.encoder.layers[1].ffn_in.bias)] == pytest.approx(1e-4 * 0.8**2)
    assert rate[id(head.weight)] == rate[id(head.bias)] == pytest.approx(1e-4)


def test_depths_survive_half_precision():
    layer = torch.nn.Linear(2, 2)
    tag_layer_depth(layer, 3)
    assert layer.half().weight.optim_overrides == {"layer_depth": 3}


WRONG_BETAS = "(0.9, x);0.9;(0.9, 0.99, 0.999);(1.0, 0.999);(0.9, 1.0);(-0.1, 0.999);(0.9, -0.1)".split(";")


@pytest.mark.parametrize(
    "name, values",
    [
        ("layerwise_lr_decay", [0.0, 1.5]),
        ("adam_betas", WRONG_BETAS),
        ("adam_eps", [0.0, math.nan]),
        ("weight_decay", [-1.0, math.inf]),
        ("lr", [[0.1, -0.1]]),
    ],
)
def test_wrong_options_are_named(name, values):
    for value in values:
        assert f"--{name.replace('_', '-')}" in refused(optimizer, matrix_and_vector(), **{name: value})


def test_fp16s_flat_vector_is_refused_and_the_error_names_the_flag_to_add():
    assert "--fp16-no-flatten-grads" in refused(optimizer, [torch.nn.Parameter(torch.zeros(10))])


def test_only_a_single_vector_is_taken_for_fp16s():
    matrix, vector = matrix_and_vector()
    for parameters in ([matrix], [vector, matrix], [vector, vector.detach().clone().requires_grad_()]):
        assert sum(len(group["params"]) for group in optimizer(parameters).param_groups) == len(parameters)


@pytest.mark.parametrize("max_norm", [0.0, 1.0, 1e6])
def test_the_norm_of_the_gradients_is_that_of_fairseq(max_norm):
    """Also of gradients in half precision whose squares are too large for it, and with a norm over other workers."""
    generator = torch.Generator().manual_seed(1)
    for dtype in (torch.float32, torch.float16):
        sizes = (3, 4), (5,), (2,)  # the last one has no gradient
        ours, theirs = ([torch.nn.Parameter(torch.zeros(size, dtype=dtype)) for size in sizes] for _ in range(2))
        for one, other in zip(ours[:2], theirs):
            one.grad = (torch.randn(one.shape, generator=generator) * 300).to(dtype)
            other.grad = one.grad.clone()
        norms = [
            optimizer(ours).clip_grad_norm(max_norm, lambda norm: 2 * norm),
            utils.clip_grad_norm_(theirs, max_norm, lambda norm: 2 * norm),
        ]
        assert norms[0].item() == pytest.approx(norms[1].item(), rel=1e-6) and norms[0].dtype == torch.float32
        for one, other in zip(ours[:2], theirs):
            torch.testing.assert_close(one.grad, other.grad)
    assert optimizer([torch.nn.Parameter(torch.ones(2, 2))]).clip_grad_norm(1.0) == 0
