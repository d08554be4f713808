"""Import: the formats of released models, options, and rejected input."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from helpers import Bomb
from huggingface_models import PIECES, make_bert, make_electra, refusal, write_vocabulary
from safetensors.torch import load_file, save_file

from tn_fairseq.huggingface.__main__ import main
from tn_fairseq.huggingface.importing import Imported, import_model

transformers = pytest.importorskip("transformers")
HEAD = ["bias", "dense.bias", "dense.weight", "layer_norm.bias", "layer_norm.weight"]
MASKED_LM_HEAD = [f"masked_lm_head.{name}" for name in HEAD]
DETECTOR = [f"discriminator_head.{module}.{kind}" for module in ("dense", "output") for kind in ("bias", "weight")]
QUERY = "bert.encoder.layer.0.attention.self.query.weight"
LAYER = "bert.encoder.layer.1.output.dense.weight"
UNTIED = "cls.predictions.decoder.bias"


@pytest.fixture
def folders(tmp_path, released) -> Path:
    """A copy of the models that tests may damage."""
    shutil.copytree(released, tmp_path / "released")
    return tmp_path / "released"


@pytest.fixture
def convert(wordpiece_bin, tmp_path):
    """Import a folder; return the result and the parameters."""

    def convert_one(folder: Path, **options) -> tuple[Imported, dict[str, torch.Tensor]]:
        imported = import_model(folder, wordpiece_bin, tmp_path / "imported.pt", **options)
        return imported, torch.load(tmp_path / "imported.pt", weights_only=True)["model"]

    return convert_one


@pytest.fixture
def printed(wordpiece_bin, tmp_path, capsys):
    """Import on the command line; return what is printed and the parameters."""

    def convert_one(folder: Path, *words: object) -> tuple[str, dict[str, torch.Tensor]]:
        output = tmp_path / "imported.pt"
        main([str(word) for word in ("import", folder, *words, "--data", wordpiece_bin, "--output", output)])
        return capsys.readouterr().out, torch.load(output, weights_only=True)["model"]

    return convert_one


@pytest.fixture
def refused(wordpiece_bin, tmp_path):
    """The error of the import, which writes no file."""

    def import_one(folder: Path, *words: object, data_bin: Path = wordpiece_bin) -> str:
        output = tmp_path / "out" / "out.pt"
        message = refusal("import", folder, *words, "--data", data_bin, "--output", output)
        assert not output.parent.exists() or not list(output.parent.iterdir())
        return message

    return import_one


def differing(one: dict, other: dict) -> set[str]:
    return {name for name in one if not torch.equal(one[name], other[name])}


def tensors(change):
    """A damage that changes the tensors of a folder; ``change`` gets the dict."""

    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        content = load_file(path)
        change(content)
        path.unlink()  # the old file may still be memory-mapped
        save_file(content, path, metadata={"format": "pt"})

    return damage


def tensor(name: str, value: torch.Tensor):
    return tensors(lambda content: content.update({name: value}))


def config(**values):
    def damage(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return damage


def instead(old: str, new: str, content: object = None):
    """A damage that deletes a file and writes another one: text, bytes, a function of the folder, or an object."""

    def damage(folder: Path) -> None:
        (folder / old).unlink()
        if isinstance(content, (str, bytes)):
            (folder / new).write_bytes(content.encode() if isinstance(content, str) else content)
        elif content is not None:
            torch.save(content(folder) if callable(content) else content, folder / new)

    return damage


def early(content: dict) -> None:
    """The names of early releases, which also save an index and a tied copy."""
    for name in list(content):
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        content[old] = content.pop(name)
    prefix = "bert." if LAYER in content else ""
    content[f"{prefix}embeddings.position_ids"] = torch.arange(512)[None]
    if prefix:
        content["cls.predictions.decoder.weight"] = content["bert.embeddings.word_embeddings.weight"].clone()


def as_bin(folder: Path) -> None:
    instead("model.safetensors", "pytorch_model.bin", load_file(folder / "model.safetensors"))(folder)


# Released models


@pytest.mark.parametrize(("name", "change"), [("bert", as_bin), ("bert", tensors(early)), ("alone", tensors(early))])
def test_other_formats_of_the_same_weights(folders, convert, name, change):
    imported, today = convert(folders / name)
    change(folders / name)
    other, weights = convert(folders / name)
    assert imported == other and not differing(today, weights)


def test_berts_next_sentence_head_is_left_out_and_named(released, printed, tmp_path):
    masked_lm = make_bert(len(PIECES))
    model = transformers.BertForPreTraining(masked_lm.config)
    model.load_state_dict(masked_lm.state_dict(), strict=False)
    model.save_pretrained(write_vocabulary(tmp_path / "bert"))
    said, weights = printed(tmp_path / "bert")
    assert f"left out of {tmp_path / 'bert'}: bert.pooler.dense.bias, bert.pooler.dense.weight, cls.seq_" in said
    assert not differing(weights, printed(released / "bert")[1])


def test_half_precision_becomes_float32(folders, convert):
    tensors(lambda content: content.update({n: t.half() for n, t in content.items()}))(folders / "bert")
    assert {t.dtype for n, t in convert(folders / "bert")[1].items() if "." in n} == {torch.float32}


# Encoders without their head of pre-training


def test_a_sentence_encoder_gets_a_new_head_and_loses_its_pooler(folders, convert, printed):
    folder = folders / "alone"
    (folder / "1_Pooling").mkdir()
    (folder / "modules.json").write_text('[{"idx": 0, "type": "sentence_transformers.models.Transformer"}]')
    said, new = printed(folder)
    assert f"left out of {folder}: pooler.dense.bias, pooler.dense.weight\n" in said
    assert f"newly initialized, because no folder has them: {', '.join(MASKED_LM_HEAD)}\n" in said
    complete, old = convert(folders / "bert")
    assert complete.fresh == [] and complete.left_out == {}
    assert differing(new, old) == set(MASKED_LM_HEAD)
    head = {name: new[f"masked_lm_head.{name}"] for name in HEAD}
    assert not head["bias"].any() and not head["dense.bias"].any() and not head["layer_norm.bias"].any()
    assert head["layer_norm.weight"].eq(1).all() and head["dense.weight"].std() == pytest.approx(0.0176, rel=0.1)


@pytest.mark.parametrize("name", ["alone", "discriminator"])
def test_what_is_new_neither_depends_on_nor_changes_the_global_random_state(released, convert, tmp_path, name):
    written = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        later = torch.rand(3)
        torch.manual_seed(seed)
        assert convert(released / name)[0].fresh and torch.equal(torch.rand(3), later)
        written.append((tmp_path / "imported.pt").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        ("BertForSequenceClassification", {"bert.pooler.dense", "classifier"}),
        ("BertForTokenClassification", {"classifier"}),
        ("BertForQuestionAnswering", {"qa_outputs"}),
        ("ElectraModel", set()),
        ("ElectraForSequenceClassification", {"classifier.dense", "classifier.out_proj"}),
    ],
)
def test_heads_of_tasks_are_left_out_and_named(released, convert, tmp_path, kind, left_out):
    name, head = ("bert", MASKED_LM_HEAD) if kind.startswith("Bert") else ("discriminator", DETECTOR)
    getattr(transformers, kind).from_pretrained(released / name).save_pretrained(write_vocabulary(tmp_path / kind))
    imported, one = convert(tmp_path / kind)
    assert {name.rpartition(".")[0] for name in imported.left_out.get(tmp_path / kind, [])} == left_out
    assert [name for name in imported.fresh if not name.startswith("generator")] == head
    assert differing(one, convert(released / name)[1]) <= set(imported.fresh)


def test_what_there_is_of_a_head_is_kept(folders, convert):
    _, complete = convert(folders / "bert")

    def damage(content):
        content.pop("cls.predictions.transform.dense.bias")
        content[UNTIED] = content.pop("cls.predictions.bias")  # only under its other name

    tensors(damage)(folders / "bert")
    imported, partial = convert(folders / "bert")
    assert imported.fresh == ["masked_lm_head.dense.bias"] and imported.left_out == {}
    assert differing(complete, partial) == {"masked_lm_head.dense.bias"}


# BERT as the discriminator of ELECTRA


def test_a_new_generator_is_a_quarter_as_wide(convert, printed, tmp_path):
    make_bert(len(PIECES), num_attention_heads=4).bert.save_pretrained(write_vocabulary(tmp_path / "bert"))
    said, state = printed(tmp_path / "bert", "--as", "electra")
    assert "new generator, because there is no --generator: 31 tensors" in said
    assert f"newly initialized, because no folder has them: {', '.join(DETECTOR)}\n" in said
    assert "--embedding-size 32" in said and "--generator-embed-dim 8" in said
    bert = {name: t for name, t in convert(tmp_path / "bert")[1].items() if not name.startswith("masked_lm_head")}
    assert not differing(bert, {name: state.get(name.replace("encoder.", "discriminator.")) for name in bert})
    assert state["generator.layers.1.ffn_in.weight"].shape == (12, 8)


def test_the_same_folder_as_generator_is_a_copy(released, convert):
    same = released / "generator" / ".." / "bert"  # another spelling
    imported, state = convert(released / "bert", generator=same, as_electra=True)
    assert imported.left_out == {} and imported.fresh == DETECTOR
    layers = [name for name in state if name.startswith("generator.")]
    assert len(layers) == 24
    assert all(torch.equal(state[name], state[name.replace("generator.", "discriminator.")]) for name in layers)
    _, bert = convert(released / "bert")
    assert all(torch.equal(state[f"generator_head.{name}"], bert[f"masked_lm_head.{name}"]) for name in HEAD)


def test_a_copy_of_an_encoder_without_a_head_gets_a_new_head(released, printed):
    said, _ = printed(released / "alone", "--as", "electra", "--generator", released / "alone")
    assert f", {', '.join(f'generator_head.{name}' for name in HEAD)}\n" in said and "new generator" not in said


def test_another_bert_with_the_same_embeddings_as_generator(released, convert, tmp_path):
    bert = transformers.BertForMaskedLM.from_pretrained(released / "bert")
    bert.bert.encoder.layer = bert.bert.encoder.layer[:1]
    bert.config.num_hidden_layers, bert.config.hidden_dropout_prob = 1, 0.3
    bert.save_pretrained(tmp_path / "shallow")
    imported, state = convert(released / "bert", generator=tmp_path / "shallow", as_electra=True)
    assert imported.left_out.keys() == {released / "bert"}  # its masked-LM head
    flags = dict(zip(imported.size_flags[::2], imported.size_flags[1::2]))
    assert flags["--generator-layers"] == "1" and "--dropout" not in flags
    assert torch.equal(state["generator_head.dense.weight"], bert.cls.predictions.transform.dense.weight)


def test_electra_stays_electra(released, convert):
    (one, weights), (other, same) = (convert(released / "discriminator", as_electra=flag) for flag in (False, True))
    assert one == other and not differing(weights, same)


def test_an_untied_head_matters_only_where_it_is_used(folders, convert, refused):
    folder = folders / "bert"
    tensor(UNTIED, torch.zeros(len(PIECES)))(folder)
    assert UNTIED in convert(folder, as_electra=True)[0].left_out[folder]
    assert f"{UNTIED} is not tied" in refused(folder, "--as", "electra", "--generator", folder)


# Options


def test_without_a_generator_a_new_one_uses_the_discriminators_embeddings(released, convert, printed):
    said, one = printed(released / "discriminator")
    assert "new generator, because there is no --generator: " in said
    imported, both = convert(released / "discriminator", generator=released / "generator")
    assert imported.fresh == []
    assert not differing({name: t for name, t in one.items() if not name.startswith("generator")}, both)
    fresh = one["generator.layers.0.ffn_in.weight"]
    assert fresh.shape != both["generator.layers.0.ffn_in.weight"].shape  # a quarter of the discriminator's heads
    assert fresh.std() == pytest.approx(0.0176, rel=0.1)  # normal of deviation 0.02, truncated at two deviations


def test_a_new_generator_has_the_size_of_its_architecture(convert, tmp_path):
    small = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024, "num_hidden_layers": 12}
    discriminator, _ = make_electra(len(PIECES), embedding_size=128, **small)
    discriminator.save_pretrained(write_vocabulary(tmp_path / "small"))
    imported, state = convert(tmp_path / "small")
    assert (imported.arch, imported.size_flags) == ("electra_small", [])
    assert state["generator.layers.11.ffn_out.weight"].shape == (64, 256)


def test_positions_can_be_removed_but_not_added(released, convert, refused, tmp_path):
    imported, state = convert(released / "bert", max_positions=100)
    assert imported.cut_positions == 412
    flags = dict(zip(imported.size_flags[::2], imported.size_flags[1::2]))
    assert flags["--max-positions"] == "100" and flags["--encoder-ffn-embed-dim"] == "48"
    cfg = torch.load(tmp_path / "imported.pt", weights_only=True)["cfg"]["model"]
    assert cfg["encoder_embed_dim"] == 32 and cfg["max_positions"] == 100
    theirs = load_file(released / "bert" / "model.safetensors")["bert.embeddings.position_embeddings.weight"]
    assert torch.equal(state["embeddings.position_embeddings.weight"], theirs[:100])
    for wrong in (513, 0, -1):
        error = refused(released / "bert", "--max-positions", wrong)
        assert f"--max-positions {wrong}" in error and "512" in error


# Invalid input


def resize(folder: Path) -> None:
    model = transformers.BertForMaskedLM.from_pretrained(folder)
    model.resize_token_embeddings(len(PIECES) + 6)
    model.save_pretrained(folder)


def shard(folder: Path) -> None:
    instead("model.safetensors", "model.safetensors.index.json", '{"weight_map": {}}')(folder)


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def weights(new: str, content: object = None):
    return instead("model.safetensors", new, content)


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
SWAPPED = [*PIECES[:20], PIECES[21], PIECES[20], *PIECES[22:]]
BINARIZE = "python -m tn_fairseq.preprocessing binarize"
# folder, what is done to it, and what the error says
DAMAGE = {
    "another architecture": ("bert", config(model_type="roberta"), ["'roberta'", "bert and electra"]),
    "no architecture": ("bert", config(model_type=None), ["None"]),
    "an architecture that is a list": ("bert", config(model_type=["bert"]), ["['bert']"]),
    "a missing tensor": ("bert", tensors(lambda t: t.pop(LAYER)), [f"lacks {LAYER};"]),
    "a missing tensor without a prefix": (
        "alone",
        tensors(lambda t: t.pop("embeddings.LayerNorm.bias")),
        ["lacks embeddings.LayerNorm.bias;"],
    ),
    "another part of an encoder": (
        "bert",
        tensor("bert.encoder.layer.0.adapter.weight", torch.zeros(1)),
        ["also has bert.encoder.layer.0.adapter.weight;"],
    ),
    "another part without a prefix": (
        "alone",
        tensor("encoder.layer.0.adapter.weight", torch.zeros(1)),
        ["also has encoder.layer.0.adapter.weight;"],
    ),
    "more layers than in config.json": ("bert", config(num_hidden_layers=1), ["layer.1.", "more"]),
    "a tensor with another shape": ("bert", tensor(LAYER, torch.zeros(3, 3)), ["(3, 3)", LAYER]),
    "a query with another shape than its key": ("bert", tensor(QUERY, torch.zeros(3, 3)), ["(3, 3)", QUERY]),
    "a quantized tensor": (
        "bert",
        tensors(lambda t: t.update({LAYER: t[LAYER].mul(50).to(torch.int8)})),
        [f"{LAYER} is int8", "before quantization"],
    ),
    "a tensor that is a number": (
        "bert",
        tensor("cls.predictions.bias", torch.tensor(1.0)),
        ["cls.predictions.bias has shape ()"],
    ),
    "a value that is NaN": ("bert", tensor(LAYER, torch.full((32, 48), torch.nan)), [f"{LAYER} has", "NaN"]),
    "an infinite value": (
        "bert",
        tensors(lambda t: t[QUERY].view(-1)[:1].fill_(-torch.inf)),
        [f"{QUERY} has values that are NaN or infinite"],
    ),
    "a head that is not tied": ("bert", tensor(UNTIED, torch.zeros(len(PIECES))), [UNTIED, "tied"]),
    "another activation": ("bert", config(hidden_act="gelu_new"), ["hidden_act", "'gelu_new'"]),
    "relative positions": ("bert", config(position_embedding_type="relative_key"), ["position_embedding_type"]),
    "another epsilon": ("bert", config(layer_norm_eps=1e-5), ["layer_norm_eps", "1e-05"]),
    "no size": ("bert", config(hidden_size=None), ["hidden_size"]),
    "a size that is text": ("bert", config(hidden_size="32"), ["hidden_size", "'32'"]),
    "heads that do not divide": ("bert", config(num_attention_heads=5), ["num_attention_heads 5"]),
    "a rate above one": ("bert", config(hidden_dropout_prob=10), ["hidden_dropout_prob"]),
    "config.json is missing": ("bert", instead("config.json", ""), ["config.json"]),
    "config.json is cut": ("bert", instead("config.json", "config.json", '{"model_type": '), ["config.json", "JSON"]),
    "config.json is a list": ("bert", instead("config.json", "config.json", "[]"), ["config.json", "list"]),
    "weights are missing": ("bert", weights(""), ["model.safetensors"]),
    "weights are cut short": ("bert", cut, ["model.safetensors", "cut short"]),
    "weights are sharded": ("bert", shard, ["index.json", "max_shard_size"]),
    "an incomplete download": ("bert", weights("model.safetensors.part", b""), ["model.safetensors.part"]),
    "weights are a pointer": ("bert", weights("model.safetensors", LFS), ["git lfs pull"]),
    "weights are TensorFlow's": ("bert", weights("tf_model.h5", b""), ["tf_model.h5"]),
    "weights are a pickle": (
        "bert",
        lambda f: weights("pytorch_model.bin", pickle.dumps(Bomb(f / "it ran")))(f),
        ["pytorch_model.bin"],
    ),
    "weights are a pickle made by torch": (
        "bert",
        weights("pytorch_model.bin", lambda f: {"weight": Bomb(f / "it ran")}),
        ["pytorch_model.bin", "refused"],
    ),
    "weights are not tensors": ("bert", weights("pytorch_model.bin", {"weight": "text"}), ["pytorch_model.bin"]),
    "another order of the pieces": (
        "bert",
        lambda f: write_vocabulary(f, SWAPPED),
        [f"token 20 is '{PIECES[21]}', but '{PIECES[20]}'", BINARIZE],
    ),
    "one more piece": (
        "bert",
        lambda f: write_vocabulary(f, [*PIECES, "surplus"]),
        [f"token {len(PIECES)} is 'surplus'"],
    ),
    "pieces that split text differently": (
        "bert",
        instead("tokenizer_config.json", "tokenizer_config.json", '{"do_lower_case": false}'),
        ["lower case"],
    ),
    "no tokenizer": ("bert", instead("vocab.txt", ""), ["vocab.txt"]),
    "more rows than pieces": ("bert", resize, [str(len(PIECES) + 6), "resize_token_embeddings"]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_gets_one_line(name, folders, refused):
    folder, damage, expected = DAMAGE[name]
    damage(folders / folder)
    error = refused(folders / folder)
    assert [words for words in [str(folders / folder), *expected] if words not in error] == [], error
    assert not (folders / folder / "it ran").exists()


def test_a_data_bin_without_a_tokenizer(released, data_bin, refused):
    error = refused(released / "bert", data_bin=data_bin)
    assert "tokenizer" in error and BINARIZE in error


@pytest.fixture(scope="module")
def strangers(released, tmp_path_factory) -> Path:
    """The released models, and generators that do not fit them."""
    folder = tmp_path_factory.mktemp("strangers") / "released"
    shutil.copytree(released, folder)
    make_electra(len(PIECES), seed=7)[1].save_pretrained(folder / "stranger")
    make_electra(len(PIECES), max_position_embeddings=64)[1].save_pretrained(folder / "short")
    make_bert(len(PIECES), hidden_size=64, max_position_embeddings=100).save_pretrained(folder / "wide")
    shutil.copytree(folder / "generator", folder / "damaged")
    tensor("generator_predictions.dense.weight", torch.zeros(3, 3))(folder / "damaged")
    return folder


@pytest.mark.parametrize(
    ("source", "generator", "expected"),
    [
        ("generator", None, "is ELECTRA's generator, because it has generator_*give the folder of the discriminator"),
        (
            "discriminator",
            "discriminator",
            "is ELECTRA's discriminator, because it has discriminator_predictions.dense.bias",
        ),
        ("bert", "generator", "--generator /generator: BERT has no generator*--as electra"),
        ("discriminator", "bert", "embedding size 32, but 16"),
        ("discriminator", "stranger", "electra.embeddings*share"),
        ("discriminator", "short", "max positions 64, but 512"),
        ("discriminator", "damaged", "/damaged: generator_predictions.dense.weight has shape (3, 3)"),
        ("bert --as electra", "wide", "/wide/config.json: max positions 100, but 512 in the discriminator"),
    ],
)
def test_a_generator_that_does_not_fit(strangers, refused, source, generator, expected):
    name, *words = source.split()
    more = ["--generator", strangers / generator] if generator else []
    error = refused(strangers / name, *words, *more).replace(str(strangers), "")
    assert all(part in error for part in expected.split("*")), error


@pytest.mark.parametrize("output", ["file/out.pt", "folder", "."])
def test_an_output_that_cannot_be_written(released, wordpiece_bin, tmp_path, output, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    assert "--output" in refusal("import", released / "bert", "--data", wordpiece_bin, "--output", output)
