"""Words that a sentence can have in the place of others, so that it says something else.

The kinds of changes are those of Jia and Liang (2017): antonyms of WordNet, near numbers, and near names. Near names
are other names of the same kind in the data. Verbs and nouns change only if nothing else can: verbs into antonyms,
nouns into nouns that share a hypernym.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from nltk.corpus.reader.wordnet import Synset

from ..synonyms.inflection import inflect, readings
from ..synonyms.wordnet import process_reader
from .declarative import AUXILIARIES, Token, spelled

MONTHS = "January February March April May June July August September October November December".split()
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_CARDINALS = "two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_MAGNITUDES = "hundred thousand million billion trillion".split()
_SERIES = [_CARDINALS, _ORDINALS, _MAGNITUDES, [word + "s" for word in _MAGNITUDES]]
_ROMAN_TENS = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]
_ROMAN_ONES = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
_ROMAN_NUMBERS = [tens + ones for tens in _ROMAN_TENS for ones in _ROMAN_ONES]  # the item at i is the number i
_NUMBER = re.compile(r"(?P<digits>\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?(?P<suffix>st|nd|rd|th|s)?")
_WORDNET_TAGS = {"JJ": "a", "RB": "r", "NN": "n", "VB": "v"}
_PARTS_OF_SPEECH = {"n": "NOUN", "v": "VERB", "a": "ADJ", "s": "ADJ", "r": "ADV"}
_KINDS_OF_PLACES = (
    "country.n.02",
    "city.n.01",
    "state.n.01",
    "river.n.01",
    "sea.n.01",
    "continent.n.01",
    "mountain.n.01",
)
# words whose antonyms seldom fit
_FIXED = set(
    "be have do other same many much few such own not no now then here there well so too very also just even one ones "
    "last former latter right left free kind type way part thing day name term example use number amount time".split()
)
_NEGATIONS = set("un in im ir il non dis mis ab de anti counter".split())
_PERSON = "18"  # the number of noun.person in WordNet's files
_PARTICLES = set("de von van der den la le y al bin ibn du da".split())
_UNKNOWN = "unknown"  # a name of which only the form is known
_ENOUGH = 3  # candidates of a kind
_GENERIC_NOUNS = 3  # the highest hypernyms of WordNet are no kinds of things


def near_numbers(text: str) -> list[str]:
    """Other numbers in the format of a number; none if the text is not a number, or a sign such as *CO2*."""
    lower = text.lower()
    for series in _SERIES:
        if lower in series:
            place = series.index(lower)
            near = [word for index, word in enumerate(series) if 0 < abs(index - place) <= 3]
            near = [word for word in near if word != "first"]  # not the first largest city
            return [word.capitalize() if text[0].isupper() else word for word in near]
    parts = re.split(r"([-–/:])", text)
    if not all(index % 2 or _NUMBER.fullmatch(part) or part.isalpha() for index, part in enumerate(parts)):
        return []
    choices = [_near_number(part) if index % 2 == 0 else [] for index, part in enumerate(parts)]
    count = max(map(len, choices))
    if not count:
        return []
    picks = [[near[pick % len(near)] if near else part for near, part in zip(choices, parts)] for pick in range(count)]
    return ["".join(pick) for pick in picks]


def _near_number(text: str) -> list[str]:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return []
    digits, decimals, suffix = match["digits"], match["decimals"] or "", match["suffix"] or ""
    value = int(digits.replace(",", ""))
    if suffix == "s":
        steps = [10, 20, 30] if value % 10 == 0 else []
    elif len(digits) == 4 and 1000 <= value <= 2100:
        steps = list(range(1, 10))
    elif suffix:
        steps = [1, 2, 3, 4]
    else:
        step = max(1, 10 ** (len(digits.replace(",", "")) - 2)) if value > 9 else 1
        steps = [step * times for times in range(1, 10 if value > 9 else 4)]
    near = []
    for other in sorted(value + sign * step for step in steps for sign in (-1, 1)):
        if (
            (other > 1 or suffix)
            and other > 0
            and len(str(other)) == len(str(value))
            and not (1000 <= value <= 2030 < other < 2100)
        ):
            spelling = f"{other:,}" if "," in digits else str(other)
            near.append(spelling + decimals + (_ordinal_suffix(other) if suffix not in ("", "s") else suffix))
    return near


def _ordinal_suffix(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def synsets(name: str, part_of_speech: str | None = None) -> tuple[Synset, ...]:
    """WordNet's synsets of a name, the most frequent sense first."""
    return _synsets(os.getpid(), name, part_of_speech)


