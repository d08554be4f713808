"""The part of speech in which a word means the same as another, by WordNet."""

from nltk.corpus.reader.wordnet import WordNetCorpusReader

UNKNOWN = "unknown"
_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}


def part_of_speech(reader: WordNetCorpusReader, word: str, other: str, lang: str = "eng") -> str:
    """noun, verb, adjective or adverb: of the first sense of ``word`` that it shares with ``other``, or else the first.

    ``unknown`` for a word that WordNet does not know.
    """
    senses = reader.synsets(word, lang=lang)
    others = set(reader.synsets(other, lang=lang))
    shared = [sense for sense in senses if sense in others]
    return _NAMES[(shared or senses)[0].pos()] if senses else UNKNOWN
