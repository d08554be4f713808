import pytest
import torch
from criterion_steps import outputs, step
from files import refused
from helpers import (
    MASKED_LM_ONLY,
    WORDS,
    first_batch,
    synonyms_of,
    write_table,
)
from lexical_files import save_model

from tn_fairseq.core import corruption
from tn_fairseq.core.masked_prediction import complete_words, false_negatives
from tn_fairseq.objectives import functional
from tn_fairseq.objectives.judge import judge_scores


def run(built):
    task, model, criterion = built
    return step(task, model.eval(), criterion, first_batch(task, size=24))


@pytest.fixture
def sure_of_noun3(build):
    """A model that predicts noun3 everywhere: a false negative where the gold word is another of noun0 to noun9."""

    def build_sure(*flags, family="bert"):
        task, model, criterion = build(family, "--criterion", "mlm_hard_correction", *flags)
        head = model.masked_lm_head if family == "bert" else model.generator_head
        with torch.no_grad():
            head.bias[task.dictionary.index("noun3")] = 30.0
        return task, model, criterion

    return build_sure


def expectation(built):
    """Losses and false negatives at each position, computed without the criterion."""
    task, model, _ = built
    batch = first_batch(task, size=24)
    masked = batch["target"].ne(task.dictionary.pad())
    targets = batch["target"][masked]
    logits, _ = model.eval()(**batch["net_input"], masked_tokens=masked)
    is_synonym = torch.tensor([task.dictionary[i] in synonyms_of("noun3") for i in targets.tolist()])
    assert 0 < is_synonym.sum() < len(targets)
    return functional.masked_lm(logits, targets), is_synonym


@pytest.mark.parametrize("weight", [0, 0.25])
@pytest.mark.parametrize("divisor", ["kept", "masked"])
@pytest.mark.parametrize("family", ["bert", "electra"])
def test_the_weight_of_false_negatives_in_numerator_and_denominator(
    sure_of_noun3, synonym_table, family, divisor, weight
):
    flags = ["--hard-correction-weight", weight, "--hard-correction-divisor", divisor, *MASKED_LM_ONLY[family]]
    built = sure_of_noun3("--synonym-table", synonym_table, *flags, family=family)
    nll, is_synonym = expectation(built)
    weights = torch.where(is_synonym, weight, 1.0)
    divided_by = weights.sum() if divisor == "kept" else len(nll)
    loss, sample_size, log = run(built)
    torch.testing.assert_close(loss / sample_size, (weights * nll).sum() / divided_by)
    assert sample_size == (divided_by if family == "bert" else len(nll))
    assert log["false_negatives"] == is_synonym.sum() and log["masked"] == len(nll)


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_a_gold_token_that_the_next_one_continues_has_no_synonyms(sure_of_noun3, synonym_table, family):
    """In the toy language, noun0 to noun4 are followed by noun7 to noun11, which here continue words."""
    flags = ["--synonym-table", synonym_table, "--mask-prob", 0.4, "--sample-break-mode", "none"]
    flags += MASKED_LM_ONLY[family]
    flags += ["--rtd-false-negatives", "ignore"] if family == "electra" else []
    built = task, _, criterion = sure_of_noun3(*flags, family=family)
    dictionary = task.dictionary
    nll, is_synonym = expectation(built)
    all_synonyms = is_synonym.clone()
    criterion.objective.continues_word[[dictionary.index(f"noun{number}") for number in range(7, 12)]] = True
    batch = first_batch(task, size=24)
    hidden = 0
    places = batch["target"].ne(dictionary.pad()).nonzero().tolist()
    for position, (row, place) in enumerate(places):
        gold, following = batch["target"][row, place], batch["net_input"]["src_tokens"][row, place + 1 :]
        if dictionary[gold] in ("noun0", "noun1", "noun2", "noun4") and following.tolist()[:1] not in ([], [2]):
            is_synonym[position] = False
            hidden += dictionary[following[0]] == "<mask>"
    assert hidden and 0 < is_synonym.sum() < all_synonyms.sum()
    loss, sample_size, log = run(built)
    assert log["false_negatives"] == is_synonym.sum()
    torch.testing.assert_close(loss / sample_size, nll[~is_synonym].mean())
    if family == "electra":  # this generator always draws its prediction
        tokens = batch["net_input"]["src_tokens"].ne(dictionary.pad()).sum()
        assert log["rtd_tokens"] == tokens - is_synonym.sum()


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_a_batch_with_only_false_negatives(sure_of_noun3, tmp_path, dictionary, family):
    everything = [word for word in WORDS if word != "noun3"]
    table = write_table(tmp_path / "all.safetensors", dictionary, {word: ["noun3"] for word in everything})
    flags = ["--synonym-table", table, *MASKED_LM_ONLY[family]]
    task, model, criterion = sure_of_noun3(*flags, family=family)
    batch = first_batch(task, size=24)
    is_masked = batch["target"].ne(dictionary.pad())
    batch["target"] = torch.where(is_masked, dictionary.index("noun4"), batch["target"])
    loss, sample_size, log = criterion(model.eval(), batch)
    assert loss.item() == 0
    assert log["false_negatives"] == log["masked"] == is_masked.sum()
    assert sample_size == (0 if family == "bert" else is_masked.sum())
    loss.backward()
    assert all(p.grad is None or p.grad.eq(0).all() for p in model.parameters())


