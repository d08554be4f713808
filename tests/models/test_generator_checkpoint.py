"""An existing generator: the same replacements for every discriminator, exact resuming, export, and fine-tuning."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from helpers import FAMILIES, first_batch, prepare_training
from interruption import assert_equal
from safetensors.torch import load_file

from tn_fairseq.analysis.checkpoints import find_checkpoints, load
from tn_fairseq.checkpoints import load_checkpoint, save_checkpoint
from tn_fairseq.errors import InputError
from tn_fairseq.huggingface.exporting import export_model
from tn_fairseq.models.generator_checkpoint import load_generator

SMALL = "--encoder-layers 1 --encoder-embed-dim 32 --encoder-ffn-embed-dim 48 --encoder-attention-heads 2"
BERT = f"--task electra --criterion electra --arch bert_tiny {SMALL}"
# BERT's sizes
GENERATOR = "--generator-layers 1 --generator-embed-dim 32 --generator-ffn-embed-dim 48 --generator-attention-heads 2"
ELECTRA = f"--task electra --criterion electra --arch electra_tiny {GENERATOR}"
OWN = ("generator.", "generator_head.", "generator_embeddings.")


def train(data_bin: Path, save_dir: Path, *flags: object) -> dict:
    """Train, and read the last checkpoint."""
    words = [str(word) for flag in flags for word in str(flag).split()]
    prepare_training(data_bin, save_dir, "--num-workers", 0, "--disable-validation", *words)()
    return load_checkpoint(save_dir / "checkpoint_last.pt")


def refusal(data_bin: Path, save_dir: Path, *flags: object) -> str:
    with pytest.raises(SystemExit) as stopped:
        train(data_bin, save_dir, *flags)
    message = stopped.value.code
    assert message.startswith("error: ") and "\n" not in message
    assert not list(save_dir.glob("*.pt")) or "resume" in str(save_dir)
    return message


def part(parameters: dict, *prefixes: str) -> dict:
    return {name: tensor for name, tensor in parameters.items() if name.startswith(prefixes)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, data_bin):
    """BERT, and an ELECTRA trained with it as its frozen generator, which has larger embeddings than ELECTRA."""
    folder = tmp_path_factory.mktemp("runs")
    train(data_bin, folder / "bert", BERT, "--max-update 3")
    bert = folder / "bert" / "checkpoint_last.pt"
    frozen = ["--generator-checkpoint", bert, "--freeze-generator --generator-embedding-size 32 --embedding-size 16"]
    train(data_bin, folder / "electra", ELECTRA, *frozen, "--save-interval-updates 3")
    return folder, bert, frozen


def test_a_frozen_generator_is_the_model_of_the_file_bit_for_bit(runs):
    folder, bert, _ = runs
    theirs = load_checkpoint(bert)["model"]
    ours = load_checkpoint(folder / "electra" / "checkpoint_last.pt")["model"]
    renamed = {
        re.sub("^encoder", "generator", re.sub("^masked_lm_head", "generator_head", name)): tensor
        for name, tensor in part(theirs, "encoder.", "masked_lm_head.").items()
    }
    renamed |= {f"generator_{name}": tensor for name, tensor in part(theirs, "embeddings.").items()}
    assert_equal(part(ours, *OWN), renamed)


def test_the_discriminator_learns(runs):
    folder, *_ = runs
    early, late = (load_checkpoint(path)["model"] for path in sorted((folder / "electra").glob("checkpoint_*.pt"))[:2])
    trained = part(late, "discriminator.", "discriminator_head.", "embeddings.")
    assert trained and not any(torch.equal(tensor, early[name]) for name, tensor in trained.items() if tensor.any())


def test_every_discriminator_sees_the_same_replacements(runs, build):
    """Other discriminators, in the middle of training with dropout, with other random numbers from torch."""
    _, bert, frozen = runs
    drawn, logits = [], []
    for size in (16, 128):
        sizes = f"--encoder-embed-dim {size} --embedding-size {size} --encoder-layers {size // 16}".split()
        task, model, _ = build("electra", *GENERATOR.split(), *frozen[2].split(), *sizes)
        load_generator(model, bert, task.source_dictionary)
        batch = first_batch(task)
        torch.manual_seed(size)
        output = model.train()(
            **batch["net_input"],
            masked_tokens=batch["target"].ne(task.dictionary.pad()),
            target_tokens=batch["target"],
            uniform_draws=batch["uniform_draws"],
        )
        assert not output.logits.requires_grad and output.discriminator_logits.requires_grad
        assert model.discriminator.training and model.discriminator.layers[0].dropout.training
        drawn.append(output.drawn_tokens)
        logits.append(output.logits)
    assert torch.equal(*drawn) and torch.equal(*logits)


def test_only_the_discriminator_is_optimized(runs, build):
    *_, frozen = runs
    _, model, _ = build("electra", *GENERATOR.split(), *frozen[2].split())
    fixed = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert fixed == {name for name, _ in model.named_parameters() if name.startswith(OWN)}


def test_resuming_equals_not_stopping_without_the_file(runs, data_bin, tmp_path):
    folder, bert, frozen = runs
    shutil.copytree(folder / "electra", tmp_path / "resumed", ignore=lambda *_: ["checkpoint_last.pt"])
    (early,) = (tmp_path / "resumed").glob("checkpoint_*_3.pt")
    early.rename(tmp_path / "resumed" / "checkpoint_last.pt")
    resumed = train(data_bin, tmp_path / "resumed", ELECTRA, "--generator-checkpoint gone.pt", frozen[2])
    assert_equal(resumed["model"], load_checkpoint(folder / "electra" / "checkpoint_last.pt")["model"])


def test_the_losses_include_that_of_the_frozen_generator(runs, build):
    _, bert, frozen = runs
    task, model, criterion = build("electra", *GENERATOR.split(), *frozen[2].split())
    load_generator(model, bert, task.source_dictionary)
    loss, sample_size, log = criterion(model.eval(), first_batch(task))
    expected = log["nll"] + 50 * log["rtd_loss"] / log["rtd_tokens"] * sample_size
    torch.testing.assert_close(loss.detach(), expected)
    loss.backward()
    assert all((parameter.grad is None) == name.startswith(OWN) for name, parameter in model.named_parameters())


@pytest.mark.parametrize("source", ["bert", "electra", "frozen"])
def test_without_freezing_a_run_starts_with_the_weights_of_the_file(runs, build, tmp_path, source):
    folder, bert, frozen = runs
    flags = [*GENERATOR.split(), "--embedding-size", 32, "--max-positions", 64]
    task, model, _ = build("electra", *flags)
    path = {"bert": bert, "frozen": folder / "electra" / "checkpoint_last.pt"}.get(source, tmp_path / "electra.pt")
    if source == "electra":
        _, other, _ = build("electra", *flags)
        for parameter in other.parameters():
            parameter.data.add_(0.01)
        cfg = {"model": {"_name": "electra_tiny", **other.cfg}}
        save_checkpoint({"cfg": cfg, "model": other.state_dict()}, path)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    load_generator(model, path, task.source_dictionary)
    theirs, ours = load_checkpoint(path)["model"], model.state_dict()
    start = {"frozen": "generator_embeddings"}.get(source, "embeddings")
    for name, tensor in part(theirs, f"{start}.").items():
        expected = tensor[:64] if "position" in name else tensor
        assert torch.equal(ours[name.removeprefix("generator_")], expected)
    generator = "encoder" if source == "bert" else "generator"
    for name, tensor in part(theirs, f"{generator}.").items():
        assert torch.equal(ours[name.replace(generator, "generator", 1)], tensor)
    assert_equal(part(ours, "discriminator"), part(fresh, "discriminator"))
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_training_starts_with_the_weights_once(runs, data_bin, tmp_path):
    """With a learning rate of 0 the weights are those of the file, and a resumed run does not need it."""
    _, bert, _ = runs
    flags = [ELECTRA, "--embedding-size 32 --lr 0", "--save-interval-updates 2"]
    started = train(data_bin, tmp_path, *flags, "--generator-checkpoint", bert, "--max-update 2")["model"]
    assert_equal(part(started, "embeddings."), part(load_checkpoint(bert)["model"], "embeddings."))
    resumed = train(data_bin, tmp_path, *flags, "--generator-checkpoint gone.pt --max-update 4")["model"]
    assert_equal(resumed, started)


def test_an_electra_continues_with_its_own_generator_frozen(runs, build):
    """As with --finetune-from-model: the generator keeps a copy of the embeddings that were shared."""
    _, shared, _ = build("electra")
    for parameter in shared.parameters():
        parameter.data.add_(0.01)
    task, frozen, _ = build("electra", "--freeze-generator")
    state = shared.state_dict()
    frozen.load_state_dict(dict(state))
    assert_equal(part(frozen.state_dict(), *state), state)
    batch = first_batch(task)
    run = {**batch["net_input"], "masked_tokens": batch["target"].ne(task.dictionary.pad())}
    assert torch.equal(frozen.eval()(**run)[0], shared.eval()(**run)[0])
    with torch.no_grad():
        frozen.embeddings.word_embeddings.weight.add_(1)
    assert torch.equal(frozen(**run)[0], shared(**run)[0])


def test_finetune_from_model_with_a_frozen_generator(runs, data_bin, tmp_path):
    first = train(data_bin, tmp_path / "first", FAMILIES["electra"], "--criterion electra --max-update 1")["model"]
    flags = ["--criterion electra --freeze-generator --finetune-from-model", tmp_path / "first" / "checkpoint_last.pt"]
    then = train(data_bin, tmp_path / "then", FAMILIES["electra"], *flags, "--max-update 3")["model"]
    assert_equal(part(then, "generator.", "generator_head."), part(first, "generator.", "generator_head."))
    assert_equal(
        {name.removeprefix("generator_"): tensor for name, tensor in part(then, "generator_embeddings.").items()},
        part(first, "embeddings."),
    )
    assert not torch.equal(
        then["embeddings.word_embeddings.weight"], then["generator_embeddings.word_embeddings.weight"]
    )


def test_the_moving_average_of_a_frozen_generator_is_the_generator(runs, data_bin, tmp_path):
    _, bert, frozen = runs
    state = train(data_bin, tmp_path, ELECTRA, "--generator-checkpoint", bert, frozen[2], "--store-ema")
    average = state["extra_state"]["ema"]
    assert_equal(part(average, *OWN), part(state["model"], *OWN))
    assert not torch.equal(
        average["embeddings.word_embeddings.weight"], state["model"]["embeddings.word_embeddings.weight"]
    )


# Other commands


def test_analysis_and_validation_read_the_generator(runs, data_bin, dictionary):
    folder, bert, _ = runs
    tokens = torch.arange(4, 20).view(2, 8)
    logits = []
    for path in (bert, folder / "electra" / "checkpoint_last.pt"):
        (checkpoint,) = find_checkpoints([str(path)], dictionary)
        with torch.no_grad():
            logits.append(load(checkpoint, data_bin).model(tokens)[0])
    torch.testing.assert_close(*logits)
    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(folder / "electra" / "checkpoint_last.pt")])
    assert torch.equal(model.eval()(tokens)[0], logits[1])


def test_fine_tuning_drops_the_generator(runs, build):
    folder, *_ = runs
    state = load_checkpoint(folder / "electra" / "checkpoint_last.pt")["model"]
    for more in ([], ["--freeze-generator", "--generator-embedding-size", 32]):
        _, model, _ = build("electra", "--embedding-size", 16, *more)
        model.register_classification_head("sentences", 2)
        model.load_state_dict(dict(state))
        assert not part(model.state_dict(), *OWN)
        assert_equal(part(model.state_dict(), "discriminator."), part(state, "discriminator."))
        model.train()
        assert all(parameter.requires_grad for parameter in model.parameters())


# Invalid input


def test_freezing_needs_a_generator(data_bin, tmp_path):
    message = refusal(data_bin, tmp_path, ELECTRA, "--freeze-generator")
    assert message == (
        "error: --freeze-generator would freeze an untrained generator; give one with --generator-checkpoint, or an "
        "ELECTRA with --finetune-from-model"
    )


def test_two_generators_are_refused(runs, data_bin, tmp_path):
    folder, bert, frozen = runs
    electra = folder / "electra" / "checkpoint_last.pt"
    flags = ["--generator-checkpoint", bert, "--finetune-from-model", electra]
    assert "has a generator, too; give only that, or only --generator-checkpoint" in refusal(
        data_bin, tmp_path, ELECTRA, *flags, frozen[2]
    )


def test_sizes_that_do_not_fit(runs, build):
    _, bert, _ = runs
    expected = (
        "its generator has other sizes; give --generator-layers 1 --generator-embed-dim 32 "
        "--generator-attention-heads 2 --generator-ffn-embed-dim 48 {} 32 --max-positions 512$"
    )
    flags = ["--generator-layers", 2, "--generator-attention-heads", 4, "--max-positions", 600]
    for more, flag in (((), "--embedding-size"), (("--freeze-generator",), "--generator-embedding-size")):
        task, model, _ = build("electra", *flags, *more)
        with pytest.raises(InputError, match=expected.format(flag)):
            load_generator(model, bert, task.source_dictionary)
    fitting = [*GENERATOR.split(), "--embedding-size", 32, "--max-positions", 512]
    task, model, _ = build("electra", *fitting)
    load_generator(model, bert, task.source_dictionary)
    with pytest.raises(SystemExit, match="--generator-embedding-size 32 differs from --embedding-size 128, but"):
        build("electra", "--generator-embedding-size", 32)


def test_files_that_hold_no_generator(runs, build, tmp_path):
    _, bert, _ = runs
    task, model, _ = build("electra", *GENERATOR.split(), "--embedding-size", 32)

    def error(change) -> str:
        state = load_checkpoint(bert)
        change(state)
        save_checkpoint(state, tmp_path / "changed.pt")
        with pytest.raises(InputError) as raised:
            load_generator(model, tmp_path / "changed.pt", task.source_dictionary)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    def without(prefix: str):
        return lambda state: [state["model"].pop(name) for name in part(state["model"], prefix)]

    assert "has no masked_lm_head; give a checkpoint of pre-training" in error(without("masked_lm_head."))
    assert "its parameters do not match its configuration" in error(without("encoder.layers.0.ffn_in.bias"))
    assert "holds roberta_base; give an electra_* or bert_* model" in error(
        lambda state: state["cfg"].update(model={"_name": "roberta_base"})
    )
    fingerprint = "dictionary_fingerprint"
    assert "the model of another dictionary" in error(
        lambda state: state["model"].update({fingerprint: state["model"][fingerprint].flip(0)})
    )


def test_a_run_cannot_change_its_mind(runs, data_bin, tmp_path):
    folder, bert, frozen = runs
    shutil.copytree(folder / "electra", tmp_path / "resume")
    message = refusal(data_bin, tmp_path / "resume", ELECTRA, "--embedding-size 16", "--max-update 8")
    assert message == "error: the checkpoint's generator is frozen; add --freeze-generator"
    flags = [ELECTRA, "--embedding-size 32 --max-update 1"]
    train(data_bin, tmp_path / "resume shared", *flags)
    message = refusal(data_bin, tmp_path / "resume shared", *flags, "--freeze-generator --max-update 2")
    assert "the checkpoint's optimizer has other parameters; resume with the same --freeze-generator" in message


def test_sentence_kl_cannot_train_a_frozen_generator(runs, build):
    _, bert, frozen = runs
    flags = [*GENERATOR.split(), *frozen[2].split(), "--criterion", "mlm_sent_kl"]
    task, model, criterion = build("electra", *flags)
    with pytest.raises(SystemExit, match="error: --sent-kl-encoder generator trains nothing with --freeze-generator"):
        criterion(model, first_batch(task))
    with torch.no_grad():
        criterion(model, first_batch(task))  # as in validation
    task, model, criterion = build("electra", *flags, "--sent-kl-encoder", "discriminator")
    loss, _, _ = criterion(model, first_batch(task))
    loss.backward()


def test_soft_regularization_moves_the_embeddings_of_the_discriminator(runs, build):
    *_, frozen = runs
    flags = [*GENERATOR.split(), *frozen[2].split(), "--discriminator-loss-weight", 0]
    task, model, criterion = build("electra", *flags, "--criterion", "mlm_soft_reg")
    loss, _, log = criterion(model, first_batch(task))
    loss.backward()
    assert log["soft_reg"] > 0 and model.embeddings.word_embeddings.weight.grad.abs().sum() > 0
