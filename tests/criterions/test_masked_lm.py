"""Tests of every criterion on every family of models."""

import math
from dataclasses import fields

import pytest
import torch
from criterion_steps import outputs, step
from fairseq.criterions.masked_lm import MaskedLmLoss
from fairseq.logging import metrics
from fairseq.utils import apply_to_sample
from files import refused
from helpers import CRITERIA, FAMILIES, RUNS, first_batch, prepare_training

from tn_fairseq.core import corruption
from tn_fairseq.core.errors import InputError
from tn_fairseq.core.masked_prediction import ElectraOutput
from tn_fairseq.core.options import check, flag
from tn_fairseq.objectives import OBJECTIVES

# need a synonym table
TABLE = "mlm_hard_correction mlm_merged_synonyms mlm_synonym_marginal mlm_synonym_tying rtd_graded".split()
families = pytest.mark.parametrize("family", FAMILIES)


def fairseqs_masked_lm(task, model, batch):
    stock = MaskedLmLoss.__new__(MaskedLmLoss)
    torch.nn.Module.__init__(stock)
    stock.padding_idx, stock.tpu = task.dictionary.pad(), False
    return step(task, model, stock, batch)


@pytest.mark.parametrize(
    "family, criterion",
    [
        ("roberta", "electra"),
        ("bert", "electra"),
        ("bert", "mlm_hard_correction"),
        ("bert", "mlm_hard_correction --hard-correction-weight 1"),
        ("roberta", "mlm_hard_correction --hard-correction-weight 1 --hard-correction-divisor masked"),
        ("bert", "mlm_soft_reg --soft-reg-weight 0"),
        ("roberta", "mlm_sent_kl --sent-kl-weight 0"),
        ("bert", "mlm_merged_synonyms"),
        ("bert", "mlm_synonym_marginal"),
        ("roberta", "mlm_synonym_tying"),
        ("bert", "mlm_synonym_marginal --synonym-weight 0"),
        ("bert", "mlm_temperature --mlm-temperature 1"),
        ("bert", "mlm_distillation --distillation-weight 0"),
    ],
)
def test_degenerate_criteria_are_bitwise_equal_to_fairseqs_masked_lm(
    build, empty_table, synonym_table, family, criterion
):
    table = synonym_table if "-weight" in criterion else empty_table
    task, model, ours = build(family, "--synonym-table", table, "--criterion", *criterion.split())
    batch = first_batch(task)
    loss, sample_size, log = step(task, model, ours, batch)
    expected, expected_size, expected_log = fairseqs_masked_lm(task, model, batch)
    assert torch.equal(loss, expected)
    assert sample_size == expected_size
    for key in ("loss", "ntokens", "nsentences", "sample_size"):
        assert log[key] == expected_log[key]
    for name, parameter in model.named_parameters():
        ours_gradient, theirs = (torch.autograd.grad(x, parameter, retain_graph=True)[0] for x in (loss, expected))
        assert torch.equal(ours_gradient, theirs), name


PLAIN = ("electra", [])
ORIGINAL = ("mlm_hard_correction", ["--hard-correction-weight", 1, "--rtd-false-negatives", "original"])


EXPECTED: dict[str, tuple] = {}  # the runs of the two above, which many tests share


def three_updates(build, table, criterion, flags) -> tuple[list[dict], dict]:
    """The logs of three updates of ELECTRA, and its weights."""
    task, model, objective = build("electra", "--criterion", criterion, "--synonym-table", table, *flags)
    task.load_dataset("train")
    dataset, optimizer, logs = task.dataset("train"), torch.optim.Adam(model.parameters(), lr=1e-3), []
    for first in (0, 8, 16):
        batch = dataset.collater([dataset[index] for index in range(first, first + 8)])
        loss, sample_size, log = step(task, model, objective, batch, seed=first)
        optimizer.zero_grad()
        (loss / sample_size).backward()
        optimizer.step()
        logs.append({key: float(value) for key, value in log.items() if key != "synonym_gain"})
    return logs, model.state_dict()


