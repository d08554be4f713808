"""Inflected forms of English words, and how the forms of two words relate.

The forms come from the dictionary of LemmInflect, and from its rules for words that the dictionary lacks. A word has
several readings if its spelling is ambiguous: *left* is an adjective, and the past of *leave*.
"""

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import lemminflect

VERSION = f"LemmInflect {lemminflect.__version__}"

# for each part of speech, its base form and other forms by their Penn Treebank tags
_FORMS = {
    "NOUN": ("NN", "NNS"),
    "VERB": ("VB", "VBZ", "VBG", "VBD", "VBN"),
    "ADJ": ("JJ", "JJR", "JJS"),
    "ADV": ("RB", "RBR", "RBS"),
}


class Reading(NamedTuple):
    """One way to read a word: as a form of a lemma.

    ``part_of_speech`` is NOUN, VERB, ADJ or ADV. ``form`` is a tag of the Penn Treebank, such as NNS or VBD; VBP counts
    as VB, which looks the same.
    """

    lemma: str
    part_of_speech: str
    form: str


class Relation(StrEnum):
    """How another word relates to a word; see ``relation``."""

    SAME_FORM = "same form"
    OWN_WORD = "own word"
    OTHER_WORD = "other word"


def relation(word: str, other: str) -> Relation:
    """Whether ``other`` is an inflection of the same word, has the same form as ``word``, or neither; ignores case.

    OWN_WORD: they share a lemma and its part of speech (*elections*, *election*; also the spellings *traveled*,
    *travelled*). SAME_FORM: they share a part of speech and a form in at least one reading each (*elections*, *polls*).
    OTHER_WORD: another word in another form or part of speech (*elections*, *vote*).
    """
    ours, others = readings(word.lower()), readings(other.lower())
    if {reading[:2] for reading in ours} & {reading[:2] for reading in others}:
        return Relation.OWN_WORD
    if {reading[1:] for reading in ours} & {reading[1:] for reading in others}:
        return Relation.SAME_FORM
    return Relation.OTHER_WORD


@cache
def readings(word: str) -> frozenset[Reading]:
    """All readings of a lowercase word; at least one. Words that are not in the dictionary are read by rules."""
    return frozenset(_known_readings(word)) or frozenset(_readings_by_rules(word))


def lemmas(word: str) -> frozenset[str]:
    """The lemmas of all readings of a word, ignoring case: *left* has *left* and *leave*."""
    return frozenset(reading.lemma for reading in readings(word.lower()))


@cache
def inflect(lemma: str, part_of_speech: str, form: str) -> tuple[str, ...]:
    """The spellings of a form of a lowercase lemma, most common first: *travel*, VERB, VBD: *traveled*, *travelled*.

    The lemma itself if ``form`` is the base form. No spelling if the dictionary knows the lemma, but not this form.
    """
    if form == _FORMS[part_of_speech][0]:
        return (lemma,)
    forms = lemminflect.getAllInflections(lemma, part_of_speech)
    if not forms and not lemminflect.getAllLemmas(lemma):
        forms = lemminflect.getAllInflectionsOOV(lemma, part_of_speech)
    spellings = forms.get(form, ())
    if form == "VBN":  # listed only if it differs from the past
        spellings = spellings or forms.get("VBD", ())
    if form == "NNS":  # the dictionary lists terrorism and poll as their own plurals, and few such words are plurals
        spellings = tuple(plural for plural in spellings if plural != lemma or plural.endswith("s"))
    return spellings


def _known_readings(word: str) -> Iterator[Reading]:
    """The readings in the dictionary, which lists names separately."""
    names = lemminflect.getAllLemmas(word, "PROPN")
    for part_of_speech, word_lemmas in [*lemminflect.getAllLemmas(word).items(), *names.items()]:
        if part_of_speech in _FORMS:  # all others are auxiliary verbs, which are also listed as verbs
            for lemma in word_lemmas:
                forms = [form for form in _FORMS[part_of_speech] if word in inflect(lemma, part_of_speech, form)]
                if not forms and part_of_speech == "NOUN":  # the plural of a name
                    forms = ["NNS"]
                for form in forms:
                    yield Reading(lemma, part_of_speech, form)


def _readings_by_rules(word: str) -> Iterator[Reading]:
    """A noun, or the past or participle of a verb, by its ending; without an ending also an adjective or adverb."""
    (noun,) = lemminflect.getAllLemmasOOV(word, "NOUN")["NOUN"]
    yield Reading(noun, "NOUN", "NN" if noun == word else "NNS")
    if noun == word:
        yield Reading(word, "ADJ", "JJ")
        yield Reading(word, "ADV", "RB")
    (verb,) = lemminflect.getAllLemmasOOV(word, "VERB")["VERB"]
    for form in ("VBG", "VBD", "VBN"):
        if verb not in ("", word) and word in lemminflect.getAllInflectionsOOV(verb, "VERB")[form]:
            yield Reading(verb, "VERB", form)
