"""Which entries of a model's dictionary are whole words, and which word each one spells."""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from .dictionary import UNKNOWN, Symbols
from .errors import InputError
from .files import read_json_object

# The markers at the start of a piece that distinguish whole words from parts of words.
WORDPIECE_CONTINUATION, SENTENCEPIECE_WORD, GPT2_WORD = "##", "▁", "Ġ"
# The characters with which GPT-2 writes bytes: those that one sees, and others from U+0100 on.
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {chr(0x100 + place): byte for place, byte in enumerate(_HIDDEN)}
_SPACE = 4  # a kind of character
_NO_TEXT = b"\0"  # stands for a special symbol
# the bytes with which SentencePiece writes characters that it does not know
_BYTE_PIECES = {f"<0x{byte:02X}>": byte for byte in range(256)}

# Entries that no text contains: [PAD], [unused12], <mask>, <0x0A>; fairseq pads dictionaries with madeupword0000.
_SPECIAL = re.compile(r"\[\S+\]|<\S+>|madeupword\d{4}")

# English words of the closed classes: determiners, pronouns, auxiliaries, prepositions, conjunctions, pro-adverbs,
# negation and degree, and what tokenizers leave of contractions. Grammar, not meaning, decides which one fits a gap,
# and what WordNet offers for them (I: iodine, in: inch, he: helium) is not a synonym.
_CLOSED_CLASSES = """
a an the this that these those each every either neither both all any some no none such another other others
much many more most few fewer fewest less least several enough own same
i me my mine myself we us our ours ourselves you your yours yourself yourselves thou thee thy thine thyself ye
he him his himself she her hers herself it its itself they them their theirs themselves oneself
who whom whose which what whoever whomever whichever whatever
somebody someone something anybody anyone anything nobody nothing everybody everyone everything
be am is are was were been being have has had having do does did done doing
can could may might must shall should will would ought cannot
about above across after against along alongside amid amidst among amongst around as at atop before behind below
beneath beside besides between beyond but by despite down during except for from in inside into like near of off on
onto out outside over per since than through throughout till to toward towards under underneath unlike until unto
up upon versus via with within without
and or nor so yet if unless although though because whereas while whilst whether lest once
where wherever when whenever why how however here there now then
not never too very
aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't shouldn't wasn't weren't won't
wouldn't s t d m ll re ve n't 's 't 'd 'm 'll 're 've
"""
STOP_WORDS = frozenset(_CLOSED_CLASSES.split())


def whole_words(dictionary: Symbols, encoder_json: str | Path | None = None) -> dict[int, str]:
    """Map the id of every entry of ``dictionary`` that is a whole word to the word it spells, in the order of ids.

    A whole word is ``word`` in a WordPiece vocabulary (``##ing`` continues one) and in a plain list of words, ``▁word``
    in a SentencePiece vocabulary and ``Ġword`` in GPT-2's. There, a word at the very start of a text has another entry
    (``word``), which is left out because it also continues words. It starts with a letter or digit and has a letter.

    fairseq's dictionaries for GPT-2 contain numbers; ``encoder_json`` (GPT-2's ``encoder.json``) maps them to pieces.
    Raises InputError for such a dictionary without ``encoder_json``, and for an ``encoder_json`` that does not match.
    """
    forms = _forms(dictionary, encoder_json)
    words = {index: _text(form[1:]) for index, form in forms.items() if form.startswith(" ")}
    return {index: word for index, word in words.items() if _is_word(word)}


def word_finder(words: Mapping[int, str]) -> Callable[[str], int | None]:
    """A function that gives the id of a word, or None if it is not one of ``words``, the ``whole_words``.

    If all of them are lower-case, so is what is looked up.
    """
    ids = {word: index for index, word in words.items()}
    is_uncased = all(word == word.lower() for word in ids)
    return lambda word: ids.get(word.lower() if is_uncased else word)


def surface_forms(dictionary: Symbols, encoder_json: str | Path | None = None) -> list[str]:
    """What each entry of ``dictionary`` adds to a text, with a leading space if it starts a word.

    The text of a sequence of tokens is the concatenation of their forms. Special symbols add nothing, except the
    unknown word. Raises InputError as ``whole_words`` does.
    """
    forms = [f" {symbol}" if symbol == UNKNOWN else "" for symbol in dictionary.symbols]
    for index, form in _forms(dictionary, encoder_json).items():
        forms[index] = _text(form)
    return forms


