"""The part of speech of a word in the sense that it shares with a synonym, from WordNet."""

from nltk.corpus.reader.wordnet import WordNetCorpusReader

UNKNOWN = "unknown"
_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}


def part_of_speech(reader: WordNetCorpusReader, word: str, other: str, lang: str = "eng") -> str:
    """Noun, verb, adjective or adverb, for the first sense that ``word`` shares with ``other``, else its first sense.

    ``unknown`` if WordNet does not have the word.
    """
    senses = reader.synsets(word, lang=lang)
    others = set(reader.synsets(other, lang=lang))
    shared = [sense for sense in senses if sense in others]
    return _NAMES[(shared or senses)[0].pos()] if senses else UNKNOWN
