"""Folders of ``transformers``, whose tokenizer is what ``AutoTokenizer`` makes of all their files.

``tokenizer_config.json`` overrides what ``tokenizer.json`` and ``vocab.txt`` say, and ``added_tokens.json`` has tokens
that ``vocab.txt`` lacks. What ``binarize`` copies to a data-bin is one complete file, which is read without
``transformers``.
"""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import normalizers

from ..core.errors import InputError
from ..core.files import read_json_object
from ..core.packages import load_with_transformers
from . import load_tokenizer
from .base import REMEDY, TOKEN_FIELDS, Tokenizer
from .fast import FastTokenizer, read_tokenizer_json

# AutoTokenizer needs one of these
_CONFIG, _ADDED, _MODEL = "tokenizer_config.json", "added_tokens.json", "config.json"
# the classes that our own readers know; None is a file that names none
_CLASSES = {None, "BertTokenizer", "ElectraTokenizer", "DistilBertTokenizer", "RobertaTokenizer", "PreTrainedTokenizer"}
_PARTS = ("model", "normalizer", "pre_tokenizer")  # of a tokenizer.json: what decides the ids of a text
# with capitals, accents, Chinese characters, spaces and a ligature
PROBE = ("C'est l'été: É un caffè, 東京 ﬁt\u00a0Straße\tno_one IBM-PC 3.14", "The quick brown fox.  It's  42")


def load_pretrained(path: str | Path) -> Tokenizer:
    """Load a tokenizer that a user names: a folder of ``transformers`` as ``AutoTokenizer`` does, others as we do.

    Raises InputError for what ``load_tokenizer`` refuses, and for a folder that we cannot read as ``AutoTokenizer``
    does.
    """
    folder = Path(path)
    if not folder.is_dir() or not any((folder / name).exists() for name in (_CONFIG, _ADDED, _MODEL)):
        return load_tokenizer(path)
    ours: Any  # the tokenizer, or an InputError
    try:
        ours = load_tokenizer(folder)
    except InputError as error:  # a folder of which we know no file, or which transformers can repair
        ours = error
    if find_spec("transformers") is None:
        if isinstance(ours, InputError):
            raise ours
        if reason := _difference(folder, ours):
            raise InputError(f"{folder}: {reason}; pip install 'tn_fairseq[transformers]', which reads such folders")
        return ours
    try:
        loaded = _load(folder, ours)
    except InputError:
        if isinstance(ours, InputError) or (folder / _CONFIG).exists() or (folder / _ADDED).exists():
            raise
        return ours  # the folder of a model that transformers does not know
    theirs = loaded.backend_tokenizer
    if isinstance(ours, FastTokenizer) and _same(ours.backend, theirs):
        return _with_names_of(loaded, ours, folder)
    try:
        names = {field: getattr(loaded, field) for field in TOKEN_FIELDS.values()}
        files = {"special_tokens_map.json": (json.dumps(names, indent=2, ensure_ascii=False) + "\n").encode()}
        adopted = read_tokenizer_json(folder / "tokenizer.json", theirs.to_str().encode(), files)
    except InputError as error:  # such as an empty vocabulary, which transformers makes if there is no file
        raise ours if isinstance(ours, InputError) else error from None
    is_sentencepiece = not isinstance(ours, (FastTokenizer, InputError)) and ours.pieces == adopted.pieces
    if is_sentencepiece and ours.encode_chunk(PROBE)[0].tolist() == adopted.encode_chunk(PROBE)[0].tolist():
        return ours  # SentencePiece itself, from which transformers differs in rare cases
    adopted.description += ", as AutoTokenizer reads the folder"
    if getattr(adopted.backend.normalizer, "lowercase", False):
        ordinary = (adopted.pieces[index] for index in adopted.symbols)
        if capital := next((piece for piece in ordinary if re.search(r"^\w*[A-Z]", piece)), None):
            adopted.description += f", which lowercases text although the vocabulary has {capital!r}"
    return _with_names_of(loaded, adopted, folder)