@pytest.mark.parametrize("choice", ["replaced", "ignore", "original"])
def test_the_discriminators_targets_for_drawn_synonyms(build, synonym_table, choice):
    """An untrained generator draws more synonyms than its argmax has, and at other positions."""
    flags = ["--criterion", "mlm_hard_correction", "--synonym-table", synonym_table, "--rtd-false-negatives", choice]
    task, model, criterion = build("electra", *flags, "--generator-loss-weight", 0, "--sample-break-mode", "complete")
    batch = first_batch(task, size=40)
    targets, pad = batch["target"], task.dictionary.pad()
    masked, output = outputs((task, model, criterion), batch)
    pairs = zip(targets[masked].tolist(), output.drawn_tokens.tolist())
    drawn = torch.tensor([task.dictionary[other] in synonyms_of(task.dictionary[gold]) for gold, other in pairs])
    is_synonym = torch.zeros_like(masked)
    is_synonym[masked] = drawn
    argmax = false_negatives(output.logits.argmax(-1), targets[masked], criterion.objective.synonyms)
    assert drawn.any() and not torch.equal(drawn, argmax)

    counts = batch["net_input"]["src_tokens"].ne(pad)
    assert not counts.all()
    is_replaced = output.is_replaced & ~is_synonym if choice == "original" else output.is_replaced
    if choice == "ignore":
        counts = counts & ~is_synonym
    losses = functional.replaced_token_detection(output.discriminator_logits, is_replaced)
    loss, sample_size, log = criterion(model, batch)
    torch.testing.assert_close(loss / sample_size, 50 * losses[counts].mean())
    assert log["rtd_tokens"] == counts.sum() and log["rtd_replaced"] == is_replaced.sum() - (
        is_synonym.sum() if choice == "ignore" else 0
    )


# The judge of corrections


@pytest.fixture
def judge_file(data_bin, tmp_path):
    """A function that saves a new model of a data-bin as a checkpoint, and returns its path."""

    return lambda family, data=data_bin: save_model(tmp_path / f"{family}.pt", data, family)


JUDGES = ["bert", "electra", "roberta", "discriminator"]


@pytest.fixture
def build_judged(build, synonym_table, judge_file):
    """ELECTRA whose generator prefers noun3, so that there are corrections, with a judge."""

    def build_all(judge, threshold, *flags):
        flags = ["--criterion", "mlm_hard_correction", "--synonym-table", synonym_table, *flags]
        flags += ["--prediction-mode", "sample" if judge in (None, "discriminator") else "argmax"]
        if judge is not None:
            path = judge if judge == "discriminator" else judge_file(judge)
            flags += ["--correction-judge", path, "--correction-judge-threshold", threshold]
        task, model, criterion = build("electra", *flags)
        with torch.no_grad():
            model.generator_head.bias[task.dictionary.index("noun3")] = 30.0
        return task, model, criterion

    return build_all


