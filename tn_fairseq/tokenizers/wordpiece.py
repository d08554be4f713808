"""BERT's WordPiece, and the ``vocab.txt`` of a BERT."""

import json
from collections.abc import Sequence
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from ..errors import InputError
from ..files import read_bytes, read_json_object, read_text
from .base import BERT_NAMES, BERT_SPECIAL_TOKENS, REMEDY, Tokenizer, find_special_ids, find_symbols
from .fast import FastTokenizer


def wordpiece_tokenizer(
    pieces: Sequence[str],
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer with the given vocabulary, set up as ``transformers`` does for a ``vocab.txt``."""
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    tokenizer.add_special_tokens(list(BERT_SPECIAL_TOKENS))
    return tokenizer


def load_bert_vocabulary(path: Path) -> Tokenizer:
    lines = read_text(path, REMEDY).replace("\r\n", "\n").removesuffix("\n").split("\n")
    seen: dict[str, int] = {}
    for number, piece in enumerate(lines, 1):
        if piece in seen:
            raise InputError(f"{path}, line {number}: {piece!r} is already on line {seen[piece]}; delete one of them")
        seen[piece] = number
    pieces = dict(enumerate(lines))
    special_ids = find_special_ids(pieces, BERT_NAMES, path)
    symbols = find_symbols(pieces, special_ids, path, lambda index: f"line {index + 1}")
    config_path = path.parent / "tokenizer_config.json"
    config = read_json_object(config_path, REMEDY) if config_path.exists() else {}
    for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
        if not isinstance(config.get(name, False), (bool, *([type(None)] if name == "strip_accents" else []))):
            raise InputError(f"{config_path}: {name} must be true or false, not {config[name]!r}; {REMEDY}")
    if "do_lower_case" in config:
        lowercase, reason = config["do_lower_case"], f"from {config_path.name}"
    else:
        capital = next((piece for piece in symbols.values() if piece != piece.lower()), None)
        lowercase = capital is None
        reason = "no piece has a capital letter" if lowercase else f"it has {capital!r}"
    backend = wordpiece_tokenizer(
        lines, lowercase, config.get("strip_accents"), config.get("tokenize_chinese_chars", True)
    )
    made_config = json.dumps({"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer"}, indent=2) + "\n"
    files = {
        "vocab.txt": read_bytes(path, REMEDY),
        "tokenizer_config.json": read_bytes(config_path, REMEDY) if config else made_config.encode(),
    }
    casing = "uncased" if lowercase else "cased"
    description = f"BERT WordPiece of {path.name}, {len(pieces):,} pieces, {casing} ({reason})"
    return FastTokenizer(description, files, lines, special_ids, symbols, backend)
