"""From a question to its statement with a gap for the answer, by rules on parts of speech.

The idea is that of Jia and Liang (2017), whose rules need constituency parses; these need only tags. *Who designed the
garden?* becomes *___ designed the garden.*, and *When did Tesla move to Prague?* becomes *Tesla moved to Prague ___.* A
question for an object, or with a noun, becomes a cleft, because its gap needs no place inside the clause: *The city
that Tesla moved to in 1880 was ___.* Questions that no rule understands have no statement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...synonyms.inflection import inflect, readings
from .tagging import Word

BE = {"is", "are", "was", "were"}
_DO = {"do": "VB", "does": "VBZ", "did": "VBD"}
_HAVE = {"has", "have", "had"}
_MODALS = {"can", "could", "may", "might", "must", "shall", "should", "will", "would"}
AUXILIARIES = {*BE, *_DO, *_HAVE, *_MODALS}
_PAST = {"did", "was", "were", "had", "could", "would", "might"}
_ADVERBIAL = {"when": "time", "where": "place", "why": "reason", "how": "manner"}
_QUESTION_WORDS = {"who", "whom", "what", "which", *_ADVERBIAL}
NOUNS = {"NN", "NNS", "NNP", "NNPS"}
_PARTICIPLES = {"VBD", "VBN"}  # the tagger confuses them
_HEADS = NOUNS | {"CD", "PRP", "POS", "FW"}
_PREPOSITIONS = set(
    "about above across after against along among around as at before behind below beneath beside between beyond by "
    "down during for from in inside into like near of off on onto out outside over past since through throughout to "
    "toward towards under until up upon with within without".split()
)
_CLAUSE_STARTS = {"when", "where", "because", "if"}
_RELATIVE = {"that", "which", "who", "whose"}


class Token(NamedTuple):
    """A word of a statement, its Penn tag, and whether white space comes before it."""

    text: str
    tag: str
    space: bool = True

    @property
    def lower(self) -> str:
        return self.text.lower()


@dataclass(frozen=True)
class Statement:
    """The words before and after the gap, and what fills it.

    ``role`` is thing, count, amount, time, place, reason or manner. ``asked`` describes what the question
    asks for: its question word, and the noun that it asks about, such as *what city*.
    """

    before: tuple[Token, ...]
    after: tuple[Token, ...]
    role: str
    asked: str


class _Asked(NamedTuple):
    """What a phrase with a question word asks for, and its noun phrase."""

    role: str
    asked: str
    noun: tuple[Token, ...] = ()


def tokens(text: str, words: Iterable[Word]) -> list[Token]:
    """The words of ``text`` as tokens."""
    return [Token(word.text, word.tag, text[: word.start][-1:].isspace()) for word in words]


def spelled(words: Sequence[Token]) -> str:
    """The words as text."""
    return "".join(" " * (token.space and index > 0) + token.text for index, token in enumerate(words))


def statement(question: Sequence[Token]) -> Statement | None:
    """The statement that answers a question; None if no rule understands the question."""
    words = list(question)
    while words and not any(map(str.isalnum, words[-1].text)) and words[-1].text not in ")%\"'":
        words.pop()
    places = [index for index, token in enumerate(words) if token.lower in _QUESTION_WORDS]
    for place in places:
        start = place - (place > 0 and words[place - 1].lower in _PREPOSITIONS)
        if start == 0 or words[start - 1].text == ",":
            made = _fronted(words, start, place)
            if made is not None:
                return made
    for place in reversed(places):
        if any(map(_is_finite, words[:place])):
            made = _in_place(words, place)
            if made is not None:
                return made
    return None


def _is_finite(token: Token) -> bool:
    return token.tag in ("VBD", "VBZ", "VBP") or token.lower in AUXILIARIES


def _asked_for(question_word: str, phrase: Sequence[Token]) -> _Asked | None:
    """What is asked for by a question word and the words after it."""
    role, asked, noun = "thing", "what", tuple(phrase)
    start: tuple[Token, ...] = ()
    if question_word == "how" and phrase and phrase[0].lower in ("many", "much"):
        role, quantity = ("count", "number") if phrase[0].lower == "many" else ("amount", "amount")
        asked, start, noun = f"how {phrase[0].lower}", (Token(quantity, "NN"), Token("of", "IN")), noun[1:]
    elif question_word not in ("what", "which"):
        asked = "who" if question_word == "whom" else question_word
        return None if phrase else _Asked(_ADVERBIAL.get(question_word, "thing"), asked)
    if not noun:
        return _Asked(role, asked)
    last = head(noun)
    if last is None or noun[0].lower in _PREPOSITIONS:
        return None
    return _Asked(role, asked if start else f"what {last.lower}", (*start, *noun))


def head(phrase: Sequence[Token]) -> Token | None:
    """The head of a noun phrase: its last noun before a preposition; of *type of wine*, *type*."""
    noun = None
    for token in phrase:
        if token.tag in NOUNS:
            noun = token
        elif noun is not None and token.tag != "POS":
            break
    return noun


def _in_place(words: list[Token], place: int) -> Statement | None:
    """A question whose question word is where the answer would be: *X was built by whom in 1990?*"""
    question_word, end = words[place].lower, place + 1
    while question_word in ("what", "which") and end < len(words) and words[end].tag in NOUNS | {"JJ", "CD"}:
        end += 1
    if end < len(words) and (end == place + 1 or words[end].lower == "of"):
        return None
    asked = _asked_for(question_word, words[place + 1 : end])
    return asked and Statement(tuple(words[:place]), tuple(words[end:]), asked.role, asked.asked)


def _fronted(words: list[Token], start: int, place: int) -> Statement | None:
    """A question that begins with the question word, perhaps after a preposition or another phrase."""
    verb = next((index for index, token in enumerate(words) if index > place and _is_finite(token)), len(words))
    end = verb
    while end > place + 1 and words[end - 1].tag == "RB" and words[place].lower != "how":
        end -= 1
    asked = _asked_for(words[place].lower, words[place + 1 : end])
    if verb == len(words) or asked is None:
        return None
    auxiliary, rest = words[verb], words[verb + 1 :]
    is_thing = asked.role in ("thing", "count", "amount")
    if is_thing and start == place:
        made = _thing(auxiliary, rest, asked) if end == verb else _subject(words[end:], auxiliary, asked)
    else:
        clause = _clause(auxiliary, rest)
        preposition = [token._replace(text=token.lower, space=True) for token in words[start:place] if is_thing]
        made = clause and Statement((*clause[0], *preposition), clause[1], asked.role, asked.asked)
    return made and Statement((*words[:start], *made.before), made.after, made.role, made.asked)


def _thing(verb: Token, rest: list[Token], asked: _Asked) -> Statement | None:
    """A question for a subject or an object."""
    word = verb.lower
    if word not in AUXILIARIES or word not in _DO and rest and not _starts_noun_phrase(rest):
        return _subject([verb, *rest], verb, asked)
    if word in BE and rest and not _lacks_object(rest):
        if asked.noun:
            return _subject([verb, *rest], verb, asked)
        end = _clause_start(rest)
        noun = head(rest)
        name = f"what {noun.lower}" if noun is not None and asked.asked == "what" else asked.asked
        return Statement((*rest[:end], verb), tuple(rest[end:]), asked.role, name)
    clause = _clause(verb, rest)
    if clause is None:
        return _subject([verb, *rest], verb, asked) if word in _HAVE else None
    return _cleft([*clause[0], *clause[1]], verb, asked)


def _subject(clause: Sequence[Token], verb: Token, asked: _Asked) -> Statement:
    return _cleft(clause, verb, asked) if asked.noun else Statement((), tuple(clause), asked.role, asked.asked)


def _cleft(clause: Sequence[Token], verb: Token, asked: _Asked) -> Statement:
    """*What Tesla did in 1880 was ___*, *The city that ... was ___*, *The person that ... was ___*."""
    noun = asked.noun or ((Token("person", "NN"),) if asked.asked == "who" else ())
    start = (Token("the", "DT"), *noun, Token("that", "IN")) if noun else (Token("what", "WP"),)
    last = head(noun)
    singular, plural = ("was", "were") if verb.lower in _PAST or verb.tag == "VBD" else ("is", "are")
    be = plural if last is not None and last.tag in ("NNS", "NNPS") else singular
    return Statement((*start, *clause, Token(be, "VBD")), (), asked.role, asked.asked)


def _lacks_object(rest: Sequence[Token]) -> bool:
    """Whether the words after *be* are a subject and a predicate without its object: *the engine used for in 1800*."""
    if any(token.lower in _RELATIVE for token in rest):
        return False
    for last, token, following in zip(rest, rest[1:], [*rest[2:], Token("", "")]):
        is_open = token.lower in _PREPOSITIONS | {"called"} and following.lower not in ("of", "than")
        if is_open and following.tag in ("", "IN", "WRB", ","):
            return True
        if token.tag in _PARTICIPLES and not following.text and last.tag in _HEADS | {"RB"}:
            return True
    return False


def _clause(auxiliary: Token, rest: Sequence[Token]) -> tuple[tuple[Token, ...], tuple[Token, ...]] | None:
    """The clause in the order of a statement, up to the place for an adverbial and after it."""
    if not rest or not _starts_noun_phrase(rest):
        return None
    word, end = auxiliary.lower, _clause_start(rest)
    if word in BE | _HAVE:
        place = _predicate(rest[:end])
        place = end if place is None and word in BE else place
    else:
        place = _base_verb(rest) if word in AUXILIARIES else None
    if place is None:
        return None
    clause = list(rest)
    if word in _DO and rest[place - 1].lower not in ("not", "n't"):
        spelling = next(iter(inflect(rest[place].lower, "VERB", _DO[word])), rest[place].text)
        clause[place] = Token(spelling, _DO[word])
    else:
        start = place
        while start > 1 and rest[start - 1].tag == "RB":
            start -= 1
        clause.insert(start, auxiliary)
        place += 1
    slot = place + _clause_start(clause[place:])
    return tuple(clause[:slot]), tuple(clause[slot:])


def _starts_noun_phrase(words: Sequence[Token]) -> bool:
    """Whether a noun phrase begins here, and not a predicate such as *made in China* or *responsible for*."""
    first, following = words[0].tag, next((token.tag for token in words if token.tag != "JJ"), "")
    return first in _HEADS | {"DT", "PRP$"} or first == "JJ" and following in NOUNS


def _clause_start(words: Sequence[Token]) -> int:
    """The place of the first subordinate clause, or the end."""
    starts = (index for index, token in enumerate(words) if index and token.lower in _CLAUSE_STARTS)
    return next(starts, len(words))


def _base_verb(rest: Sequence[Token]) -> int | None:
    """The place of the infinitive after an auxiliary verb and a subject."""
    limit = next((index for index, token in enumerate(rest) if token.lower in _RELATIVE | {"to"}), len(rest))
    words = [token.text for token in rest[:limit]]
    lowercase = [index for index, word in enumerate(words) if index and word.isalpha() and word[0].islower()]
    verbs = [index for index in lowercase if any(one[1:] == ("VERB", "VB") for one in readings(words[index].lower()))]
    tagged = [index for index in verbs if rest[index].tag in ("VB", "VBP")]
    if tagged:
        return tagged[0]
    verbs = [index for index in verbs if rest[index - 1].tag in _HEADS | {"RB"}]
    return verbs[0] + (verbs[0] + 1 in verbs) if verbs else None  # in "did the crew return", not the noun


def _predicate(rest: Sequence[Token]) -> int | None:
    """The place of the participle, adjective or noun phrase that follows the subject after a form of *be*."""
    for index, (last, token, following) in enumerate(zip(rest, rest[1:], [*rest[2:], Token("", "")]), start=1):
        is_open = token.tag in ("VBG", "JJ") and following.tag not in NOUNS | {"JJ"}
        is_noun_phrase = token.tag == "DT" and last.tag in NOUNS
        if last.tag in _HEADS | {"RB"} and (token.tag in _PARTICIPLES or is_open or is_noun_phrase):
            return index
    return None
