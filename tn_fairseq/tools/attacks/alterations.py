"""Words that a sentence can have in the place of others, so that it says something else.

The kinds of changes are those of Jia and Liang (2017): antonyms of WordNet, near numbers, and near names. Near names
are other names of the same kind in the data. Only if nothing else can change, nouns become others with the same
hypernym, and adjectives become rare antonyms.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from nltk.corpus.reader.wordnet import Synset

from ...core.vocabulary import match_case
from ...synonyms.inflection import inflect, readings
from ...synonyms.wordnet import process_reader
from .declarative import Statement, Token, spelled

MONTHS = "January February March April May June July August September October November December".split()
_SERIES = (
    MONTHS,
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "two three four five six seven eight nine ten eleven twelve".split(),
    "second third fourth fifth sixth seventh eighth ninth tenth".split(),
)
_NEAR = [step for step in range(-4, 5) if step]
_NUMBER = re.compile(r"(\d{1,18})(st|nd|rd|th)?")  # Python refuses to convert thousands of digits
_NUMBERS = re.compile(rf"{_NUMBER.pattern}([-–/:](\d{{1,18}}|[^\W\d]+))*")  # 2011-2012, 19th-century, but not 4x4
# words whose antonyms and co-hyponyms seldom fit
_FIXED = set(
    "other same many much few such own one last former latter right left free kind type way part thing day name term "
    "example use number amount time".split()
)
_PARTS_OF_SPEECH = {"n": "NOUN", "a": "ADJ"}
_GENERIC_NOUNS = 3  # the highest hypernyms, such as entity, are too general


def near_numbers(text: str) -> list[str]:
    """Numbers, months or weekdays near ``text``, in its format; none if it is something else, such as *CO2*."""
    for series in _SERIES:
        word = text if text in series else text.lower()  # not the verb "may"
        if word in series:
            place = series.index(word)
            near = [series[place + step] for step in _NEAR if 0 <= place + step < len(series)]
            return [match_case(other, like=text) for other in near]
    if not _NUMBERS.fullmatch(text):
        return []
    shifted_numbers = (_NUMBER.sub(partial(_shifted, step), text) for step in _NEAR)
    return [number for number in shifted_numbers if number != text]


def _shifted(step: int, match: re.Match[str]) -> str:
    """A number of the same length, or else the same; the second digit changes, unless it is a year or an ordinal."""
    value, suffix = int(match[1]), match[2] or ""
    unit = 1 if suffix or 1000 <= value <= 2100 else 10 ** max(len(match[1]) - 2, 0)
    other = value + step * unit
    if other < (1 if suffix else 2) or len(str(other)) != len(match[1]):
        return match[0]
    if suffix:
        suffix = {1: "st", 2: "nd", 3: "rd"}.get(other % 10 if other // 10 % 10 != 1 else 0, "th")
    return f"{other}{suffix}"


def synsets(name: str, part_of_speech: str | None = None) -> list[Synset]:
    """WordNet's synsets of a name, the most frequent sense first."""
    return process_reader().synsets(name, part_of_speech)


@cache
def antonyms(word: str, tag: str) -> tuple[str, ...]:
    """The antonyms of a noun or adjective in its two most frequent senses, in the form of the Penn tag ``tag``."""
    part_of_speech = "a" if tag.startswith("JJ") else "n"
    names = {
        antonym.name()
        for base in _base_forms(word, part_of_speech, tag)
        for synset in synsets(base, part_of_speech)[:2]
        for own in synset.lemmas()
        for antonym in own.antonyms()
        if own.name() == base and antonym.synset() in synsets(antonym.name(), part_of_speech)[:2]
    }
    return _inflected(names, part_of_speech, tag)


@cache
def co_hyponyms(word: str, tag: str, distance: int) -> tuple[str, ...]:
    """Nouns with the same hypernym as a noun, ``distance`` steps up, in the number of the noun.

    Only the most frequent sense of each noun counts.
    """
    names: set[str] = set()
    for base in _base_forms(word, "n", tag):
        related = set(synsets(base, "n")[:1])
        for _ in range(distance):
            related = {hypernym for one in related for hypernym in one.hypernyms()}
        related = {hypernym for hypernym in related if hypernym.min_depth() > _GENERIC_NOUNS}
        for _ in range(distance):
            related = {hyponym for one in related for hyponym in one.hyponyms()}
        first_names = ((one, one.lemma_names()[0]) for one in related)
        names.update(name for one, name in first_names if name != base and synsets(name, "n")[:1] == [one])
    return _inflected(names, "n", tag)


def _base_forms(word: str, part_of_speech: str, tag: str) -> list[str]:
    kind = _PARTS_OF_SPEECH[part_of_speech]
    return sorted({reading.lemma for reading in readings(word) if reading[1:] == (kind, tag)} - _FIXED)


def _inflected(names: Iterable[str], part_of_speech: str, tag: str) -> tuple[str, ...]:
    """The lemmas that are no phrases or names, in the form of a Penn tag, in order."""
    kind = _PARTS_OF_SPEECH[part_of_speech]
    words = (name for name in names if name.isalpha() and name.islower())
    return tuple(sorted({form for word in words for form in inflect(word, kind, tag)[:1]}))


