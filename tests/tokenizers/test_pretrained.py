"""Folders of transformers: the ids are those of AutoTokenizer, without it too, or one line says why not."""

import json

import pytest
from files import refused, write
from tokenizer_folders import PIECES, SPECIAL, TEXT, bert_folder, sentencepiece_folder
from tokenizers import pre_tokenizers

from tn_fairseq.tokenizers import load_tokenizer, pretrained
from tn_fairseq.tokenizers.pretrained import PROBE, load_pretrained

transformers = pytest.importorskip("transformers")
LINES = [*TEXT, *PROBE, "THE CAT covidish Été", " leading and trailing "]


def config_of(folder, **changes):
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    config = {name: value for name, value in (config | changes).items() if value != "absent"}
    path.write_text(json.dumps(config))


def cased_bert(folder):
    """Pieces with capitals, for a tokenizer that keeps them or not."""
    return bert_folder(folder, [*PIECES, "The", "CAT", "É"], tokenizer_class="BertTokenizer", do_lower_case=True)


def saved_bert(folder):
    """A folder of save_pretrained, with a tokenizer.json."""
    transformers.AutoTokenizer.from_pretrained(cased_bert(folder)).save_pretrained(folder)
    return folder


def added_bert(folder):
    cased_bert(folder)
    (folder / "added_tokens.json").write_text(json.dumps({"covidish": len(SPECIAL) + len(PIECES) + 3}))
    return folder


def roberta(folder):
    """vocab.json and merges.txt, which have the bytes as pieces."""
    folder.mkdir()
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "<mask>"]
    (folder / "vocab.json").write_text(json.dumps({piece: index for index, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    config_of(folder, tokenizer_class="RobertaTokenizer")
    return folder


def saved_roberta(folder):
    transformers.AutoTokenizer.from_pretrained(roberta(folder)).save_pretrained(folder)
    return folder


def copy_of(tokenizer, folder):
    """What binarize copies."""
    for name, content in tokenizer.files.items():
        write(folder / name, content)
    return folder


FOLDERS = {
    "cased": (cased_bert, {"do_lower_case": False}),
    "a default of the class": (cased_bert, {"do_lower_case": "absent"}),
    "no Chinese": (cased_bert, {"tokenize_chinese_chars": False}),
    "accents": (cased_bert, {"strip_accents": False}),
    "saved": (saved_bert, {}),
    "saved, cased": (saved_bert, {"do_lower_case": False}),
    "saved, accents": (saved_bert, {"strip_accents": False}),
    "added": (added_bert, {}),
    "roberta": (roberta, {}),
    "saved roberta": (saved_roberta, {}),
    "saved roberta, prefix": (saved_roberta, {"add_prefix_space": True}),
}
NEED_TRANSFORMERS = ["a default of the class", "saved, cased", "saved, accents", "added", "saved roberta, prefix"]


@pytest.mark.parametrize("name", FOLDERS)
def test_the_ids_are_those_of_autotokenizer(tmp_path, monkeypatch, name):
    """Also those of the copy that a data-bin gets, which is read without transformers."""
    make, changes = FOLDERS[name]
    folder = make(tmp_path / "folder")
    config_of(folder, **changes)
    ours, theirs = load_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert len(theirs) == len(ours.pieces) and theirs.convert_ids_to_tokens(range(len(theirs))) == ours.pieces
    again = load_tokenizer(copy_of(ours, tmp_path / "copy"))
    for line in LINES:
        expected = theirs(line, add_special_tokens=False, split_special_tokens=True).input_ids
        if "<mask>" in line or "</s>" in line:
            continue  # text here, special tokens there
        assert ours.encode_chunk([line])[0].tolist() == again.encode_chunk([line])[0].tolist() == expected, line

    monkeypatch.setattr(pretrained, "find_spec", lambda module: None)
    if name == "roberta":
        refused(load_pretrained, folder)
    elif name in NEED_TRANSFORMERS:
        assert "; pip install" in refused(load_pretrained, folder)
    else:
        alone = load_pretrained(folder)
        for line in LINES:
            assert alone.encode_chunk([line])[0].tolist() == ours.encode_chunk([line])[0].tolist()


def test_folders_that_transformers_cannot_read(tmp_path, monkeypatch):
    folder = cased_bert(tmp_path / "folder")
    config_of(folder, mask_token="[MASQUE]")
    assert "mask_token is '[MASQUE]', and not '[MASK]'" in refused(load_pretrained, folder)
    config_of(folder, mask_token="absent", tokenizer_class="BertJapaneseTokenizer", word_tokenizer_type="mecab")
    message = refused(load_pretrained, folder)
    assert "AutoTokenizer cannot load it" in message or "is written in Python" in message
    monkeypatch.setattr(pretrained, "find_spec", lambda module: None)
    assert "tokenizer_class BertJapaneseTokenizer; pip" in refused(load_pretrained, folder)
    monkeypatch.undo()
    assert load_pretrained(folder / "vocab.txt").description.startswith("BERT WordPiece of vocab.txt")
    (folder / "vocab.txt").unlink()
    assert "no tokenizer.json, vocab.txt" in refused(load_pretrained, folder)
    (folder / "vocab.json").touch()
    assert "add a tokenizer_config.json" in refused(load_pretrained, folder)


def test_sentencepiece_alone_is_read_by_itself(tmp_path):
    folder = sentencepiece_folder(tmp_path / "folder")
    assert load_pretrained(folder).description == load_tokenizer(folder).description


def own_tokens(folder, make, **options):
    """A folder with special tokens of its user, and one added token that is not special."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(make(folder))
    tokenizer.add_special_tokens({"additional_special_tokens": ["[E1]", "[/E1]"]})
    tokenizer.add_tokens([transformers.AddedToken("covid-19", **options)])
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("make", [cased_bert, roberta])
@pytest.mark.parametrize("options", [{}, {"lstrip": True}, {"rstrip": True}, {"single_word": True}])
def test_a_users_own_special_tokens_are_tokens(make, options, tmp_path):
    folder = own_tokens(tmp_path / "own", make, **options)
    theirs, original = transformers.AutoTokenizer.from_pretrained(folder), load_pretrained(folder)
    for ours in (original, load_pretrained(copy_of(original, tmp_path / "copy"))):
        for line in ("[E1] the cat [/E1] sat", "a covid-19 mat", "covid-19s on[E1]mat"):
            expected = theirs(line, add_special_tokens=False)["input_ids"]
            assert ours.encode_chunk([line])[0].tolist() == expected, line
        assert ours.encode_with_offsets(line)[0].tolist() == expected
    # the five special tokens are text
    pieces = [original.pieces[index] for index in original.encode_chunk([f"{theirs.mask_token} [E1]"])[0]]
    assert theirs.mask_token not in pieces and pieces[-1] == "[E1]"


def test_a_config_of_the_model_decides_the_casing_as_in_transformers(tmp_path):
    """Without tokenizer_config.json, AutoTokenizer lowercases, also with a vocabulary that has capitals."""
    folder = bert_folder(tmp_path / "bert", [*PIECES, "The"])
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    ours, theirs = load_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert ours.encode_chunk(["The cat"])[0].tolist() == theirs("The cat", add_special_tokens=False)["input_ids"]
    assert "lowercases text although the vocabulary has 'The'" in ours.description
    (folder / "config.json").write_text(json.dumps({"model_type": "unknown"}))
    assert "cased (it has 'The')" in load_pretrained(folder).description
