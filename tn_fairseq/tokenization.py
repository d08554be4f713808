"""Tokenizers of every kind, seen as fairseq needs them: lines to ids, ids to symbols of ``dict.txt``.

``load_tokenizer(path)`` reads a Hugging Face ``tokenizer.json``, a BERT ``vocab.txt``, a SentencePiece ``.model`` or
GPT-2's ``encoder.json`` with ``vocab.bpe``. Special tokens that occur literally in a text are always ordinary text.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

import numpy as np
import sentencepiece
import tokenizers
from fairseq.data import Dictionary
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from .dictionary import MASK
from .errors import InputError

BERT_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", MASK)
# fairseq's special symbols, and what the two conventions call them
BERT_NAMES = dict(zip(ROBERTA_SPECIAL_TOKENS, ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")))
ROBERTA_NAMES = {symbol: symbol for symbol in ROBERTA_SPECIAL_TOKENS}


class Tokenizer(ABC):
    """A trained tokenizer.

    ``description`` says in a line what it is; ``files`` holds name and content of the files from which
    ``load_tokenizer`` makes it again; ``pieces`` are all pieces in the order of their ids, special tokens as the
    tokenizer spells them; ``special_ids`` maps fairseq's special symbols, as far as the vocabulary has them, to token
    ids; ``symbols`` maps every other token id to its symbol in ``dict.txt``, in the order of the ids.
    """

    def __init__(
        self,
        description: str,
        files: dict[str, bytes],
        pieces: dict[int, str],
        special_ids: dict[str, int],
        symbols: dict[int, str],
    ):
        self.description = description
        self.files = files
        self.pieces = [pieces[index] for index in sorted(pieces)]
        self.special_ids = special_ids
        self.symbols = dict(sorted(symbols.items()))
        self._size = max(pieces) + 1

    @abstractmethod
    def encode_chunk(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Token ids of all lines, joined, (tokens,) int32, and each line's number of tokens, (lines,) int64."""

    @abstractmethod
    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Token ids of a text of any number of lines, (tokens,) int32, and where in it each token stands.

        The places are (tokens, 2) int32, begin and end in characters of ``text``, white space at both ends left out;
        a token of white space alone has an empty place. A character that is divided belongs whole to all its tokens.
        """

    def dictionary(self) -> Dictionary:
        """The dictionary to be saved as ``dict.txt``: fairseq's tasks append ``<mask>``, so it is not in it."""
        dictionary = Dictionary()
        for symbol in self.symbols.values():
            dictionary.add_symbol(symbol)
        return dictionary

    def lookup_table(self, dictionary: Dictionary) -> np.ndarray:
        """The dictionary index of each token id, (tokens of the vocabulary,) int64; special tokens become ``<unk>``.

        Raises InputError if the dictionary lacks a symbol.
        """
        self._check_symbols(dictionary)
        # A tokenizer that splits only at white space finds a literal "[MASK]" in its vocabulary after all.
        table = np.full(self._size, dictionary.unk(), dtype=np.int64)
        for token, symbol in self.symbols.items():
            table[token] = dictionary.index(symbol)
        return table

    def token_ids(self, dictionary: Dictionary) -> np.ndarray:
        """The token id of each dictionary symbol, (len(dictionary),) int64, all different.

        Symbols that the vocabulary lacks get the ids after its own, in the dictionary's order. Raises InputError if the
        dictionary lacks a symbol of the tokenizer, or the tokenizer's ids have gaps.
        """
        self._check_symbols(dictionary)
        if len(self.pieces) < self._size:
            raise InputError(
                f"{self.description}: its ids run to {self._size - 1:,} with gaps between them, where a model would "
                "have rows that nothing was trained on; number the pieces from 0 without a gap"
            )
        ids = self.special_ids | {symbol: token for token, symbol in self.symbols.items()}
        new_ids = count(self._size)
        return np.array([ids[s] if s in ids else next(new_ids) for s in dictionary.symbols], dtype=np.int64)

    def _check_symbols(self, dictionary: Dictionary) -> None:
        missing = [symbol for symbol in self.symbols.values() if symbol not in dictionary]
        if missing:
            examples = ", ".join(map(repr, missing[:3]))
            raise InputError(
                f"the dictionary lacks {len(missing):,} of the tokenizer's {len(self.symbols):,} symbols ({examples}"
                f"{', ...' if len(missing) > 3 else ''}); give the --dict that belongs to this tokenizer, or none"
            )