@pytest.mark.parametrize(
    "criterion, flags, plain",
    [
        ("mlm_synonym_marginal", ["--synonym-weight", 0], PLAIN),
        ("mlm_merged_synonyms", None, PLAIN),
        ("mlm_synonym_marginal", None, PLAIN),
        ("mlm_temperature", ["--mlm-temperature", 1], PLAIN),
        ("rtd_graded", ["--rtd-synonym-grade", 1], PLAIN),
        ("rtd_graded", ["--rtd-synonym-grade", 0], ORIGINAL),
        ("rtd_graded", None, PLAIN),
        ("rtd_focal", ["--rtd-focal-gamma", 0], PLAIN),
    ],
)
def test_degenerate_criteria_train_electra_bitwise_as_the_plain_one(
    build, synonym_table, empty_table, criterion, flags, plain
):
    """Three updates; without flags, the table is empty."""
    if plain[0] not in EXPECTED:
        EXPECTED[plain[0]] = three_updates(build, synonym_table, *plain)
    logs, weights = three_updates(build, empty_table if flags is None else synonym_table, criterion, flags or [])
    expected_logs, expected = EXPECTED[plain[0]]
    for log, expected_log in zip(logs, expected_logs):
        if flags is None:  # the other run's table is not empty
            log |= {key: expected_log[key] for key in ("false_negatives", "false_negative_sequences")}
        assert log == expected_log
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize("generator, discriminator", [(1, 50), (2, 7)])
def test_electra_is_masked_lm_plus_50_times_replaced_token_detection(build, generator, discriminator):
    flags = ["--generator-loss-weight", generator, "--discriminator-loss-weight", discriminator]
    task, model, criterion = build("electra", *(flags if generator > 1 else []))
    batch = first_batch(task)
    loss, sample_size, log = step(task, model.eval(), criterion, batch)
    expected = generator * log["nll"] / log["masked"] + discriminator * log["rtd_loss"] / log["rtd_tokens"]
    torch.testing.assert_close(loss / sample_size, expected)
    assert log["rtd_tokens"] == batch["net_input"]["src_tokens"].ne(task.dictionary.pad()).sum()


def test_replaced_token_detection_by_hand(build):
    """Five tokens: two are replaced, of which the fourth does not count; the fifth is padding."""
    _, _, criterion = build("electra", "--criterion", "electra")
    output = ElectraOutput(
        logits=None,
        drawn_tokens=None,
        is_replaced=torch.tensor([[True, False, False, True, False]]),
        discriminator_logits=torch.tensor([[math.log(3), 0.0, math.log(3), math.log(3), 9.0]]),
    )
    counts = torch.tensor([[True, True, True, False, False]])
    criterion.objective.detection_targets = lambda output, masked, is_token: (output.is_replaced, counts)
    loss, log = criterion.objective.detect(output, None, None)
    # probabilities of "replaced": 3/4 if that is correct, 1/2 and 3/4 if not
    summed = math.log(4 / 3) + math.log(2) + math.log(4)
    assert loss.item() == pytest.approx(summed / 3)
    expected = {"rtd_loss": summed, "rtd_tokens": 3, "rtd_correct": 2, "rtd_hits": 1, "rtd_said": 2, "rtd_replaced": 1}
    assert {key: value.item() for key, value in log.items()} == pytest.approx(expected)


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_a_low_temperature_draws_the_most_likely_token(build, family):
    logs = {}
    for mode, temperature in (("argmax", 1.0), ("sample", 1e-6), ("sample", 1.0)):
        flags = ["--criterion", "electra", "--prediction-mode", mode, "--generator-temperature", temperature]
        task, model, criterion = build(family, *flags, "--task", "electra")
        batch = first_batch(task, size=40)
        word = batch["target"][batch["target"].ne(task.dictionary.pad())].mode().values
        with torch.no_grad():  # the most likely token everywhere, but not always drawn
            head = model.generator_head if family == "electra" else model.masked_lm_head
            head.bias[word] = 4.0
        logs[mode, temperature] = step(task, model.eval(), criterion, batch)[2]
    likeliest, cold, warm = logs.values()
    assert likeliest["correct"] == cold["correct"] != warm["correct"]
    if family == "electra":
        assert cold["rtd_replaced"] == cold["masked"] - cold["correct"] != warm["rtd_replaced"]


def without_masks(task, batch):
    target = torch.full_like(batch["target"], task.dictionary.pad())
    none = {"masked_indices": torch.empty(0, dtype=torch.long), "uniform_draws": torch.empty(0, dtype=torch.double)}
    return {**batch, "target": target, **none}


