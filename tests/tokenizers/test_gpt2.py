"""GPT-2's tokenizer: the same ids as fairseq's encoder, and invalid files."""

import json

from fairseq.data.encoders.gpt2_bpe_utils import get_encoder
from tokenizer_folders import (
    REAL_DATA,
    TEXT,
    gpt2_folder,
    refused,
    symbols_of,
    with_real_data,
)

from tn_fairseq.dictionary import load_dictionary
from tn_fairseq.tokenizers import load_tokenizer


def test_gpt2_ids_match_fairseqs_encoder(tmp_path):
    folder = gpt2_folder(tmp_path)
    reference = get_encoder(folder / "encoder.json", folder / "vocab.bpe")
    tokenizer = load_tokenizer(folder / "encoder.json")
    for line in [*TEXT, " leading", "trailing ", "  x\u3000y\x85z\x1c1", "<|endoftext|> 😀"]:
        assert tokenizer.encode_chunk([line])[0].tolist() == reference.encode(line)
        assert symbols_of(tokenizer, line) == list(map(str, reference.encode(line)))


def test_gpt2_dictionary_is_numbers_in_order(tmp_path):
    tokenizer = load_tokenizer(gpt2_folder(tmp_path))
    assert tokenizer.dictionary().symbols[4:] == [str(number) for number in range(300)]


def test_damaged_gpt2_files(tmp_path):
    folder = gpt2_folder(tmp_path)
    encoder, merges = folder / "encoder.json", folder / "vocab.bpe"
    vocabulary, lines = json.loads(encoder.read_text()), merges.read_text()
    merges.write_text(lines.split("\n", 1)[1])
    assert "line 1: not '#version" in refused(folder)
    merges.write_text(lines + "one\n")
    assert "not two pieces" in refused(folder)
    merges.write_text(lines + "qqq zzz\n")
    assert "does not fit encoder.json" in refused(folder)
    merges.unlink()
    assert "vocab.bpe: no such file" in refused(folder)
    merges.write_text(lines)
    encoder.write_text(json.dumps({**vocabulary, "!": 1}))
    assert "map each piece to a unique number" in refused(folder)
    encoder.write_text(json.dumps({piece: index for piece, index in vocabulary.items() if piece != "A"}))
    assert "lacks pieces for some of the 256 bytes" in refused(folder)


def test_symbols_that_gpt2_lacks_get_the_next_ids(tmp_path):
    tokenizer = load_tokenizer(gpt2_folder(tmp_path))
    assert len(tokenizer.pieces) == 300 and tokenizer.pieces[0] == "!"
    assert tokenizer.special_ids == {}
    numbers = [*range(299, -1, -1)]
    symbols = [*map(str, numbers), "madeupword0000", "madeupword0001"]
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 0\n" for symbol in symbols))
    token_ids = tokenizer.token_ids(load_dictionary(tmp_path / "dict.txt"))
    assert token_ids.tolist() == [300, 301, 302, 303, *numbers, 304, 305, 306]


@with_real_data
def test_the_released_roberta_dictionary():
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "encoder.json")
    dictionary = load_dictionary(REAL_DATA / "vocab" / "dict.roberta.txt")
    token_ids = tokenizer.token_ids(dictionary)
    assert sorted(token_ids) == list(range(50_265))
    assert [*token_ids[:4], *token_ids[-4:]] == [50_257, 50_258, 50_259, 50_260, 50_261, 50_262, 50_263, 50_264]
