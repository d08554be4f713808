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
    write_bin,
    write_vocabulary,
)
from omegaconf import OmegaConf
from torch.utils.data import Dataset

from tn_fairseq.core.checkpoints import load_checkpoint
from tn_fairseq.huggingface.draws import DrawsCollator, teach
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.huggingface.joint_electra import JointElectra
from tn_fairseq.huggingface.masked_logits import max_positions
from tn_fairseq.huggingface.synonyms import SynonymTable
from tn_fairseq.huggingface.trainer import (
    Encoder,
    Teacher,
    TrueNegativeTrainer,
    build_objective,
    load_judge,
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


class Sentences(Dataset):
    def __init__(self, tokenizer, count: int = 32):
        self.rows = [tokenizer(" ".join(words)) for words in random_sentences(count, seed=3)[:count]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict:
        return self.rows[index]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return transformers.AutoTokenizer.from_pretrained(write_vocabulary(tmp_path_factory.mktemp("tokenizer")))


@pytest.fixture(scope="module")
def synonyms(tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "groups.txt"
    path.write_text(GROUPS)
    return SynonymTable.from_list(tokenizer, path, "groups")


@pytest.fixture(scope="module")
def bert(tokenizer):
    return make_bert(len(tokenizer), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def copy_of(model):
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    return copy


def collator_of(tokenizer, seed: int = 2, **options):
    return transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.4, seed=seed, **options)


def batch_of(tokenizer) -> dict:
    return collator_of(tokenizer, seed=1)([Sentences(tokenizer)[index] for index in range(8)])


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


def train(model, tokenizer, folder, kind=TrueNegativeTrainer, resume=None, collator=None, **options):
    """A trainer after four updates with eight sentences each; dropout is the model's."""
    settings = {"max_steps": 4, "per_device_train_batch_size": 8, "logging_steps": 1, "save_strategy": "no"}
    settings |= {"report_to": [], "use_cpu": True, "disable_tqdm": True, "seed": 5, "learning_rate": 1e-3}
    names = ("objective", "objective_kwargs", "synonyms", "processing_class")
    own = {name: options.pop(name) for name in names if name in options}
    rows = options.pop("rows", None) or Sentences(tokenizer)
    trainer = kind(
        model=model,
        args=transformers.TrainingArguments(output_dir=str(folder), **(settings | options)),
        train_dataset=rows,
        eval_dataset=Sentences(tokenizer, 16),
        data_collator=collator or collator_of(tokenizer),
        **own,
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def losses(trainer) -> list[float]:
    return [record["loss"] for record in trainer.state.log_history if "loss" in record]


def assert_same_parameters(one, other, **tolerance) -> None:
    for (name, left), right in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(left, right, msg=lambda text, name=name: f"{name}: {text}", **tolerance)


@pytest.fixture(scope="module")
def imported(bert, tokenizer, tmp_path_factory):
    """The same model, table and vocabulary in fairseq: (model, task, the tokenizer's ids of its symbols, the table)."""
    folder = tmp_path_factory.mktemp("imported")
    save_models(folder, {"bert": bert})
    data = write_bin(folder, folder / "bert")
    import_model(folder / "bert", data, folder / "bert.pt")
    cfg = load_checkpoint(folder / "bert.pt")["cfg"]
    task = tasks.setup_task(OmegaConf.create(cfg["task"]))
    model = task.build_model(OmegaConf.create(cfg["model"]))
    model.load_state_dict(load_checkpoint(folder / "bert.pt")["model"])
    dictionary, its_tokenizer = read_data_bin(data)
    return model, task, torch.from_numpy(its_tokenizer.token_ids(dictionary)), folder


@pytest.fixture(scope="module")
def teacher(tokenizer, imported):
    """Another model with the same tokenizer, without dropout, and its import."""
    *_, folder = imported
    sizes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    save_models(folder, {"teacher": make_bert(len(tokenizer), seed=4, **sizes)})
    import_model(folder / "teacher", folder / "data-bin", folder / "teacher.pt")
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
    model, task, token_ids, _ = imported
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
def test_every_objective_trains_and_is_logged(name, bert, tokenizer, synonyms, teacher, tmp_path):
    """Losses fall, evaluations have the objective's metrics, and everything is logged."""
    options = {"objective": name, "objective_kwargs": options_of(name, str(teacher)), "synonyms": synonyms}
    trainer = train(copy_of(bert), tokenizer, tmp_path, max_steps=8, **options)
    assert losses(trainer)[-1] < losses(trainer)[0]
    record, evaluation = trainer.state.log_history[0], trainer.evaluate()
    own = {metric.name for metric in OBJECTIVES[name].metrics} - {"judge_agreement"}
    assert {"loss", "nll_loss", "mlm_accuracy", "false_negative_rate", *own} <= set(record)
    assert {f"eval_{key}" for key in ("loss", "nll_loss", "false_negative_rate", *own)} <= set(evaluation)


def test_without_false_negatives_it_is_the_plain_trainer_bitwise(bert, tokenizer, tmp_path):
    plain = train(copy_of(bert), tokenizer, tmp_path, kind=transformers.Trainer)
    empty = tmp_path / "empty.tsv"
    empty.write_text("word\tsynonym\nnothing\tnowhere\nnoun1\tnoun2\n")
    table = SynonymTable.from_list(tokenizer, empty, "tsv")
    table.synonyms.fill_(-1)
    table._table.fill_(-1)
    expected = plain.evaluate()["eval_loss"]
    for name in ("mlm", "mlm_hard_correction"):
        ours = train(copy_of(bert), tokenizer, tmp_path, objective=name, synonyms=table)
        assert losses(ours)[0] == losses(plain)[0]
        assert ours.evaluate()["eval_loss"] == expected
        assert_same_parameters(ours.model, plain.model, rtol=1e-5, atol=1e-6)


def test_an_evaluation_divides_by_the_positions_that_are_kept(bert, tokenizer, synonyms, tmp_path):
    collate = fixed_masks(tokenizer)
    options = {"objective": "mlm_hard_correction", "synonyms": synonyms, "collator": collate, "max_steps": 1}
    trainer = train(copy_of(bert), tokenizer, tmp_path, **options)
    kinds = [token.rstrip("0123456789") for token in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
    means, false_negatives = [], 0
    for start in (0, 8):
        batch = collate([trainer.eval_dataset[index] for index in range(start, start + 8)])
        labels = batch.pop("labels")
        with torch.no_grad():
            logits, gold = trainer.model.eval()(**batch).logits[labels != -100], labels[labels != -100]
        pairs = zip(logits.argmax(dim=1).tolist(), gold.tolist())
        kept = torch.tensor([kinds[predicted] != kinds[word] or predicted == word for predicted, word in pairs])
        means.append(torch.nn.functional.cross_entropy(logits[kept], gold[kept]).item())
        false_negatives += (~kept).sum()
    assert false_negatives > 0
    assert trainer.evaluate()["eval_loss"] == pytest.approx(sum(means) / 2, rel=1e-5)


def test_ten_updates_are_those_of_the_criterion(bert, tokenizer, synonyms, imported, tmp_path):
    model, task, token_ids, _ = imported
    before = {name: value.clone() for name, value in model.state_dict().items()}
    synonyms.save(tmp_path / "table.safetensors")
    criterion = criterion_of(task, "mlm_hard_correction", tmp_path / "table.safetensors")
    masks = fixed_masks(tokenizer)  # the usual collator sometimes puts [PAD] into a text, which fairseq does not read
    batches = []

    def recorded(rows: list[dict]) -> dict:
        batches.append(masks(rows))
        return batches[-1]

    recorded.tokenizer = tokenizer
    options = {"objective": "mlm_hard_correction", "synonyms": synonyms, "collator": recorded, "max_steps": 10}
    options |= {"lr_scheduler_type": "constant", "optim": "sgd", "learning_rate": 0.01, "max_grad_norm": 0.0}
    trainer = train(copy_of(bert), tokenizer, tmp_path, **options)
    optimizer, expected = torch.optim.SGD(model.parameters(), lr=0.01), []
    for batch in batches[:10]:
        loss, sample_size, _ = criterion(model, in_fairseq(task, token_ids, batch))
        optimizer.zero_grad()
        (loss / sample_size).backward()
        optimizer.step()
        expected.append((loss / sample_size).item())
    assert losses(trainer) == pytest.approx(expected, rel=1e-3)
    ours = trainer.model.bert.embeddings.word_embeddings.weight[token_ids]
    torch.testing.assert_close(ours, model.embeddings.word_embeddings.weight, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(ours, before["embeddings.word_embeddings.weight"], atol=1e-3)
    model.load_state_dict(before)


@pytest.mark.parametrize("name", ["mlm_hard_correction", "mlm_soft_reg", "mlm_distillation"])
def test_two_accumulated_batches_are_one(name, bert, tokenizer, synonyms, teacher, tmp_path):
    """The batches have different numbers of masked tokens and of false negatives."""
    options = {
        "objective": name,
        "objective_kwargs": options_of(name, str(teacher)),
        "synonyms": synonyms,
        "max_steps": 3,
    }
    options |= {"optim": "sgd", "learning_rate": 0.1, "collator": fixed_masks(tokenizer)}
    one = train(copy_of(bert), tokenizer, tmp_path, **options)
    options |= {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    two = train(copy_of(bert), tokenizer, tmp_path, **options)
    assert losses(one) == pytest.approx(losses(two), rel=1e-5)
    assert_same_parameters(one.model, two.model, rtol=1e-5, atol=1e-5)


def test_resuming_equals_not_stopping(tokenizer, synonyms, tmp_path):
    model = make_bert(len(tokenizer))  # with dropout
    options = {"objective": "mlm_hard_correction", "synonyms": synonyms, "collator": fixed_masks(tokenizer)}
    options |= {"objective_kwargs": {"prediction_mode": "sample"}, "save_strategy": "steps", "save_steps": 2}
    complete = train(copy_of(model), tokenizer, tmp_path, **options)
    resumed = train(copy_of(model), tokenizer, tmp_path, resume=str(tmp_path / "checkpoint-2"), **options)
    assert_same_parameters(complete.model, resumed.model, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["mlm_hard_correction", "mlm_sent_kl", "mlm_distillation"])
def test_half_precision_follows_float32(name, bert, tokenizer, synonyms, teacher, tmp_path):
    """Every pass through a model uses it: also those that sentence KL adds, and the teacher's."""
    own, other, types = copy_of(bert), transformers.AutoModelForMaskedLM.from_pretrained(teacher), set()
    options = {"objective": name, "synonyms": synonyms, "objective_kwargs": options_of(name, other)}
    full = train(copy_of(bert), tokenizer, tmp_path, **options)
    for model in (own, other):
        layer = model.bert.encoder.layer[0].output.dense
        layer.register_forward_hook(lambda _, inputs, output: types.add(output.dtype))
    half = train(own, tokenizer, tmp_path, bf16=True, **options)
    assert types == {torch.bfloat16} and losses(half) != losses(full)
    assert losses(half) == pytest.approx(losses(full), rel=0.05 if name == "mlm_distillation" else 0.02)


def test_several_gpus_do_not_scale_the_loss(bert, tokenizer, tmp_path):
    """If nothing is averaged across devices, the Trainer divides the masked tokens by the GPUs of DataParallel."""
    trainer = train(copy_of(bert), tokenizer, tmp_path, average_tokens_across_devices=False)
    batch = batch_of(tokenizer)
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


@pytest.fixture
def electra(tokenizer):
    discriminator, generator = make_electra(len(tokenizer), generator_sizes={**SIZES})
    return JointElectra(generator, discriminator)


def test_electra_with_gradient_checkpointing_is_the_same(electra, tokenizer, tmp_path):
    plain, again = (
        train(deepcopy(electra), tokenizer, tmp_path, gradient_checkpointing=flag) for flag in (False, True)
    )
    assert again.model.discriminator.is_gradient_checkpointing and losses(plain) == losses(again)


@pytest.mark.parametrize("name", ["mlm_sent_kl", *DETECTION])
def test_electra_trains_both_models(name, electra, tokenizer, synonyms, tmp_path):
    before = {key: value.clone() for key, value in electra.state_dict().items()}
    trainer = train(electra, tokenizer, tmp_path, objective=name, synonyms=synonyms)
    changed = {key for key, value in electra.state_dict().items() if not torch.equal(value, before[key])}
    assert {key.split(".")[0] for key in changed} == {"generator", "discriminator"}
    assert {"rtd_loss", "rtd_recall", "replaced_rate", "nll_loss"} <= set(trainer.state.log_history[0])
    assert trainer.predict(trainer.eval_dataset).metrics["test_rtd_loss"] > 0


def test_an_interrupted_update_leaves_nothing(bert, tokenizer, synonyms, tmp_path):
    # once by the user, and once by a batch that is too large, after which the Trainer begins again by itself
    class Interrupted(TrueNegativeTrainer):
        started = []
        error = KeyboardInterrupt()

        def training_step(self, *args, **options):
            self.started.append(self)
            if len(self.started) == 2:
                raise self.error
            return super().training_step(*args, **options)

    options = {"objective": "mlm_hard_correction", "synonyms": synonyms, "gradient_accumulation_steps": 2}
    options |= {"max_steps": 1, "per_device_train_batch_size": 4, "collator": fixed_masks(tokenizer)}
    expected = train(copy_of(bert), tokenizer, tmp_path / "1", **options)
    with pytest.raises(KeyboardInterrupt):
        train(copy_of(bert), tokenizer, tmp_path / "2", Interrupted, **options)
    trainer = Interrupted.started[0]
    trainer.train()
    assert_same_parameters(trainer.model, expected.model, rtol=0, atol=0)
    assert losses(trainer) == losses(expected)

    Interrupted.started, Interrupted.error = [], RuntimeError("CUDA out of memory.")
    options |= {"per_device_train_batch_size": 5, "auto_find_batch_size": True}  # the Trainer goes on with nine tenths
    again = train(copy_of(bert), tokenizer, tmp_path / "3", Interrupted, **options)
    assert_same_parameters(again.model, expected.model, rtol=0, atol=0)


def test_an_interrupted_evaluation_leaves_nothing(bert, tokenizer, tmp_path):
    class Interrupted(TrueNegativeTrainer):
        steps = 0

        def prediction_step(self, *args, **options):
            self.steps += 1
            if self.steps == 2:
                raise KeyboardInterrupt
            return super().prediction_step(*args, **options)

    collator = fixed_masks(tokenizer)
    expected = train(copy_of(bert), tokenizer, tmp_path, max_steps=1, collator=collator).evaluate()
    trainer = train(copy_of(bert), tokenizer, tmp_path, Interrupted, max_steps=1, collator=collator)
    with pytest.raises(KeyboardInterrupt):
        trainer.evaluate()
    found = trainer.evaluate()
    assert [found[f"eval_{key}"] for key in ("nll_loss", "mlm_accuracy")] == [
        expected[f"eval_{key}"] for key in ("nll_loss", "mlm_accuracy")
    ]


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


def test_electra_is_saved_and_resumed(electra, tokenizer, synonyms, tmp_path):
    shared = electra.discriminator.get_input_embeddings().weight
    assert shared is electra.generator.get_input_embeddings().weight is electra.generator.generator_lm_head.weight
    options = {"objective": "rtd_graded", "synonyms": synonyms, "save_strategy": "steps", "save_steps": 2}
    complete = train(electra, tokenizer, tmp_path, collator=fixed_masks(tokenizer), **options)
    loaded = JointElectra.from_pretrained(tmp_path / "checkpoint-4")
    assert_same_parameters(loaded, complete.model, rtol=0, atol=0)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "checkpoint-4" / "generator").mask_token
    discriminator, generator = make_electra(len(tokenizer), seed=7, generator_sizes={**SIZES})
    other = JointElectra(generator, discriminator)
    train(other, tokenizer, tmp_path, collator=fixed_masks(tokenizer), resume=str(tmp_path / "checkpoint-2"), **options)
    assert_same_parameters(complete.model, other, rtol=0, atol=0)
    electra.save_pretrained(tmp_path / "saved")
    read = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "saved" / "discriminator")
    assert torch.equal(read.get_input_embeddings().weight, shared)


def test_trained_embeddings_are_not_replaced_silently(electra, tokenizer, tmp_path, caplog):
    electra.save_pretrained(tmp_path)
    JointElectra.from_pretrained(tmp_path)
    assert not caplog.records
    discriminator = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "discriminator")
    _, generator = make_electra(len(tokenizer), seed=7, generator_sizes={**SIZES})
    joint = JointElectra(generator, discriminator)
    assert joint.discriminator.get_input_embeddings() is generator.get_input_embeddings()
    assert f"{tmp_path / 'discriminator'}: the discriminator's embeddings are replaced" in caplog.text


def test_a_generator_with_its_own_output_layer_is_saved_with_it(tokenizer):
    def build(seed):
        discriminator, generator = make_electra(len(tokenizer), seed=seed, generator_sizes={**SIZES})
        generator.config.tie_word_embeddings = False
        generator.generator_lm_head.weight = torch.nn.Parameter(generator.generator_lm_head.weight.detach() + seed)
        return JointElectra(generator, discriminator)

    one, other = build(1), build(2)
    other.load_state_dict(one.state_dict())
    assert_same_parameters(one, other, rtol=0, atol=0)


def test_a_judge_decides_about_corrections(bert, tokenizer, synonyms, tmp_path):
    save_models(tmp_path, {"judge": bert})
    accepted = []
    for threshold in (0.0, 1.0):
        kwargs = {"correction_judge": str(tmp_path / "judge"), "correction_judge_threshold": threshold}
        options = {"objective": "mlm_hard_correction", "objective_kwargs": kwargs, "synonyms": synonyms}
        trainer = train(copy_of(bert), tokenizer, tmp_path, **options)
        accepted.append(trainer.state.log_history[0]["judge_agreement"])
    assert accepted[0] == 100 and accepted[1] < 100


def distill(bert, tokenizer, folder, teacher, student=None, **options):
    """A trainer of a copy of ``bert``; the teacher is the only option of its objective."""
    kwargs = {"distillation_teacher": teacher}
    return train(
        student or copy_of(bert),
        tokenizer,
        folder,
        **{"objective": "mlm_distillation", "objective_kwargs": kwargs, **options},
    )


def test_a_teacher_is_a_folder_or_a_model_and_scores_only_masked_positions(bert, tokenizer, teacher, tmp_path):
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(teacher)
    one, two = (distill(bert, tokenizer, tmp_path, model) for model in (str(teacher), loaded))
    assert_same_parameters(one.model, two.model, rtol=0, atol=0)
    batch = batch_of(tokenizer)
    masked, shapes = batch["labels"] != -100, []
    hook = loaded.cls.register_forward_hook(lambda module, inputs, output: shapes.append(output.shape))
    inputs = {"src_tokens": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    with torch.no_grad():
        logits, _ = Teacher(loaded)(**inputs, masked_tokens=masked)
        hook.remove()
        everywhere = loaded(batch["input_ids"], batch["attention_mask"]).logits
    assert shapes == [(1, int(masked.sum()), len(tokenizer))]
    torch.testing.assert_close(logits, everywhere[masked])


def test_a_weight_of_0_is_the_plain_objective_bitwise(bert, tokenizer, tmp_path):
    plain = train(copy_of(bert), tokenizer, tmp_path)
    other = distill(bert, tokenizer, tmp_path, None, objective_kwargs={"distillation_weight": 0.0})
    assert losses(plain) == losses(other)
    assert_same_parameters(plain.model, other.model, rtol=0, atol=0)


def test_the_student_as_its_own_teacher_learns_nothing(bert, tokenizer, tmp_path):
    """The optimizer has no weight decay, and both models are without dropout."""
    trainer = distill(bert, tokenizer, tmp_path, bert, max_steps=1, optim="sgd", learning_rate=1.0)
    assert_same_parameters(trainer.model, bert, rtol=0, atol=1e-6)


def test_a_teacher_reads_without_dropout_also_if_it_was_in_training_mode(tokenizer):
    model = make_bert(len(tokenizer), hidden_dropout_prob=0.5)
    batch, teacher = batch_of(tokenizer), Teacher(model).eval()
    model.train()
    inputs = {"src_tokens": batch["input_ids"], "masked_tokens": batch["labels"] != -100}
    one, two = (teacher(**inputs, attention_mask=batch["attention_mask"])[0] for _ in range(2))
    assert torch.equal(one, two)
    assert not OBJECTIVES["mlm_distillation"].ready(None, model.train(), torch.device("cpu")).training


def test_a_teacher_with_one_type_of_tokens_or_only_relative_positions(tokenizer):
    settings = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    settings |= {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
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
    teacher, rows = make_bert(len(tokenizer), seed=4), Sentences(tokenizer, 10)
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


def train_on_draws(bert, tokenizer, folder, rows, **options):
    more = {"objective": "mlm_distillation", "collator": DrawsCollator(tokenizer), "processing_class": tokenizer}
    return train(copy_of(bert), tokenizer, folder, rows=rows, **(more | options))


def test_a_batch_with_draws_has_the_loss_of_the_criterion(bert, tokenizer, imported, drawn_rows, tmp_path):
    model, task, token_ids, _ = imported
    criterion = criterion_of(task, "mlm_distillation", "", synonym_table=None, distillation_draws="in the batch")
    batch = DrawsCollator(tokenizer)(drawn_rows[:8])
    trainer = train_on_draws(bert, tokenizer, tmp_path, drawn_rows, max_steps=1)
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
    return teach(Sentences(tokenizer), make_bert(len(tokenizer), seed=4), tokenizer, mask_prob=0.4)


def test_draws_train_like_their_teacher(bert, tokenizer, drawn_rows, tmp_path):
    """A gradient has the same mean, so the student gets closer to the teacher; evaluation without draws is plain."""
    trainer = train_on_draws(bert, tokenizer, tmp_path, drawn_rows, max_steps=40)
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


def test_a_second_model_gets_what_only_it_reads(tokenizer, tmp_path):
    """A DistilBERT has no types of tokens, but its teacher, a BERT, reads them."""
    student = make_other("DistilBertForMaskedLM", len(tokenizer))
    teacher = make_bert(len(tokenizer), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    seen = []
    hook = teacher.bert.register_forward_pre_hook(
        lambda module, args, inputs: seen.append(inputs.get("token_type_ids")), with_kwargs=True
    )

    rows = [dict(tokenizer("noun1 verb1", "noun2")) for _ in range(8)]
    train(
        student,
        tokenizer,
        tmp_path,
        rows=rows,
        max_steps=1,
        objective="mlm_distillation",
        objective_kwargs={"distillation_teacher": teacher},
    )
    hook.remove()
    assert all(types.sum(dim=1).gt(0).all() for types in seen)


def test_a_teacher_that_is_no_better_is_said_once(bert, tokenizer, tmp_path, caplog):
    def warnings(teacher) -> list[str]:
        caplog.clear()
        distill(bert, tokenizer, tmp_path, teacher, max_steps=12)
        return [message for message in caplog.messages if "the teacher's loss on the first" in message]

    (said,) = warnings(make_bert(len(tokenizer), seed=8))
    assert "bits, not below the model's, " in said
    better = train(copy_of(bert), tokenizer, tmp_path, max_steps=60).model
    assert not warnings(better)


WRAPPERS = {
    "DataParallel": torch.nn.DataParallel,
    "AveragedModel": torch.optim.swa_utils.AveragedModel,
    "compile": torch.compile,
    "peft": lambda model: pytest.importorskip("peft").get_peft_model(model, pytest.importorskip("peft").LoraConfig()),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_teacher_is_unwrapped(wrapper, bert, tokenizer, tmp_path):
    teacher = make_bert(len(tokenizer), seed=4)
    one = distill(bert, tokenizer, tmp_path, WRAPPERS[wrapper](deepcopy(teacher)), max_steps=1)
    assert losses(one) == losses(distill(bert, tokenizer, tmp_path, teacher, max_steps=1))


def test_a_wrapped_student_gets_the_columns_that_it_reads(bert, tokenizer, tmp_path):
    """A wrapper has no names for its inputs, so the Trainer would remove them all."""
    one, other = (
        train(model, tokenizer, tmp_path, max_steps=1)
        for model in (copy_of(bert), torch.nn.DataParallel(copy_of(bert)))
    )
    assert losses(one) == losses(other)


def test_rows_of_no_token_are_not_scored(bert, tokenizer, tmp_path):
    """Teacher or student may pad their vocabulary."""
    teacher, rows = make_bert(len(tokenizer), seed=4), len(tokenizer) + 7
    larger = deepcopy(teacher)
    larger.resize_token_embeddings(rows)
    with torch.no_grad():
        larger.cls.predictions.bias[len(tokenizer) :] = 9.0
    expected = losses(distill(bert, tokenizer, tmp_path, teacher, max_steps=1))
    assert losses(distill(bert, tokenizer, tmp_path, larger, max_steps=1)) == pytest.approx(expected, rel=1e-6)
    padded = deepcopy(bert)
    padded.resize_token_embeddings(rows)
    with torch.no_grad():
        padded.cls.predictions.bias[len(tokenizer) :] = -1e4
    for other in (teacher, larger):
        distilled = distill(deepcopy(padded), tokenizer, tmp_path, other, max_steps=1)
        assert losses(distilled) == pytest.approx(expected, rel=1e-4)
    taught = teach(Sentences(tokenizer, 4), larger, tokenizer)
    assert all((row["draw_words"] < len(tokenizer)).all() for row in taught)


def test_the_model_says_how_long_a_text_may_be(tokenizer):
    rotary = transformers.EsmConfig(
        vocab_size=len(tokenizer), pad_token_id=0, max_position_embeddings=8, position_embedding_type="rotary", **SIZES
    )
    model = transformers.EsmForMaskedLM(rotary).eval()
    tokens = torch.randint(5, 60, (1, 30))
    masked = torch.zeros_like(tokens, dtype=torch.bool).index_fill(1, torch.tensor([3]), True)
    logits, _ = Teacher(model)(tokens, masked, attention_mask=torch.ones_like(tokens))
    assert logits.shape == (1, len(tokenizer)) and max_positions(model) is None
    for kind, limit in (("RobertaForMaskedLM", 510), ("DistilBertForMaskedLM", 512), ("ModernBertForMaskedLM", None)):
        assert max_positions(make_other(kind, 9)) == limit


@pytest.mark.parametrize("kind, limit", [("Bert", 12), ("Roberta", 10), ("IBert", 10), ("Nystromformer", 12)])
def test_the_longest_text_is_read_and_a_longer_one_is_not(kind, limit):
    config = getattr(transformers, f"{kind}Config")
    model = getattr(transformers, f"{kind}ForMaskedLM")(
        config(vocab_size=9, max_position_embeddings=12, pad_token_id=1, **SIZES)
    ).eval()
    assert max_positions(model) == limit
    model(torch.full((1, limit), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, limit + 1), 5))


OUTPUT = "bert.encoder.layer.1.output.dense.weight"
# how weights are damaged -> what the error must name
DAMAGED = {
    "named by DataParallel": (lambda state: {f"module.{name}": value for name, value in state.items()}, "lacks"),
    "fewer": (lambda state: {name: value for name, value in state.items() if name != OUTPUT}, OUTPUT[5:]),
    "an adapter": (lambda state: {**state, OUTPUT.replace("dense", "adapter"): torch.zeros(2)}, "adapter"),
    "more embeddings": (lambda state: {**state, "bert.embeddings.other": torch.zeros(2)}, "other"),
    "another shape": (lambda state: {**state, OUTPUT: torch.zeros(2, 2)}, OUTPUT[5:]),
    "NaN": (lambda state: {**state, OUTPUT: state[OUTPUT] * torch.nan}, OUTPUT[5:]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_weights_that_do_not_load_are_refused_wherever_a_model_is_given(damage, bert, tokenizer, tmp_path):
    change, named = DAMAGED[damage]
    bert.save_pretrained(tmp_path, state_dict=change(bert.state_dict()))
    write_vocabulary(tmp_path)
    for load in (
        lambda folder: load_teacher(folder, bert, tokenizer),
        lambda folder: load_judge(folder, tokenizer),
        lambda folder: SynonymTable.from_model(tokenizer, folder),
    ):
        assert named in refused(load, str(tmp_path))


@pytest.fixture
def given(bert, tokenizer, synonyms, teacher, tmp_path):
    """What the refusals are made of, and ways to start a training."""
    args = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    return SimpleNamespace(
        bert=bert,
        tokenizer=tokenizer,
        synonyms=synonyms,
        taught={"distillation_teacher": str(teacher)},
        rows=lambda **options: teach(Sentences(tokenizer), bert, tokenizer, **options),
        folder=tmp_path,
        train=lambda model=bert, **options: train(model, tokenizer, tmp_path, **options),
        trainer=lambda model=bert, **options: TrueNegativeTrainer(model=model, args=args, **options),
        distill=lambda teacher, **options: distill(bert, tokenizer, tmp_path, teacher, **options),
        objective=lambda name, synonyms=synonyms, **kwargs: train(
            bert, tokenizer, tmp_path, objective=name, synonyms=synonyms, objective_kwargs=kwargs
        ),
    )


def sharing(bert):
    teacher = deepcopy(bert)
    teacher.bert.encoder.layer[0] = bert.bert.encoder.layer[1]
    return teacher


def partly_in_bfloat16(bert):
    model = copy_of(bert)
    model.bert.encoder.layer[1].bfloat16()
    return model


def evaluated_in_bfloat16(given):
    trainer = given.train(copy_of(given.bert), max_steps=1, bf16_full_eval=True)
    trainer.evaluate()
    return trainer


def folder_of(given, model, *pieces: str) -> str:
    """A folder of a model, with the usual vocabulary if it has no other pieces."""
    model.save_pretrained(given.folder / "other")
    return str(write_vocabulary(given.folder / "other", *([list(pieces)] if pieces else [])))


def short(given):
    return make_bert(len(given.tokenizer), max_position_embeddings=4)


def roberta_of(given, positions: int):
    sizes = {**SIZES, "vocab_size": len(given.tokenizer), "max_position_embeddings": positions, "pad_token_id": 1}
    return transformers.RobertaForMaskedLM(transformers.RobertaConfig(**sizes))


def other_tokenizer(given):
    folder = write_vocabulary(given.folder / "words", ["[PAD]", "[UNK]", "[MASK]", "a"])
    return transformers.AutoTokenizer.from_pretrained(folder)


def joint(**sizes_of_the_discriminator):
    return JointElectra(make_electra(129)[1], make_electra(129, **sizes_of_the_discriminator)[0])


def loss_of(given, **batch):
    trainer = given.trainer(processing_class=given.tokenizer)
    return trainer.compute_loss(given.bert, {"input_ids": torch.ones(1, 4).long(), **batch})


GPT2 = {"vocab_size": 129, "n_layer": 1, "n_embd": 8, "n_head": 1}
# what the error must name, and what is given to the Trainer, an objective, a table or ELECTRA
REFUSED = [
    ("bert.encoder.layer.0.", lambda g: g.distill(sharing(g.bert), student=g.bert)),
    ("distillation_teacher", lambda g: g.distill(g.bert, student=g.bert)),
    ("nowhere/at/all", lambda g: g.distill("nowhere/at/all")),
    ("distillation_teacher ema", lambda g: g.distill("ema")),
    ("6 embeddings", lambda g: g.distill(make_bert(6))),
    ("BertModel", lambda g: g.distill(g.bert.bert)),
    ("unigram", lambda g: g.objective("mlm_distillation", **g.taught, distillation_control="unigram")),
    ("other", lambda g: g.distill(folder_of(g, make_bert(6), "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"))),
    ("cls.predictions", lambda g: g.distill(folder_of(g, g.bert.bert))),
    ("synonyms", lambda g: g.objective("mlm_distillation", None, **g.taught, distillation_words="synonyms")),
    ("4 positions", lambda g: g.distill(short(g))),
    ("10 positions", lambda g: g.distill(roberta_of(g, 12))),
    ("distillation_teacher", lambda g: g.objective("mlm_distillation")),
    ("teacher", lambda g: train_on_draws(g.bert, g.tokenizer, g.folder, g.rows(), objective_kwargs=g.taught)),
    ("6 embeddings", lambda g: teach(Sentences(g.tokenizer, 2), make_bert(6), g.tokenizer)),
    ("draws", lambda g: g.rows(draws=256)),
    ("correction_judge", lambda g: g.objective("mlm_hard_correction", correction_judge=folder_of(g, short(g)))),
    ("BertForMaskedLM", lambda g: g.objective("mlm_hard_correction", correction_judge=g.bert)),
    ("float16", lambda g: g.train(copy_of(g.bert).half())),
    ("bfloat16", lambda g: evaluated_in_bfloat16(g).train()),
    ("bfloat16", lambda g: g.train(partly_in_bfloat16(g.bert))),
    ("mlm_soft", lambda g: g.objective("mlm_soft")),
    ("synonyms", lambda g: g.objective("mlm_hard_correction", None)),
    ("JointElectra", lambda g: g.objective("rtd_focal")),
    ("discriminator_loss_weight", lambda g: g.objective("mlm", discriminator_loss_weight=10.0)),
    ("prediction_mode", lambda g: g.objective("mlm", soft_reg_weight=1.0)),
    ("soft_reg_weight", lambda g: g.objective("mlm_soft_reg", soft_reg_weight=-1.0)),
    ("soft_reg_weight", lambda g: g.objective("mlm_soft_reg", soft_reg_weight="1")),
    ("soft_reg_synonyms", lambda g: g.objective("mlm_soft_reg", soft_reg_synonyms="false")),
    ("prediction_mode", lambda g: g.objective("mlm", prediction_mode="best")),
    ("6 embeddings", lambda g: g.train(make_bert(6))),
    ("SynonymTable", lambda g: g.train(synonyms="table.safetensors")),
    ("tokenizer", lambda g: SynonymTable.from_wordnet("name")),
    ("synonyms", lambda g: build_objective(OBJECTIVES["mlm"], {}, g.bert, other_tokenizer(g), g.synonyms)),
    ("GPT2LMHeadModel", lambda g: g.train(transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)))),
    ("data collator", lambda g: g.trainer(data_collator=collator_of(g.tokenizer, mlm=False))),
    ("processing_class", lambda g: g.trainer(data_collator=lambda rows: rows)),
    ("100", lambda g: loss_of(g, labels=torch.ones(1, 4).long())),
    ("labels", lambda g: loss_of(g)),
    ("label_smoothing_factor", lambda g: g.train(label_smoothing_factor=0.1)),
    ("ElectraForMaskedLM", lambda g: JointElectra(g.bert, g.bert)),
    ("embedding_size", lambda g: joint(embedding_size=8)),
    ("max_position_embeddings", lambda g: joint(max_position_embeddings=8)),
    ("compute_metrics", lambda g: g.trainer(joint(), processing_class=g.tokenizer, compute_metrics=dict)),
]


@pytest.mark.parametrize("named, call", REFUSED)
def test_what_would_train_wrongly_is_refused(named, call, given):
    """The error names it as an option of Python or as a flag."""
    assert named in refused(call, given).replace("-", "_")


def test_an_objective_of_ones_own(bert, tokenizer, tmp_path):
    own = load_script("examples/own_objective/my_objectives/mlm_confidence_penalty.py").ConfidencePenalty
    options = {"objective": own, "objective_kwargs": {"confidence_penalty_weight": 0.5}}
    record = train(copy_of(bert), tokenizer, tmp_path, **options).state.log_history[0]
    expected = math.log(2) * (record["nll_loss"] - 0.5 * record["entropy"])
    assert record["loss"] == pytest.approx(expected, abs=1e-2)


class Mine(transformers.BertForMaskedLM):
    """A class of a user, which transformers does not know."""


def test_a_model_is_what_it_computes_not_what_it_is_called(tokenizer, synonyms, bert, tmp_path):
    own = Mine(bert.config)
    own.load_state_dict(bert.state_dict())
    for objective in ("mlm_hard_correction", "mlm_soft_reg"):
        options = {"objective": objective, "synonyms": synonyms}
        trainers = [train(model, tokenizer, tmp_path, **options) for model in (copy_of(bert), copy_of(own))]
        one, other = (trainer.state.log_history[-1] for trainer in trainers)
        assert one["train_loss"] == other["train_loss"]


@pytest.mark.parametrize("objective", ["mlm", "mlm_sent_kl", "mlm_distillation"])
def test_adapters_of_peft(tokenizer, synonyms, bert, tmp_path, objective):
    """Only the adapters learn, and an evaluation is that of the model into which they are merged."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=["query", "value"], r=2, init_lora_weights=False)
    model = peft.get_peft_model(copy_of(bert), config)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    options = {"objective": objective, "synonyms": synonyms, "collator": fixed_masks(tokenizer)}
    if objective == "mlm_distillation":
        options["objective_kwargs"] = {"distillation_teacher": bert}
    trainer = train(model, tokenizer, tmp_path / "adapted", **options)
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed and all("lora_" in name for name in changed)
    expected = trainer.evaluate()
    merged = train(
        model.merge_and_unload().requires_grad_(True), tokenizer, tmp_path / "merged", learning_rate=0.0, **options
    )
    for name in ("eval_loss", "eval_nll_loss"):
        assert merged.evaluate()[name] == pytest.approx(expected[name], rel=1e-4)


def test_embeddings_with_an_adapter_learn_from_synonyms(tokenizer, synonyms, bert, tmp_path):
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(copy_of(bert), peft.LoraConfig(target_modules=["word_embeddings"], r=2))
    trainer = train(model, tokenizer, tmp_path, objective="mlm_soft_reg", synonyms=synonyms)
    assert trainer.state.log_history[0]["soft_reg"] > 0


@pytest.mark.parametrize("name", ["soft_reg", "synonym_tying"])
def test_a_term_of_frozen_embeddings_is_refused(name, tokenizer, synonyms, bert, tmp_path):
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(copy_of(bert), peft.LoraConfig(target_modules=["query"], r=2))
    options = {"objective": f"mlm_{name}", "synonyms": synonyms}
    assert "embeddings" in refused(train, model, tokenizer, tmp_path, **options)
    train(model, tokenizer, tmp_path, objective_kwargs={f"{name}_weight": 0.0}, **options)


@pytest.mark.parametrize("name", ["mlm_sent_kl", "mlm_synonym_tying", "mlm_hard_correction", "rtd_focal"])
def test_an_update_without_masked_tokens_teaches_nothing(name, bert, electra, tokenizer, synonyms, tmp_path):
    model = electra if name == "rtd_focal" else copy_of(bert)
    before = {key: value.clone() for key, value in model.state_dict().items()}

    def collate(rows: list[dict]) -> dict:
        batch = transformers.DataCollatorWithPadding(tokenizer)(rows)
        return {**batch, "labels": torch.full_like(batch["input_ids"], -100)}

    collate.tokenizer = tokenizer
    train(model, tokenizer, tmp_path, collator=collate, objective=name, synonyms=synonyms, max_steps=1)
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
def test_a_compiled_model_trains_like_the_model(bert, tokenizer, synonyms, tmp_path):
    options = {"objective": "mlm_hard_correction", "synonyms": synonyms}
    plain = train(copy_of(bert), tokenizer, tmp_path, **options)
    compiled = train(copy_of(bert), tokenizer, tmp_path, torch_compile=True, **options)
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-4)