def test_a_judge_that_attends_across_documents_is_refused(build_judged, judge_file):
    flags = ["--sample-break-mode", "none", "--document-attention"]
    build_judged("bert", 0.5, *flags)
    assert "--correction-judge" in refused(build_judged, "roberta", 0.5, *flags)


def train_step(built):
    """Loss, log and gradients of one training step with dropout."""
    task, model, criterion = built
    loss, _, log = step(task, model.train(), criterion, first_batch(task, size=24))
    loss.backward()
    return loss, log, [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("judge", ["roberta", "discriminator"])
@pytest.mark.parametrize("threshold, flags", [(0, []), (1, ["--hard-correction-weight", 1])])
def test_a_judge_that_accepts_everything_changes_nothing_and_one_that_rejects_everything_leaves_plain_masked_lm(
    build_judged, judge, threshold, flags
):
    loss, log, gradients = train_step(build_judged(judge, threshold))
    expected_loss, expected_log, expected = train_step(build_judged(None, 0, *flags))  # always draws its prediction
    assert torch.equal(loss, expected_loss) and all(map(torch.equal, gradients, expected))
    corrected = 0 if flags else expected_log["false_negatives"]
    assert log["false_negatives"] == log["judge_agreed"] == corrected and log["judged"] > 0


@pytest.mark.parametrize("judge", JUDGES)
def test_only_what_the_judge_accepts_is_corrected(build_judged, judge):
    built = task, model, criterion = build_judged(judge, 0, "--discriminator-loss-weight", 0)
    criterion.objective.continues_word[task.dictionary.index("noun12")] = True
    batch = first_batch(task, size=24)
    masked, output = outputs(built, batch)
    text = batch["target"].where(masked, batch["net_input"]["src_tokens"])
    words = complete_words(text, criterion.objective.continues_word, task.dictionary.pad())
    is_synonym = torch.tensor([task.dictionary[word] in synonyms_of("noun3") for word in words[masked].tolist()])
    candidates = corruption.fill_in(torch.zeros_like(masked), masked, is_synonym)
    if judge == "discriminator":
        scores = (-output.discriminator_logits[candidates]).sigmoid()
    else:
        predictions = output.drawn_tokens[is_synonym]
        scores = judge_scores(
            criterion.objective.judge[0].eval(), {**batch["net_input"], "src_tokens": text}, candidates, predictions
        )
    middle = scores.sort().values[len(scores) // 2].item()
    criterion.objective.cfg.correction_judge_threshold = middle
    loss, sample_size, log = run(built)
    accepted = is_synonym.masked_scatter(is_synonym, scores >= middle)
    assert 0 < accepted.sum() < is_synonym.sum()
    assert log["judged"] == is_synonym.sum() and log["false_negatives"] == accepted.sum()
    nll = functional.masked_lm(output.logits, batch["target"][masked])
    torch.testing.assert_close(loss / sample_size, nll[~accepted].mean())


def test_without_a_candidate_the_judge_reads_nothing(build_judged):
    task, model, criterion = build_judged("bert", 0.5)
    with torch.no_grad():
        model.generator_head.bias[task.dictionary.index("noun3")] = 0
        model.generator_head.bias[task.dictionary.eos()] = 30.0
    criterion.objective.judge = []  # reading would fail
    log = run((task, model, criterion))[2]
    assert log["judged"] == log["judge_agreed"] == 0


def test_a_judge_is_neither_trained_nor_saved(build_judged):
    criterion = build_judged("bert", 0.5)[2]
    assert criterion.state_dict() == {} and list(criterion.parameters()) == []
    (judge,) = criterion.objective.judge
    assert not judge.training
    criterion.train()
    assert not judge.training


@pytest.mark.parametrize(
    "family, flags, named",
    [
        ("electra", "--correction-judge discriminator", "--prediction-mode"),
        ("bert", "--correction-judge discriminator --prediction-mode sample", "ELECTRA"),
    ],
)
def test_a_discriminator_that_cannot_judge_is_refused(build, synonym_table, family, flags, named):
    """test_mlm_distillation.py has the files that do not fit."""
    flags = ["--criterion", "mlm_hard_correction", "--synonym-table", synonym_table, *flags.split()]
    assert named in refused(lambda: run(build(family, *flags)))
