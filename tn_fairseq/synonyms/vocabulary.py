"""Which entries of a model's dictionary are whole words, and what word each one spells."""

import json
import re
from pathlib import Path
from typing import Collection

from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode

from ..errors import InputError

# What a piece starts with where the marker tells whole words from pieces of words.
WORDPIECE_CONTINUATION, SENTENCEPIECE_WORD, GPT2_WORD = "##", "▁", "Ġ"
_BYTE_OF_CHARACTER = {character: byte for byte, character in bytes_to_unicode().items()}

# Entries that no text contains: [PAD], [unused12], <mask>, <0x0A>; fairseq fills dictionaries up with madeupword0000.
_SPECIAL = re.compile(r"\[\S+\]|<\S+>|madeupword\d{4}")

# English words of the closed classes: determiners, pronouns, auxiliaries, prepositions, conjunctions, pro-adverbs,
# negation and degree, and what tokenizers leave of contractions. Grammar, not meaning, decides which one fits a gap,
# and what WordNet offers for them (I: iodine, in: inch, he: helium) is no synonym.
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


def whole_words(dictionary: Dictionary, encoder_json: str | Path | None = None) -> dict[int, str]:
    """Map the id of every entry of ``dictionary`` that is a whole word to the word it spells, in the order of ids.

    A whole word is ``word`` in a WordPiece vocabulary (``##ing`` continues one) and in a plain list of words, ``▁word``
    in a SentencePiece vocabulary and ``Ġword`` in GPT-2's: there, a word at the very start of a text has another entry
    (``word``), which is left out because it also continues words. It begins with a letter or digit and has a letter.

    fairseq's dictionaries for GPT-2 hold numbers; ``encoder_json`` (GPT-2's ``encoder.json``) says which piece each one
    is. Raises InputError for such a dictionary without it, and for an ``encoder_json`` that does not fit.
    """
    pieces = _pieces(dictionary, encoder_json)
    marker = _marker(pieces.values())
    words = {}
    for index, piece in pieces.items():
        if marker == WORDPIECE_CONTINUATION:
            word = "" if piece.startswith(marker) else piece
        else:
            word = piece.removeprefix(marker) if piece.startswith(marker) else ""
        if marker == GPT2_WORD:
            word = _decode_bytes(word)
        if _is_word(word):
            words[index] = word
    return words


def surface_forms(dictionary: Dictionary, encoder_json: str | Path | None = None) -> list[str]:
    """What each entry of ``dictionary`` adds to a text, with a space before it where a word begins there.

    The text of some tokens is the concatenation of theirs. Special symbols add nothing, but for the unknown word.
    Raises InputError as ``whole_words`` does.
    """
    pieces = _pieces(dictionary, encoder_json)
    marker = _marker(pieces.values())
    forms = [""] * len(dictionary)
    forms[dictionary.unk()] = f" {dictionary.unk_word}"
    for index, piece in pieces.items():
        if marker == GPT2_WORD:
            forms[index] = _decode_bytes(piece, errors="replace")
        elif marker == SENTENCEPIECE_WORD:
            forms[index] = piece.replace(marker, " ")
        else:
            continues = marker and piece.startswith(marker)
            forms[index] = piece.removeprefix(marker) if continues else f" {piece}"
    return forms


def match_case(word: str, like: str) -> str:
    """Spell ``word`` in the casing pattern of ``like`` (lower, Capitalised, UPPER), or as it is where that is mixed."""
    pattern = casing(like)
    if pattern == "lower":
        return word.lower()
    if pattern == "Capitalised":
        return word[:1].upper() + word[1:].lower()
    return word.upper() if pattern == "UPPER" else word


def casing(word: str) -> str:
    """The casing pattern of ``word``: lower, Capitalised, UPPER or mixed; a single capital counts as Capitalised."""
    if word == word.lower():
        return "lower"
    if word[0].isupper() and word[1:] == word[1:].lower():
        return "Capitalised"
    return "UPPER" if word == word.upper() else "mixed"


def _pieces(dictionary: Dictionary, encoder_json: str | Path | None) -> dict[int, str]:
    """The pieces by their ids, without special symbols; those that stand for numbers of GPT-2 are looked up."""
    pieces = {
        index: dictionary[index]
        for index in range(dictionary.nspecial, len(dictionary))
        if not _SPECIAL.fullmatch(dictionary[index])
    }
    are_numbers = bool(pieces) and all(piece.isascii() and piece.isdigit() for piece in pieces.values())
    if are_numbers and encoder_json is None:
        raise InputError("the dictionary holds numbers (GPT-2 BPE): name GPT-2's encoder.json with --encoder-json")
    if encoder_json is not None and not are_numbers:
        raise InputError("--encoder-json is for dictionaries of numbers, and this one holds text: leave it out")
    if not are_numbers:
        return pieces
    names = _read_encoder_json(encoder_json)
    unknown = next((number for number in pieces.values() if int(number) not in names), None)
    if unknown is not None:
        raise InputError(f"{encoder_json}: has no piece {unknown}, which the dictionary holds; it belongs to another")
    return {index: names[int(number)] for index, number in pieces.items()}


def _marker(pieces: Collection[str]) -> str:
    """The marker that most pieces start with, or none in a plain list of words: one piece in a hundred must have it."""
    counts = {
        marker: sum(piece.startswith(marker) for piece in pieces)
        for marker in (WORDPIECE_CONTINUATION, SENTENCEPIECE_WORD, GPT2_WORD)
    }
    marker = max(counts, key=counts.get)
    return marker if counts[marker] > len(pieces) / 100 else ""


def _is_word(word: str) -> bool:
    # No word holds an underscore: WordNet writes phrases with it.
    return word[:1].isalnum() and any(map(str.isalpha, word)) and "_" not in word


def _read_encoder_json(path: str | Path) -> dict[int, str]:
    """Number -> byte-level piece, from GPT-2's ``encoder.json``."""
    try:
        with open(path, encoding="utf-8") as file:
            return {number: piece for piece, number in json.load(file).items()}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; --encoder-json is GPT-2's encoder.json") from None
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{path}: not JSON of pieces and numbers; --encoder-json is GPT-2's encoder.json") from None


def _decode_bytes(piece: str, errors: str = "strict") -> str:
    """The text of a byte-level piece; nothing where its bytes are not UTF-8 by themselves, unless that is replaced."""
    try:
        return bytes(_BYTE_OF_CHARACTER[character] for character in piece).decode(errors=errors)
    except (KeyError, UnicodeDecodeError):
        return ""
