"""Small tokenizers of every kind, and helpers to test them."""

import io
import json
import os
from pathlib import Path

import pytest
import sentencepiece
from fairseq.data import Dictionary
from tokenizers import ByteLevelBPETokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["the", "cat", "sat", "##s", "on", "mat", "é", "e", "汉", "[", "]", "mask", "<", ">", "/", "s", ".", "##ing"]
TEXT = ["The cat sat on the mat.", "the cats, sitting on mats. It's 汉字!", "café déjà vu 12:30", "a  b\tc <mask> </s>"]
REAL_DATA = Path(os.environ.get("TN_FAIRSEQ_DATA", ""))
with_real_data = pytest.mark.skipif(
    "TN_FAIRSEQ_DATA" not in os.environ, reason="TN_FAIRSEQ_DATA does not name a folder of real data"
)


def bert_folder(folder: Path, pieces: list[str] = PIECES, **config) -> Path:
    """A folder with a vocab.txt, and a tokenizer_config.json if ``config`` is not empty."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in SPECIAL + pieces), encoding="utf-8")
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def gpt2_folder(folder: Path) -> Path:
    """A small tokenizer in GPT-2's file format."""
    folder.mkdir(exist_ok=True)
    learner = ByteLevelBPETokenizer()
    learner.train_from_iterator(TEXT * 3, vocab_size=300)
    learner.save_model(str(folder))
    (folder / "vocab.json").rename(folder / "encoder.json")
    (folder / "merges.txt").rename(folder / "vocab.bpe")
    return folder


def sentencepiece_folder(folder: Path, **options) -> Path:
    """A small unigram model; with the library's defaults it has no <pad>."""
    folder.mkdir(exist_ok=True)
    model = io.BytesIO()
    defaults = {"sentence_iterator": iter(TEXT * 3), "vocab_size": 42, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(model_writer=model, **{**defaults, **options})
    (folder / "any.model").write_bytes(model.getvalue())
    return folder


def symbols_of(tokenizer, line: str) -> list[str]:
    """The dictionary symbols of a line."""
    dictionary = tokenizer.dictionary()
    ids, _ = tokenizer.encode_chunk([line])
    return [dictionary[index] for index in tokenizer.lookup_table(dictionary)[ids]]


def model_dictionary(tokenizer) -> Dictionary:
    """The tokenizer's dictionary with <mask>, as models have it."""
    dictionary = tokenizer.dictionary()
    dictionary.add_symbol("<mask>")
    return dictionary


KINDS = [bert_folder, gpt2_folder, sentencepiece_folder]
every_kind = pytest.mark.parametrize("make", KINDS)
