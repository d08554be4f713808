"""From a question to its statement with a gap for the answer, by rules on parts of speech.

The idea is that of Jia and Liang (2017), whose rules need constituency parses; these need only tags. *Who designed the
garden?* becomes *___ designed the garden.*, *When did Tesla move to Prague?* becomes *Tesla moved to Prague ___.*, and
*What city did Tesla move to?* becomes *The city that Tesla moved to was ___.* Other questions have no statement.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...synonyms.inflection import inflect, readings
from .tagging import Word

BE = {"is", "are", "was", "were"}
_DO = {"do": "VB", "does": "VBZ", "did": "VBD"}
_HAVE = {"has", "have", "had"}
_AUXILIARIES = {*BE, *_DO, *_HAVE, *"can could may might must shall should will would".split()}
_PAST = {"did", "was", "were", "had", "could", "would", "might"}
_ADVERBIAL = {"when": "time", "where": "place", "why": "reason", "how": "manner"}
NOUNS = {"NN", "NNS", "NNP", "NNPS"}
_HEADS = NOUNS | {"CD", "PRP", "POS", "FW"}
_PARTICIPLES = {"VBD", "VBN"}  # the tagger confuses them


class Token(NamedTuple):
    """A word of a statement, its Penn tag, and whether white space comes before it."""

    text: str
    tag: str
    space: bool = True

    @property
    def lower(self) -> str:
        return self.text.lower()


class Statement(NamedTuple):
    """The words before and after the gap, and what fills it: a thing, number, time, place, reason or manner.

    ``asked`` is the question word and, for *what* and *which*, the noun that the question asks about: *what city*.
    """

    before: list[Token]
    after: list[Token]
    role: str
    asked: str


def tokens(text: str, words: Iterable[Word]) -> list[Token]:
    """The words of ``text`` as tokens."""
    return [Token(word.text, word.tag, text[: word.start][-1:].isspace()) for word in words]


def spelled(words: Sequence[Token]) -> str:
    """The words as text."""
    return "".join(" " * (token.space and index > 0) + token.text for index, token in enumerate(words))


def head(phrase: Sequence[Token]) -> Token | None:
    """The head of a noun phrase: its last noun before a preposition; of *type of wine*, *type*."""
    noun = None
    for token in phrase:
        if token.tag in NOUNS:
            noun = token
        elif noun is not None and token.tag != "POS":
            break
    return noun


def statement(question: Sequence[Token]) -> Statement | None:
    """The statement that answers a question; None if no rule understands the question."""
    words = list(question)
    while words and words[-1].text in ".?!,;:":
        words.pop()
    preposition = [token._replace(text=token.lower, space=True) for token in words[:1] if token.tag == "IN"]
    words = words[len(preposition) :]
    is_finite = (token.tag in ("VBD", "VBZ", "VBP") or token.lower in _AUXILIARIES for token in words)
    verb = next((index for index, finite in enumerate(is_finite) if finite), 0)
    if not verb or words[0].lower not in {"who", "whom", "what", "which", *_ADVERBIAL}:
        return None
    asked, phrase, auxiliary, rest = words[0].lower, words[1:verb], words[verb], words[verb + 1 :]
    role, start = _ADVERBIAL.get(asked, "thing"), []
    if asked == "how" and phrase and phrase[0].lower in ("many", "much"):
        role, quantity = "number", "number" if phrase[0].lower == "many" else "amount"
        start, phrase = [Token(quantity, "NN"), Token("of", "IN")], phrase[1:]
    noun = head(phrase)
    if phrase and (noun is None or phrase[0].tag == "IN" or not start and asked not in ("what", "which")):
        return None
    asked = f"what {noun.lower}" if noun is not None and role == "thing" else asked
    clause = _clause(auxiliary, rest)
    if preposition or role not in ("thing", "number"):
        if clause is None and auxiliary.lower in BE and rest:
            clause = [*rest, auxiliary]  # where is X: X is ___
        return None if clause is None else Statement([*clause, *preposition], [], role, asked)
    is_open = bool(rest) and rest[-1].tag in _PARTICIPLES | {"IN", "RP"}  # the engine used for
    if auxiliary.lower in BE and not phrase and not is_open and rest and _starts_noun_phrase(rest):
        return Statement([*rest, auxiliary], [], role, asked)  # what is X: X is ___
    if clause is None:
        if auxiliary.lower in _DO or auxiliary.lower in _AUXILIARIES and (not rest or _starts_noun_phrase(rest)):
            return None
        clause = [auxiliary, *rest]
        if not phrase:
            return Statement([], clause, role, asked)  # who led: ___ led
    phrase = phrase or [Token("person", "NN")] * (asked in ("who", "whom"))
    the = [Token("the", "DT"), *start, *phrase, Token("that", "IN")] if phrase else [Token("what", "WP")]
    subject = head(the[1:])
    forms = ("was", "were") if auxiliary.lower in _PAST or auxiliary.tag == "VBD" else ("is", "are")
    be = Token(forms[subject is not None and subject.tag in ("NNS", "NNPS")], "VBD")
    return Statement([*the, *clause, be], [], role, asked)


def _clause(auxiliary: Token, rest: Sequence[Token]) -> list[Token] | None:
    """The clause in the order of a statement: *Tesla moved* for *did Tesla move*."""
    word = auxiliary.lower
    if word not in _AUXILIARIES or not rest or not _starts_noun_phrase(rest):
        return None
    places: list[tuple[bool, int]] = []  # of the verb; first those that the tagger finds
    for index, (last, token, following) in enumerate(zip(rest, rest[1:], [*rest[2:], Token("", "")]), start=1):
        is_found = token.tag in ("VB", "VBP")
        if word in BE | _HAVE:
            is_open = token.tag in ("VBG", "JJ") and following.tag not in NOUNS | {"JJ"}
            fits = last.tag in _HEADS | {"RB"} and (token.tag in _PARTICIPLES or is_open)
        else:
            fits = is_found or last.tag in _HEADS and any(one[1:] == ("VERB", "VB") for one in readings(token.text))
        places += [(not is_found, index)] * fits
    place = min(places, default=(True, 0))[1]
    if place and word in _DO:
        spelling = next(iter(inflect(rest[place].lower, "VERB", _DO[word])), rest[place].text)
        return [*rest[:place], Token(spelling, _DO[word]), *rest[place + 1 :]]
    return [*rest[:place], auxiliary, *rest[place:]] if place else None


def _starts_noun_phrase(words: Sequence[Token]) -> bool:
    """Whether a noun phrase begins here, and not a predicate such as *made in China* or *responsible for*."""
    following = next((token.tag for token in words if token.tag != "JJ"), "")
    return words[0].tag in _HEADS | {"DT", "PRP$"} or words[0].tag == "JJ" and following in NOUNS
