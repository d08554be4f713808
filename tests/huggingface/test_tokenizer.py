"""``AutoTokenizer`` gives the same ids as ``binarize`` for every kind of exported tokenizer."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from files import refused
from tokenizer_folders import (
    PIECES,
    REAL_DATA,
    SPECIAL,
    TEXT,
    bert_folder,
    gpt2_folder,
    model_dictionary,
    sentencepiece_folder,
    with_real_data,
)
from tokenizers import ByteLevelBPETokenizer, Regex, pre_tokenizers

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.huggingface.hub_interface import HubInterface
from tn_fairseq.huggingface.tokenizer import tokenizer_files
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tokenizers.base import ROBERTA_SPECIAL_TOKENS, Tokenizer
from tn_fairseq.tokenizers.wordpiece import wordpiece_tokenizer

transformers = pytest.importorskip("transformers")
MAX_POSITIONS = 512
TRICKY = [
    *TEXT[:3],
    "The CAT Sat; ÉCOLE Ğ İstanbul straße Ⅳ ﬁne ½ ① naïve",
    "汉字cat漢 ｶﾀｶﾅ한국어 مرحبا Ж Жы Ж",
    "😀 👨‍👩‍👧 the 🇩🇪cat e\u0301 a\u0308",
    "\x00the\x1b \x7f\u200bcat\u200d \ufeffsat\ufffd \x85on\x0bmat",
    "  leading and  trailing\u00a0\u3000 \t ",
    "the[cat]<sat>##s ##the @@ ' \" `` 12,345.67 --- … –",
    "a ▁ b▁c",
    "antidisestablishmentarianism" * 9,
]
# text that transformers reads as special tokens by default
LITERAL = [TEXT[3], "the [MASK] sat", "the[SEP]cat [PAD]", "<s>the cat</s>", "the <mask> <unk> [UNK]s", "<pad>[CLS]"]


def tokenizer_json(folder: Path, is_custom: bool = False) -> Path:
    """BERT's tokenizer as a single tokenizer.json; a custom one has what BertTokenizer would not keep."""
    folder.mkdir()
    backend = wordpiece_tokenizer(SPECIAL + PIECES, lowercase=True)
    if is_custom:
        steps = [pre_tokenizers.Split(Regex(r"\d"), "removed"), pre_tokenizers.Whitespace()]
        backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
        backend.add_tokens(["cat_sat"])
        (folder / "special_tokens_map.json").write_text('{"pad_token": "[MASK]"}')  # ignored
    backend.save(str(folder / "tokenizer.json"))
    return folder


def roberta_folder(folder: Path) -> Path:
    """A byte-level tokenizer.json with RoBERTa's special tokens, and the mask among them."""
    folder.mkdir()
    learner = ByteLevelBPETokenizer(add_prefix_space=True)
    special = ["<s>", "<mask>", "</s>", "<pad>", "<unk>"]
    learner.train_from_iterator(TEXT * 3, vocab_size=310, special_tokens=special, show_progress=False)
    learner.save(str(folder / "tokenizer.json"))
    return folder