@pytest.mark.parametrize(
    "family, mode, criterion",
    [
        *[("electra", "argmax", name) for name in CRITERIA],
        ("electra", "sample", "mlm_hard_correction"),
        ("bert", "sample", "electra"),
    ],
)
def test_a_step_never_synchronizes_with_the_device(build, synonym_table, family, criterion, mode):
    """Tensors on the device "meta" have no values, so reading one fails where a GPU would synchronize.

    fairseq asks whether the sample size is 0, so it must be a number. The criterion moves to the batch's device,
    because fairseq does not always move it.
    """
    flags = ["--criterion", criterion, "--synonym-table", synonym_table, "--prediction-mode", mode]
    if criterion == "mlm_hard_correction":
        flags += ["--rtd-false-negatives", "ignore"]
    task, model, criterion = build(family, "--task", "electra", *flags)
    batch = apply_to_sample(lambda tensor: tensor.to("meta"), first_batch(task))
    loss, sample_size, log = criterion(model.to("meta"), batch)
    counts = {key for key, value in log.items() if isinstance(value, int)}
    assert counts == {"ntokens", "nsentences", "masked", "sample_size"} and sample_size == log["masked"] > 0
    assert all(torch.is_tensor(value) for key, value in log.items() if key not in counts)
    (loss / sample_size).backward()
    assert any(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_number_has_limits_and_is_refused_beyond_them(name):
    config = OBJECTIVES[name].config
    for option, limits in [(entry.name, entry.metadata) for entry in fields(config) if entry.type is float]:
        below = limits["above"] if "above" in limits else limits["at_least"] - 0.5
        for value in (below, limits.get("at_most", math.inf) + 0.5, math.nan):
            with pytest.raises(InputError, match=f"^{flag(option)} {value}: must be "):
                check(config(**{option: value}))


def test_the_threshold_of_a_judge_needs_a_judge(build, synonym_table):
    flags = ["--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    with pytest.raises(SystemExit, match="^error: --correction-judge-threshold .* --correction-judge;"):
        build("bert", *flags, "--correction-judge-threshold", 0.5)


# what is refused at the first batch: the model, the flags of the criterion, and what the error must name
@pytest.mark.parametrize(
    "family, criterion, named",
    [
        ("bert", "mlm_hard_correction --rtd-false-negatives ignore", "--rtd-false-negatives"),
        ("bert", "mlm_sent_kl --sent-kl-encoder discriminator", "--sent-kl-encoder"),
        ("bert", "mlm_sent_kl --generator-loss-weight 2", "--generator-loss-weight"),
        ("bert", "electra --discriminator-loss-weight 0", "--discriminator-loss-weight"),
        ("bert", "electra --generator-temperature 0.5", "--generator-temperature"),
        *(("bert", name, name) for name in CRITERIA if name.startswith("rtd_")),
        ("electra", "mlm_temperature --mlm-temperature 2 --freeze-generator", "mlm_temperature"),
        ("electra", "mlm_hard_correction --freeze-generator", "mlm_hard_correction"),
        ("electra", "mlm_synonym_marginal --freeze-generator", "mlm_synonym_marginal"),
        ("electra", "mlm_sent_kl --freeze-generator", "mlm_sent_kl"),
    ],
)
def test_an_objective_that_has_no_effect_on_the_model_is_refused(build, synonym_table, family, criterion, named):
    task, model, objective = build(family, "--synonym-table", synonym_table, "--criterion", *criterion.split())
    batch = first_batch(task)
    assert named in refused(objective, model, batch)
    if family == "electra":
        with torch.no_grad():  # validation
            objective(model, batch)


@pytest.mark.parametrize(
    "criterion",
    [
        *("electra", "mlm_hard_correction --rtd-false-negatives original", "rtd_focal", "rtd_graded"),
        *("mlm_merged_synonyms", "mlm_soft_reg", "mlm_sent_kl --sent-kl-encoder discriminator"),
    ],
)
def test_objectives_of_the_discriminator_work_with_a_frozen_generator(build, synonym_table, criterion):
    flags = ["--synonym-table", synonym_table, "--freeze-generator", "--criterion", *criterion.split()]
    task, model, objective = build("electra", *flags)
    assert objective(model, first_batch(task))[0].requires_grad


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion_checks_the_shared_options_and_its_table(build, synonym_table, criterion):
    if criterion in TABLE:
        assert "--synonym-table" in refused(build, "bert", "--criterion", criterion)
    else:
        build("bert", "--criterion", criterion)
    for name in ("--discriminator-loss-weight", "--generator-temperature"):
        assert name in refused(build, "bert", "--criterion", criterion, "--synonym-table", synonym_table, name, -1)


@pytest.mark.parametrize(
    "family, criterion", [*RUNS, *((name, "mlm_sent_kl --sent-kl-positions masked") for name in ("electra", "bert"))]
)
def test_a_batch_without_a_masked_token_has_loss_zero_finite_gradients_and_the_same_log(
    build, synonym_table, family, criterion
):
    task, model, criterion = build(family, "--criterion", *criterion.split(), "--synonym-table", synonym_table)
    batch = first_batch(task)
    usual = step(task, model, criterion, batch)[2]
    loss, sample_size, log = step(task, model, criterion, without_masks(task, batch))
    assert loss.item() == 0 and sample_size == 0
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients and all(torch.isfinite(gradient).all() for gradient in gradients)
    assert list(log) == list(usual)
    assert all(torch.is_tensor(log[key]) == torch.is_tensor(usual[key]) for key in log)
    show(criterion, [log])


def show(criterion, logs) -> dict:
    with metrics.aggregate(new_root=True) as shown:
        type(criterion).reduce_metrics(logs)
    return shown.get_smoothed_values()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_metrics_of_two_batches_equal_those_of_their_sum(build, synonym_table, criterion):
    """Two workers, or two accumulated batches, log the same values as one."""
    task, model, criterion = build("electra", "--criterion", criterion, "--synonym-table", synonym_table)
    task.load_dataset("train")
    dataset = task.dataset("train")
    batches = [dataset.collater([dataset[i] for i in indices]) for indices in (range(8), range(8, 11))]
    logs = [step(task, model, criterion, batch)[2] for batch in batches]
    together = {key: logs[0][key] + logs[1][key] for key in logs[0]}
    one = show(criterion, [together])
    assert one == show(criterion, logs)
    assert {"loss", "nll_loss", "ppl", "mlm_accuracy", "false_negative_rate", "rtd_recall", "replaced_rate"} <= set(one)


def test_a_gpu_is_asked_once_for_all_logged_values_of_a_type(build, monkeypatch):
    task, model, criterion = build("electra", "--criterion", "electra")
    log = step(task, model, criterion, first_batch(task))[2]
    expected, asked, ask = show(criterion, [log]), [], torch.Tensor.tolist

    def counted(tensor):
        asked.append(tensor.dtype)
        return ask(tensor)

    monkeypatch.setattr(torch.Tensor, "tolist", counted)
    for name in ("item", "__float__", "__bool__"):
        monkeypatch.setattr(torch.Tensor, name, None)
    assert show(criterion, [log]) == expected
    assert len(asked) == len(set(asked)) == 2


def test_metrics_by_hand(build):
    _, _, criterion = build("electra", "--criterion", "electra")
    sums = {"loss": 20.0, "sample_size": 10, "masked": 10, "nll": 10 * math.log(8), "correct": 2}
    sums |= {"false_negatives": 1, "false_negative_sequences": 1, "rtd_loss": 100 * math.log(2), "rtd_tokens": 100}
    sums |= {"rtd_correct": 95, "rtd_hits": 3, "rtd_said": 4, "rtd_replaced": 6}
    log = {"ntokens": 100, "nsentences": 4, **{name: torch.tensor(value) for name, value in sums.items()}}
    shown = show(criterion, [log, log])
    expected = {
        "loss": round(2 / math.log(2), 3),
        "nll_loss": 3.0,
        "ppl": 8.0,
        "mlm_accuracy": 20.0,
        "false_negative_rate": 12.5,
        "false_negative_sequences": 25.0,
        "rtd_loss": 1.0,
        "rtd_accuracy": 95.0,
        "rtd_precision": 75.0,
        "rtd_recall": 50.0,
        "replaced_rate": 6.0,
    }
    assert {key: shown[key] for key in expected} == expected


@families
def test_predictions_are_the_most_likely_token_or_a_draw(build, family):
    for mode in ("argmax", "sample"):
        task, model, criterion = build(family, "--criterion", "electra", "--prediction-mode", mode)
        model.eval()
        batch = first_batch(task)
        draws = batch.get("uniform_draws")
        _, output = outputs((task, model, criterion), batch)
        predictions = criterion.objective.predict(output, draws)
        if mode == "argmax":
            assert torch.equal(predictions, output[0].argmax(-1))
        elif family == "electra":
            assert torch.equal(predictions, output.drawn_tokens)  # the token that the generator drew
        else:
            assert not torch.equal(predictions, output[0].argmax(-1))
        if mode == "sample" and draws is not None:  # the draws of a batch do not depend on earlier draws
            assert torch.equal(predictions, corruption.draw_replacements(output[0], uniform=draws))


def test_a_run_of_electra_resumes_as_mlm(data_bin, tmp_path, caplog):
    flags = ["--task", "electra", "--arch", "bert_tiny"]
    prepare_training(data_bin, tmp_path, *flags, "--criterion", "electra", "--max-update", 1)()
    with caplog.at_level("INFO"):
        prepare_training(data_bin, tmp_path, *flags, "--criterion", "mlm", "--max-update", 2)()
    assert "(epoch 1 @ 1 updates)" in caplog.text
