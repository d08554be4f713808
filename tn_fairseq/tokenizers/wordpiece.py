"""BERT's WordPiece, and the ``vocab.txt`` of a BERT."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from ..core.errors import InputError
from ..core.files import read_bytes, read_json_object, read_text
from .base import BERT_NAMES, BERT_SPECIAL_TOKENS, REMEDY, Tokenizer, by_id, find_special_ids, find_symbols
from .fast import FastTokenizer


def wordpiece_tokenizer(
    pieces: Sequence[str] | Mapping[str, int],
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer, set up as ``transformers`` does for a ``vocab.txt``.

    ``pieces`` are in the order of their ids, or with their ids.
    """
    ids = pieces if isinstance(pieces, Mapping) else {piece: index for index, piece in enumerate(pieces)}
    vocabulary = dict(ids)
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
    read_text(path, REMEDY)  # says where it is not UTF-8
    # as transformers reads it, and BERT: without white space at the ends of lines, and the last of equal lines counts
    vocabulary = models.WordPiece.read_file(str(path))
    pieces = {index: piece for piece, index in sorted(vocabulary.items(), key=lambda item: item[1])}
    if pieces and all(re.fullmatch(r"\S+ \d+", piece) for piece in pieces.values()):
        remedy = "delete the numbers, such as with sed 's/ [0-9]*$//'"
        raise InputError(f"{path}: has a number after each piece, as a dict.txt of fairseq; {remedy}")
    special_ids = find_special_ids(pieces, BERT_NAMES, path)
    symbols = find_symbols(pieces, special_ids, path)
    config_path = path.parent / "tokenizer_config.json"
    config = read_json_object(config_path, REMEDY) if config_path.exists() else {}
    for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
        if not isinstance(config.get(name, False), (bool, *([type(None)] if name == "strip_accents" else []))):
            raise InputError(f"{config_path}: {name} must be true or false, not {config[name]!r}; {REMEDY}")
    if "do_lower_case" in config:
        lowercase, reason = config["do_lower_case"], f"from {config_path.name}"
    else:
        # the Chinese BERT, which is uncased, has <S> and <T>
        ordinary = (pieces[index] for index in symbols if not re.fullmatch("<.+>", pieces[index]))
        capital = next((piece for piece in ordinary if piece != piece.lower()), None)
        lowercase = capital is None
        reason = "no piece has a capital letter" if lowercase else f"it has {capital!r}"
    backend = wordpiece_tokenizer(
        vocabulary, lowercase, config.get("strip_accents"), config.get("tokenize_chinese_chars", True)
    )
    made_config = json.dumps({"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer"}, indent=2) + "\n"
    files = {
        "vocab.txt": read_bytes(path, REMEDY),
        "tokenizer_config.json": read_bytes(config_path, REMEDY) if config else made_config.encode(),
    }
    casing = "uncased" if lowercase else "cased"
    size = f"{len(pieces):,} pieces"
    if repeated := max(pieces) + 1 - len(pieces):
        size += f" and {repeated:,} lines that a later line repeats"
    description = f"BERT WordPiece of {path.name}, {size}, {casing} ({reason})"
    return FastTokenizer(description, files, by_id(pieces, path), special_ids, symbols, backend)
