"""Import: the formats of released models, options, and rejected input."""

import io
import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from huggingface_models import PIECES, make_bert, make_electra, refusal, save_models, write_vocabulary
from safetensors.torch import load_file, save_file

from tn_fairseq.__main__ import main
from tn_fairseq.huggingface import keep_layers

transformers = pytest.importorskip("transformers")
HEAD = ["bias", "dense.bias", "dense.weight", "layer_norm.bias", "layer_norm.weight"]
MASKED_LM_HEAD = [f"masked_lm_head.{name}" for name in HEAD]
DETECTOR = [f"discriminator_head.{module}.{kind}" for module in ("dense", "output") for kind in ("bias", "weight")]
QUERY = "bert.encoder.layer.0.attention.self.query.weight"
LAYER = "bert.encoder.layer.1.output.dense.weight"
UNTIED = "cls.predictions.decoder.bias"
BINARIZE = "tn-fairseq data binarize"


@pytest.fixture
def folders(tmp_path, released) -> Path:
    """A copy of the models that tests may damage."""
    shutil.copytree(released, tmp_path / "released")
    return tmp_path / "released"


@pytest.fixture
def convert(wordpiece_bin, tmp_path, capsys):
    """Import a folder; return what is printed and the parameters."""

    def convert_one(folder: Path, *words: object) -> tuple[str, dict[str, torch.Tensor]]:
        output = tmp_path / "imported.pt"
        main([str(word) for word in ("import", folder, "--data", wordpiece_bin, *words, "--output", output)])
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


def test_the_weights_of_the_model_are_not_replaced(released, wordpiece_bin):
    weights = released / "bert" / "model.safetensors"
    before = weights.read_bytes()
    assert f"--output {weights}" in refusal("import", weights.parent, "--data", wordpiece_bin, "--output", weights)
    assert weights.read_bytes() == before


def differing(one: dict, other: dict) -> set[str]:
    return {name for name in one if not torch.equal(one[name], other[name])}


def fresh(names: list[str]) -> str:
    """What is printed about tensors that no folder has."""
    return f"newly initialized, because no folder has them: {', '.join(names)}\n"


def change(folder: Path, function=None, **tensors: torch.Tensor | None) -> None:
    """Apply a function to the dict of a folder's tensors, and set the given ones; None deletes one."""
    path = folder / "model.safetensors"
    content = load_file(path)
    if function:
        function(content)
    content = {name: tensor for name, tensor in (content | tensors).items() if tensor is not None}
    path.unlink()  # the old file may still be memory-mapped
    save_file(content, path, metadata={"format": "pt"})


def configure(folder: Path, **settings: object) -> None:
    """Change the config.json; None deletes a setting."""
    path = folder / "config.json"
    content = json.loads(path.read_text()) | settings
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def with_symbols(data_bin: Path, folder: Path, count: int) -> Path:
    """A copy of a data-bin whose dictionary has more symbols."""
    shutil.copytree(data_bin, folder)
    with open(folder / "dict.txt", "a", encoding="utf-8") as file:
        file.write("".join(f"new{number} 1\n" for number in range(count)))
    return folder


def early(folder: Path) -> None:
    """The names of early releases, which also save an index and a tied copy."""

    def rename(content: dict) -> None:
        for name in list(content):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            content[old] = content.pop(name)
        prefix = "bert." if LAYER in content else ""
        content[f"{prefix}embeddings.position_ids"] = torch.arange(512)[None]
        if prefix:
            content["cls.predictions.decoder.weight"] = content["bert.embeddings.word_embeddings.weight"].clone()

    change(folder, rename)