def continues_word(dictionary: Symbols, encoder_json: str | Path | None = None) -> list[bool]:
    """Whether each entry of ``dictionary`` makes the entry before it a part of a longer word, as ``##le`` in merle.

    Such an entry does not begin a word (see ``whole_words``), and its text begins with a letter, a digit or an accent.
    So the word before ``.`` or ``'s`` is complete in every vocabulary, as in WordPiece. The first bytes of a character
    count as most of the characters that begin with them, and its other bytes always continue. In a plain list of words,
    no entry continues a word. Raises InputError as ``whole_words`` does.
    """
    continues = [False] * len(dictionary)
    for index, form in _forms(dictionary, encoder_json).items():
        continues[index] = _continues(form)
    if _BYTE_PIECES.keys() <= set(dictionary.symbols):
        for index, symbol in enumerate(dictionary.symbols):
            if symbol in _BYTE_PIECES:
                continues[index] = _continues(_decode(bytes([_BYTE_PIECES[symbol]])))
    return continues


class WordStarts:
    """Which tokens of a text begin a word: (B, T) ids -> (B, T) boolean.

    In byte-level BPE, these are the tokens that begin with a space, and those that begin a character of another kind
    than the one before: a letter or accent, a number, or anything else, as in GPT-2's pre-tokenizer. In other
    vocabularies, they are all but those that ``continues_word`` finds.
    """

    def __init__(self, dictionary: Symbols) -> None:
        """Raises InputError for a dictionary of numbers."""
        self._begins = ~np.array(continues_word(dictionary))
        self._content: list[bytes] | None = None
        if _is_byte_level(dictionary.symbols):
            forms = _forms(dictionary, None)
            self._content = [
                forms.get(index, "").encode("utf-8", "surrogateescape") or _NO_TEXT for index in range(len(dictionary))
            ]

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        if self._content is None:
            return self._begins[tokens]
        return np.stack([self._row_starts([self._content[token] for token in row]) for row in tokens.tolist()])

    def _row_starts(self, content: list[bytes]) -> np.ndarray:
        characters = _decode(b"".join(content))
        kinds = np.array([_kind(character) for character in characters], dtype=np.int8)
        before = np.concatenate([[0], kinds[:-1]])
        # a space begins a word, and what follows it is a part of this word
        begins = (kinds == _SPACE) | (before != _SPACE) & (before != kinds)
        sizes = [len(character.encode("utf-8", "surrogateescape")) for character in characters]
        is_word_start = np.zeros(sum(sizes), dtype=bool)  # the bytes that begin a character which begins a word
        is_word_start[np.cumsum([0, *sizes[:-1]])] = begins
        return is_word_start[np.cumsum([0, *map(len, content[:-1])])]


def is_special(symbol: str) -> bool:
    """Whether no text contains ``symbol``, to judge by its spelling: ``[SEP]``, ``<mask>``, ``madeupword0000``."""
    return _SPECIAL.fullmatch(symbol) is not None


def match_case(word: str, like: str) -> str:
    """Spell ``word`` in the casing pattern of ``like`` (lower, Capitalized, UPPER); unchanged if that is mixed."""
    pattern = casing(like)
    if pattern == "lower":
        return word.lower()
    if pattern == "Capitalized":
        return word[:1].upper() + word[1:].lower()
    return word.upper() if pattern == "UPPER" else word


def casing(word: str) -> str:
    """The casing pattern of ``word``: lower, Capitalized, UPPER or mixed; a single capital counts as Capitalized."""
    if word == word.lower():
        return "lower"
    if word[0].isupper() and word[1:] == word[1:].lower():
        return "Capitalized"
    return "UPPER" if word == word.upper() else "mixed"