@cache
def _synsets(process: int, name: str, part_of_speech: str | None) -> tuple[Synset, ...]:
    # For each process, because a synset reads the files of its reader.
    return tuple(process_reader().synsets(name, part_of_speech))


@cache
def antonyms(word: str, tag: str) -> tuple[str, ...]:
    """The antonyms of a word in its two most frequent senses, in the form of the Penn tag ``tag``."""
    part_of_speech = _WORDNET_TAGS.get(tag[:2])
    found: set[str] = set()
    for lemma in _base_forms(word.lower(), part_of_speech, tag) if part_of_speech else ():
        for synset in synsets(lemma, part_of_speech)[:2] if lemma not in _FIXED else ():
            for own in synset.lemmas():
                if own.name().lower() == lemma:
                    for antonym in own.antonyms():
                        if antonym.synset() in synsets(antonym.name(), part_of_speech)[:2]:
                            found.update(_as(antonym.name(), part_of_speech, tag))
    return tuple(sorted(found - {word.lower()}))


def _is_derived(word: str, other: str) -> bool:
    """Whether one negates the other, as *unofficial* and *colorless* do; such antonyms are seldom used."""
    short, long = sorted((word.lower(), other.lower()), key=len)
    return long.endswith(short) and long.removesuffix(short) in _NEGATIONS or long.startswith(f"{short}less")


@cache
def co_hyponyms(word: str, tag: str, distance: int) -> tuple[str, ...]:
    """Nouns with the same hypernym as a noun, ``distance`` steps up, in the number of the noun.

    Only the most frequent sense of each noun counts.
    """
    found: set[str] = set()
    for lemma in _base_forms(word.lower(), "n", tag):
        for synset in synsets(lemma, "n")[:1] if lemma not in _FIXED else ():
            above = {synset}
            for _ in range(distance):
                above = {hypernym for one in above for hypernym in one.hypernyms()}
            below = {hypernym for hypernym in above if hypernym.min_depth() > _GENERIC_NOUNS}
            for _ in range(distance):
                below = {hyponym for one in below for hyponym in one.hyponyms()}
            for sibling in below - {synset}:
                name = sibling.lemma_names()[0]
                if name.isalpha() and name.islower() and synsets(name, "n")[:1] == (sibling,):
                    found.update(_as(name, "n", tag))
    return tuple(sorted(found - {word.lower()}))


def near_roman_numbers(text: str) -> list[str]:
    """Other Roman numerals below 100, for one of at least 2 letters."""
    if len(text) < 2 or text not in _ROMAN_NUMBERS:
        return []
    place = _ROMAN_NUMBERS.index(text)
    return [_ROMAN_NUMBERS[other] for other in range(max(place - 3, 1), min(place + 4, 100)) if other != place]


@cache
def _base_forms(word: str, part_of_speech: str, tag: str) -> tuple[str, ...]:
    kind = _PARTS_OF_SPEECH[part_of_speech]
    form = "VB" if tag == "VBP" else {"NNP": "NN", "NNPS": "NNS"}.get(tag, tag)
    return tuple(sorted(r.lemma for r in readings(word) if r.part_of_speech == kind and r.form == form))


def _as(name: str, part_of_speech: str, tag: str) -> tuple[str, ...]:
    """A lemma in the form of a Penn tag; nothing if it is several words or a name."""
    if not name.isalpha() or not name.islower():
        return ()
    return inflect(name, _PARTS_OF_SPEECH[part_of_speech], "VB" if tag == "VBP" else tag)[:1]


