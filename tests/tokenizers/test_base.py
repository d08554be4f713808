"""The base class of tokenizers: the dictionary, and the mappings between ids and its indices."""

import json

from files import refused, write
from tokenizer_folders import PIECES, SPECIAL, bert_folder, model_dictionary
from tokenizers import Tokenizer, models

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.tokenizers import load_tokenizer


def test_a_dictionary_that_lacks_a_symbol_is_refused(tmp_path):
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    path = write(tmp_path / "dict.txt", "".join(f"{piece} 1\n" for piece in PIECES[1:]))
    for method in (tokenizer.lookup_table, tokenizer.token_ids):
        assert "'the'" in refused(method, load_dictionary(path))


def test_token_ids_invert_the_lookup_table_and_include_special_tokens(tmp_path):
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    assert tokenizer.pieces == [*SPECIAL, *PIECES]
    assert tokenizer.special_ids == {"<s>": 2, "<pad>": 0, "</s>": 3, "<unk>": 1, "<mask>": 4}
    dictionary = model_dictionary(tokenizer)
    token_ids = tokenizer.token_ids(dictionary)
    assert token_ids.tolist() == [2, 0, 3, 1, *range(5, 23), 4]
    assert token_ids[tokenizer.lookup_table(dictionary)[5:]].tolist() == list(range(5, 23))


def test_ids_without_a_piece_have_no_symbol(tmp_path):
    vocabulary = {piece: 2 * index for index, piece in enumerate([*SPECIAL, "cat"])}
    Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.pieces == ["[PAD]", "", "[UNK]", "", "[CLS]", "", "[SEP]", "", "[MASK]", "", "cat"]
    dictionary = model_dictionary(tokenizer)
    assert dictionary.symbols[4:] == ["cat", "<mask>"]
    assert tokenizer.token_ids(dictionary).tolist() == [4, 0, 6, 2, 10, 8]
    assert tokenizer.lookup_table(dictionary)[10] == 4


def test_an_id_far_beyond_the_others_is_refused(tmp_path):
    vocabulary = {**{piece: index for index, piece in enumerate(SPECIAL)}, "cat": 40}
    tokenizer = json.loads(Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]")).to_str())
    tokenizer["model"]["vocab"]["cat"] = 4_000_000_000  # here, because saving takes time for each id
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "tokenizer.json: has only 6 pieces, but the id 4,000,000,000;" in refused(load_tokenizer, tmp_path)