class FastTokenizer(Tokenizer):
    """A tokenizer of the ``tokenizers`` library, its ``backend``."""

    def __init__(self, backend: tokenizers.Tokenizer, *described):
        super().__init__(*described)
        # A tokenizer.json may ask for both; they would silently cut lines and append padding.
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True  # a literal "[MASK]" is text
        self.backend = backend

    def __setstate__(self, state):
        self.__dict__ = state
        self.backend.encode_special_tokens = True  # the library does not pickle it

    def encode_chunk(self, lines):
        with self._one_line_of_errors():
            return _join(e.ids for e in self.backend.encode_batch_fast(lines, add_special_tokens=False))

    def encode_with_offsets(self, text):
        with self._one_line_of_errors():
            encoding = self.backend.encode(_one_line(text), add_special_tokens=False)
        offsets = []
        for begin, end in encoding.offsets:
            stripped = text[begin:end].lstrip()
            begin = end - len(stripped)
            offsets.append((begin, begin + len(stripped.rstrip())))
        return np.array(encoding.ids, dtype=np.int32), np.array(offsets, dtype=np.int32).reshape(-1, 2)

    @contextmanager
    def _one_line_of_errors(self) -> Iterator[None]:
        """Raises InputError for a tokenizer that loads but cannot encode, such as one without its unknown token."""
        try:
            yield
        except Exception as error:  # the library raises nothing narrower
            raise InputError(
                f"{self.description}: cannot encode the text ({_first_line(error)}); save the tokenizer anew"
            ) from None


class SentencePieceTokenizer(Tokenizer):
    """A model of the ``sentencepiece`` library."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, *described):
        super().__init__(*described)
        self._processor = processor

    def encode_chunk(self, lines):
        return _join(self._processor.encode(lines, out_type=int, num_threads=1))

    def encode_with_offsets(self, text):
        line = _one_line(text)
        ids = self._processor.encode(line, out_type=int)
        _, origins = self._processor.normalize(line, with_offsets=True)
        origins = np.array(origins)  # where in the text each normalized character comes from, and the end
        # The library's own places are empty for the first part of a divided character.
        spans, end = [], 0  # in the normalized text
        for index, piece in zip(ids, self._processor.encode(line, out_type=str), strict=True):
            if self._processor.is_byte(index):
                begin = end - ("<0x80>" <= piece <= "<0xBF>")  # one that continues a character
                end = begin + 1
                spans.append((begin, end))
            else:
                begin, end = end, end + len(piece)
                first = end - len(piece.lstrip("▁"))
                spans.append((first, first + len(piece.strip("▁"))))
        first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        begins = origins[first]
        ends = origins[np.searchsorted(origins, origins[last - 1], side="right").clip(max=len(origins) - 1)]
        offsets = np.stack([begins, np.where(last > first, ends, begins)], axis=1)
        return np.array(ids, dtype=np.int32), offsets.astype(np.int32)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Load the tokenizer in a folder or a file; its kind is told by the file's name.

    Raises InputError for a tokenizer that is missing, damaged, of an unknown kind or without the special tokens.
    """
    path = Path(path)
    if path.is_dir():
        path = _tokenizer_file(path)
    if path.suffix == ".model":
        return _load_sentencepiece(path)
    if path.suffix == ".txt":
        return _load_bert_vocabulary(path)
    if path.suffix == ".json":
        content = _read_json(path)
        # "model" is a piece of GPT-2's, too, but then it stands for a number.
        return _load_tokenizer_json(path) if isinstance(content.get("model"), dict) else _load_gpt2(path, content)
    if not path.exists():
        raise InputError(f"{path}: no such file; name a tokenizer's folder or file")
    raise InputError(
        f"{path}: unknown kind of tokenizer; give a tokenizer.json, a BERT vocab.txt, a SentencePiece .model, GPT-2's "
        "encoder.json, or a folder that holds one of these"
    )