class Names:
    """The names in the data by their kinds; ``counts`` says how often each occurs, and ``frequencies`` each word.

    *the Rhine* and *Rhine* are two names. A name that occurs once does not count, nor does a word that is more often
    written in lower case.
    """

    def __init__(self, counts: Mapping[str, int], frequencies: Mapping[str, int]):
        self.frequencies = frequencies
        self._of_kind = defaultdict(list)
        for name in sorted(counts):
            if counts[name] > 1 and self._is_name(name):
                self._of_kind[name_kind(name)].append(name)

    def near(self, name: str) -> list[str]:
        """Other names of the same kind."""
        return [other for other in self._of_kind[name_kind(name)] if other != name] if self._is_name(name) else []

    def _is_name(self, name: str) -> bool:
        first, *others = name.removeprefix("the ").split()
        is_capitalized = self.frequencies[first.lower()] < self.frequencies[first]
        return bool(others) or len(first.strip(".")) > 1 and is_capitalized


@cache
def name_kind(name: str) -> str:
    """What a name is, by WordNet or by its form."""
    bare = name.removeprefix("the ")
    words = bare.split()
    number = "plural" if words[-1].endswith("s") and not words[-1].endswith(("ss", "us", "is")) else "singular"
    name_synsets = synsets(bare.replace(" ", "_"))
    senses = [one.lexname() for one in name_synsets if any(lemma[0].isupper() for lemma in one.lemma_names())]
    senses.sort(key=lambda sense: sense == "noun.person")  # Newcastle is a city rather than a person of that name
    kind = "acronym" if bare.isupper() else senses[0] if senses else f"{len(words)} words"
    return f"{kind}, {number}, {'without' if bare == name else 'with'} the"


@cache
def is_common_noun(word: str) -> bool:
    """Whether the most frequent sense of a noun, in any spelling, has a name without a capital."""
    noun_synsets = synsets(word.lower(), "n")
    return bool(noun_synsets) and noun_synsets[0].lemma_names()[0][0].islower()


def names_of(words: Sequence[Token]) -> list[str]:
    """The names in a text, each with *the* if it has that article."""
    return [_with_article(words, start, end) for start, end in _name_runs(words)]


def _name_runs(words: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The start and end of each run of name words, such as *Doctor Who*."""
    start = None
    for index, token in enumerate([*words, Token("", "")]):
        is_name = token.tag in ("NNP", "NNPS") and any(map(str.isalpha, token.text))
        if start is not None and not (token.space and (is_name or token.text[:1].isupper())):
            yield start, index
            start = None
        if is_name and start is None:
            start = index


def _with_article(words: Sequence[Token], start: int, end: int) -> str:
    """The name words[start:end], with *the* if that is its article: *the Rhine*, but *FCC* in *the FCC report*."""
    name = spelled(words[start:end])
    is_modifier = end < len(words) and (words[end].tag in ("NN", "NNS", "CD", "JJ") or words[end].lower == "'s")
    return f"the {name}" if start and words[start - 1].lower == "the" and not is_modifier else name


def altered(
    statement: Statement, names: Names, excluded: frozenset[str], choose: Callable[[list[str]], str]
) -> Statement | None:
    """The statement with other numbers, names and antonyms.

    If there are none of these, up to two words become co-hyponyms or rare antonyms. All other new words occur more than
    once in the data. No new word is one of the lowercase words in ``excluded``. ``choose`` chooses from sorted
    candidates. Returns None if nothing can be altered.
    """

    def known(candidates: Iterable[str]) -> list[str]:
        return [word for word in candidates if names.frequencies[word] > 1]

    def simple_changes(text: str, tag: str) -> list[list[str]]:
        near = near_numbers(text)
        if near or tag.startswith("NNP"):
            return [near or names.near(text)]
        return [known(antonyms(text, tag))] if text.islower() and tag[:2] in ("JJ", "NN") else []

    def other_changes(text: str, tag: str) -> list[list[str]]:
        if tag.startswith("JJ"):
            return [list(antonyms(text, tag))]
        is_noun = text.islower() and tag in ("NN", "NNS")
        return [known(co_hyponyms(text, tag, distance)) for distance in (1, 2)] if is_noun else []

    for candidates, most in ((simple_changes, sys.maxsize), (other_changes, 2)):
        new: dict[str, str] = {}  # the same word becomes the same word
        sides = []
        for side in (statement.before, statement.after):
            runs, index = dict(_name_runs(side)), 0
            result: list[Token] = []
            while index < len(side):
                end = runs.get(index, index + 1)
                text = _with_article(side, index, end) if index in runs else side[index].text
                if text not in new and len(new) < most:
                    for group in candidates(text, side[index].tag):
                        fitting = [word for word in group if not excluded & set(re.findall(r"\w+", word.lower()))]
                        if fitting:
                            new[text] = choose(fitting)
                            break
                if text in new:
                    result.append(Token(new[text].removeprefix("the "), side[end - 1].tag, side[index].space))
                else:
                    result += side[index:end]
                index = end
            sides.append(tuple(result))
        if new:
            return replace(statement, before=sides[0], after=sides[1])
    return None