OURS = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3, "control_symbols": ["<mask>"]}
BERT_STYLE = {
    **{"bos_piece": "[CLS]", "pad_piece": "[PAD]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"},
    **{"pad_id": 3, "control_symbols": ["[MASK]"]},
}
WORDPIECE = {
    "uncased": bert_folder,
    "cased": lambda folder: bert_folder(folder, [*PIECES, "The", "Cat", "É"]),
    "accents kept": lambda folder: bert_folder(folder, do_lower_case=True, strip_accents=False),
    "accents stripped": lambda folder: bert_folder(folder, do_lower_case=False, strip_accents=True),
    "Chinese unsplit": lambda folder: bert_folder(folder, [*PIECES, "##字"], tokenize_chinese_chars=False),
    "tokenizer.json": tokenizer_json,
}
BPE, BYTES = {"model_type": "bpe", **OURS}, {"byte_fallback": True, "vocab_size": 300, **OURS}
IDENTITY = {"normalization_rule_name": "identity", **OURS}
SENTENCEPIECE = {
    "sentencepiece": lambda folder: sentencepiece_folder(folder, **OURS),
    "sentencepiece, its defaults": sentencepiece_folder,
    "sentencepiece, BERT's names": lambda folder: sentencepiece_folder(folder, **BERT_STYLE),
    "sentencepiece, user-defined mask": lambda folder: sentencepiece_folder(folder, user_defined_symbols=["<mask>"]),
    "sentencepiece bpe": lambda folder: sentencepiece_folder(folder, vocab_size=90, **BPE),
    "sentencepiece bpe bytes": lambda folder: sentencepiece_folder(folder, **{**BPE, **BYTES}),
    "sentencepiece across words": lambda f: sentencepiece_folder(f, split_by_whitespace=False, vocab_size=44, **OURS),
    "sentencepiece as is": lambda f: sentencepiece_folder(f, sentence_iterator=iter(TEXT[:3] * 3), **IDENTITY),
}
# the tokenizers library matches every piece of a unigram model in a text, even special ones
UNIGRAM = [kind for kind in SENTENCEPIECE if "bpe" not in kind]
OTHERS = {
    "custom": lambda folder: tokenizer_json(folder, is_custom=True),
    "roberta": roberta_folder,
    "gpt2": gpt2_folder,
}
MAKERS = {**WORDPIECE, **OTHERS, **SENTENCEPIECE}


def export(tokenizer, dictionary, folder: Path) -> Path:
    """Write the exported files and a config.json."""
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "electra"}')
    for name, content in tokenizer_files(tokenizer, dictionary, MAX_POSITIONS).items():
        (folder / name).write_bytes(content)
    return folder


def binarized(tokenizer, dictionary, lines) -> list[list[int]]:
    """The token ids that binarize writes for each line."""
    table, token_ids = tokenizer.lookup_table(dictionary), tokenizer.token_ids(dictionary)
    return [token_ids[table[tokenizer.encode_chunk([line])[0]]].tolist() for line in lines]


class Exported(NamedTuple):
    kind: str
    tokenizer: Tokenizer
    dictionary: Dictionary
    token_ids: np.ndarray  # of the dictionary's symbols
    folder: Path
    loaded: Any  # by transformers

    def ids(self, *lines: str) -> list[list[int]]:
        return binarized(self.tokenizer, self.dictionary, lines)

    def interface(self) -> HubInterface:
        return HubInterface(torch.nn.Module(), self.dictionary, self.tokenizer)


@pytest.fixture(scope="module", params=MAKERS)
def exported(request, tmp_path_factory) -> Exported:
    """A tokenizer and its export; the original folder is deleted."""
    folder = tmp_path_factory.mktemp("exported")
    tokenizer = load_tokenizer(MAKERS[request.param](folder / "original"))
    shutil.rmtree(folder / "original")
    dictionary = model_dictionary(tokenizer)
    export(tokenizer, dictionary, folder / "export")
    loaded = transformers.AutoTokenizer.from_pretrained(folder / "export")
    return Exported(request.param, tokenizer, dictionary, tokenizer.token_ids(dictionary), folder / "export", loaded)


def test_ids_match_binarize(exported):
    assert exported.loaded(TRICKY, add_special_tokens=False)["input_ids"] == exported.ids(*TRICKY)
    assert len(exported.loaded) == len(exported.dictionary)