def as_bin(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def without_a_type(folder: Path) -> None:
    """As in Google's first releases: the names of the tensors tell it."""
    configure(folder, model_type=None, architectures=None)


# Released models


@pytest.mark.parametrize(
    ("name", "rewrite"), [("bert", as_bin), ("bert", early), ("alone", early), ("bert", without_a_type)]
)
def test_other_formats_of_the_same_weights(folders, convert, name, rewrite):
    said, today = convert(folders / name)
    rewrite(folders / name)
    said_again, weights = convert(folders / name)
    assert said_again == said and not differing(today, weights)


def test_half_precision_becomes_float32(folders, convert):
    change(folders / "bert", lambda content: content.update({n: t.half() for n, t in content.items()}))
    assert {t.dtype for n, t in convert(folders / "bert")[1].items() if "." in n} == {torch.float32}


# Encoders without their head of pre-training


def test_a_sentence_encoder_gets_a_new_head_and_loses_its_pooler(folders, convert):
    folder = folders / "alone"
    (folder / "modules.json").write_text('[{"idx": 0, "type": "sentence_transformers.models.Transformer"}]')
    said, new = convert(folder)
    assert f"left out of {folder}: pooler.dense.bias, pooler.dense.weight\n" in said and fresh(MASKED_LM_HEAD) in said
    said, old = convert(folders / "bert")
    assert "left out" not in said and "newly" not in said and differing(new, old) == set(MASKED_LM_HEAD)
    head = {name: new[f"masked_lm_head.{name}"] for name in HEAD}
    assert not head["bias"].any() and not head["dense.bias"].any() and not head["layer_norm.bias"].any()
    assert head["layer_norm.weight"].eq(1).all() and head["dense.weight"].std() == pytest.approx(0.0176, rel=0.1)


def test_what_is_new_neither_depends_on_nor_changes_the_global_random_state(released, convert, tmp_path):
    written = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        later = torch.rand(3)
        torch.manual_seed(seed)
        assert "newly" in convert(released / "alone")[0] and torch.equal(torch.rand(3), later)
        written.append((tmp_path / "imported.pt").read_bytes())
    assert written[0] == written[1]


def test_other_heads_are_left_out_and_named(released, convert, tmp_path):
    folder = write_vocabulary(tmp_path / "classifier")
    model = transformers.ElectraForSequenceClassification.from_pretrained(released / "discriminator")
    model.save_pretrained(folder)
    said, weights = convert(folder)
    names = [f"classifier.{module}.{kind}" for module in ("dense", "out_proj") for kind in ("bias", "weight")]
    assert f"left out of {folder}: {', '.join(names)}\n" in said and fresh(DETECTOR) in said
    changed = differing(weights, convert(released / "discriminator")[1])
    assert {name for name in changed if not name.startswith("generator")} <= set(DETECTOR)


def test_what_there_is_of_a_head_is_kept(folders, convert):
    _, complete = convert(folders / "bert")
    rest = {"cls.predictions.transform.dense.bias": None}
    # the bias of the symbols is there, but only under its other name
    change(folders / "bert", lambda t: t.update({UNTIED: t.pop("cls.predictions.bias")}), **rest)
    said, partial = convert(folders / "bert")
    assert fresh(["masked_lm_head.dense.bias"]) in said and "left out" not in said
    assert differing(complete, partial) == {"masked_lm_head.dense.bias"}


# ELECTRA, and BERT as its discriminator


def test_a_new_generator_is_a_quarter_as_wide(convert, tmp_path):
    make_bert(len(PIECES), num_attention_heads=4).bert.save_pretrained(write_vocabulary(tmp_path / "bert"))
    said, state = convert(tmp_path / "bert", "--as", "electra")
    assert "new generator, because there is no --generator: 31 tensors" in said and fresh(DETECTOR) in said
    assert "--embedding-size 32" in said and "--generator-embed-dim 8" in said
    bert = {name: t for name, t in convert(tmp_path / "bert")[1].items() if not name.startswith("masked_lm_head")}
    assert not differing(bert, {name: state.get(name.replace("encoder.", "discriminator.")) for name in bert})
    assert state["generator.layers.1.ffn_in.weight"].shape == (12, 8)


def test_a_new_generator_has_the_size_of_its_architecture(convert, tmp_path):
    sizes = {"hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512, "embedding_size": 128}
    make_electra(len(PIECES), **sizes)[0].save_pretrained(write_vocabulary(tmp_path / "tiny"))
    said, state = convert(tmp_path / "tiny")
    assert "--arch electra_tiny --finetune-from-model" in said  # without sizes
    assert state["generator.layers.1.ffn_out.weight"].shape == (128, 512)


def test_without_a_generator_a_new_one_uses_the_discriminators_embeddings(released, convert):
    _, one = convert(released / "discriminator")
    said, both = convert(released / "discriminator", "--generator", released / "generator")
    assert "newly" not in said and "new generator" not in said
    assert not differing({name: t for name, t in one.items() if not name.startswith("generator")}, both)
    weights = one["generator.layers.0.ffn_in.weight"]
    assert weights.shape != both["generator.layers.0.ffn_in.weight"].shape
    assert weights.std() == pytest.approx(0.0176, rel=0.1)  # normal of deviation 0.02, truncated at two deviations
    assert not differing(one, convert(released / "discriminator", "--as", "electra")[1])


def test_the_same_folder_as_generator_is_a_copy(released, convert):
    same = released / "generator" / ".." / "bert"  # another spelling
    said, state = convert(released / "bert", "--as", "electra", "--generator", same)
    assert "left out" not in said and fresh(DETECTOR) in said
    _, bert = convert(released / "bert")
    assert all(torch.equal(state[f"generator_head.{name}"], bert[f"masked_lm_head.{name}"]) for name in HEAD)
    said, _ = convert(released / "alone", "--as", "electra", "--generator", released / "alone")
    assert fresh([*DETECTOR, *(f"generator_head.{name}" for name in HEAD)]) in said and "new generator" not in said


def test_another_bert_with_the_same_embeddings_as_generator(released, convert, tmp_path):
    bert = transformers.BertForMaskedLM.from_pretrained(released / "bert")
    bert.bert.encoder.layer = bert.bert.encoder.layer[:1]
    bert.config.num_hidden_layers, bert.config.hidden_dropout_prob = 1, 0.3
    bert.save_pretrained(tmp_path / "shallow")
    said, state = convert(released / "bert", "--as", "electra", "--generator", tmp_path / "shallow")
    assert f"left out of {released / 'bert'}: cls." in said and "left out of {tmp_path" not in said
    assert "--generator-layers 1 " in said and "--dropout" not in said
    assert torch.equal(state["generator_head.dense.weight"], bert.cls.predictions.transform.dense.weight)


def test_an_untied_head_matters_only_where_it_is_used(folders, convert, refused):
    folder = folders / "bert"
    change(folder, **{UNTIED: torch.zeros(len(PIECES))})
    assert UNTIED in convert(folder, "--as", "electra")[0]
    assert UNTIED in refused(folder, "--as", "electra", "--generator", folder)


def test_positions_can_be_removed_but_not_added(released, convert, refused, tmp_path):
    said, state = convert(released / "bert", "--max-positions", 100)
    assert "removed: the last 412 position" in said and "--max-positions 100 " in said
    assert "--encoder-ffn-embed-dim 48" in said
    cfg = torch.load(tmp_path / "imported.pt", weights_only=True)["cfg"]["model"]
    assert cfg["encoder_embed_dim"] == 32 and cfg["max_positions"] == 100 == state["trained_positions"]
    theirs = load_file(released / "bert" / "model.safetensors")["bert.embeddings.position_embeddings.weight"]
    assert torch.equal(state["embeddings.position_embeddings.weight"], theirs[:100])
    for wrong in (513, 0):
        assert f"--max-positions {wrong}" in refused(released / "bert", "--max-positions", wrong)


# Some of the layers


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> Path:
    """BERT and ELECTRA of four layers, and BERT and the discriminator with two of them."""
    folder = tmp_path_factory.mktemp("deep")
    discriminator, generator = make_electra(len(PIECES), num_hidden_layers=4)
    models = {"discriminator": discriminator, "bert": make_bert(len(PIECES), num_hidden_layers=4)}
    save_models(folder, {**models, "generator": generator})
    save_models(folder / "cut", {name: keep_layers(model, [0, 3]) for name, model in models.items()})
    return folder


@pytest.mark.parametrize(
    ("name", "words"),
    [("bert", []), ("bert", ["--as", "electra"]), ("discriminator", ["--generator", "generator"])],
)
def test_a_student_is_the_import_of_a_model_that_was_cut(deep, convert, name, words):
    words = [deep / word if word == "generator" else word for word in words]
    said, student = convert(deep / name, *words, "--keep-layers", "0,3")
    said_of_cut, expected = convert(deep / "cut" / name, *words)
    assert student.keys() == expected.keys() and not differing(student, expected)
    line = "kept 2 of 4 layers: 0,3\n"
    assert line in said and said.replace(line, "") == said_of_cut.replace(str(deep / "cut"), str(deep))


def test_the_same_folder_as_generator_keeps_all_layers_and_gets_new_symbols(deep, convert, wordpiece_bin, tmp_path):
    more = with_symbols(wordpiece_bin, tmp_path / "more-bin", 1)
    words = ["--as", "electra", "--generator", deep / "bert", "--new-symbols", "--data", more]
    said, student = convert(deep / "bert", *words, "--keep-layers", "1,3")
    _, whole = convert(deep / "bert", *words)
    assert "left out" not in said and "--generator-layers 4 " in said
    shared = {name: tensor for name, tensor in whole.items() if name.startswith(("generator", "embeddings"))}
    assert not differing(shared, student)
    for ours, theirs in ((0, 1), (1, 3)):
        name = "discriminator.layers.{}.ffn_in.weight"
        assert torch.equal(student[name.format(ours)], whole[name.format(theirs)])
    name = "embeddings.word_embeddings.weight"
    assert len(student[name]) == len(convert(deep / "bert")[1][name]) + 1


def test_errors_name_the_layers_of_the_folder(deep, refused, tmp_path):
    for layers in ("0,4", "a,b"):
        error = refused(deep / "bert", "--keep-layers", layers)
        assert f"--keep-layers {layers}" in error and "0 to 3" in error
    folder = shutil.copytree(deep / "bert", tmp_path / "bert")
    name = LAYER.replace(".1.", ".3.")
    change(folder, **{name: torch.full((32, 48), torch.nan)})
    assert name in refused(folder, "--keep-layers", "0,3")
    configure(folder, num_hidden_layers=3)
    assert "bert.encoder.layer.3." in refused(folder, "--keep-layers", "0,2")


# Invalid input


def replace_file(missing: str, written: str | None = None, content: bytes = b""):
    """A function that deletes a file of a folder, and writes another."""

    def function(folder: Path) -> None:
        (folder / missing).unlink()
        if written:
            (folder / written).write_bytes(content)

    return function


def text_only() -> bytes:
    """A .bin file without a tensor."""
    file = io.BytesIO()
    torch.save({"weight": "text"}, file)
    return file.getvalue()


def resize(folder: Path) -> None:
    model = transformers.BertForMaskedLM.from_pretrained(folder)
    model.resize_token_embeddings(len(PIECES) - 6)
    model.save_pretrained(folder)


def without_type_and_prefix(folder: Path) -> None:
    without_a_type(folder)
    change(folder, lambda content: [content.update({n.removeprefix("bert."): content.pop(n)}) for n in list(content)])


ADAPTER = "encoder.layer.0.adapter.weight"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
SWAPPED = [*PIECES[:20], PIECES[21], PIECES[20], *PIECES[22:]]
WEIGHTS, CONFIG = "model.safetensors", "tokenizer_config.json"
# what the error must name, and what is wrong with the folder of a BERT
WRONG = [
    (LAYER, lambda folder: change(folder, **{LAYER: None})),
    (ADAPTER, lambda folder: change(folder, **{ADAPTER: torch.zeros(1)})),
    (f"{QUERY} has shape (3, 3)", lambda folder: change(folder, **{QUERY: torch.zeros(3, 3)})),  # not the key's
    (f"{LAYER} is int8", lambda folder: change(folder, **{LAYER: torch.zeros(32, 48, dtype=torch.int8)})),
    ("cls.predictions.bias", lambda folder: change(folder, **{"cls.predictions.bias": torch.tensor(1.0)})),
    (LAYER, lambda folder: change(folder, **{LAYER: torch.full((32, 48), -torch.inf)})),
    (UNTIED, lambda folder: change(folder, **{UNTIED: torch.zeros(len(PIECES))})),
    ("roberta", lambda folder: configure(folder, model_type="roberta")),
    ("hidden_act", lambda folder: configure(folder, hidden_act="gelu_new")),
    ("hidden_size '32'", lambda folder: configure(folder, hidden_size="32")),
    ("num_attention_heads 5", lambda folder: configure(folder, num_attention_heads=5)),
    ("hidden_dropout_prob 10", lambda folder: configure(folder, hidden_dropout_prob=10)),
    ("model_type", without_type_and_prefix),
    ("config.json", replace_file("config.json")),
    ("max_shard_size", replace_file(WEIGHTS)),
    ("git lfs pull", replace_file(WEIGHTS, WEIGHTS, LFS)),
    ("pytorch_model.bin", replace_file(WEIGHTS, "pytorch_model.bin", pickle.dumps({"weight": 1}))),
    ("pytorch_model.bin", replace_file(WEIGHTS, "pytorch_model.bin", text_only())),
    ("vocab.txt", replace_file("vocab.txt")),
    ("lower case", replace_file(CONFIG, CONFIG, b'{"do_lower_case": false}')),
    (BINARIZE, lambda folder: write_vocabulary(folder, SWAPPED)),
    ("'surplus'", lambda folder: write_vocabulary(folder, [*PIECES, "surplus"])),
    (f"resize_token_embeddings({len(PIECES)})", resize),
]


@pytest.mark.parametrize("named, damage", WRONG)
def test_a_folder_that_does_not_fit_is_refused(folders, refused, named, damage):
    folder = folders / ("alone" if named == ADAPTER else "bert")
    damage(folder)
    error = refused(folder)
    assert named in error and str(folder) in error, error


def test_data_without_a_tokenizer_is_refused(released, refused, data_bin):
    assert BINARIZE in refused(released / "bert", data_bin=data_bin)


def test_embeddings_that_are_padded(folders, convert, wordpiece_bin):
    """The rows of tokens are imported, and the others are counted, also with new symbols."""
    folder = folders / "bert"
    _, before = convert(folder)
    model = transformers.BertForMaskedLM.from_pretrained(folder)
    model.resize_token_embeddings(len(PIECES), pad_to_multiple_of=64)
    model.save_pretrained(folder)
    padding = -len(PIECES) % 64
    said = f"left out of {folder}: the last {padding} rows of its embeddings, which belong to no token"
    for words in ([], ["--new-symbols"]):
        out, after = convert(folder, *words)
        assert said in out and not differing(before, after)


@pytest.fixture(scope="module")
def strangers(released, tmp_path_factory) -> Path:
    """The released models, and generators that do not fit them."""
    folder = tmp_path_factory.mktemp("strangers") / "released"
    shutil.copytree(released, folder)
    make_electra(len(PIECES), seed=7)[1].save_pretrained(folder / "stranger")
    make_bert(len(PIECES), max_position_embeddings=100).save_pretrained(folder / "short")
    return folder


@pytest.mark.parametrize(
    ("source", "generator", "named"),
    [
        ("generator", None, "--generator"),
        ("discriminator", "discriminator", "/discriminator"),
        ("bert", "generator", "--as electra"),
        ("discriminator", "bert", "/bert/config.json"),
        ("discriminator", "stranger", "/stranger: electra.embeddings"),
        ("bert --as electra", "short", "/short/config.json"),
    ],
)
def test_a_generator_that_does_not_fit(strangers, refused, source, generator, named):
    name, *words = source.split()
    more = ["--generator", strangers / generator] if generator else []
    assert named in refused(strangers / name, *words, *more).replace(str(strangers), "")


def test_new_symbols_get_rows_with_the_spread_of_the_others(folders, convert, refused, wordpiece_bin, tmp_path):
    """The existing rows stay as they are, bit for bit."""
    more = with_symbols(wordpiece_bin, tmp_path / "more-bin", 50)
    _, before = convert(folders / "bert")
    _, after = convert(folders / "bert", "--new-symbols", "--data", more)
    assert before.keys() == after.keys()
    for name in before.keys() - {"dictionary_fingerprint"}:
        tensor, rows = before[name], after[name]
        if tensor.shape == rows.shape:
            assert torch.equal(rows, tensor), name
            continue
        assert name in ("embeddings.word_embeddings.weight", "masked_lm_head.bias")
        assert len(rows) == len(tensor) + 50
        new = rows[len(tensor) - 1 : -1]  # <mask> is the last symbol
        assert torch.equal(torch.cat([rows[: len(tensor) - 1], rows[-1:]]), tensor)
        torch.testing.assert_close(new.mean(), tensor.mean(), atol=0.01, rtol=0)
        assert name == "masked_lm_head.bias" or new.std() == pytest.approx(tensor.std().item(), rel=0.1)
    assert "new0" in refused(folders / "bert", data_bin=more)
