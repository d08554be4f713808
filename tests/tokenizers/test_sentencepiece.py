"""SentencePiece: its special symbols, and invalid models."""

import sentencepiece
from files import refused
from tokenizer_folders import model_dictionary, sentencepiece_folder, symbols_of

from tn_fairseq.tokenizers import load_tokenizer

IDS = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3, "control_symbols": ["<mask>"]}


def test_sentencepiece_leaves_its_special_tokens_to_fairseq(tmp_path):
    folder = sentencepiece_folder(tmp_path, **IDS)
    tokenizer = load_tokenizer(folder)
    pieces = tokenizer.dictionary().symbols
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "any.model"))
    assert pieces[4:] == [processor.id_to_piece(index) for index in range(5, 42)]
    assert set(symbols_of(tokenizer, "</s> <mask> the <s>")).isdisjoint({"<s>", "</s>", "<mask>"})
    assert symbols_of(tokenizer, "Ж")[-1] == "<unk>"


def test_a_literal_user_defined_mask_is_unknown(tmp_path):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, user_defined_symbols=["<mask>"]))
    assert "<mask>" not in tokenizer.dictionary() and symbols_of(tokenizer, "<mask>")[-1] == "<unk>"


def test_a_sentencepiece_model_without_sentence_symbols(tmp_path):
    assert "lacks the special tokens <s>, </s>" in refused(
        load_tokenizer, sentencepiece_folder(tmp_path, bos_id=-1, eos_id=-1)
    )


def test_token_ids_of_sentencepiece_models_with_and_without_pad_and_mask(tmp_path):
    whole = load_tokenizer(sentencepiece_folder(tmp_path / "whole", **IDS))
    assert whole.special_ids == {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}
    assert whole.token_ids(model_dictionary(whole)).tolist() == [0, 1, 2, 3, *range(5, 42), 4]
    bare = load_tokenizer(sentencepiece_folder(tmp_path / "bare"))
    assert bare.dictionary().symbols[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert bare.pieces[:3] == ["<unk>", "<s>", "</s>"] and len(bare.pieces) == 42
    assert bare.special_ids == {"<s>": 1, "</s>": 2, "<unk>": 0}
    assert bare.token_ids(model_dictionary(bare)).tolist() == [1, 42, 2, 0, *range(3, 42), 43]


def test_fairseqs_mask_is_preferred(tmp_path):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, control_symbols=["[MASK]", "<mask>"]))
    assert tokenizer.special_ids["<mask>"] == tokenizer.pieces.index("<mask>") == 4
    assert sorted(tokenizer.token_ids(model_dictionary(tokenizer))) == list(range(43))  # <pad> is new