class Names:
    """The names in the data by their kinds; ``counts`` says how often each occurs, and ``frequencies`` each word.

    A name that follows *the* is another name than the same without *the*. Names that occur once, and words that more
    often have no capital letter, are no names.
    """

    def __init__(self, counts: Mapping[str, int], frequencies: Mapping[str, int]):
        self._frequencies = frequencies
        kinds = defaultdict(list)
        for name in sorted(counts):
            if counts[name] > 1 and self._is_name(name):
                for kind in name_kinds(name):
                    kinds[kind].append(name)
        self._kinds = dict(kinds)

    def near(self, name: str, by_form: bool) -> list[list[str]]:
        """Other names of the same kinds, those of the most specific kind first; ``by_form`` includes unknown kinds."""
        if not self._is_name(name):
            return []
        kinds = [kind for kind in name_kinds(name) if by_form or not kind.startswith(_UNKNOWN)]
        return [[other for other in self._kinds.get(kind, ()) if other != name] for kind in kinds]

    def _is_name(self, name: str) -> bool:
        words = name.removeprefix("the ").split()
        if len(words) == 1 and len(words[0].strip(".")) < 2:
            return False
        return len(words) > 1 or self._frequencies[words[0].lower()] < self._frequencies[words[0]]


@cache
def name_kinds(name: str) -> tuple[str, ...]:
    """What a name is, the most specific kind first: by its last word, by WordNet, and by its form."""
    bare = name.removeprefix("the ")
    words = bare.split()
    last = words[-1]
    number = "plural" if _is_plural(last) else "singular"
    kinds = []
    if len(words) > 1 and is_common_noun(last):
        kinds += [f"{len(words)} words, {last.lower()}", last.lower()]
    is_acronym = bare.isupper() and len(words) == 1 and len(bare) > 1
    found = synsets(bare.replace(" ", "_"))
    senses = [synset for synset in found if any(lemma[0].isupper() for lemma in synset.lemma_names())]
    known = [_kind_of_sense(synset, len(words), number) for synset in senses]
    if len(words) == 1:  # Newcastle is a city rather than a person of that name
        known.sort(key=lambda kind: kind not in _KINDS_OF_PLACES)
    kinds += ["acronym"] if is_acronym and known[:1] not in [[place] for place in _KINDS_OF_PLACES] else known[:1]
    if number == "singular" and not is_acronym and not (known and len(words) == 1):
        given, family = _names_of_people()
        if len(words) in (2, 3) and words[0].lower() in given and last.lower() not in kinds:
            kinds += [f"person, {len(words)} words", "person, 2 words"]
        elif len(words) == 1 and last.lower() in family and not found:
            kinds.append("person, 1 words")
    article = "" if bare == name else ", the"
    if not kinds or kinds[-1] == last.lower():
        kinds.append(f"{_UNKNOWN}, {len(words)} words, {number}")
    return tuple(kind + article for kind in dict.fromkeys(kinds))


def _kind_of_sense(synset: Synset, words: int, number: str) -> str:
    if synset.pos() in ("a", "s", "r"):
        return "adjective"
    above = {hypernym.name() for one in synset.instance_hypernyms() for hypernym in (one, *one.hypernyms())}
    for kind in _KINDS_OF_PLACES:
        if kind in above:
            return kind
    if synset.instance_hypernyms() and synset.lexname() == "noun.person" and number == "singular":
        return f"person, {words} words"
    return f"{synset.lexname()}, {number}"


def is_common_noun(word: str) -> bool:
    """Whether the most frequent sense of a noun, in any spelling, has a name without a capital."""
    found = synsets(word.lower(), "n")
    return bool(found) and found[0].lemma_names()[0][0].islower()


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


@cache
def _names_of_people() -> tuple[frozenset[str], frozenset[str]]:
    """The given names and family names of the people in WordNet, in lower case."""
    given, family = set(), set()
    with process_reader().open("data.noun") as lines:  # much faster than all_synsets
        for line in lines:
            fields = line.split()
            if len(fields) > 1 and fields[1] == _PERSON and "@i" in fields:
                for name in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
                    words = name.lower().split("_")
                    if len(words) in (2, 3):
                        given.add(words[0])
                    family.add(words[-1])
    return frozenset(given), frozenset(family)


def names_of(words: Sequence[Token]) -> list[str]:
    """The names in a text, each with *the* if it has that article."""
    return [_with_article(words, start, end) for start, end in _name_runs(words)]


