"""An existing generator: the same replacements for every discriminator, exact resuming, export, and fine-tuning."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import MODEL_DATACLASS_REGISTRY
from files import refused
from helpers import first_batch, prepare_training
from interruption import assert_equal

from tn_fairseq.core.checkpoints import load_checkpoint, save_checkpoint
from tn_fairseq.models import ElectraModel
from tn_fairseq.models.loading import find_checkpoints, load, load_generator
from tn_fairseq.tools.evaluate.finetuning import read_pretrained

SIZES = {"layers": 1, "embed_dim": 32, "attention_heads": 2, "ffn_embed_dim": 48}
GENERATOR = {f"generator_{name}": size for name, size in SIZES.items()}
FROZEN = {**GENERATOR, "freeze_generator": True, "generator_embedding_size": 32, "embedding_size": 16}
OWN = ("generator.", "generator_head.", "generator_embeddings.")


def flags(sizes: dict[str, int]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {size}" for name, size in sizes.items())


COMMON = "--task electra --criterion electra --num-workers 0 --disable-validation --arch"
BERT = f"{COMMON} bert_tiny {flags({f'encoder_{name}': size for name, size in SIZES.items()})}"
ELECTRA = f"{COMMON} electra_tiny {flags(GENERATOR)}"
FREEZE = "--freeze-generator --generator-embedding-size 32 --embedding-size 16 --store-ema"
SHARED = f"{ELECTRA} --embedding-size 32 --lr 0"


def train(data_bin: Path, save_dir: Path, *flags: object) -> dict:
    """Train, and read the last checkpoint."""
    words = [str(word) for flag in flags for word in str(flag).split()]
    prepare_training(data_bin, save_dir, *words)()
    return load_checkpoint(save_dir / "checkpoint_last.pt")


def electra(dictionary: Dictionary, **sizes) -> ElectraModel:
    torch.manual_seed(1)
    return ElectraModel(MODEL_DATACLASS_REGISTRY["electra_tiny"](**sizes), dictionary)


def part(parameters: dict, *prefixes: str) -> dict:
    return {name: tensor for name, tensor in parameters.items() if name.startswith(prefixes)}


@pytest.fixture(scope="module")
def bert(tmp_path_factory, data_bin) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    train(data_bin, folder, BERT, "--max-update 2")
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory, data_bin, bert) -> Path:
    """ELECTRA with BERT as its frozen generator, which has larger embeddings."""
    folder = tmp_path_factory.mktemp("frozen")
    train(data_bin, folder, ELECTRA, FREEZE, "--generator-checkpoint", bert, "--max-update 4 --save-interval-updates 2")
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def shared(tmp_path_factory, data_bin, bert) -> Path:
    """ELECTRA that started with BERT as its generator, after updates with a learning rate of 0."""
    folder = tmp_path_factory.mktemp("shared")
    train(data_bin, folder, SHARED, "--generator-checkpoint", bert, "--max-update 1")
    return folder / "checkpoint_last.pt"


def test_a_frozen_generator_stays_the_model_of_the_file_bit_for_bit_and_the_discriminator_learns(bert, frozen):
    names = {"encoder.": "generator.", "masked_lm_head.": "generator_head.", "embeddings.": "generator_embeddings."}
    theirs, late = load_checkpoint(bert)["model"], load_checkpoint(frozen)["model"]
    renamed = {f"{new}{name[len(old) :]}": theirs[name] for old, new in names.items() for name in part(theirs, old)}
    assert_equal(part(late, *OWN), renamed)
    (early,) = frozen.parent.glob("checkpoint_*_2.pt")
    early = load_checkpoint(early)["model"]
    trained = part(late, "discriminator.", "discriminator_head.", "embeddings.")
    assert trained and not any(torch.equal(tensor, early[name]) for name, tensor in trained.items())


def test_resuming_equals_not_stopping_and_does_not_need_the_file(frozen, data_bin, tmp_path, caplog):
    (early,) = frozen.parent.glob("checkpoint_*_2.pt")
    shutil.copy(early, tmp_path / "checkpoint_last.pt")
    with caplog.at_level("INFO"):
        resumed = train(data_bin, tmp_path, ELECTRA, FREEZE, "--generator-checkpoint gone.pt --max-update 4")
    assert "--generator-checkpoint is not read, because this run continues from a checkpoint" in caplog.text
    for part_of_state in ("model", "last_optimizer_state"):
        assert_equal(resumed[part_of_state], load_checkpoint(frozen)[part_of_state])


def test_the_moving_average_of_a_frozen_generator_is_the_generator(frozen):
    state = load_checkpoint(frozen)
    average, words = state["extra_state"]["ema"], "embeddings.word_embeddings.weight"
    assert_equal(part(average, *OWN), part(state["model"], *OWN))
    assert not torch.equal(average[words], state["model"][words])


def test_every_discriminator_sees_the_same_replacements(bert, build):
    """Other discriminators, in training with dropout, with other random numbers from torch."""
    task, _, _ = build("electra")
    batch, outputs = first_batch(task), []
    for size in (16, 128):
        sizes = {"encoder_embed_dim": size, "embedding_size": size, "encoder_layers": size // 16}
        model = electra(task.dictionary, **{**FROZEN, **sizes})
        load_generator(model, bert, task.dictionary)
        torch.manual_seed(size)
        run = {"masked_tokens": batch["target"].ne(task.dictionary.pad()), "target_tokens": batch["target"]}
        outputs.append(model.train()(**batch["net_input"], **run, uniform_draws=batch["uniform_draws"]))
        assert not outputs[-1].logits.requires_grad and outputs[-1].discriminator_logits.requires_grad
        assert model.discriminator.training and model.discriminator.layers[0].dropout.training
    assert_equal(*(output[:2] for output in outputs))  # logits and drawn tokens


def test_the_loss_includes_that_of_the_frozen_generator_but_its_gradient_does_not(build):
    task, _, criterion = build("electra")
    model = electra(task.dictionary, **FROZEN)
    loss, sample_size, log = criterion(model.eval(), first_batch(task))
    expected = log["nll"] + 50 * log["rtd_loss"] / log["rtd_tokens"] * sample_size
    torch.testing.assert_close(loss.detach(), expected)
    loss.backward()
    assert all((parameter.grad is None) == name.startswith(OWN) for name, parameter in model.named_parameters())


@pytest.mark.parametrize("source", ["bert", "shared", "frozen"])
def test_the_generator_of_any_of_our_models_can_be_the_start(request, dictionary, source):
    path = request.getfixturevalue(source)
    model = electra(dictionary, **GENERATOR, embedding_size=32, max_positions=64)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    load_generator(model, path, dictionary)
    ours, theirs = model.state_dict(), load_checkpoint(path)["model"]
    embeddings = {"frozen": "generator_embeddings"}.get(source, "embeddings")
    for name, tensor in part(theirs, f"{embeddings}.").items():
        expected = tensor[:64] if "position" in name else tensor
        assert torch.equal(ours[name.removeprefix("generator_")], expected)
    for old, new in {"encoder": "generator", "masked_lm_head": "generator_head"}.items():
        old = old if source == "bert" else new
        found = part(theirs, f"{old}.")
        assert found and all(torch.equal(ours[name.replace(old, new, 1)], found[name]) for name in found)
    assert_equal(part(ours, "discriminator"), part(fresh, "discriminator"))
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_continuing_an_electra_with_its_own_generator_frozen(shared, build, data_bin, tmp_path):
    """With --finetune-from-model, the generator keeps a copy of the embeddings that were shared."""
    task, _, _ = build("electra")
    sizes = {**GENERATOR, "embedding_size": 32}
    one, other = electra(task.dictionary, **sizes), electra(task.dictionary, **sizes, freeze_generator=True)
    for model in (one, other):
        model.load_state_dict(load_checkpoint(shared)["model"])
    batch = first_batch(task)
    run = {**batch["net_input"], "masked_tokens": batch["target"].ne(task.dictionary.pad())}
    with torch.no_grad():
        other.embeddings.word_embeddings.weight.add_(1)
        assert torch.equal(one.eval()(**run)[0], other.eval()(**run)[0])

    before = load_checkpoint(shared)["model"]
    run = train(data_bin, tmp_path, SHARED, "--freeze-generator --lr 1e-3 --finetune-from-model", shared)["model"]
    assert_equal(part(run, "generator.", "generator_head."), part(before, "generator.", "generator_head."))
    copied = {f"generator_{name}": tensor for name, tensor in part(before, "embeddings.").items()}
    assert_equal(part(run, "generator_embeddings."), copied)
    words = "embeddings.word_embeddings.weight"
    assert not torch.equal(run[words], before[words])


# Other commands


def test_analysis_and_fairseqs_own_loader(bert, frozen, data_bin, dictionary):
    tokens = torch.arange(4, 20).view(2, 8)
    logits = []
    for path in (bert, frozen):
        (checkpoint,) = find_checkpoints([str(path)], dictionary)
        with torch.no_grad():
            logits.append(load(checkpoint, data_bin).model(tokens)[0])
    torch.testing.assert_close(*logits)
    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(frozen)])
    with torch.no_grad():
        assert torch.equal(model.eval()(tokens)[0], logits[1])


def test_fine_tuning_drops_the_generator(frozen, dictionary):
    state = load_checkpoint(frozen)["model"]
    assert "--freeze-generator" in read_pretrained(str(frozen)).model_flags
    for sizes in (FROZEN, {**GENERATOR, "embedding_size": 16}):
        model = electra(dictionary, **sizes)
        model.register_classification_head("sentences", 2)
        model.load_state_dict(dict(state))
        assert not part(model.state_dict(), *OWN)
        assert_equal(part(model.state_dict(), "discriminator."), part(state, "discriminator."))
        assert all(parameter.requires_grad for parameter in model.train().parameters())


# Invalid input


@pytest.mark.parametrize("freeze", [False, True])
def test_sizes_that_do_not_fit(bert, dictionary, freeze):
    sizes = {"generator_layers": 2, "generator_attention_heads": 4, "max_positions": 600}
    model = electra(dictionary, **sizes, freeze_generator=freeze)
    message = refused(load_generator, model, bert, dictionary)
    flag = "--generator-embedding-size" if freeze else "--embedding-size"
    named = {f"--generator-{name.replace('_', '-')}": str(size) for name, size in SIZES.items()}
    named |= {flag: "32", "--max-positions": "512"}
    assert dict(re.findall(r"(--\S+) (\d+)", message)) == named and str(bert) in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda state: state["model"].pop("encoder.layers.0.ffn_in.bias"), "configuration"),
        (lambda state: state["cfg"].update(model={"_name": "roberta_base"}), "roberta_base"),
        (lambda state: state["model"]["dictionary_fingerprint"].zero_(), "dictionary"),
        (
            lambda state: [state["model"].pop(name) for name in part(state["model"], "masked_lm_head.")],
            "masked_lm_head",
        ),
    ],
)
def test_files_without_a_fitting_generator(bert, dictionary, tmp_path, change, expected):
    state = torch.load(bert, weights_only=True)
    change(state)
    save_checkpoint(state, tmp_path / "changed.pt")
    model = electra(dictionary, **GENERATOR, embedding_size=32)
    assert expected in refused(load_generator, model, tmp_path / "changed.pt", dictionary)


def test_a_run_cannot_change_its_mind(frozen, shared, dictionary, data_bin, tmp_path):
    model = electra(dictionary, **GENERATOR, embedding_size=16)
    assert "--freeze-generator" in refused(model.load_state_dict, load_checkpoint(frozen)["model"])
    shutil.copy(shared, tmp_path)
    assert "optimizer" in refused(train, data_bin, tmp_path, SHARED, "--freeze-generator --max-update 3")


def test_sentence_kl_of_a_frozen_generator_trains_the_discriminator(build):
    task, _, criterion = build("electra", "--criterion", "mlm_sent_kl")
    criterion.objective.cfg.sent_kl_encoder = "discriminator"
    criterion(electra(task.dictionary, **FROZEN), first_batch(task))[0].backward()


def test_soft_regularization_moves_the_embeddings_of_the_discriminator(build):
    task, _, criterion = build("electra", "--criterion", "mlm_soft_reg")
    criterion.objective.cfg.discriminator_loss_weight = 0.0
    model = electra(task.dictionary, **FROZEN)
    loss, _, log = criterion(model, first_batch(task))
    loss.backward()
    assert log["soft_reg"] > 0 and model.embeddings.word_embeddings.weight.grad.any()