def _with_names_of(loaded: Any, tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """The tokenizer; raises InputError if ``loaded``, that of ``transformers``, has other special tokens."""
    for symbol, name in TOKEN_FIELDS.items():
        theirs, ours = getattr(loaded, f"{name}_id"), tokenizer.special_ids.get(symbol)
        if theirs is not None and ours is not None and theirs != ours:
            raise InputError(
                f"{folder}: its {name} is {getattr(loaded, name)!r}, and not {tokenizer.pieces[ours]!r}; only these "
                "names are read, so rename the token"
            )
    return tokenizer


def _load(folder: Path, ours: Tokenizer | InputError) -> Any:
    """What ``AutoTokenizer`` makes of the folder; raises InputError, or ``ours`` if that is one."""
    try:
        loaded = load_with_transformers("AutoTokenizer", folder, local_files_only=True)
    except ValueError as error:
        if isinstance(ours, InputError):
            raise ours from None
        raise InputError(
            f"{folder}: AutoTokenizer cannot load it ({error}); to ignore the other files, give tokenizer.json, "
            "vocab.txt or the .model itself"
        ) from None
    if not loaded.is_fast:
        raise InputError(
            f"{folder}: {type(loaded).__name__} is written in Python, and only tokenizers of the tokenizers library "
            f"are read; {REMEDY} that has a tokenizer.json"
        )
    return loaded


def _same(one: Any, other: Any) -> bool:
    """Whether two tokenizers of the ``tokenizers`` library give the same ids."""
    contents = [json.loads(backend.to_str()) for backend in (one, other)]
    added = [[(t["id"], t["content"]) for t in content["added_tokens"]] for content in contents]
    return added[0] == added[1] and all(contents[0][part] == contents[1][part] for part in _PARTS)


def _difference(folder: Path, ours: Tokenizer) -> str | None:
    """What of a folder our own reader ignored, or None."""
    config = read_json_object(folder / _CONFIG, REMEDY) if (folder / _CONFIG).exists() else {}
    kind = config.get("tokenizer_class")
    if kind is not None and str(kind).removesuffix("Fast") not in _CLASSES:
        return f"{_CONFIG} says tokenizer_class {kind}"
    added = read_json_object(folder / _ADDED, REMEDY) if (folder / _ADDED).exists() else {}
    decoder = config.get("added_tokens_decoder") or {}
    contents = [token.get("content") for token in decoder.values() if isinstance(token, dict)]
    for piece in [*added, *contents]:
        if piece not in ours.pieces:
            return f"{_ADDED if piece in added else _CONFIG} adds {piece!r}"
    if not isinstance(ours, FastTokenizer):
        return f"{_CONFIG} says do_lower_case" if config.get("do_lower_case") else None
    if isinstance(ours.backend.normalizer, normalizers.BertNormalizer):
        options = {"do_lower_case": "lowercase", "strip_accents": "strip_accents"}
        for name, attribute in {**options, "tokenize_chinese_chars": "handle_chinese_chars"}.items():
            if name in config and config[name] != getattr(ours.backend.normalizer, attribute):
                return f"{_CONFIG} says {name} {json.dumps(config[name])}, against tokenizer.json"
        if (
            "tokenizer.json" not in ours.files
            and "do_lower_case" not in config
            and not ours.backend.normalizer.lowercase
        ):
            return f"{_CONFIG} does not say do_lower_case, which is then true, but vocab.txt has capital letters"
    elif "add_prefix_space" in config:
        says = json.dumps({"add_prefix_space": config["add_prefix_space"]})[1:-1]
        splits = json.dumps(json.loads(ours.backend.to_str())["pre_tokenizer"])
        if '"add_prefix_space"' in splits and says not in splits:
            return f"{_CONFIG} says {says}, against tokenizer.json"
    return None
