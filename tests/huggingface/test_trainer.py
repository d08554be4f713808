"""The objectives in a ``Trainer`` of ``transformers`` have the values that they have in fairseq."""

import math
from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch
from fairseq import tasks
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from files import refused
from helpers import PLUGIN, load_script, random_sentences, run_command
from huggingface_models import (
    OTHERS,
    SIZES,
    make_bert,
    make_electra,
    make_other,
    save_models,
    write_vocabulary,
)
from omegaconf import OmegaConf

from tn_fairseq.core.checkpoints import load_checkpoint
from tn_fairseq.huggingface.drawn_rows import DrawsCollator, teach
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.huggingface.joint_electra import JointElectra
from tn_fairseq.huggingface.masked_logits import max_positions
from tn_fairseq.huggingface.synonyms import SynonymTable
from tn_fairseq.huggingface.trainer import (
    Encoder,
    Teacher,
    TrueNegativeTrainer,
    build_objective,
    load_teacher,
)
from tn_fairseq.huggingface.vocabulary_files import read_data_bin
from tn_fairseq.objectives import OBJECTIVES
from tn_fairseq.objectives.functional import replaced_token_detection

transformers = pytest.importorskip("transformers")
MASKED_LM = [name for name in OBJECTIVES if name.startswith("mlm")]
DETECTION = [name for name in OBJECTIVES if name.startswith("rtd")]
# groups of many words, so that untrained models have false negatives
GROUPS = "".join(", ".join(f"{kind}{number}" for number in range(40)) + "\n" for kind in ("noun", "verb", "adjective"))


def sentences(tokenizer, count: int = 32) -> list:
    return [tokenizer(" ".join(words)) for words in random_sentences(count, seed=3)[:count]]


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder):
    return transformers.AutoTokenizer.from_pretrained(tokenizer_folder)


