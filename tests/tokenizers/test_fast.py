"""A tokenizer.json: its special tokens, and invalid files. GPT-2: the same ids as fairseq's encoder, invalid files."""

import pytest
from fairseq.data.encoders.gpt2_bpe_utils import get_encoder
from files import refused, write
from tokenizer_folders import (
    PIECES,
    REAL_DATA,
    SPECIAL,
    TEXT,
    gpt2_folder,
    model_dictionary,
    symbols_of,
    with_real_data,
)
from tokenizers import Tokenizer, models, pre_tokenizers

from tn_fairseq.core.dictionary import load_dictionary
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


@pytest.mark.parametrize(("scheme", "splits"), [("first", False), ("always", False), ("always", True)])
def test_a_continuation_does_not_begin_a_word(scheme, splits, tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁", ".", "▁.", "▁so", "so"]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=3))
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    white_space = [pre_tokenizers.WhitespaceSplit()] if splits else []
    backend.pre_tokenizer = pre_tokenizers.Sequence([*white_space, metaspace])
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path)
    for text, expected in ((".", ["."]), (". so .", [".", "▁so", "▁."]), (" so", ["▁so"]), ("so.", ["so", "."])):
        assert [pieces[token] for token in tokenizer.encode_continuation(text)] == expected


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize(
    "tokens",
    [
        ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"],  # MPNet, which has all names of BERT and RoBERTa
        ["[CLS]", "<pad>", "[SEP]", "<unk>", "[MASK]"],  # ALBERT
    ],
)
def test_the_configuration_names_the_special_tokens_if_the_pieces_do_not(tmp_path, tokens, name):
    pieces = ["cat", *tokens] if tokens[0] == "[CLS]" else [*SPECIAL, "<s>", "<pad>", "</s>", "<unk>", "<mask>", "cat"]
    backend = Tokenizer(models.WordLevel({piece: index for index, piece in enumerate(pieces)}, unk_token=tokens[3]))
    backend.save(str(tmp_path / "tokenizer.json"))
    fields = ["cls_token", "pad_token", "sep_token", "unk_token", "mask_token"]
    config = dict(zip(fields, [{"content": tokens[0]}, *tokens[1:]], strict=True))
    write(tmp_path / name, config)
    tokenizer = load_tokenizer(tmp_path)
    assert [pieces[index] for index in tokenizer.special_ids.values()] == tokens
    assert set(tokenizer.symbols.values()) >= {"cat"}
    if tokens[0] == "[CLS]":
        write(tmp_path / name, config | {"mask_token": "no piece"})
        assert "lacks the special tokens" in refused(load_tokenizer, tmp_path)


def test_added_tokens_of_white_space_and_line_breaks(tmp_path):
    backend = wordpiece_tokenizer(SPECIAL + PIECES, lowercase=True)
    backend.normalizer = None
    backend.add_tokens(["\n", "\r\n", "  ", "\u2028", "<s>"])
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path)
    theirs = tokenizer.backend.encode("the\ncat  sat\u2028on<s>\r\n", add_special_tokens=False)
    assert theirs.tokens == ["the", "\n", "cat", "  ", "sat", "\u2028", "on", "<s>", "\r\n"]
    dictionary = model_dictionary(tokenizer)
    ours = tokenizer.lookup_table(dictionary)[theirs.ids]
    named = ["the", "<\\n>", "cat", "  ", "sat", "\u2028", "on", "<<s>>", "<\\r\\n>"]
    assert [dictionary[index] for index in ours] == named
    assert tokenizer.token_ids(dictionary)[ours].tolist() == theirs.ids


def test_gpt2_ids_match_fairseqs_encoder(tmp_path):
    folder = gpt2_folder(tmp_path)
    reference = get_encoder(folder / "encoder.json", folder / "vocab.bpe")
    tokenizer = load_tokenizer(folder / "encoder.json")
    assert tokenizer.dictionary().symbols[4:] == [str(number) for number in range(300)]
    for line in [*TEXT, " leading", "trailing ", "  x\u3000y\x85z\x1c1", "<|endoftext|> 😀"]:
        assert tokenizer.encode_chunk([line])[0].tolist() == reference.encode(line)
        assert symbols_of(tokenizer, line) == list(map(str, reference.encode(line)))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("vocab.bpe", ("#version", "#"), "vocab.bpe, line 1"),
        ("vocab.bpe", ("t h", "th"), "does not fit encoder.json"),
        ("vocab.bpe", ("t h", "qqq zzz"), "does not fit encoder.json"),
        ("encoder.json", ('"!": 0', '"!": 1'), "a unique number"),
        ("encoder.json", ('"A": ', '"unused": '), "256 bytes"),
    ],
)
def test_damaged_gpt2_files(tmp_path, name, change, message):
    path = gpt2_folder(tmp_path) / name
    content = path.read_text(encoding="utf-8").replace('":', '": ')
    assert change[0] in content
    write(path, content.replace(*change))
    assert message in refused(load_tokenizer, tmp_path)
    path.unlink()
    assert path.name in refused(load_tokenizer, tmp_path)


def test_symbols_that_gpt2_lacks_get_the_next_ids(tmp_path):
    tokenizer = load_tokenizer(gpt2_folder(tmp_path))
    assert len(tokenizer.pieces) == 300 and tokenizer.pieces[0] == "!"
    assert tokenizer.special_ids == {}
    numbers = [*range(299, -1, -1)]
    symbols = [*map(str, numbers), "madeupword0000", "madeupword0001"]
    path = write(tmp_path / "dict.txt", "".join(f"{symbol} 0\n" for symbol in symbols))
    token_ids = tokenizer.token_ids(load_dictionary(path))
    assert token_ids.tolist() == [300, 301, 302, 303, *numbers, 304, 305, 306]


@with_real_data
def test_the_released_roberta_dictionary():
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "encoder.json")
    dictionary = load_dictionary(REAL_DATA / "vocab" / "dict.roberta.txt")
    token_ids = tokenizer.token_ids(dictionary)
    assert sorted(token_ids) == list(range(50_265))
    assert [*token_ids[:4], *token_ids[-4:]] == [50_257, 50_258, 50_259, 50_260, 50_261, 50_262, 50_263, 50_264]
