"""Words that exclude each other, according to WordNet: names, numbers and antonyms."""

from functools import cache
from typing import NamedTuple

from nltk.corpus.reader.wordnet import Synset, WordNetCorpusReader

from .inflection import lemmas

_NUMBERS = {"cardinal.a.02", "ordinal.a.02"}  # what the adjectives five and fifth are similar to


class Entry(NamedTuple):
    synsets: frozenset[Synset]
    opposites: frozenset[Synset]  # the synsets of its antonyms
    is_name: bool
    is_number: bool


def is_contrast(reader: WordNetCorpusReader, word: str, other: str) -> bool:
    """Whether two English words exclude each other: two names, two numbers, or antonyms; ignores case.

    Names include months, weekdays, nationalities and languages: the words whose first sense WordNet capitalizes, and
    the words that WordNet does not know. Numbers are cardinals, ordinals, and words with a digit. Names or numbers that
    share a synset do not exclude each other (*america*, *usa*).
    """
    one, two = entry(reader, word.lower()), entry(reader, other.lower())
    if one.opposites & two.synsets:
        return True
    return (one.is_name and two.is_name or one.is_number and two.is_number) and not one.synsets & two.synsets


@cache
def entry(reader: WordNetCorpusReader, word: str) -> Entry:
    """What WordNet says about an English word in lower case."""
    synsets = reader.synsets(word)
    forms = lemmas(word) | {word}
    own = [[lemma for lemma in synset.lemmas() if lemma.name().lower() in forms] for synset in synsets]
    return Entry(
        synsets=frozenset(synsets),
        opposites=frozenset(
            antonym.synset() for synset_lemmas in own for lemma in synset_lemmas for antonym in lemma.antonyms()
        ),
        is_name=not synsets or any(lemma.name()[0].isupper() for lemma in own[0]),
        is_number=any(map(str.isdigit, word))
        or any(similar.name() in _NUMBERS for synset in synsets for similar in synset.similar_tos()),
    )