@pytest.fixture(scope="module")
def synonyms(tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "groups.txt"
    path.write_text(GROUPS)
    return SynonymTable.from_list(tokenizer, path, "groups")


@pytest.fixture(scope="module")
def bert(tokenizer):
    return make_bert(len(tokenizer), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def collator_of(tokenizer, seed: int = 2, **options):
    return transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.4, seed=seed, **options)


def batch_of(tokenizer) -> dict:
    return collator_of(tokenizer, seed=1)(sentences(tokenizer)[:8])


def fixed_masks(tokenizer):
    """A data collator that masks a sentence in the same way in every batch."""

    def collate(rows: list[dict]) -> dict:
        batch = transformers.DataCollatorWithPadding(tokenizer)(rows)
        ids = batch["input_ids"]
        masked = (ids * 7 + torch.arange(ids.size(1)) * 3) % 5 < 2
        masked &= batch["attention_mask"].bool() & ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
        labels = torch.where(masked, ids, -100)
        return {**batch, "input_ids": ids.masked_fill(masked, tokenizer.mask_token_id), "labels": labels}

    collate.tokenizer = tokenizer
    return collate


def train(model, tokenizer, folder, kind=TrueNegativeTrainer, resume=None, collator=None, rows=None, **options):
    """A trainer after four updates with eight sentences each; dropout is the model's."""
    settings = {"max_steps": 4, "per_device_train_batch_size": 8, "logging_steps": 1, "save_strategy": "no"}
    settings |= {"report_to": [], "use_cpu": True, "disable_tqdm": True, "seed": 5, "learning_rate": 1e-3}
    names = ("objective", "objective_kwargs", "synonyms", "processing_class")
    own = {name: options.pop(name) for name in names if name in options}
    trainer = kind(
        model=model,
        args=transformers.TrainingArguments(output_dir=str(folder), **(settings | options)),
        train_dataset=rows or sentences(tokenizer),
        eval_dataset=sentences(tokenizer, 16),
        data_collator=collator or collator_of(tokenizer),
        **own,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.fixture
def fit(bert, tokenizer, synonyms, tmp_path):
    """Train a copy of the usual model, or another one, with the usual table."""

    def fit_one(objective="mlm", model=None, **options):
        options = {"objective": objective, "synonyms": synonyms, **options}
        return train(deepcopy(bert) if model is None else model, tokenizer, tmp_path, **options)

    return fit_one


@pytest.fixture
def distill(fit):
    """As ``fit``, from a teacher, which is the only option of the objective."""

    def distill_one(teacher, model=None, **options):
        kwargs = {"distillation_teacher": teacher}
        return fit("mlm_distillation", model, **{"objective_kwargs": kwargs, "synonyms": None, **options})

    return distill_one


def losses(trainer) -> list[float]:
    return [record["loss"] for record in trainer.state.log_history if "loss" in record]


def assert_same_parameters(one, other, **tolerance) -> None:
    for (name, left), right in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(left, right, msg=lambda text, name=name: f"{name}: {text}", **tolerance)


@pytest.fixture(scope="module")
def imported(bert, tokenizer, wordpiece_bin, tmp_path_factory):
    """The same model in fairseq: (model, task, the tokenizer's ids of its symbols)."""
    folder = tmp_path_factory.mktemp("imported")
    save_models(folder, {"bert": bert})
    import_model(folder / "bert", wordpiece_bin, folder / "bert.pt")
    state = load_checkpoint(folder / "bert.pt")
    task = tasks.setup_task(OmegaConf.create(state["cfg"]["task"]))
    model = task.build_model(OmegaConf.create(state["cfg"]["model"]))
    model.load_state_dict(state["model"])
    dictionary, its_tokenizer = read_data_bin(wordpiece_bin)
    return model, task, torch.from_numpy(its_tokenizer.token_ids(dictionary))


@pytest.fixture(scope="module")
def teacher(tokenizer, wordpiece_bin, tmp_path_factory):
    """Another model with the same tokenizer, without dropout, and its import."""
    folder = tmp_path_factory.mktemp("teacher")
    sizes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    save_models(folder, {"teacher": make_bert(len(tokenizer), seed=4, **sizes)})
    import_model(folder / "teacher", wordpiece_bin, folder / "teacher.pt")
    return folder / "teacher"


def options_of(name: str, teacher) -> dict:
    return {"distillation_teacher": teacher} if name == "mlm_distillation" else {}


def criterion_of(task, name: str, table, **options):
    cfg = OmegaConf.structured(CRITERION_DATACLASS_REGISTRY[name]())
    cfg._name, cfg.synonym_table, cfg.save_dir = name, str(table), ""
    return task.build_criterion(OmegaConf.merge(cfg, options))


def in_fairseq(task, token_ids: torch.Tensor, batch: dict) -> dict:
    """A batch of transformers in the dictionary of a task."""
    ours = torch.empty(len(token_ids), dtype=torch.long)
    ours[token_ids] = torch.arange(len(token_ids))
    padding, labels = task.source_dictionary.pad(), batch["labels"]
    return {
        "net_input": {"src_tokens": torch.where(batch["attention_mask"].bool(), ours[batch["input_ids"]], padding)},
        "target": torch.where(labels == -100, padding, ours[labels.clamp(min=0)]),
        "ntokens": labels.numel(),
        "nsentences": len(labels),
    }


@pytest.mark.parametrize("name", MASKED_LM)
def test_loss_logs_and_gradients_are_those_of_the_criterion(
    name, bert, tokenizer, synonyms, imported, teacher, tmp_path
):
    model, task, token_ids = imported
    synonyms.save(tmp_path / "table.safetensors")
    criterion = criterion_of(task, name, tmp_path / "table.safetensors", **options_of(name, str(teacher) + ".pt"))
    batch = batch_of(tokenizer)
    labels = batch["labels"]
    model.eval().zero_grad()
    expected, sample_size, log = criterion(model, in_fairseq(task, token_ids, batch))
    expected.backward()

    bert.eval().zero_grad()
    objective = build_objective(OBJECTIVES[name], options_of(name, str(teacher)), bert, tokenizer, synonyms)
    encoder = Encoder(bert)
    theirs = {"src_tokens": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    target = labels.masked_fill(labels == -100, tokenizer.pad_token_id)
    loss, its_size, its_log = objective(
        encoder, {"net_input": theirs, "target": target, "ntokens": labels.numel(), "nsentences": len(labels)}
    )
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=0)
    assert its_size == sample_size and list(its_log) == list(log)
    assert log["false_negatives"] > 0
    for key, value in log.items():
        assert float(its_log[key]) == pytest.approx(float(value), rel=2e-6, abs=1e-6), key
    gradient = bert.bert.embeddings.word_embeddings.weight.grad[token_ids]
    torch.testing.assert_close(gradient, model.embeddings.word_embeddings.weight.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MASKED_LM)
def test_every_objective_trains_and_is_logged(name, fit, teacher):
    """Losses fall, evaluations have the objective's metrics, and everything is logged."""
    trainer = fit(name, objective_kwargs=options_of(name, str(teacher)), max_steps=8)
    assert losses(trainer)[-1] < losses(trainer)[0]
    record, evaluation = trainer.state.log_history[0], trainer.evaluate()
    own = {metric.name for metric in OBJECTIVES[name].metrics} - {"judge_agreement"}
    assert {"loss", "nll_loss", "mlm_accuracy", "false_negative_rate", *own} <= set(record)
    assert {f"eval_{key}" for key in ("loss", "nll_loss", "false_negative_rate", *own)} <= set(evaluation)


def test_without_false_negatives_it_is_the_plain_trainer_bitwise(bert, tokenizer, tmp_path):
    plain = train(deepcopy(bert), tokenizer, tmp_path, kind=transformers.Trainer)
    empty = tmp_path / "empty.tsv"
    empty.write_text("word\tsynonym\nnothing\tnowhere\nnoun1\tnoun2\n")
    table = SynonymTable.from_list(tokenizer, empty, "tsv")
    table.synonyms.fill_(-1)
    table._table.fill_(-1)
    expected = plain.evaluate()["eval_loss"]
    for name in ("mlm", "mlm_hard_correction"):
        ours = train(deepcopy(bert), tokenizer, tmp_path, objective=name, synonyms=table)
        assert losses(ours)[0] == losses(plain)[0]
        assert ours.evaluate()["eval_loss"] == expected
        assert_same_parameters(ours.model, plain.model, rtol=1e-5, atol=1e-6)


def test_updates_and_an_evaluation_are_those_of_the_criterion(bert, tokenizer, synonyms, imported, tmp_path):
    """Both divide by the positions that hard correction keeps."""
    model, task, token_ids = imported
    before = {name: value.clone() for name, value in model.state_dict().items()}
    synonyms.save(tmp_path / "table.safetensors")
    criterion = criterion_of(task, "mlm_hard_correction", tmp_path / "table.safetensors")
    masks = fixed_masks(tokenizer)  # the usual collator sometimes puts [PAD] into a text, which fairseq does not read
    batches = []

    def recorded(rows: list[dict]) -> dict:
        batches.append(masks(rows))
        return batches[-1]

    def loss_of_criterion(batch: dict) -> torch.Tensor:
        loss, sample_size, log = criterion(model, in_fairseq(task, token_ids, batch))
        assert log["false_negatives"] > 0
        return loss / sample_size

    recorded.tokenizer = tokenizer
    options = {"objective": "mlm_hard_correction", "synonyms": synonyms, "collator": recorded, "max_steps": 5}
    options |= {"lr_scheduler_type": "constant", "optim": "sgd", "learning_rate": 0.01, "max_grad_norm": 0.0}
    trainer = train(deepcopy(bert), tokenizer, tmp_path, **options)
    optimizer, expected = torch.optim.SGD(model.train().parameters(), lr=0.01), []
    for batch in batches[:5]:
        loss = loss_of_criterion(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert losses(trainer) == pytest.approx(expected, rel=1e-3)
    ours = trainer.model.bert.embeddings.word_embeddings.weight[token_ids]
    torch.testing.assert_close(ours, model.embeddings.word_embeddings.weight, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(ours, before["embeddings.word_embeddings.weight"], atol=1e-3)

    batches.clear()
    found = trainer.evaluate()["eval_loss"]
    model.eval()
    mean = sum(loss_of_criterion(batch).item() for batch in batches) / len(batches)
    assert len(batches) == 2 and found == pytest.approx(mean, rel=1e-4)
    model.load_state_dict(before)


@pytest.mark.parametrize("name", ["mlm_hard_correction", "mlm_soft_reg"])
def test_two_accumulated_batches_are_one(name, fit, tokenizer):
    """The batches have different numbers of masked tokens and of false negatives."""
    options = {"max_steps": 3, "optim": "sgd", "learning_rate": 0.1, "collator": fixed_masks(tokenizer)}
    one = fit(name, **options)
    two = fit(name, per_device_train_batch_size=4, gradient_accumulation_steps=2, **options)
    assert losses(one) == pytest.approx(losses(two), rel=1e-5)
    assert_same_parameters(one.model, two.model, rtol=1e-5, atol=1e-5)


def test_resuming_equals_not_stopping(fit, tokenizer, tmp_path):
    model = make_bert(len(tokenizer))  # with dropout
    options = {"objective_kwargs": {"prediction_mode": "sample"}, "save_strategy": "steps", "save_steps": 2}
    options["collator"] = fixed_masks(tokenizer)
    complete = fit("mlm_hard_correction", deepcopy(model), **options)
    resumed = fit("mlm_hard_correction", deepcopy(model), resume=str(tmp_path / "checkpoint-2"), **options)
    assert_same_parameters(complete.model, resumed.model, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["mlm_sent_kl", "mlm_distillation"])
def test_half_precision_follows_float32(name, fit, bert, teacher):
    """Every pass through a model uses it: also those that sentence KL adds, and the teacher's."""
    own, other, types = deepcopy(bert), transformers.AutoModelForMaskedLM.from_pretrained(teacher), set()
    full = fit(name, objective_kwargs=options_of(name, other))
    for model in (own, other):
        layer = model.bert.encoder.layer[0].output.dense
        layer.register_forward_hook(lambda _, inputs, output: types.add(output.dtype))
    half = fit(name, own, objective_kwargs=options_of(name, other), bf16=True)
    assert types == {torch.bfloat16} and losses(half) != losses(full)
    assert losses(half) == pytest.approx(losses(full), rel=0.05 if name == "mlm_distillation" else 0.02)


def test_several_gpus_do_not_scale_the_loss(fit, tokenizer):
    """If nothing is averaged across devices, the Trainer divides the masked tokens by the GPUs of DataParallel."""
    trainer, batch = fit(average_tokens_across_devices=False, max_steps=1), batch_of(tokenizer)
    masked = batch["labels"].ne(-100).sum()
    one = trainer.compute_loss(trainer.model.train(), batch, num_items_in_batch=masked)
    trainer.args._n_gpu = 2
    two = trainer.compute_loss(trainer.model, batch, num_items_in_batch=trainer._get_num_items_in_batch([batch], "cpu"))
    torch.testing.assert_close(two.mean(), one, rtol=0.02, atol=0)  # the Trainer rounds the half


@pytest.mark.parametrize("kind", OTHERS)
def test_other_masked_language_models(kind, tokenizer, synonyms, tmp_path):
    """The plain objective is the loss of the model itself, and the regularization terms find their inputs."""
    model = make_other(kind, len(tokenizer) + 3)
    batch = {name: value for name, value in batch_of(tokenizer).items() if name != "token_type_ids"}
    expected = model(**batch).loss
    sample = {
        "net_input": {"src_tokens": batch["input_ids"], "attention_mask": batch["attention_mask"]},
        "target": batch["labels"].masked_fill(batch["labels"] == -100, tokenizer.pad_token_id),
        "ntokens": 1,
        "nsentences": 8,
    }
    for name in ("mlm", "mlm_soft_reg", "mlm_sent_kl"):
        objective = build_objective(OBJECTIVES[name], {}, model, tokenizer, synonyms)
        loss, sample_size, log = objective(Encoder(model), sample)
        rest = sum(log[key] for key in ("soft_reg", "sent_kl") if key in log)
        torch.testing.assert_close((loss - rest) / sample_size, expected, rtol=1e-5, atol=1e-5)
        loss.backward()


def make_joint(tokenizer, seed: int = 1) -> JointElectra:
    discriminator, generator = make_electra(len(tokenizer), seed=seed, generator_sizes={**SIZES})
    return JointElectra(generator, discriminator)


@pytest.fixture
def electra(tokenizer):
    return make_joint(tokenizer)


def test_electra_with_gradient_checkpointing_is_the_same(electra, fit):
    plain, again = (fit("mlm", deepcopy(electra), gradient_checkpointing=flag, max_steps=2) for flag in (False, True))
    assert again.model.discriminator.is_gradient_checkpointing and losses(plain) == losses(again)


@pytest.mark.parametrize("name", ["mlm_sent_kl", *DETECTION])
def test_electra_trains_both_models(name, electra, fit):
    before = {key: value.clone() for key, value in electra.state_dict().items()}
    trainer = fit(name, electra)
    changed = {key for key, value in electra.state_dict().items() if not torch.equal(value, before[key])}
    assert {key.split(".")[0] for key in changed} == {"generator", "discriminator"}
    assert {"rtd_loss", "rtd_recall", "replaced_rate", "nll_loss"} <= set(trainer.state.log_history[0])
    assert trainer.predict(trainer.eval_dataset).metrics["test_rtd_loss"] > 0


def test_an_interrupted_update_leaves_nothing(fit, tokenizer):
    # once by the user, and once by a batch that is too large, after which the Trainer begins again by itself
    class Interrupted(TrueNegativeTrainer):
        started = []
        error = KeyboardInterrupt()

        def training_step(self, *args, **options):
            self.started.append(self)
            if len(self.started) == 2:
                raise self.error
            return super().training_step(*args, **options)

    options = {"max_steps": 1, "gradient_accumulation_steps": 2, "collator": fixed_masks(tokenizer)}
    expected = fit("mlm_hard_correction", per_device_train_batch_size=4, **options)
    with pytest.raises(KeyboardInterrupt):
        fit("mlm_hard_correction", kind=Interrupted, per_device_train_batch_size=4, **options)
    trainer = Interrupted.started[0]
    trainer.train()
    assert_same_parameters(trainer.model, expected.model, rtol=0, atol=0)
    assert losses(trainer) == losses(expected)

    Interrupted.started, Interrupted.error = [], RuntimeError("CUDA out of memory.")
    options |= {"per_device_train_batch_size": 5, "auto_find_batch_size": True}  # the Trainer goes on with nine tenths
    again = fit("mlm_hard_correction", kind=Interrupted, **options)
    assert_same_parameters(again.model, expected.model, rtol=0, atol=0)


def test_an_interrupted_evaluation_leaves_nothing(fit, tokenizer):
    class Interrupted(TrueNegativeTrainer):
        steps = 0

        def prediction_step(self, *args, **options):
            self.steps += 1
            if self.steps == 2:
                raise KeyboardInterrupt
            return super().prediction_step(*args, **options)

    trainer = fit(kind=Interrupted, max_steps=1, collator=fixed_masks(tokenizer))
    with pytest.raises(KeyboardInterrupt):
        trainer.evaluate()
    after, again = trainer.evaluate(), trainer.evaluate()
    for name in ("eval_nll_loss", "eval_mlm_accuracy"):
        assert after[name] == again[name]


def test_electra_detects_what_its_discriminator_says(electra, tokenizer):
    batch, labels = batch_of(tokenizer), batch_of(tokenizer)["labels"]
    masked = labels != -100
    output = electra.eval()(batch["input_ids"], batch["attention_mask"], masked_tokens=masked, target_tokens=labels)
    everywhere = electra.generator(batch["input_ids"], batch["attention_mask"]).logits
    torch.testing.assert_close(output.logits, everywhere[masked])
    corrupted = batch["input_ids"].masked_scatter(masked, output.drawn_tokens)
    is_replaced = corrupted.ne(torch.where(masked, labels, batch["input_ids"]))
    assert torch.equal(output.is_replaced, is_replaced) and is_replaced.any()
    expected = electra.discriminator(corrupted, batch["attention_mask"], labels=is_replaced.long()).loss
    losses = replaced_token_detection(output.discriminator_logits, is_replaced)
    torch.testing.assert_close(losses[batch["attention_mask"].bool()].mean(), expected)


def test_electra_is_saved_and_resumed(electra, fit, tokenizer, tmp_path, caplog):
    shared = electra.discriminator.get_input_embeddings().weight
    assert shared is electra.generator.get_input_embeddings().weight is electra.generator.generator_lm_head.weight
    options = {"save_strategy": "steps", "save_steps": 2, "collator": fixed_masks(tokenizer)}
    complete = fit("rtd_graded", electra, **options)
    loaded = JointElectra.from_pretrained(tmp_path / "checkpoint-4")
    assert_same_parameters(loaded, complete.model, rtol=0, atol=0)
    assert "are replaced" not in caplog.text
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "checkpoint-4" / "generator").mask_token
    other = make_joint(tokenizer, seed=7)
    fit("rtd_graded", other, resume=str(tmp_path / "checkpoint-2"), **options)
    assert_same_parameters(complete.model, other, rtol=0, atol=0)

    # trained embeddings are not replaced silently
    folder = tmp_path / "checkpoint-4" / "discriminator"
    discriminator = transformers.ElectraForPreTraining.from_pretrained(folder)
    assert torch.equal(discriminator.get_input_embeddings().weight, shared)
    generator = make_joint(tokenizer, seed=8).generator
    joint = JointElectra(generator, discriminator)
    assert joint.discriminator.get_input_embeddings() is generator.get_input_embeddings()
    assert f"{folder}: the discriminator's embeddings are replaced" in caplog.text


def test_a_generator_with_its_own_output_layer_is_saved_with_it(tokenizer):
    one, other = make_joint(tokenizer), make_joint(tokenizer, seed=2)
    for joint in (one, other):
        generator = joint.generator
        generator.config.tie_word_embeddings = False
        generator.generator_lm_head.weight = torch.nn.Parameter(generator.generator_lm_head.weight.detach() + 1)
    other.load_state_dict(one.state_dict())
    assert_same_parameters(one, other, rtol=0, atol=0)
    assert torch.equal(other.generator.generator_lm_head.weight, one.generator.generator_lm_head.weight)


def test_a_judge_decides_about_corrections(bert, fit, tmp_path):
    save_models(tmp_path, {"judge": bert})
    accepted = []
    for threshold in (0.0, 1.0):
        kwargs = {"correction_judge": str(tmp_path / "judge"), "correction_judge_threshold": threshold}
        trainer = fit("mlm_hard_correction", objective_kwargs=kwargs, max_steps=1)
        accepted.append(trainer.state.log_history[0]["judge_agreement"])
    assert accepted[0] == 100 and accepted[1] < 100


def test_a_teacher_is_a_folder_or_a_model(distill, teacher):
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(teacher)
    one, two = (distill(model, max_steps=1) for model in (str(teacher), loaded))
    assert_same_parameters(one.model, two.model, rtol=0, atol=0)


def test_a_weight_of_0_is_the_plain_objective_bitwise(fit, distill):
    plain, other = fit(), distill(None, objective_kwargs={"distillation_weight": 0.0})
    assert losses(plain) == losses(other)
    assert_same_parameters(plain.model, other.model, rtol=0, atol=0)


def test_a_teacher_scores_only_masked_positions_and_without_dropout(tokenizer):
    model = make_bert(len(tokenizer), hidden_dropout_prob=0.5)
    batch, teacher, shapes = batch_of(tokenizer), Teacher(model).eval(), []
    masked = batch["labels"] != -100
    model.train()  # in a Trainer of its own
    hook = model.cls.register_forward_hook(lambda module, inputs, output: shapes.append(output.shape))
    with torch.no_grad():
        logits, _ = teacher(batch["input_ids"], masked, attention_mask=batch["attention_mask"])
        hook.remove()
        everywhere = model.eval()(batch["input_ids"], batch["attention_mask"]).logits
    assert shapes == [(1, int(masked.sum()), len(tokenizer))]
    torch.testing.assert_close(logits, everywhere[masked])


def test_a_teacher_with_one_type_of_tokens_or_only_relative_positions(tokenizer):
    settings = {**SIZES, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    roberta = transformers.RobertaForMaskedLM(transformers.RobertaConfig(type_vocab_size=1, **settings))
    relative = {"position_biased_input": False, "relative_attention": True, "max_position_embeddings": 2}
    deberta = transformers.DebertaV2ForMaskedLM(transformers.DebertaV2Config(**relative, **settings))
    batch = batch_of(tokenizer)
    inputs = {"src_tokens": batch["input_ids"], "masked_tokens": batch["labels"] != -100}
    inputs |= {"attention_mask": batch["attention_mask"], "token_type_ids": torch.ones_like(batch["input_ids"])}
    for model in (roberta, deberta):
        assert Teacher(model)(**inputs)[0].shape == (inputs["masked_tokens"].sum(), len(tokenizer))


def test_rows_that_a_teacher_has_read(tokenizer):
    """They depend on the seed, the version and the row only, and hold the most likely words."""
    teacher, rows = make_bert(len(tokenizer), seed=4), sentences(tokenizer, 10)
    taught = teach(rows, teacher, tokenizer, draws=40, versions=2, mask_prob=0.4)
    assert len(taught) == 20
    for one, other in zip(taught, teach(rows, teacher, tokenizer, draws=40, versions=2, mask_prob=0.4, batch_size=3)):
        assert all((one[name] == other[name]).all() for name in ("input_ids", "labels"))
    for number, row in enumerate(taught):
        text, row = torch.tensor(rows[number % 10]["input_ids"]), {key: torch.as_tensor(row[key]) for key in row}
        masked, words, counts = row["labels"] != -100, row["draw_words"], row["draw_counts"]
        assert torch.equal(row["labels"][masked], text[masked]) and len(words) == masked.sum()
        assert (counts.sum(dim=1) == 40).all()
        with torch.no_grad():
            scores = teacher(row["input_ids"][None]).logits[0, masked].log_softmax(dim=1)
        drawn, entropy = (counts / 40 * scores.gather(1, words)).sum(dim=1), (scores.exp() * scores).sum(dim=1)
        assert not masked.any() or (drawn - entropy).abs().max() < 2.0
    assert any((one["labels"] != other["labels"]).any() for one, other in zip(taught[:10], taught[10:]))


@pytest.fixture
def train_on_draws(fit, tokenizer):
    def train_one(rows, **options):
        more = {"collator": DrawsCollator(tokenizer), "processing_class": tokenizer}
        return fit("mlm_distillation", rows=rows, **(more | options))

    return train_one


def test_a_batch_with_draws_has_the_loss_of_the_criterion(bert, tokenizer, imported, drawn_rows, train_on_draws):
    model, task, token_ids = imported
    criterion = criterion_of(task, "mlm_distillation", "", synonym_table=None, distillation_draws="in the batch")
    batch = DrawsCollator(tokenizer)(drawn_rows[:8])
    trainer = train_on_draws(drawn_rows, synonyms=None, max_steps=1)
    sample = trainer._sample(batch)
    ours = torch.empty(len(token_ids), dtype=torch.long)
    ours[token_ids] = torch.arange(len(token_ids))
    words, counts = sample["draws"]
    theirs = {**in_fairseq(task, token_ids, batch), "draws": (ours[words], counts)}
    loss, *_, logs = trainer.objective(Encoder(bert.eval()), sample)
    expected, _, log = criterion(model.eval(), theirs)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(logs["teacher_gold"], log["teacher_gold"])


@pytest.fixture(scope="module")
def drawn_rows(tokenizer):
    return teach(sentences(tokenizer), make_bert(len(tokenizer), seed=4), tokenizer, mask_prob=0.4)


def test_draws_train_like_their_teacher(tokenizer, drawn_rows, train_on_draws):
    """A gradient has the same mean, so the student gets closer to the teacher; evaluation without draws is plain."""
    trainer = train_on_draws(drawn_rows, max_steps=20)
    assert sum(losses(trainer)[-5:]) < sum(losses(trainer)[:5]) - 0.5
    assert "teacher_gold_probability" in trainer.state.log_history[0]
    trainer.data_collator = collator_of(tokenizer)
    found = trainer.evaluate()
    assert found["eval_nll_loss"] == pytest.approx(found["eval_loss"] / math.log(2), rel=0.02)


def test_what_pads_may_also_be_a_masked_word(bert, tmp_path):
    """The padding token is the separator, which is masked; the loss is that of the plain Trainer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(write_vocabulary(tmp_path / "own"))
    tokenizer.pad_token = tokenizer.sep_token
    collate = fixed_masks(tokenizer)

    def with_separators(rows: list[dict]) -> dict:
        batch = collate(rows)
        last = batch["attention_mask"].sum(dim=1) - 1
        batch["labels"][torch.arange(len(last)), last] = tokenizer.sep_token_id
        return batch

    with_separators.tokenizer = tokenizer
    ours, plain = (
        train(deepcopy(bert), tokenizer, tmp_path, kind, collator=with_separators, max_steps=1)
        for kind in (TrueNegativeTrainer, transformers.Trainer)
    )
    assert losses(ours) == losses(plain)
    assert ours.evaluate()["eval_loss"] == pytest.approx(plain.evaluate()["eval_loss"], rel=1e-6)


def test_every_token_that_is_attended_to_counts_in_detection(electra, tokenizer):
    """The padding's id inside of a text is a token, and padding with another id is none."""
    inputs = torch.tensor([[3, tokenizer.pad_token_id, 9, 9]])
    labels = torch.tensor([[-100, -100, 9, -100]])
    trainer = TrueNegativeTrainer(
        electra, transformers.TrainingArguments("unused", use_cpu=True, report_to=[]), processing_class=tokenizer
    )
    batch = {"input_ids": inputs, "labels": labels, "attention_mask": torch.tensor([[1, 1, 1, 0]])}
    sample = trainer._sample(batch)
    assert sample["is_token"].tolist() == [[True, True, True, False]]
    assert sample["masked_tokens"].tolist() == [[False, False, True, False]]
    assert trainer.objective(Encoder(electra), sample)[2]["rtd_tokens"] == 3


def test_a_second_model_gets_what_only_it_reads(distill, tokenizer):
    """A DistilBERT has no types of tokens, but its teacher, a BERT, reads them."""
    student, teacher, seen = make_other("DistilBertForMaskedLM", len(tokenizer)), make_bert(len(tokenizer)), []
    teacher.bert.register_forward_pre_hook(
        lambda module, args, inputs: seen.append(inputs.get("token_type_ids")), with_kwargs=True
    )
    distill(teacher, student, rows=[dict(tokenizer("noun1 verb1", "noun2")) for _ in range(8)], max_steps=1)
    assert seen and all(types.sum(dim=1).gt(0).all() for types in seen)


def test_only_a_teacher_that_is_no_better_is_said(distill, tokenizer, caplog):
    trainer = distill(make_bert(len(tokenizer), seed=8), max_steps=10)
    (said,) = (message for message in caplog.messages if "the teacher's loss on the first" in message)
    assert "bits, not below the model's, " in said
    caplog.clear()
    trainer.objective.compare(2.0, 1.0, count=1)  # a better one
    assert not caplog.messages


WRAPPERS = {
    "DataParallel": torch.nn.DataParallel,
    "AveragedModel": torch.optim.swa_utils.AveragedModel,
    "compile": torch.compile,
    "peft": lambda model: pytest.importorskip("peft").get_peft_model(model, pytest.importorskip("peft").LoraConfig()),
}


class Mine(transformers.BertForMaskedLM):
    """A class of a user, which transformers does not know."""


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_teacher_is_unwrapped_and_may_have_any_class(wrapper, bert, tokenizer):
    assert type(load_teacher(WRAPPERS[wrapper](Mine(bert.config)), bert, tokenizer).core) is Mine


def test_a_wrapped_student_gets_the_columns_that_it_reads(fit, bert):
    """A wrapper has no names for its inputs, so the Trainer would remove them all."""
    one, other = fit(max_steps=1), fit("mlm", torch.nn.DataParallel(deepcopy(bert)), max_steps=1)
    assert losses(one) == losses(other)


def test_rows_of_no_token_are_not_scored(distill, bert, tokenizer):
    """Teacher or student may pad their vocabulary."""
    teacher, rows = make_bert(len(tokenizer), seed=4), len(tokenizer) + 7
    larger, padded = deepcopy(teacher), deepcopy(bert)
    for model, bias in ((larger, 9.0), (padded, -1e4)):
        model.resize_token_embeddings(rows)
        with torch.no_grad():
            model.cls.predictions.bias[len(tokenizer) :] = bias
    expected = losses(distill(teacher, max_steps=1))
    assert losses(distill(larger, max_steps=1)) == pytest.approx(expected, rel=1e-6)
    for other in (teacher, larger):
        assert losses(distill(other, deepcopy(padded), max_steps=1)) == pytest.approx(expected, rel=1e-4)
    taught = teach(sentences(tokenizer, 4), larger, tokenizer)
    assert all((row["draw_words"] < len(tokenizer)).all() for row in taught)


@pytest.mark.parametrize(
    "kind, limit", [("Bert", 12), ("Roberta", 10), ("IBert", 10), ("Nystromformer", 12), ("Esm", None)]
)
def test_the_longest_text_is_read_and_a_longer_one_is_not(kind, limit):
    sizes = {**SIZES, "vocab_size": 9, "max_position_embeddings": 12, "pad_token_id": 1}
    if limit is None:
        sizes["position_embedding_type"] = "rotary"
    config = getattr(transformers, f"{kind}Config")(**sizes)
    model = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    assert max_positions(model) == limit
    model(torch.full((1, limit or 30), 5))
    if limit:
        with pytest.raises((IndexError, RuntimeError)):
            model(torch.full((1, limit + 1), 5))


OUTPUT = "bert.encoder.layer.1.output.dense.weight"
# how weights are damaged -> what the error must name
DAMAGED = {
    "fewer": (lambda state: {name: value for name, value in state.items() if name != OUTPUT}, OUTPUT[5:]),
    "an adapter": (lambda state: {**state, OUTPUT.replace("dense", "adapter"): torch.zeros(2)}, "adapter"),
    "more embeddings": (lambda state: {**state, "bert.embeddings.other": torch.zeros(2)}, "other"),
    "another shape": (lambda state: {**state, OUTPUT: torch.zeros(2, 2)}, OUTPUT[5:]),
    "NaN": (lambda state: {**state, OUTPUT: state[OUTPUT] * torch.nan}, OUTPUT[5:]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_weights_that_do_not_load_are_refused(damage, bert, tokenizer, tmp_path):
    change, named = DAMAGED[damage]
    bert.save_pretrained(tmp_path, state_dict=change(bert.state_dict()))
    write_vocabulary(tmp_path)
    assert named in refused(load_teacher, str(tmp_path), bert, tokenizer)


@pytest.fixture
def given(bert, tokenizer, synonyms, teacher, fit, distill, train_on_draws, tmp_path):
    """What the refusals are made of, and ways to start a training."""
    args = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    return SimpleNamespace(
        bert=bert,
        tokenizer=tokenizer,
        synonyms=synonyms,
        taught={"distillation_teacher": str(teacher)},
        rows=lambda **options: teach(sentences(tokenizer), bert, tokenizer, **options),
        folder=tmp_path,
        fit=fit,
        distill=distill,
        train_on_draws=train_on_draws,
        trainer=lambda model=bert, **options: TrueNegativeTrainer(model=model, args=args, **options),
        objective=lambda name, **kwargs: fit(name, objective_kwargs=kwargs),
    )


def sharing(bert):
    teacher = deepcopy(bert)
    teacher.bert.encoder.layer[0] = bert.bert.encoder.layer[1]
    return teacher


def partly_in_bfloat16(bert):
    model = deepcopy(bert)
    model.bert.encoder.layer[1].bfloat16()
    return model


def folder_of(given, model, *pieces: str) -> str:
    """A folder of a model, with the usual vocabulary if it has no other pieces."""
    model.save_pretrained(given.folder / "other")
    return str(write_vocabulary(given.folder / "other", *([list(pieces)] if pieces else [])))


def short(given):
    return make_bert(len(given.tokenizer), max_position_embeddings=4)


def other_tokenizer(given):
    folder = write_vocabulary(given.folder / "words", ["[PAD]", "[UNK]", "[MASK]", "a"])
    return transformers.AutoTokenizer.from_pretrained(folder)


def loss_of(given, **batch):
    trainer = given.trainer(processing_class=given.tokenizer)
    return trainer.compute_loss(given.bert, {"input_ids": torch.ones(1, 4).long(), **batch})


GPT2 = {"vocab_size": 129, "n_layer": 1, "n_embd": 8, "n_head": 1}
# what the error must name, and what is given to the Trainer, an objective, a table or ELECTRA
REFUSED = [
    ("bert.encoder.layer.0.", lambda g: g.distill(sharing(g.bert), g.bert)),
    ("nowhere/at/all", lambda g: g.distill("nowhere/at/all")),
    ("distillation_teacher ema", lambda g: g.distill("ema")),
    ("6 embeddings", lambda g: g.distill(make_bert(6))),
    ("BertModel", lambda g: g.distill(g.bert.bert)),
    ("unigram", lambda g: g.objective("mlm_distillation", **g.taught, distillation_control="unigram")),
    ("other", lambda g: g.distill(folder_of(g, make_bert(6), "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"))),
    ("4 positions", lambda g: g.distill(short(g))),
    ("teacher", lambda g: g.train_on_draws(g.rows(), objective_kwargs=g.taught)),
    ("draws", lambda g: g.rows(draws=256)),
    ("correction_judge", lambda g: g.objective("mlm_hard_correction", correction_judge=folder_of(g, short(g)))),
    ("BertForMaskedLM", lambda g: g.objective("mlm_hard_correction", correction_judge=g.bert)),
    ("bfloat16", lambda g: g.fit("mlm", partly_in_bfloat16(g.bert))),
    ("mlm_soft", lambda g: g.objective("mlm_soft")),
    ("synonyms", lambda g: g.fit("mlm_hard_correction", synonyms=None)),
    ("JointElectra", lambda g: g.objective("rtd_focal")),
    ("discriminator_loss_weight", lambda g: g.objective("mlm", discriminator_loss_weight=10.0)),
    ("prediction_mode", lambda g: g.objective("mlm", soft_reg_weight=1.0)),
    ("soft_reg_weight", lambda g: g.objective("mlm_soft_reg", soft_reg_weight=-1.0)),
    ("6 embeddings", lambda g: g.fit("mlm", make_bert(6))),
    ("SynonymTable", lambda g: g.fit(synonyms="table.safetensors")),
    ("synonyms", lambda g: build_objective(OBJECTIVES["mlm"], {}, g.bert, other_tokenizer(g), g.synonyms)),
    ("GPT2LMHeadModel", lambda g: g.fit("mlm", transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)))),
    ("data collator", lambda g: g.trainer(data_collator=collator_of(g.tokenizer, mlm=False))),
    ("processing_class", lambda g: g.trainer(data_collator=lambda rows: rows)),
    ("100", lambda g: loss_of(g, labels=torch.ones(1, 4).long())),
    ("labels", lambda g: loss_of(g)),
    ("label_smoothing_factor", lambda g: g.fit(label_smoothing_factor=0.1)),
    ("ElectraForMaskedLM", lambda g: JointElectra(g.bert, g.bert)),
    ("embedding_size", lambda g: JointElectra(make_electra(9)[1], make_electra(9, embedding_size=8)[0])),
    (
        "compute_metrics",
        lambda g: g.trainer(JointElectra(*make_electra(129)[::-1]), processing_class=g.tokenizer, compute_metrics=dict),
    ),
]


@pytest.mark.parametrize("named, call", REFUSED)
def test_what_would_train_wrongly_is_refused(named, call, given):
    """The error names it as an option of Python or as a flag."""
    assert named in refused(call, given).replace("-", "_")


def test_an_objective_of_ones_own(fit):
    own = load_script("examples/own_objective/my_objectives/mlm_confidence_penalty.py").ConfidencePenalty
    record = fit(own, objective_kwargs={"confidence_penalty_weight": 0.5}, max_steps=1).state.log_history[0]
    expected = math.log(2) * (record["nll_loss"] - 0.5 * record["entropy"])
    assert record["loss"] == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize("name", ["mlm_sent_kl", "mlm_distillation"])
def test_adapters_of_peft(fit, tokenizer, bert, name):
    """Only the adapters learn, and an evaluation is that of the model into which they are merged."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=["query", "value"], r=2, init_lora_weights=False)
    model = peft.get_peft_model(deepcopy(bert), config)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    options = {"objective_kwargs": options_of(name, bert), "collator": fixed_masks(tokenizer), "max_steps": 2}
    trainer = fit(name, model, **options)
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed and all("lora_" in name for name in changed)
    expected = trainer.evaluate()
    merged = fit(name, model.merge_and_unload().requires_grad_(True), learning_rate=0.0, **options).evaluate()
    for key in ("eval_loss", "eval_nll_loss"):
        assert merged[key] == pytest.approx(expected[key], rel=1e-4)


@pytest.mark.parametrize("name", ["soft_reg", "synonym_tying"])
def test_a_term_needs_embeddings_that_learn(name, fit, bert):
    peft = pytest.importorskip("peft")
    frozen, adapted = (
        peft.get_peft_model(deepcopy(bert), peft.LoraConfig(target_modules=modules, r=2))
        for modules in (["query"], ["word_embeddings"])
    )
    assert "embeddings" in refused(fit, f"mlm_{name}", frozen)
    fit(f"mlm_{name}", frozen, objective_kwargs={f"{name}_weight": 0.0}, max_steps=1)
    if name == "soft_reg":  # it also reaches an adapter of the embeddings
        assert fit("mlm_soft_reg", adapted, max_steps=1).state.log_history[0]["soft_reg"] > 0


@pytest.mark.parametrize("name", ["mlm_sent_kl", "mlm_hard_correction", "rtd_focal"])
def test_an_update_without_masked_tokens_teaches_nothing(name, fit, bert, electra, tokenizer):
    model = electra if name == "rtd_focal" else deepcopy(bert)
    before = {key: value.clone() for key, value in model.state_dict().items()}

    def collate(rows: list[dict]) -> dict:
        batch = transformers.DataCollatorWithPadding(tokenizer)(rows)
        return {**batch, "labels": torch.full_like(batch["input_ids"], -100)}

    collate.tokenizer = tokenizer
    fit(name, model, collator=collate, max_steps=1)
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


SCRIPT = """
import sys
from pathlib import Path

sys.path[:0] = [{tests!r}, {package!r}]
import torch
import transformers
from huggingface.test_trainer import fixed_masks, train
from huggingface_models import make_bert
from tn_fairseq.huggingface import SynonymTable

folder, size = Path(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
tokenizer = transformers.AutoTokenizer.from_pretrained({vocabulary!r})
bert = make_bert(len(tokenizer), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
table = SynonymTable.from_file(tokenizer, {table!r})
trainer = train(
    bert, tokenizer, folder, collator=fixed_masks(tokenizer), objective="mlm_hard_correction", synonyms=table,
    per_device_train_batch_size=size, optim="sgd", learning_rate=0.1, ddp_backend="gloo" if size < 8 else None,
)
evaluation = trainer.evaluate()
logs = [log for log in trainer.state.log_history if "loss" in log]
if trainer.is_world_process_zero():
    torch.save((trainer.model.state_dict(), logs, evaluation), folder / "end.pt")
"""


@pytest.mark.slow
def test_two_processes_train_as_one(tokenizer, synonyms, tmp_path):
    synonyms.save(tmp_path / "table.safetensors")
    tokenizer.save_pretrained(tmp_path / "vocabulary")
    names = {"tests": str(PLUGIN.parent / "tests"), "package": str(PLUGIN.parent)}
    names |= {"vocabulary": str(tmp_path / "vocabulary"), "table": str(tmp_path / "table.safetensors")}
    (tmp_path / "script.py").write_text(SCRIPT.format(**names))
    ends = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        launch = ["torchrun", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else ["python"]
        run = run_command(*launch, tmp_path / "script.py", folder, 8 // processes, fresh=True)
        assert run.code == 0, run.output
        ends.append(torch.load(folder / "end.pt"))
    (model, logs, evaluation), (other, its_logs, its_evaluation) = ends
    for name, value in model.items():
        torch.testing.assert_close(other[name], value, rtol=1e-5, atol=1e-5)
    for log, its_log in zip([*logs, evaluation], [*its_logs, its_evaluation], strict=True):
        for name in log.keys() - {"epoch", "step", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second"}:
            assert its_log[name] == pytest.approx(log[name], rel=1e-3), name


@pytest.mark.slow
def test_a_compiled_model_trains_like_the_model(fit):
    plain, compiled = (fit("mlm_hard_correction", torch_compile=flag) for flag in (False, True))
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-4)