def test_literal_special_tokens_are_text_with_split_special_tokens(exported):
    loaded = transformers.AutoTokenizer.from_pretrained(exported.folder, split_special_tokens=True)
    found, expected = loaded(LITERAL, add_special_tokens=False)["input_ids"], exported.ids(*LITERAL)
    if exported.kind not in UNIGRAM:
        assert found == expected
        return
    tokenizer = exported.tokenizer  # a unigram model still reads its own special tokens
    special = {tokenizer.pieces[token] for token in tokenizer.special_ids.values()}
    control = special - {tokenizer.pieces[tokenizer.special_ids["<unk>"]]}  # which is also used for other text
    pattern = "|".join(map(re.escape, control))
    for line, ids, text_ids in zip(LITERAL, found, expected, strict=True):
        assert [token for token in loaded.convert_ids_to_tokens(ids) if token in control] == re.findall(pattern, line)
        if not any(piece in line for piece in special):
            assert ids == text_ids


# transformers keeps the spaces around the mask of "roberta" as pieces of their own
@pytest.mark.parametrize("exported", [kind for kind in MAKERS if kind != "roberta"], indirect=True)
def test_a_mask_replaces_a_word_and_the_space_before_it(exported):
    loaded, interface = exported.loaded, exported.interface()
    before, word, whole = exported.ids("the cats", "the cats mat", "the cats mat. on the mat")
    masked = loaded(f"the cats {loaded.mask_token}. on the mat", add_special_tokens=False)["input_ids"]
    assert masked == [*before, loaded.mask_token_id, *whole[len(word) :]]
    for text in ("the {} sat on the mat.", "the {}. It", "{}s sat", "{}", "cat {}", "{} {}", "ü({})  {}, the"):
        theirs = loaded(text.replace("{}", loaded.mask_token))["input_ids"]
        for mask in ("<mask>", loaded.mask_token):
            assert exported.token_ids[interface.encode(text.replace("{}", mask))].tolist() == theirs, text


def test_the_python_interface_reads_other_text_as_binarize_does(exported):
    for text, ids in zip(TRICKY, exported.ids(*TRICKY)):
        bos, *inside, eos = exported.interface().encode(text).tolist()
        assert (bos, eos) == (exported.dictionary.bos(), exported.dictionary.eos())
        assert exported.token_ids[inside].tolist() == ids


@pytest.mark.parametrize(
    "exported", ["uncased", "gpt2", "sentencepiece", "sentencepiece bpe bytes", "roberta"], indirect=True
)
def test_the_python_interface_decodes_what_it_encodes(exported):
    interface = exported.interface()
    for text in ("the cat sat on <mask> mats.", "<mask> cat <mask>. the", "the cats"):
        assert interface.decode(interface.encode(text)).strip() == text
    assert list(map(str.strip, interface.decode(interface.encode("the <mask>", "cat")))) == ["the <mask>", "cat"]