def _name_runs(words: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The start and end of each run of name words."""
    start = None
    for index, token in enumerate([*words, Token("", "")]):
        is_name = token.tag in ("NNP", "NNPS") and any(map(str.isalpha, token.text))
        if start is not None and not is_name:  # Doctor Who, Charles de Gaulle
            following = words[index + 1 : index + 2]
            is_particle = token.text in _PARTICLES and following and following[0].tag in ("NNP", "NNPS")
            is_name = token.text[:1].isupper() or is_particle
        is_name = is_name and token.text not in _ROMAN_NUMBERS
        if start is not None and (not is_name or not token.space):
            yield start, index
            start = None
        if is_name and start is None:
            start = index


def altered(
    words: Sequence[Token],
    gap: int,
    names: Names,
    frequencies: Mapping[str, int],
    excluded: frozenset[str],
    choose: Callable[[list[str]], str],
) -> tuple[list[Token], list[Token]] | None:
    """The words before and after the ``gap`` with other numbers, names and antonyms.

    If there are none of these, a verb becomes its antonym, or up to two nouns become other nouns. ``frequencies`` are
    those of the words in the data: most new words occur more than once. No new word is one of the lowercase words in
    ``excluded``. ``choose`` chooses from sorted candidates. Returns None if nothing can be altered.
    """

    def pick(candidates: Iterable[str]) -> str | None:
        fitting = [word for word in candidates if not excluded & set(re.findall(r"\w+", word.lower()))]
        return choose(fitting) if fitting else None

    def known(candidates: Iterable[str]) -> list[str]:
        return sorted(word for word in candidates if frequencies[word] > 1)

    def change(replacement: Callable[[str, Token | None], str | None], most: int) -> bool:
        """Replace names, as ``replacement(name, None)``, and other words; the ``most`` first. Whether any changed."""
        new: dict[str, str | None] = {}
        changes = 0
        for number, side in enumerate(sides):
            runs, result, index = dict(_name_runs(side)), [], 0
            while index < len(side):
                end = runs.get(index, index + 1)
                is_name = index in runs
                key = _with_article(side, index, end) if is_name else side[index].text
                if key not in new:
                    new[key] = replacement(key, None if is_name else side[index]) if changes < most else None
                    changes += new[key] is not None
                if (other := new[key]) is None:
                    result.extend(side[index:end])
                else:
                    result.append(Token(other.removeprefix("the "), side[end - 1].tag, side[index].space))
                index = end
            sides[number] = result
        return changes > 0

    sides = [list(words[:gap]), list(words[gap:])]
    tiers = (
        (lambda name, token: _simple_change(token, pick, known) if token else _near_name(name, names, False, pick), 99),
        (lambda name, token: None if token else _near_name(name, names, True, pick), 99),
        (lambda _, token: pick(known(antonyms(token.text, token.tag))) if _has_tag(token, "VB") else None, 1),
        (lambda _, token: pick(antonyms(token.text, token.tag)) if _has_tag(token, "JJ") else None, 1),
        (lambda _, token: pick(known(co_hyponyms(token.text, token.tag, 1))) if _has_tag(token, "NN") else None, 2),
        (lambda _, token: pick(known(co_hyponyms(token.text, token.tag, 2))) if _has_tag(token, "NN") else None, 2),
    )
    return (sides[0], sides[1]) if any(change(replacement, most) for replacement, most in tiers) else None


def _has_tag(token: Token | None, tag: str) -> bool:
    return token is not None and token.tag[:2] == tag and token.text.islower() and token.text not in AUXILIARIES


def _with_article(words: Sequence[Token], start: int, end: int) -> str:
    """The name words[start:end], with *the* if that is its article: *the Rhine*, but *FCC* in *the FCC report*."""
    name = spelled(words[start:end])
    is_modifier = end < len(words) and (words[end].tag in ("NN", "NNS", "CD", "JJ") or words[end].lower == "'s")
    return f"the {name}" if start and words[start - 1].lower == "the" and not is_modifier else name


def _near_name(name: str, names: Names, by_form: bool, pick) -> str | None:
    for series in (MONTHS, _WEEKDAYS):
        if name in series:
            return pick(other for other in series if other != name)
    for candidates in names.near(name, by_form):
        if len(candidates) >= _ENOUGH and (other := pick(candidates)) is not None:
            return other
    return None


def _simple_change(token: Token, pick, known) -> str | None:
    if token.tag == "CD" or token.text[0].isdigit() or token.lower in _ORDINALS or token.text in _ROMAN_NUMBERS:
        return pick(near_numbers(token.text) or near_roman_numbers(token.text))
    if token.text.islower() and (token.tag[:2] in ("JJ", "NN") or token.tag[:2] == "RB" and token.text.endswith("ly")):
        return pick(known(other for other in antonyms(token.text, token.tag) if not _is_derived(token.text, other)))
    return None
