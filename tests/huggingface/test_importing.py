"""Import: the formats of released models, options, and rejected input."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from helpers import WORDS, Bomb
from huggingface_models import PIECES, make_bert, make_electra, refusal, write_vocabulary
from safetensors.torch import load_file, save_file

from tn_fairseq.huggingface.__main__ import main
from tn_fairseq.huggingface.importing import import_model

transformers = pytest.importorskip("transformers")


@pytest.fixture
def folders(tmp_path, released) -> Path:
    """A copy of the three models that tests may damage."""
    shutil.copytree(released, tmp_path / "released")
    return tmp_path / "released"


def parameters(checkpoint: Path) -> dict[str, torch.Tensor]:
    return torch.load(checkpoint, weights_only=True)["model"]


def change_config(folder: Path, **values) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def change_tensors(folder: Path, change) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    path.unlink()  # the old file may still be memory-mapped
    save_file(tensors, path, metadata={"format": "pt"})


def import_refusal(*words: object) -> str:
    """The error of the import; checks that there is no output file."""
    output = Path(words[words.index("--output") + 1])
    message = refusal(*words)
    assert not output.exists() and not list(output.parent.glob(".*.tmp"))
    return message


class TestReleases:
    """Unusual but valid folders."""

    def test_a_bin_file_gives_the_same_as_safetensors(self, folders, wordpiece_bin, tmp_path):
        import_model(folders / "bert", wordpiece_bin, tmp_path / "safetensors.pt")
        torch.save(load_file(folders / "bert" / "model.safetensors"), folders / "bert" / "pytorch_model.bin")
        (folders / "bert" / "model.safetensors").unlink()
        import_model(folders / "bert", wordpiece_bin, tmp_path / "bin.pt")
        one, other = parameters(tmp_path / "safetensors.pt"), parameters(tmp_path / "bin.pt")
        assert all(torch.equal(one[name], other[name]) for name in one)

    def test_early_names_of_layer_norm_tied_copies_and_buffers(self, folders, wordpiece_bin, tmp_path):
        import_model(folders / "bert", wordpiece_bin, tmp_path / "today.pt")

        def age(tensors):
            for name in list(tensors):
                old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
                tensors[old] = tensors.pop(name)
            tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
            tensors["bert.embeddings.position_ids"] = torch.arange(512)[None]

        change_tensors(folders / "bert", age)
        imported = import_model(folders / "bert", wordpiece_bin, tmp_path / "early.pt")
        assert imported.left_out == {} and imported.fresh == []
        one, other = parameters(tmp_path / "today.pt"), parameters(tmp_path / "early.pt")
        assert all(torch.equal(one[name], other[name]) for name in one)

    def test_berts_next_sentence_head_is_left_out_and_named(self, wordpiece_bin, tmp_path, capsys):
        masked_lm = make_bert(len(PIECES))
        model = transformers.BertForPreTraining(masked_lm.config)
        model.load_state_dict(masked_lm.state_dict(), strict=False)
        model.save_pretrained(write_vocabulary(tmp_path / "bert"))
        command = ["import", tmp_path / "bert", "--data", wordpiece_bin, "--output", tmp_path / "imported.pt"]
        main([str(word) for word in command])
        said = capsys.readouterr().out
        assert f"left out of {tmp_path / 'bert'}: bert.pooler.dense.bias, bert.pooler.dense.weight, cls.seq_" in said
        embeddings = parameters(tmp_path / "imported.pt")["embeddings.token_type_embeddings.weight"]
        assert torch.equal(embeddings, masked_lm.bert.embeddings.token_type_embeddings.weight)

    def test_half_precision_becomes_float32(self, folders, wordpiece_bin, tmp_path):
        change_tensors(folders / "bert", lambda tensors: tensors.update({n: t.half() for n, t in tensors.items()}))
        import_model(folders / "bert", wordpiece_bin, tmp_path / "imported.pt")
        assert {t.dtype for n, t in parameters(tmp_path / "imported.pt").items() if "." in n} == {torch.float32}


HEAD = ["bias", "dense.bias", "dense.weight", "layer_norm.bias", "layer_norm.weight"]
MASKED_LM_HEAD = [f"masked_lm_head.{name}" for name in HEAD]


def save_alone(model, folder: Path, kind: type, **config) -> Path:
    """Save the encoder of a model with another head, or none, and its vocabulary."""
    saved = kind(model.config.__class__(**{**model.config.to_dict(), **config}))
    encoder = getattr(saved, saved.base_model_prefix, saved)
    missing = encoder.load_state_dict(model.base_model.state_dict(), strict=False).missing_keys
    assert {name.split(".")[0] for name in missing} <= {"pooler"}
    saved.save_pretrained(write_vocabulary(folder))
    return folder


class TestEncoders:
    """Encoders without their head of pre-training."""

    def test_a_sentence_encoder_gets_a_new_head_and_loses_its_pooler(self, wordpiece_bin, tmp_path, capsys):
        model = make_bert(len(PIECES))
        folder = save_alone(model, tmp_path / "sentences", transformers.BertModel)
        (folder / "1_Pooling").mkdir()
        (folder / "modules.json").write_text('[{"idx": 0, "type": "sentence_transformers.models.Transformer"}]')
        words = ["import", folder, "--data", wordpiece_bin, "--output", tmp_path / "sentences.pt"]
        main([str(word) for word in words])
        said = capsys.readouterr().out
        assert f"left out of {folder}: pooler.dense.bias, pooler.dense.weight\n" in said
        assert f"newly initialized, because no folder has them: {', '.join(MASKED_LM_HEAD)}\n" in said

        model.save_pretrained(write_vocabulary(tmp_path / "complete"))
        complete = import_model(tmp_path / "complete", wordpiece_bin, tmp_path / "complete.pt")
        assert complete.fresh == [] and complete.left_out == {}
        new, old = parameters(tmp_path / "sentences.pt"), parameters(tmp_path / "complete.pt")
        assert {name for name in new if not torch.equal(new[name], old[name])} == set(MASKED_LM_HEAD)
        head = {name: new[f"masked_lm_head.{name}"] for name in HEAD}
        assert not head["bias"].any() and not head["dense.bias"].any() and not head["layer_norm.bias"].any()
        assert head["layer_norm.weight"].eq(1).all() and head["dense.weight"].std() == pytest.approx(0.0176, rel=0.1)

    def test_importing_it_twice_writes_the_same_file(self, wordpiece_bin, tmp_path):
        folder = save_alone(make_bert(len(PIECES)), tmp_path / "bert", transformers.BertModel)
        written = []
        for seed in (5, 6):
            torch.manual_seed(seed)
            import_model(folder, wordpiece_bin, tmp_path / "imported.pt")
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
    def test_heads_of_tasks_are_left_out_and_named(self, wordpiece_bin, tmp_path, kind, left_out):
        is_bert = kind.startswith("Bert")
        model = make_bert(len(PIECES)) if is_bert else make_electra(len(PIECES))[0]
        folder = save_alone(model, tmp_path / kind, getattr(transformers, kind))
        imported = import_model(folder, wordpiece_bin, tmp_path / "imported.pt")
        assert {name.rpartition(".")[0] for name in imported.left_out.get(folder, [])} == left_out
        model.save_pretrained(write_vocabulary(tmp_path / "complete"))
        import_model(tmp_path / "complete", wordpiece_bin, tmp_path / "complete.pt")
        one, other = parameters(tmp_path / "imported.pt"), parameters(tmp_path / "complete.pt")
        head = "masked_lm_head." if is_bert else "discriminator_head."
        assert {name for name in one if not torch.equal(one[name], other[name])} <= set(imported.fresh)
        assert {name for name in imported.fresh if not name.startswith("generator")} == {
            name for name in one if name.startswith(head)
        }

    def test_what_there_is_of_a_head_is_kept(self, folders, wordpiece_bin, tmp_path):
        import_model(folders / "bert", wordpiece_bin, tmp_path / "complete.pt")

        def damage(tensors):
            tensors.pop("cls.predictions.transform.dense.bias")
            tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")  # only under its other name

        change_tensors(folders / "bert", damage)
        imported = import_model(folders / "bert", wordpiece_bin, tmp_path / "partial.pt")
        assert imported.fresh == ["masked_lm_head.dense.bias"] and imported.left_out == {}
        one, other = parameters(tmp_path / "complete.pt"), parameters(tmp_path / "partial.pt")
        assert {name for name in one if not torch.equal(one[name], other[name])} == {"masked_lm_head.dense.bias"}

    def test_early_names_and_indices_without_a_prefix(self, wordpiece_bin, tmp_path):
        folder = save_alone(make_bert(len(PIECES)), tmp_path / "bert", transformers.BertModel)
        import_model(folder, wordpiece_bin, tmp_path / "today.pt")

        def age(tensors):
            for name in list(tensors):
                tensors[name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")] = tensors.pop(name)
            tensors["embeddings.position_ids"] = torch.arange(512)[None]

        change_tensors(folder, age)
        imported = import_model(folder, wordpiece_bin, tmp_path / "early.pt")
        assert imported.left_out == {folder: ["pooler.dense.bias", "pooler.dense.weight"]}
        one, other = parameters(tmp_path / "today.pt"), parameters(tmp_path / "early.pt")
        assert all(torch.equal(one[name], other[name]) for name in one)

    @pytest.mark.parametrize("name", ["embeddings.LayerNorm.bias", "encoder.layer.1.attention.self.key.weight"])
    def test_an_encoder_that_lacks_a_tensor_is_refused(self, wordpiece_bin, tmp_path, name):
        folder = save_alone(make_bert(len(PIECES)), tmp_path / "bert", transformers.BertModel)
        change_tensors(folder, lambda tensors: tensors.pop(name))
        error = import_refusal("import", folder, "--data", wordpiece_bin, "--output", tmp_path / "out.pt")
        assert f"{folder}: lacks {name};" in error

    def test_an_encoder_with_another_part_is_refused(self, wordpiece_bin, tmp_path):
        folder = save_alone(make_bert(len(PIECES)), tmp_path / "bert", transformers.BertModel)
        adapter = "encoder.layer.0.output.adapter.weight"
        change_tensors(folder, lambda tensors: tensors.update({adapter: torch.zeros(1)}))
        error = import_refusal("import", folder, "--data", wordpiece_bin, "--output", tmp_path / "out.pt")
        assert f"{folder}: also has {adapter};" in error


class TestAsElectra:
    """BERT as the discriminator of ELECTRA."""

    def test_without_a_generator_a_new_one_is_a_quarter_as_wide(self, wordpiece_bin, tmp_path, capsys):
        folder = save_alone(make_bert(len(PIECES), num_attention_heads=4), tmp_path / "bert", transformers.BertModel)
        words = ["import", folder, "--as", "electra", "--data", wordpiece_bin, "--output", tmp_path / "electra.pt"]
        main([str(word) for word in words])
        said = capsys.readouterr().out
        assert "new generator, because there is no --generator: 31 tensors" in said
        names = [f"discriminator_head.{module}.{kind}" for module in ("dense", "output") for kind in ("bias", "weight")]
        assert f"newly initialized, because no folder has them: {', '.join(names)}\n" in said
        assert "--embedding-size 32" in said and "--generator-embed-dim 8" in said
        state = parameters(tmp_path / "electra.pt")
        import_model(folder, wordpiece_bin, tmp_path / "bert.pt")
        bert = parameters(tmp_path / "bert.pt")
        for name in bert:
            if not name.startswith("masked_lm_head"):
                assert torch.equal(bert[name], state[name.replace("encoder.", "discriminator.")]), name
        assert state["generator.layers.1.ffn_in.weight"].shape == (12, 8)

    def test_the_same_folder_as_generator_is_a_copy(self, released, wordpiece_bin, tmp_path):
        folder = released / "bert"
        same = released / "generator" / ".." / "bert"  # another spelling
        imported = import_model(folder, wordpiece_bin, tmp_path / "both.pt", generator=same, as_electra=True)
        assert imported.left_out == {} and {name.split(".")[0] for name in imported.fresh} == {"discriminator_head"}
        state = parameters(tmp_path / "both.pt")
        layers = [name for name in state if name.startswith("generator.")]
        assert len(layers) == 24
        assert all(torch.equal(state[name], state[name.replace("generator.", "discriminator.")]) for name in layers)
        import_model(folder, wordpiece_bin, tmp_path / "bert.pt")
        bert = parameters(tmp_path / "bert.pt")
        assert all(torch.equal(state[f"generator_head.{name}"], bert[f"masked_lm_head.{name}"]) for name in HEAD)

    def test_a_copy_of_an_encoder_without_a_head_gets_a_new_head(self, wordpiece_bin, tmp_path, capsys):
        folder = save_alone(make_bert(len(PIECES)), tmp_path / "bert", transformers.BertModel)
        words = ["import", folder, "--as", "electra", "--generator", folder, "--data", wordpiece_bin]
        main([str(word) for word in [*words, "--output", tmp_path / "both.pt"]])
        said = capsys.readouterr().out
        assert f", {', '.join(f'generator_head.{name}' for name in HEAD)}\n" in said and "new generator" not in said

    def test_another_bert_with_the_same_embeddings_as_generator(self, released, wordpiece_bin, tmp_path):
        bert = transformers.BertForMaskedLM.from_pretrained(released / "bert")
        folder = tmp_path / "shallow"
        bert.bert.encoder.layer = bert.bert.encoder.layer[:1]
        bert.config.num_hidden_layers, bert.config.hidden_dropout_prob = 1, 0.3
        bert.save_pretrained(folder)
        imported = import_model(released / "bert", wordpiece_bin, tmp_path / "o.pt", generator=folder, as_electra=True)
        assert imported.left_out.keys() == {released / "bert"}  # its masked-LM head
        flags = dict(zip(imported.size_flags[::2], imported.size_flags[1::2]))
        assert flags["--generator-layers"] == "1" and "--dropout" not in flags
        state = parameters(tmp_path / "o.pt")
        theirs = load_file(folder / "model.safetensors")["cls.predictions.transform.dense.weight"]
        assert torch.equal(state["generator_head.dense.weight"], theirs)

    def test_embeddings_of_another_size_are_refused_with_the_sizes_that_fit(self, released, wordpiece_bin, tmp_path):
        make_bert(len(PIECES), hidden_size=64, max_position_embeddings=100).save_pretrained(tmp_path / "wide")
        words = ["import", released / "bert", "--as", "electra", "--generator", tmp_path / "wide"]
        error = import_refusal(*words, "--data", wordpiece_bin, "--output", tmp_path / "out.pt")
        assert f"{tmp_path / 'wide' / 'config.json'}: hidden_size is 64, but 32 in the discriminator" in error
        assert "hidden_size 32 or an ELECTRA with embedding_size 32, and max_position_embeddings 512" in error

    def test_electra_stays_electra(self, released, wordpiece_bin, tmp_path):
        one = import_model(released / "discriminator", wordpiece_bin, tmp_path / "one.pt")
        other = import_model(released / "discriminator", wordpiece_bin, tmp_path / "other.pt", as_electra=True)
        assert one == other
        states = parameters(tmp_path / "one.pt"), parameters(tmp_path / "other.pt")
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])

    def test_an_untied_head_matters_only_where_it_is_used(self, folders, wordpiece_bin, tmp_path):
        untied = "cls.predictions.decoder.bias"
        change_tensors(folders / "bert", lambda tensors: tensors.update({untied: torch.zeros(len(PIECES))}))
        folder = folders / "bert"
        imported = import_model(folder, wordpiece_bin, tmp_path / "electra.pt", as_electra=True)
        assert untied in imported.left_out[folder]
        words = ["import", folder, "--as", "electra", "--generator", folder, "--data", wordpiece_bin]
        assert f"{untied} is not tied" in import_refusal(*words, "--output", tmp_path / "out.pt")


class TestOptions:
    def test_without_a_generator_a_new_one_uses_the_discriminators_embeddings(
        self, released, wordpiece_bin, tmp_path, capsys
    ):
        words = ["import", released / "discriminator", "--data", wordpiece_bin, "--output"]
        for name in ("one.pt", "two.pt"):
            main([str(word) for word in [*words, tmp_path / name]])
        assert "new generator, because there is no --generator: " in capsys.readouterr().out
        imported = import_model(
            released / "discriminator", wordpiece_bin, tmp_path / "both.pt", generator=released / "generator"
        )
        assert imported.fresh == []
        one, two, both = (parameters(tmp_path / name) for name in ("one.pt", "two.pt", "both.pt"))
        assert all(torch.equal(one[name], two[name]) for name in one)  # newly initialized, but the same every time
        for name in one:
            if not name.startswith(("generator", "dictionary")):
                assert torch.equal(one[name], both[name]), name
        fresh = one["generator.layers.0.ffn_in.weight"]
        assert fresh.shape != both["generator.layers.0.ffn_in.weight"].shape  # a quarter of the discriminator's heads
        assert fresh.std() == pytest.approx(0.0176, rel=0.1)  # normal of deviation 0.02, truncated at two deviations

    def test_a_new_generator_has_the_size_of_its_architecture(self, wordpiece_bin, tmp_path):
        small = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024, "num_hidden_layers": 12}
        discriminator, _ = make_electra(len(PIECES), embedding_size=128, **small)
        discriminator.save_pretrained(write_vocabulary(tmp_path / "small"))
        imported = import_model(tmp_path / "small", wordpiece_bin, tmp_path / "small.pt")
        assert (imported.arch, imported.size_flags) == ("electra_small", [])
        assert parameters(tmp_path / "small.pt")["generator.layers.11.ffn_out.weight"].shape == (64, 256)

    def test_positions_can_be_removed_but_not_added(self, released, wordpiece_bin, tmp_path):
        imported = import_model(released / "bert", wordpiece_bin, tmp_path / "cut.pt", max_positions=100)
        assert imported.cut_positions == 412
        theirs = load_file(released / "bert" / "model.safetensors")["bert.embeddings.position_embeddings.weight"]
        assert torch.equal(parameters(tmp_path / "cut.pt")["embeddings.position_embeddings.weight"], theirs[:100])
        for wrong in (513, 0, -1):
            words = ["import", released / "bert", "--data", wordpiece_bin, "--max-positions", wrong]
            error = import_refusal(*words, "--output", tmp_path / "long.pt")
            assert f"--max-positions {wrong}" in error and "512" in error

    def test_the_printed_flags_describe_the_model(self, released, wordpiece_bin, tmp_path):
        imported = import_model(released / "bert", wordpiece_bin, tmp_path / "bert.pt", max_positions=64)
        cfg = torch.load(tmp_path / "bert.pt", weights_only=True)["cfg"]["model"]
        flags = dict(zip(imported.size_flags[::2], imported.size_flags[1::2]))
        assert flags["--max-positions"] == "64" and flags["--encoder-ffn-embed-dim"] == "48"
        assert cfg["encoder_embed_dim"] == 32 and cfg["max_positions"] == 64


class TestVocabulary:
    def refuse(self, folders, data_bin, tmp_path):
        words = ["import", folders / "bert", "--data", data_bin, "--output", tmp_path / "out.pt"]
        return import_refusal(*words)

    def test_the_first_differing_piece_is_named(self, folders, wordpiece_bin, tmp_path):
        other = [*PIECES[:20], PIECES[21], PIECES[20], *PIECES[22:]]
        write_vocabulary(folders / "bert", other)
        error = self.refuse(folders, wordpiece_bin, tmp_path)
        assert f"token 20 is '{PIECES[21]}', but '{PIECES[20]}'" in error
        assert "python -m tn_fairseq.preprocessing binarize" in error

    def test_a_longer_vocabulary(self, folders, wordpiece_bin, tmp_path):
        write_vocabulary(folders / "bert", [*PIECES, "surplus"])
        error = self.refuse(folders, wordpiece_bin, tmp_path)
        assert f"token {len(PIECES)} is 'surplus'" in error

    def test_a_tokenizer_with_the_same_pieces_that_splits_text_differently(self, folders, wordpiece_bin, tmp_path):
        (folders / "bert" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
        error = self.refuse(folders, wordpiece_bin, tmp_path)
        assert "lower case" in error

    def test_weights_without_a_tokenizer(self, folders, wordpiece_bin, tmp_path):
        (folders / "bert" / "vocab.txt").unlink()
        assert "vocab.txt" in self.refuse(folders, wordpiece_bin, tmp_path)

    def test_more_rows_than_pieces(self, folders, wordpiece_bin, tmp_path):
        model = transformers.BertForMaskedLM.from_pretrained(folders / "bert")
        model.resize_token_embeddings(len(PIECES) + 6)
        model.save_pretrained(folders / "bert")
        error = self.refuse(folders, wordpiece_bin, tmp_path)
        assert str(len(PIECES) + 6) in error and "resize_token_embeddings" in error

    def test_a_data_bin_without_a_tokenizer(self, folders, data_bin, tmp_path):
        error = self.refuse(folders, data_bin, tmp_path)
        assert "tokenizer" in error and "python -m tn_fairseq.preprocessing binarize" in error


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def _shard(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')


def _half_download(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.safetensors.incomplete")


def _lfs_pointer(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(folder / "it ran")))


def _torch_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Bomb(folder / "it ran")}, folder / "pytorch_model.bin")


def _not_tensors(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": "text"}, folder / "pytorch_model.bin")


def _tensorflow(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "tf_model.h5")


QUERY = "bert.encoder.layer.0.attention.self.query.weight"
LAYER = "bert.encoder.layer.1.output.dense.weight"
DAMAGE = {
    "another architecture": (lambda f: change_config(f, model_type="roberta"), ["'roberta'", "bert and electra"]),
    "no architecture": (lambda f: change_config(f, model_type=None), ["None"]),
    "an architecture that is a list": (lambda f: change_config(f, model_type=["bert"]), ["['bert']"]),
    "a missing tensor": (lambda f: change_tensors(f, lambda t: t.pop(LAYER)), [LAYER]),
    "a tensor in a layer that BERT does not have": (
        lambda f: change_tensors(f, lambda t: t.update({"bert.encoder.layer.0.adapter.weight": torch.zeros(1)})),
        ["also has bert.encoder.layer.0.adapter.weight"],
    ),
    "more layers than in config.json": (lambda f: change_config(f, num_hidden_layers=1), ["layer.1.", "more"]),
    "a tensor with another shape": (
        lambda f: change_tensors(f, lambda t: t.update({LAYER: torch.zeros(3, 3)})),
        ["(3, 3)", LAYER],
    ),
    "a query with another shape than its key": (
        lambda f: change_tensors(f, lambda t: t.update({QUERY: torch.zeros(3, 3)})),
        ["(3, 3)", QUERY],
    ),
    "a quantized tensor": (
        lambda f: change_tensors(f, lambda t: t.update({LAYER: t[LAYER].mul(50).to(torch.int8)})),
        [f"{LAYER} is int8", "before quantization"],
    ),
    "a tensor that is a number": (
        lambda f: change_tensors(f, lambda t: t.update({"cls.predictions.bias": torch.tensor(1.0)})),
        ["cls.predictions.bias"],
    ),
    "a head that is not tied": (
        lambda f: change_tensors(f, lambda t: t.update({"cls.predictions.decoder.bias": torch.zeros(len(PIECES))})),
        ["cls.predictions.decoder.bias", "tied"],
    ),
    "another activation": (lambda f: change_config(f, hidden_act="gelu_new"), ["hidden_act", "'gelu_new'"]),
    "relative positions": (
        lambda f: change_config(f, position_embedding_type="relative_key"),
        ["position_embedding_type"],
    ),
    "another epsilon": (lambda f: change_config(f, layer_norm_eps=1e-5), ["layer_norm_eps", "1e-05"]),
    "no size": (lambda f: change_config(f, hidden_size=None), ["hidden_size"]),
    "a size that is text": (lambda f: change_config(f, hidden_size="32"), ["hidden_size", "'32'"]),
    "heads that do not divide": (lambda f: change_config(f, num_attention_heads=5), ["num_attention_heads 5"]),
    "a rate above one": (lambda f: change_config(f, hidden_dropout_prob=10), ["hidden_dropout_prob"]),
    "config.json is missing": (lambda f: (f / "config.json").unlink(), ["config.json"]),
    "config.json is cut": (lambda f: (f / "config.json").write_text('{"model_type": '), ["config.json", "JSON"]),
    "config.json is a list": (lambda f: (f / "config.json").write_text("[]"), ["config.json", "list"]),
    "weights are missing": (lambda f: (f / "model.safetensors").unlink(), ["model.safetensors"]),
    "weights are cut short": (_cut, ["model.safetensors", "cut short"]),
    "weights are sharded": (_shard, ["index.json", "max_shard_size"]),
    "the download of weights is incomplete": (_half_download, ["model.safetensors.incomplete"]),
    "weights are a pointer": (_lfs_pointer, ["git lfs pull"]),
    "weights are TensorFlow's": (_tensorflow, ["tf_model.h5"]),
    "weights are a pickle": (_pickle, ["pytorch_model.bin"]),
    "weights are a pickle made by torch": (_torch_pickle, ["pytorch_model.bin", "refused"]),
    "weights are not tensors": (_not_tensors, ["pytorch_model.bin"]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_gets_one_line(name, folders, wordpiece_bin, tmp_path):
    damage, expected = DAMAGE[name]
    damage(folders / "bert")
    error = import_refusal("import", folders / "bert", "--data", wordpiece_bin, "--output", tmp_path / "out.pt")
    assert [words for words in [str(folders / "bert"), *expected] if words not in error] == [], error
    assert not (folders / "bert" / "it ran").exists()


class TestGenerators:
    def refuse(self, tmp_path, data_bin, folder, generator=None):
        more = ["--generator", generator] if generator else []
        return import_refusal("import", folder, *more, "--data", data_bin, "--output", tmp_path / "out.pt")

    def test_a_generator_given_as_discriminator(self, tmp_path, wordpiece_bin, released):
        error = self.refuse(tmp_path, wordpiece_bin, released / "generator")
        assert "has generator_" in error and "give the folder of the discriminator, and this one as --gen" in error

    def test_a_discriminator_given_as_generator(self, tmp_path, wordpiece_bin, released):
        folder = released / "discriminator"
        error = self.refuse(tmp_path, wordpiece_bin, folder, folder)
        assert "has discriminator_predictions.dense.bias; this is a discriminator" in error

    def test_a_generator_for_bert(self, tmp_path, wordpiece_bin, released):
        error = self.refuse(tmp_path, wordpiece_bin, released / "bert", released / "generator")
        assert f"--generator {released / 'generator'}: BERT has no generator" in error and "--as electra" in error

    def test_bert_with_wider_embeddings_given_as_generator(self, tmp_path, wordpiece_bin, released):
        error = self.refuse(tmp_path, wordpiece_bin, released / "discriminator", released / "bert")
        assert "hidden_size is 32, but 16" in error

    def test_a_generator_with_its_own_embeddings(self, tmp_path, wordpiece_bin, released):
        _, stranger = make_electra(len(PIECES), seed=7)
        stranger.save_pretrained(tmp_path / "stranger")
        error = self.refuse(tmp_path, wordpiece_bin, released / "discriminator", tmp_path / "stranger")
        assert "electra.embeddings" in error and "share" in error

    def test_a_generator_with_another_number_of_positions(self, tmp_path, wordpiece_bin, released):
        _, short = make_electra(len(PIECES), max_position_embeddings=64)
        short.save_pretrained(tmp_path / "short")
        error = self.refuse(tmp_path, wordpiece_bin, released / "discriminator", tmp_path / "short")
        assert "max_position_embeddings is 64, but 512" in error

    def test_a_generator_with_a_tensor_of_another_shape(self, tmp_path, wordpiece_bin, folders):
        name = "generator_predictions.dense.weight"
        change_tensors(folders / "generator", lambda tensors: tensors.update({name: torch.zeros(3, 3)}))
        error = self.refuse(tmp_path, wordpiece_bin, folders / "discriminator", folders / "generator")
        assert f"{folders / 'generator'}: {name} has shape (3, 3)" in error


@pytest.mark.parametrize("output", ["file/out.pt", "folder", "."])
def test_an_output_that_cannot_be_written(released, wordpiece_bin, tmp_path, output, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text(WORDS[0])
    (tmp_path / "folder").mkdir()
    words = ["import", released / "bert", "--data", wordpiece_bin, "--output", output]
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert "--output" in stopped.value.code and "\n" not in stopped.value.code


def test_a_new_generator_neither_depends_on_nor_changes_the_global_random_state(released, wordpiece_bin, tmp_path):
    states = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        later = torch.rand(3)
        torch.manual_seed(seed)
        imported = import_model(released / "discriminator", wordpiece_bin, tmp_path / f"{seed}.pt")
        assert "generator.layers.0.ffn_in.weight" in imported.fresh
        assert torch.equal(torch.rand(3), later)
        states.append(parameters(tmp_path / f"{seed}.pt"))
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
