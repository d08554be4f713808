"""``tn-fairseq exchange`` together with ``fairseq-train``."""

import io
import math
import shlex
from contextlib import redirect_stdout

import pytest
import torch
from fairseq import tasks
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from helpers import train_here
from huggingface_models import PIECES, make_bert, make_electra, write_bin, write_vocabulary

from tn_fairseq.__main__ import main
from tn_fairseq.huggingface.vocabulary_files import read_data_bin

transformers = pytest.importorskip("transformers")


def imports(*words: object) -> str:
    """What ``tn-fairseq exchange import`` prints."""
    with redirect_stdout(io.StringIO()) as printed:
        main(["exchange", "import", *map(str, words)])
    return printed.getvalue()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A vocabulary, text binarized with it, and imported BERT and ELECTRA with their originals."""
    folder = tmp_path_factory.mktemp("world")
    data_bin = write_bin(folder / "data", write_vocabulary(folder / "vocabulary"))
    # unlike a newly initialized model, whose loss is that of a uniform guess
    bert = make_bert(len(PIECES))
    discriminator, generator = make_electra(len(PIECES))
    with torch.no_grad():
        bert.cls.predictions.bias.normal_(0, 3)
        generator.generator_lm_head.bias.normal_(0, 3)
    models = {"bert": bert, "discriminator": discriminator, "generator": generator}
    for name, model in models.items():
        model.save_pretrained(folder / name)
        write_vocabulary(folder / name)
    flags = {}
    for name, more in (("bert", []), ("discriminator", ["--generator", folder / "generator"])):
        output = folder / f"{name}.pt"
        told = imports(folder / name, *more, "--data", data_bin, "--output", output)
        told = told.split("continue with: fairseq-train ")[1].split()
        flags[name] = told[told.index("--task") : told.index("--finetune-from-model")]
    return folder, data_bin, flags, models


@pytest.fixture(scope="module")
def imported(request, world):
    """An imported checkpoint, its data, the flags printed by the import, and the original's masked-LM loss in bits."""
    folder, data_bin, flags, models = world
    name = "bert" if request.param == "bert" else "discriminator"
    masked_lm = models["bert" if request.param == "bert" else "generator"]
    return folder / f"{name}.pt", data_bin, flags[name], first_loss(data_bin, folder / f"{name}.pt", masked_lm)


@torch.no_grad()
def first_loss(data_bin, checkpoint, masked_lm) -> float:
    """The loss of ``transformers`` on the first batch of fairseq-train."""
    cfg = load_checkpoint_to_cpu(str(checkpoint))["cfg"]
    cfg.task.tokens_per_sample = 32
    task = tasks.setup_task(cfg.task)
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_sentences=8, seed=1, required_batch_size_multiple=8)
    batch = next(batches.next_epoch_itr(shuffle=True))
    dictionary, tokenizer = read_data_bin(data_bin)
    token_ids = torch.from_numpy(tokenizer.token_ids(dictionary))
    tokens, target = batch["net_input"]["src_tokens"], batch["target"]
    pad = dictionary.pad()
    masked = target.ne(pad)
    more = {"attention_mask": tokens.ne(pad).long(), "token_type_ids": batch["net_input"]["token_types"]}
    logits = masked_lm(token_ids[tokens], **more).logits[masked]
    nll = torch.nn.functional.cross_entropy(logits, token_ids[target[masked]])
    return nll.item() / math.log(2)


RESETS = [f"--reset-{what}" for what in ("optimizer", "lr-scheduler", "dataloader", "meters")]


@pytest.mark.parametrize(
    ("imported", "start"),
    [
        ("bert", ["--finetune-from-model"]),
        ("electra", ["--finetune-from-model"]),
        ("electra", ["--restore-file"]),
        ("electra", ["--restore-file", *RESETS]),
    ],
    indirect=["imported"],
)
def test_pre_training_starts_with_the_loss_of_the_imported_model(imported, start, tmp_path):
    checkpoint, data_bin, flags, expected = imported
    option, *resets = start
    flags = [*flags, "--criterion", "electra", "--dropout", 0, "--attention-dropout", 0, "--max-update", 2, *resets]
    records = train_here(data_bin, tmp_path, *flags, option, checkpoint)["train_inner"]
    assert [record["num_updates"] for record in records] == ["1", "2"]
    assert float(records[0]["nll_loss"]) == pytest.approx(expected, abs=2e-3)
    assert abs(expected - math.log2(len(PIECES))) > 1  # the loss of a new model


@pytest.mark.parametrize("words", [[], ["--as", "electra"]])
def test_the_printed_command_trains_a_student(world, words, tmp_path):
    folder, data_bin, _, models = world
    words = [*words, "--keep-layers", "1", "--data", data_bin, "--output", tmp_path / "student.pt"]
    told = imports(folder / "bert", *words)
    assert "kept 1 of 2 layers: 1\n" in told
    command = shlex.split(told.split("continue with: ")[1].removesuffix(" ...\n"))
    assert command[:2] == ["fairseq-train", str(data_bin)]
    position = command.index("--user-dir")
    flags = [*command[2:position], *command[position + 2 :]]  # the same plugin is loaded already
    flags += ["--criterion", "electra", "--dropout", 0, "--attention-dropout", 0, "--max-update", 2]
    records = train_here(data_bin, tmp_path / "checkpoints", *flags)["train_inner"]
    assert [record["num_updates"] for record in records] == ["1", "2"]
    trained = torch.load(tmp_path / "checkpoints" / "checkpoint_last.pt", weights_only=False)["model"]
    assert {name.split(".")[2] for name in trained if ".layers." in name} == {"0"}
    if "--as" not in words:
        student = type(models["bert"])(models["bert"].config)
        student.load_state_dict(models["bert"].state_dict())
        student.bert.encoder.layer = student.bert.encoder.layer[1:]
        expected = first_loss(data_bin, tmp_path / "student.pt", student.eval())
        assert float(records[0]["nll_loss"]) == pytest.approx(expected, abs=2e-3)
