"""A tokenizer.json: its special tokens, and invalid files."""

from tokenizer_folders import PIECES, SPECIAL, model_dictionary, refused, symbols_of
from tokenizers import Tokenizer, models, pre_tokenizers

from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tokenizers.wordpiece import wordpiece_tokenizer


def test_a_literal_special_token_of_a_white_space_tokenizer_is_unknown(tmp_path):
    backend = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(["the", *SPECIAL])}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.save(str(tmp_path / "tokenizer.json"))
    assert symbols_of(load_tokenizer(tmp_path), "the [MASK] [SEP]") == ["the", "<unk>", "<unk>"]


def test_a_tokenizer_json_does_not_truncate_or_pad_lines(tmp_path):
    backend = wordpiece_tokenizer(SPECIAL + PIECES, lowercase=True)
    backend.enable_truncation(2)
    backend.enable_padding(length=9)
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    assert tokenizer.description.endswith("uncased")
    assert symbols_of(tokenizer, "the cat sat on the mat") == ["the", "cat", "sat", "on", "the", "mat"]


def test_a_tokenizer_json_without_special_tokens(tmp_path):
    Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2})).save(str(tmp_path / "tokenizer.json"))
    assert "lacks the special tokens <pad>, <unk>, <mask>" in refused(tmp_path)


def test_token_ids_of_a_tokenizer_json_with_robertas_special_tokens(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "cat", "<mask>", "the"]
    Tokenizer(models.WordLevel({piece: index for index, piece in enumerate(pieces)})).save(
        str(tmp_path / "tokenizer.json")
    )
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.pieces == pieces
    assert tokenizer.token_ids(model_dictionary(tokenizer)).tolist() == [0, 1, 2, 3, 4, 6, 5]