def _forms(dictionary: Symbols, encoder_json: str | Path | None) -> dict[int, str]:
    """Map the ids of all entries but special symbols to what they add to a text, decoded by ``_decode``."""
    pieces = {
        index: symbol
        for index, symbol in enumerate(dictionary.symbols)
        if index >= dictionary.nspecial and not is_special(symbol)
    }
    are_numbers = bool(pieces) and all(piece.isascii() and piece.isdigit() for piece in pieces.values())
    if are_numbers and encoder_json is None:
        raise InputError("the dictionary contains numbers (GPT-2 BPE); give GPT-2's encoder.json with --encoder-json")
    if encoder_json is not None:
        if not are_numbers:
            raise InputError("--encoder-json is only for dictionaries of numbers, but this one contains text; omit it")
        pieces = _read_encoder_json(encoder_json, pieces)
    counts = {
        marker: sum(piece.startswith(marker) for piece in pieces.values())
        for marker in (WORDPIECE_CONTINUATION, SENTENCEPIECE_WORD, GPT2_WORD)
    }
    marker = max(counts, key=counts.__getitem__)
    if _is_byte_level(pieces.values()):
        return {index: _decode_bytes(piece) for index, piece in pieces.items()}
    if counts[marker] <= len(pieces) / 100:  # a plain list of words
        return {index: f" {piece}" for index, piece in pieces.items()}
    if marker == WORDPIECE_CONTINUATION:
        return {
            index: piece.removeprefix(marker) if piece.startswith(marker) else f" {piece}"
            for index, piece in pieces.items()
        }
    if marker == SENTENCEPIECE_WORD:
        return {index: piece.replace(marker, " ") for index, piece in pieces.items()}
    return {index: _decode_bytes(piece) for index, piece in pieces.items()}


def _read_encoder_json(path: str | Path, numbers: Mapping[int, str]) -> dict[int, str]:
    """Replace the numbers of a dictionary by the byte-level pieces of GPT-2's ``encoder.json``."""
    remedy = "--encoder-json needs GPT-2's encoder.json"
    pieces = read_json_object(path, remedy)
    if not all(type(number) is int for number in pieces.values()):
        raise InputError(f"{path}: does not map pieces to numbers; {remedy}")
    names = {number: piece for piece, number in pieces.items()}
    unknown = next((number for number in numbers.values() if int(number) not in names), None)
    if unknown is not None:
        raise InputError(f"{path}: has no piece {unknown} of the dictionary; give the matching encoder.json")
    return {index: names[int(number)] for index, number in numbers.items()}


def _is_word(text: str) -> bool:
    # No word contains an underscore: WordNet uses it in phrases. \ufffd replaces bytes that are not UTF-8.
    return text[:1].isalnum() and any(map(str.isalpha, text)) and not set("_\ufffd ") & set(text)


def _decode_bytes(piece: str) -> str:
    """The text of a byte-level piece; "" if it is not one."""
    return _decode(bytes(_BYTES[character] for character in piece)) if _BYTES.keys() >= set(piece) else ""


def _decode(content: bytes) -> str:
    """Decode UTF-8 and keep the bytes of parts of characters, as surrogates; ``_text`` replaces them."""
    return content.decode("utf-8", "surrogateescape")


def _text(form: str) -> str:
    return form.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _continues(form: str) -> bool:
    """Whether a text that begins with ``form`` continues a word."""
    if not "\udc80" <= form[:1] <= "\udcff":
        return _is_of_word(form[:1] or " ")
    first, *others = form.encode("utf-8", "surrogateescape")
    if first < 0xC0:
        return True  # not the first byte of a character
    more = next((place for place, byte in enumerate(others) if not 0x80 <= byte < 0xC0), len(others))
    return _are_mostly_of_words(bytes([first, *others[:more]]))


@cache
def _are_mostly_of_words(start: bytes) -> bool:
    """Whether most characters whose UTF-8 begins with these bytes, but is longer, are letters, marks or numbers."""
    length = 2 if start[0] < 0xE0 else 3 if start[0] < 0xF0 else 4
    code = start[0] & (0xFF >> (length + 1))
    for byte in start[1:length]:
        code = code << 6 | byte & 0x3F
    missing = 6 * max(length - len(start), 0)  # bits
    characters = map(chr, range(code << missing, min((code + 1) << missing, 0x110000)))
    assigned = [one for one in characters if unicodedata.category(one) not in ("Cn", "Co", "Cs")]
    return 2 * sum(map(_is_of_word, assigned)) > len(assigned)


def _is_byte_level(pieces: Collection[str]) -> bool:
    # also for a language without spaces, in which few pieces have the marker
    return _BYTES.keys() <= set(pieces)


@cache
def _kind(character: str) -> int:
    """1 to 3: a letter or accent, a number, anything else; or a space, or what has no text."""
    if character == _NO_TEXT.decode():
        return 5
    if character.isspace():
        return _SPACE
    return {"L": 1, "M": 1, "N": 2}.get(unicodedata.category(character)[0], 3)


def _is_of_word(character: str) -> bool:
    # Unicode's categories of letters, marks and numbers
    return unicodedata.category(character)[0] in "LMN"