def test_special_tokens_and_pairs(exported):
    loaded, tokenizer = exported.loaded, exported.tokenizer
    fields = ("cls_token_id", "pad_token_id", "sep_token_id", "unk_token_id", "mask_token_id")
    ids = dict(zip(ROBERTA_SPECIAL_TOKENS, [getattr(loaded, field) for field in fields]))
    assert ids == {symbol: exported.token_ids[exported.dictionary.index(symbol)] for symbol in ids}
    assert set(ids.values()) <= set(loaded.all_special_ids)
    assert loaded.model_max_length == MAX_POSITIONS
    assert not (exported.folder / "special_tokens_map.json").exists()
    config = json.loads((exported.folder / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == ("BertTokenizer" if exported.kind in WORDPIECE else "PreTrainedTokenizerFast")
    assert config.get("add_prefix_space") == {"roberta": True, "gpt2": False}.get(exported.kind)
    for symbol, token in tokenizer.special_ids.items():
        assert loaded.convert_ids_to_tokens(ids[symbol]) == tokenizer.pieces[token]

    first, second = exported.ids("the cat sat", "on the mat.")
    single, pair = loaded("the cat sat"), loaded("the cat sat", "on the mat.")
    assert single["input_ids"] == [ids["<s>"], *first, ids["</s>"]]
    assert pair["input_ids"] == [ids["<s>"], *first, ids["</s>"], *second, ids["</s>"]]
    assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_load_tokenizer_reads_the_export_and_exporting_again_changes_nothing(exported):
    tokenizer, folder = exported.tokenizer, exported.folder
    again = load_tokenizer(folder)
    assert again.pieces[: len(tokenizer.pieces)] == tokenizer.pieces
    assert len(again.pieces) == len(exported.dictionary)
    ids = {symbol: exported.token_ids[exported.dictionary.index(symbol)] for symbol in ROBERTA_SPECIAL_TOKENS}
    assert again.special_ids == ids
    lines = TRICKY if exported.kind in SENTENCEPIECE else TRICKY + LITERAL
    assert binarized(again, model_dictionary(again), lines) == exported.ids(*lines)

    files = tokenizer_files(again, model_dictionary(again), MAX_POSITIONS)
    assert files["tokenizer_config.json"] == (folder / "tokenizer_config.json").read_bytes()
    first, second = json.loads((folder / "tokenizer.json").read_bytes()), json.loads(files["tokenizer.json"])
    # The tokenizers library changes the last digit of scores when it reads them.
    assert second.pop("model").keys() == first.pop("model").keys()
    assert second == first


def test_symbols_that_are_only_in_the_dictionary_come_last_and_have_names_of_their_own(tmp_path):
    tokenizer = load_tokenizer(gpt2_folder(tmp_path))

    def with_symbol(name: str) -> Dictionary:
        symbols = [*map(str, reversed(range(300))), name]
        (tmp_path / "dict.txt").write_text("".join(f"{symbol} 0\n" for symbol in symbols))
        return load_dictionary(tmp_path / "dict.txt")

    folder = export(tokenizer, with_symbol("madeupword0000"), tmp_path / "export")
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "madeupword0000", "<mask>"]
    assert loaded.convert_ids_to_tokens(list(range(300, 306))) == tokens
    assert load_tokenizer(folder).pieces[300:] == tokens
    assert "'the'" in refused(tokenizer_files, tokenizer, with_symbol("the"), MAX_POSITIONS)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model_type": "char"}, "model_type=char"),
        ({"user_defined_symbols": ["cat"]}, "the user_defined piece 'cat'"),
        ({"add_dummy_prefix": False}, "add_dummy_prefix=false"),
        ({"treat_whitespace_as_suffix": True}, "treat_whitespace_as_suffix=true"),
    ],
)
def test_unsupported_sentencepiece_models_are_rejected(tmp_path, options, problem):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, **{"vocab_size": 40, **options}))
    assert problem in refused(tokenizer_files, tokenizer, model_dictionary(tokenizer), MAX_POSITIONS)


def test_missing_protobuf(tmp_path, monkeypatch):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path))
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    assert "pip install" in refused(tokenizer_files, tokenizer, model_dictionary(tokenizer), MAX_POSITIONS)


@with_real_data
@pytest.mark.parametrize(
    ("vocabulary", "dict_txt"), [("bert-uncased.vocab.txt", None), ("encoder.json", "dict.roberta.txt")]
)
def test_real_sentences(tmp_path, vocabulary, dict_txt):
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / vocabulary)
    dictionary = load_dictionary(REAL_DATA / "vocab" / dict_txt) if dict_txt else model_dictionary(tokenizer)
    loaded = transformers.AutoTokenizer.from_pretrained(export(tokenizer, dictionary, tmp_path / "export"))
    lines = []
    for name in ("glue/SST-2/train.tsv", "corpus/wiki.train.txt"):
        text = (REAL_DATA / name).read_text(encoding="utf-8").split("\n")
        lines += [line for line in text if line.strip()][:1000]
    assert len(lines) == 2000
    assert loaded(lines, add_special_tokens=False)["input_ids"] == binarized(tokenizer, dictionary, lines)
