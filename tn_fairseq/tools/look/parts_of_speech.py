"""The part of speech of a word in the sense that it shares with a synonym, from WordNet."""

import sys
from collections.abc import Callable

from ...core.errors import InputError
from ...synonyms.wordnet import FETCH, find_wordnet

UNKNOWN = "unknown"
_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}


def part_of_speech_in(language: str) -> Callable[[str, str], str]:
    """A function of two words of a language that gives the part of speech of the first.

    It is noun, verb, adjective or adverb, for the first sense that the words share, else for the first sense of the
    first word. It is ``unknown`` if WordNet does not have the word. If NLTK has no WordNet of the language, says so on
    standard error, and all are unknown.
    """
    reason = f"NLTK has no WordNet of {language}; build a synonym table with --source wordnet --lang {language} first"
    if language == "eng":
        reason = f"NLTK has no WordNet; get it with {FETCH}"
    try:
        reader = find_wordnet(language)
    except InputError as error:
        reader, reason = None, str(error)
    if reader is None:
        print(f"parts of speech are {UNKNOWN}: {reason}", file=sys.stderr)
        return lambda word, other: UNKNOWN

    def part_of_speech(word: str, other: str) -> str:
        senses = reader.synsets(word, lang=language)
        others = set(reader.synsets(other, lang=language))
        shared = [sense for sense in senses if sense in others]
        return _NAMES[(shared or senses)[0].pos()] if senses else UNKNOWN

    return part_of_speech