def wordpiece_tokenizer(
    pieces: Sequence[str],
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> tokenizers.Tokenizer:
    """BERT's tokenizer over the given vocabulary, as ``transformers`` sets it up for a ``vocab.txt``."""
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


def _tokenizer_file(folder: Path) -> Path:
    """The file that makes a folder a tokenizer: ``tokenizer.json`` first, for it needs no other."""
    models_found = sorted(folder.glob("*.model"))
    if len(models_found) > 1:
        names = ", ".join(model.name for model in models_found)
        raise InputError(f"{folder}: holds several SentencePiece models ({names}); name the one to use")
    candidates = [folder / "tokenizer.json", folder / "vocab.txt", *models_found, folder / "encoder.json"]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise InputError(f"{folder}: no tokenizer.json, vocab.txt, .model or encoder.json in it; name a tokenizer's folder")


def _load_tokenizer_json(path: Path) -> Tokenizer:
    content = _read(path)
    try:
        backend = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{path}: not a tokenizer.json ({_first_line(error)}); save the tokenizer anew") from None
    pieces = {index: piece for piece, index in backend.get_vocab(with_added_tokens=True).items()}
    known = set(pieces.values())
    names = max(BERT_NAMES, ROBERTA_NAMES, key=lambda names: len(known.intersection(names.values())))
    special_ids = _special_ids(pieces, names, path)
    symbols = _symbols(pieces, special_ids, path, "piece {}".format)
    files = {"tokenizer.json": content}
    for name in ("tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (path.parent / name).exists():
            # whoever gets the copy reads them
            (_decode if name == "vocab.txt" else _read_json)(path.parent / name)
            files[name] = _read(path.parent / name)
    description = f"{type(backend.model).__name__} of {path.name}, {len(pieces):,} pieces"
    if isinstance(backend.normalizer, normalizers.BertNormalizer):
        description += ", uncased" if backend.normalizer.lowercase else ", cased"
    return FastTokenizer(backend, description, files, pieces, special_ids, symbols)


def _load_bert_vocabulary(path: Path) -> Tokenizer:
    lines = _decode(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    seen: dict[str, int] = {}
    for number, piece in enumerate(lines, 1):
        if not piece:
            raise InputError(f"{path}, line {number}: empty; a vocabulary has one piece on each line")
        if piece in seen:
            raise InputError(f"{path}, line {number}: {piece!r} stands on line {seen[piece]} already; remove one")
        seen[piece] = number
    pieces = dict(enumerate(lines))
    special_ids = _special_ids(pieces, BERT_NAMES, path)
    symbols = _symbols(pieces, special_ids, path, lambda index: f"line {index + 1}")
    config_path = path.parent / "tokenizer_config.json"
    config = _read_json(config_path) if config_path.exists() else {}
    if "do_lower_case" in config:
        lowercase, reason = bool(config["do_lower_case"]), f"says {config_path.name}"
    else:
        capital = next((piece for piece in symbols.values() if piece != piece.lower()), None)
        lowercase = capital is None
        reason = "no piece has a capital letter" if lowercase else f"it has {capital!r}"
    backend = wordpiece_tokenizer(
        lines, lowercase, config.get("strip_accents"), config.get("tokenize_chinese_chars", True)
    )
    made_config = json.dumps({"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer"}, indent=2) + "\n"
    files = {
        "vocab.txt": _read(path),
        "tokenizer_config.json": _read(config_path) if config else made_config.encode(),
    }
    casing = "uncased" if lowercase else "cased"
    description = f"BERT WordPiece of {path.name}, {len(pieces):,} pieces, {casing} ({reason})"
    return FastTokenizer(backend, description, files, pieces, special_ids, symbols)


def _load_sentencepiece(path: Path) -> Tokenizer:
    content = _read(path)
    try:
        # An empty model would load, and then print its troubles on every call.
        processor = sentencepiece.SentencePieceProcessor(model_proto=content) if content else None
    except (RuntimeError, OSError):
        processor = None
    if processor is None:
        raise InputError(f"{path}: not a SentencePiece model; train it anew, or name the .model file")
    pieces = {index: processor.id_to_piece(index) for index in range(len(processor))}
    ids = {
        "<s>": processor.bos_id(),
        "<pad>": processor.pad_id(),
        "</s>": processor.eos_id(),
        "<unk>": processor.unk_id(),
        MASK: next((index for mask in (MASK, "[MASK]") for index, piece in pieces.items() if piece == mask), -1),
    }
    special_ids = {symbol: index for symbol, index in ids.items() if index >= 0}
    # The library trains without <pad> unless told otherwise: fairseq's own stands for it.
    missing = [symbol for symbol in ids if symbol not in (*special_ids, "<pad>", MASK)]
    if missing:
        raise InputError(f"{path}: lacks the special tokens {', '.join(missing)}; train a model that has them")
    symbols = _symbols(pieces, special_ids, path, "piece {}".format)
    description = f"SentencePiece of {path.name}, {len(pieces):,} pieces"
    files = {"sentencepiece.model": content}
    return SentencePieceTokenizer(processor, description, files, pieces, special_ids, symbols)


def _load_gpt2(path: Path, vocabulary: dict) -> Tokenizer:
    merges_path = path.parent / "vocab.bpe"
    if not merges_path.exists():
        raise InputError(f"{merges_path}: no such file; GPT-2's {path.name} needs its vocab.bpe beside it")
    ids = vocabulary.values()
    if not all(type(index) is int and index >= 0 for index in ids) or len(set(ids)) != len(vocabulary):
        raise InputError(f"{path}: does not map each piece to a number of its own; take GPT-2's encoder.json")
    if not vocabulary.keys() >= set(pre_tokenizers.ByteLevel.alphabet()):
        raise InputError(f"{path}: lacks pieces for some of the 256 bytes; take GPT-2's encoder.json")
    version, *lines = _decode(merges_path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if not version.startswith("#version"):
        # fairseq skips the first line whatever it is, so its encoder would lose a merge.
        raise InputError(f"{merges_path}, line 1: not '#version: ...'; take the vocab.bpe that belongs to {path.name}")
    merges = [tuple(line.split(" ")) for line in lines]
    for number, merge in enumerate(merges, 2):
        if len(merge) != 2:
            raise InputError(f"{merges_path}, line {number}: not two pieces; take the file that belongs to {path.name}")
    try:
        backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(
            f"{merges_path}: does not fit {path.name} ({_first_line(error)}); take them from one release"
        ) from None
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    files = {"encoder.json": _read(path), "vocab.bpe": _read(merges_path)}
    description = f"GPT-2 byte-level BPE of {path.name}, {len(vocabulary):,} pieces, numbers in dict.txt"
    pieces = {index: piece for piece, index in vocabulary.items()}
    return FastTokenizer(backend, description, files, pieces, {}, {index: str(index) for index in ids})


def _special_ids(pieces: dict[int, str], names: dict[str, str], path: Path) -> dict[str, int]:
    """fairseq's special symbol to token id, where ``names`` maps it to the tokenizer's spelling; refuses gaps."""
    ids = {piece: index for index, piece in pieces.items()}
    missing = [name for name in names.values() if name not in ids]
    if missing:
        raise InputError(f"{path}: lacks the special tokens {', '.join(missing)}; take a vocabulary that has them")
    return {symbol: ids[name] for symbol, name in names.items()}


def _symbols(
    pieces: dict[int, str], special_ids: dict[str, int], path: Path, place: Callable[[int], str]
) -> dict[int, str]:
    """Token id to piece without the special tokens; refuses what fairseq's ``dict.txt`` cannot hold."""
    special = set(special_ids.values())
    symbols = {index: piece for index, piece in pieces.items() if index not in special}
    for index, piece in symbols.items():
        if not piece or re.search(r"\s", piece):
            raise InputError(
                f"{path}, {place(index)}: {piece!r} is empty or holds white space, at which fairseq splits"
            )
        if piece in ROBERTA_SPECIAL_TOKENS:
            raise InputError(f"{path}, {place(index)}: {piece!r} is fairseq's own special symbol; rename the piece")
    if not symbols:
        raise InputError(f"{path}: holds nothing but special tokens; train a vocabulary")
    return symbols


def _one_line(text: str) -> str:
    """The text with blanks for its line ends, as many characters as before."""
    return text.replace("\r\n", "  ").replace("\n", " ")


def _join(sentences: Iterable[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists of ids to one array and their lengths."""
    sentences = list(sentences)
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    return np.fromiter(chain.from_iterable(sentences), dtype=np.int32, count=lengths.sum()), lengths


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a tokenizer's folder or file") from None


def _decode(path: Path) -> str:
    try:
        return _read(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start}); convert it to UTF-8") from None


def _read_json(path: Path) -> dict:
    try:
        content = json.loads(_decode(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}); take the file anew") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: a JSON {type(content).__name__}, not an object; take the tokenizer's own file")
    return content


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
