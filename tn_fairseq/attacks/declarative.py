"""From a question to its statement with a gap for the answer, by rules on parts of speech.

The rules follow the idea of Jia and Liang (2017), whose rules need constituency parses; these need only tags. *What
city did Tesla move to in 1880?* becomes *Tesla moved to ___ in 1880.* If the place of the gap is uncertain, the
statement is a cleft: *The city that Tesla ... was ___.* Questions that no rule understands have no statement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..synonyms.inflection import inflect, readings
from .tagging import Word

_BE = {"is", "are", "was", "were"}
_DO = {"do", "does", "did"}
_HAVE = {"has", "have", "had"}
_MODALS = {"can", "could", "may", "might", "must", "shall", "should", "will", "would"}
AUXILIARIES = _BE | _DO | _HAVE | _MODALS
_QUESTION_WORDS = {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}
_ADVERBIAL = {"when": "time", "where": "place", "why": "reason", "how": "manner"}
_NOUNS = {"NN", "NNS", "NNP", "NNPS"}
_HEADS = _NOUNS | {"CD", "PRP", "POS", "FW"}
_PREPOSITIONS = set(
    "about above across after against along among around as at before behind below beneath beside between beyond by "
    "down during for from in inside into like near of off on onto out outside over past since through throughout to "
    "toward towards under until up upon with within without".split()
)
_NOT_STRANDED_BEFORE = {"that", "than", "which", "whom", "of"}
_NOT_STRANDED = {"as", "out", "up", "before", "after"}
_CLAUSE_STARTS = {"when", "where", "because", "if", "while", "although", "though", "unless"}
NAMING = set("called named titled termed known dubbed nicknamed labeled renamed considered deemed entitled".split())
_DITRANSITIVE = set("paid given taught offered awarded granted told shown asked".split())
_NAMING_VERBS = set(
    "call name consider rename nickname dub label term title give offer teach tell show grant award pay cost".split()
)
_HEDGES = {"approximately", "about", "roughly", "around", "exactly", "nearly", "over", "only", "just"}
_SHARES = set("percentage percent portion proportion share fraction".split())
_BEFORE_NO_VERB = {"DT", "PRP$", "TO", "IN", "POS", "MD"}
_TIMES = {"year", "years", "century", "decade", "month", "season", "era", "period"}
_DAYS = {"day", "date", "weekday"}
# what is asked for is named rather than described: the type of engine that he used was ___
NAMED = set(
    "name nickname term word phrase title type types kind kinds sort form position role job color style process method "
    "technique subject field genre category occupation profession status language religion element material".split()
)
_EXTENTS = {"long", "tall", "high", "wide", "deep", "old", "thick", "heavy", "far", "large", "big"}


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

    ``role`` is thing, count, amount, extent, time, place, reason, manner or duration. ``asked`` describes what the
    question asks for: its question word, and the noun that it asks about, such as *what city*. ``is_subject`` is true
    if a verb in the present, or *was* or *were*, must agree with the answer.
    """

    before: tuple[Token, ...]
    after: tuple[Token, ...]
    role: str
    asked: str
    is_subject: bool = False


def tokens(text: str, words: Iterable[Word]) -> list[Token]:
    """The words of ``text`` as tokens; infinitives after *to* get their tag, whatever the tagger says."""
    found: list[Token] = []
    for word in words:
        token = Token(word.text, word.tag, word.start > 0 and text[word.start - 1].isspace())
        if found and found[-1].tag == "TO" and _is_base_verb(token):
            token = token._replace(tag="VB")
        found.append(token)
    return found


def statement(question: Sequence[Token]) -> Statement | None:
    """The statement that answers a question; None if no rule understands the question."""
    words = list(question)
    while words and not any(map(str.isalnum, words[-1].text)) and words[-1].text not in ")%\"'":
        words.pop()
    found = _question_word(words)
    if found is None:
        return None
    place, in_place = found
    return _in_place(words, place) if in_place else _fronted(words, place)


def spelled(words: Sequence[Token]) -> str:
    """The words as text."""
    return "".join(" " * (token.space and index > 0) + token.text for index, token in enumerate(words))


class _Asked(NamedTuple):
    """The phrase with the question word, words[start:end]: ``kept`` are its words that the statement keeps."""

    start: int
    end: int
    role: str
    asked: str
    kept_before: tuple[Token, ...] = ()
    kept_after: tuple[Token, ...] = ()
    noun: tuple[Token, ...] = ()
    extent: str = ""


def _question_word(words: list[Token]) -> tuple[int, bool] | None:
    """The place of the question word, and whether it is where the answer would be."""
    places = [index for index, token in enumerate(words) if token.lower in _QUESTION_WORDS]
    starts = {p: p - (p > 0 and words[p - 1].lower in _PREPOSITIONS) for p in places}
    after_comma = [p for p, start in starts.items() if start and words[start - 1].text == ","]
    for place in places:
        lead = [token.lower for token in words[:place]]
        if not lead or len(lead) == 1 and (lead[0] in _PREPOSITIONS or lead[0] in _HEDGES):
            is_clause = any(other > place for other in after_comma) and (
                words[place].lower in _CLAUSE_STARTS and words[place + 1 : place + 2]
            )
            if is_clause and words[place + 1].lower not in AUXILIARIES:
                continue
            return place, False
    for place in after_comma:
        if _verb_after(words, place) is not None:
            return place, False
    if not places:
        return None
    place = places[-1]
    if words[0].lower in _PREPOSITIONS:  # In the 1990s what did ...
        for place in places:
            end = _verb_after(words, place)
            is_asked = end is not None and words[end].lower in AUXILIARIES
            if is_asked and not any(_is_finite(token) for token in words[:place]):
                return place, False
    for place in reversed(places):
        lead = words[:place]
        following = words[place + 1 :]
        is_part = lead[-1].lower in _PREPOSITIONS | {"and"}  # people of what nationality
        is_clause = any(map(_is_finite, lead)) or is_part and any(map(_is_finite, following))
        if lead[0].lower in AUXILIARIES or not is_clause or any(token.lower in _DO for token in following):
            continue
        if words[place].lower == "what" and words[place + 1 : place + 2] and words[place + 1].tag in ("PRP", "DT"):
            continue  # a free relative clause
        is_last = place + 1 == len(words)
        is_which = words[place].lower == "which" and not is_last
        if is_which and lead[-1].lower not in _PREPOSITIONS and words[place + 1].tag not in _NOUNS:
            continue  # a relative clause
        if words[place].lower in ("when", "where", "who") and not is_last:
            continue
        return place, True
    return None


def _is_finite(token: Token) -> bool:
    return token.tag in ("VBD", "VBZ", "VBP", "MD") or token.lower in _BE


def _verb_after(words: list[Token], place: int) -> int | None:
    """The first finite verb after the question word, or an adverb right before it."""
    found = unsure = None
    for index in range(place + 1, len(words)):
        token = words[index]
        if token.text == ",":
            break
        is_verb = token.tag in ("VBD", "VBZ", "VBP") and token.text[0].islower()
        if (
            token.lower in AUXILIARIES
            or token.lower in ("'s", "’s")
            and index == place + 1
            or is_verb
            and words[index - 1].tag not in ("DT", "TO")
        ):
            found = index
            break
        if unsure is None and token.tag in ("VBN", "VB") and token.text[0].islower():
            unsure = index
    found = unsure if found is None else found
    while found is not None and found > place + 1 and words[found - 1].tag == "RB" and words[place].lower != "how":
        found -= 1
    return found


def _asked_phrase(words: list[Token], place: int, end: int) -> _Asked | None:
    """The phrase words[place:end], which begins with the question word."""
    question_word = words[place].lower
    phrase = words[place + 1 : end]
    if question_word in ("who", "whom"):
        is_described = phrase and phrase[0].lower in _PREPOSITIONS  # who in Warsaw
        return _Asked(place, end, "thing", "who", kept_after=tuple(phrase)) if not phrase or is_described else None
    if question_word == "whose":
        possessive = Token("'s", "POS", False)
        return _Asked(place, end, "thing", "who", kept_after=(possessive, *phrase)) if phrase else None
    if question_word in ("when", "where", "why"):
        return _Asked(place, end, _ADVERBIAL[question_word], question_word) if not phrase else None
    if question_word == "how":
        return _how_phrase(place, end, phrase)
    if not phrase:
        return _Asked(place, end, "thing", "what")
    head = _head(phrase)
    if head is None:
        return None
    asked = f"what {head.lower}"
    if head.lower in _SHARES:
        after = tuple(phrase[phrase.index(head) + 1 :])
        return _Asked(place, end, "thing", "what percentage", kept_after=after, noun=tuple(phrase))
    return _Asked(place, end, "thing", asked, noun=tuple(phrase))


def _how_phrase(place: int, end: int, phrase: list[Token]) -> _Asked | None:
    if not phrase:
        return _Asked(place, end, "manner", "how")
    kind, rest = phrase[0].lower, tuple(phrase[1:])
    if kind == "many":
        return _Asked(place, end, "count", "how many", kept_after=rest) if rest else None
    if kind == "much":
        after = rest if rest[:1] and rest[0].lower in ("of", "more", "less") else ()
        return _Asked(place, end, "amount", "how much", kept_after=after)
    if rest:
        return None
    if kind == "long":
        return _Asked(place, end, "duration", "how long", extent="long")
    if kind in _EXTENTS:
        return _Asked(place, end, "extent", f"how {kind}", extent=kind)
    if kind == "often":
        return _Asked(place, end, "manner", "how often")
    return None


def _head(phrase: Sequence[Token]) -> Token | None:
    """The head of a noun phrase: its last noun before a preposition; of *type of wine*, *type*."""
    head = None
    for token in phrase:
        if token.tag in _NOUNS or token.tag == "CD" and head is None:
            head = token
        elif head is not None and token.tag not in ("JJ", "POS", "VBG", "VBN"):
            break
    return head


def _in_place(words: list[Token], place: int) -> Statement | None:
    """A question whose question word is where the answer would be: *X was built by whom in 1990?*"""
    before, question_word = words[:place], words[place].lower
    if question_word == "how":
        end = place + 1
        while end < len(words) and words[end].tag in ("DT", "JJ", "RB") and words[end].lower not in AUXILIARIES:
            end += 1
        end = _noun_phrase_end(words, end)
    elif question_word in ("what", "which", "whose"):
        end = _noun_phrase_end(words, place + 1)
        if len(words) == place + 2:  # whatever its tag
            end = len(words)
        if words[end : end + 1] and words[end].lower == "of" and end > place + 1:  # what type of wine
            end = _noun_phrase_end(words, end + 1)
    else:
        end = place + 1
    asked = _asked_phrase(words, place, end)
    if asked is None:
        return None
    role = asked.role
    if role == "extent":
        role = f"extent {asked.extent}"
    first = [*before, *asked.kept_before]
    return Statement(tuple(first), (*asked.kept_after, *words[end:]), role, asked.asked)


def _fronted(words: list[Token], place: int) -> Statement | None:
    """A question that begins with the question word, perhaps after a preposition or another phrase."""
    verb = _verb_after(words, place)
    if verb is None:
        return None
    preposition: list[Token] = []
    prefix = words[:place]
    if prefix and prefix[-1].lower in _HEDGES and words[place].lower == "how":
        prefix = prefix[:-1]
    elif prefix and prefix[-1].lower in _PREPOSITIONS:
        preposition, prefix = [prefix[-1]._replace(text=prefix[-1].lower, space=True)], prefix[:-1]
    if prefix and prefix[-1].text != ",":
        prefix = [*prefix, Token(",", ",", False)]
    asked = _asked_phrase(words, place, verb)
    if asked is None:
        return None
    auxiliary = words[verb].lower
    if auxiliary in ("'s", "’s"):
        words = [*words[:verb], Token("is", "VBZ"), *words[verb + 1 :]]
        auxiliary = "is"
    rest = words[verb + 1 :]
    if preposition:
        noun = asked.noun
        if asked.role not in ("thing", "count", "amount"):
            return None
        kept = asked.kept_after
        found = _adverbial(words[verb], rest, auxiliary)
        if found is None:
            return None
        clause, slot = found
        made = Statement((*clause[:slot], *preposition), (*kept, *clause[slot:]), "thing", asked.asked)
        if noun and noun[-1].lower == "year":
            made = Statement(made.before, made.after, "thing", "what year")
    elif asked.role in ("thing", "count", "amount"):
        made = _thing(words[verb], rest, auxiliary, asked)
    elif asked.role in ("extent", "duration") and auxiliary in _BE:
        split = _clause_start(rest)
        if not rest or not _starts_noun_phrase(rest):
            return None
        predicate = _predicate(rest[:split]) if asked.extent in ("long", "far") else None
        if predicate is not None:
            clause = [*rest[:predicate], words[verb], *rest[predicate:]]
            split += 1
            role = "duration" if asked.role == "duration" else "manner"
            made = Statement(tuple(clause[:split]), tuple(clause[split:]), role, asked.asked)
        else:
            before = [*rest[:split], words[verb]]
            made = Statement(tuple(before), tuple(rest[split:]), f"extent {asked.extent}", asked.asked)
    else:
        found = _adverbial(words[verb], rest, auxiliary)
        if found is None:
            return None
        clause, slot = found
        made = Statement(tuple(clause[:slot]), tuple(clause[slot:]), asked.role, asked.asked)
    if made is None or not prefix:
        return made
    return Statement((*prefix, *made.before), made.after, made.role, made.asked, made.is_subject)


def _starts_noun_phrase(words: Sequence[Token]) -> bool:
    """Whether a noun phrase begins here, and not a predicate such as *made in China* or *responsible for*."""
    first = words[0]
    if first.tag in ("DT", "PDT", "PRP", "PRP$", "CD", *_NOUNS) or first.text in ('"', "“", "$"):
        return first.lower not in ("not", "there")
    if first.tag in ("JJ", "JJR", "JJS", "VBN", "VBG", "RB", "RBS"):
        for token in words[1:]:
            if token.tag in _NOUNS:
                return first.tag.startswith(("JJ", "RBS"))
            if not token.tag.startswith("JJ") and token.tag not in ("CC", "VBN", "CD", ",", "FW"):
                return False
    return False


def _noun_phrase_end(words: Sequence[Token], start: int) -> int:
    """The end of the noun phrase without prepositions that begins at ``start``; ``start`` if there is none."""
    end = last = start
    while end < len(words):
        token, following = words[end], words[end + 1 : end + 2]
        if token.tag in _NOUNS | {"CD"}:
            last = end + 1
        elif not (
            token.tag in ("DT", "PRP$", "JJ", "JJR", "JJS", "POS", "$")
            or token.tag in ("VBN", "VBG", "RB", "CC")
            and following
            and following[0].tag in _NOUNS | {"JJ"}
            and last > start - (token.tag != "CC")
        ):
            break
        if token.tag in ("DT", "PRP$") and last > start:
            break
        end += 1
    return last


def _clause_start(words: Sequence[Token]) -> int:
    """The place of the first subordinate clause or comma, or the end."""
    for index, token in enumerate(words):
        if index and (token.text == "," or token.lower in _CLAUSE_STARTS) and words[index - 1].lower not in _MODALS:
            if token.text == "," and not _comma_ends(words, index):
                continue
            return index
    return len(words)


def _comma_ends(words: Sequence[Token], index: int) -> bool:
    """Whether the comma ends the clause, and does not join the parts of a list or a date."""
    following = words[index + 1 : index + 2]
    return bool(following) and following[0].tag not in _NOUNS | {"CD", "JJ", "DT", "CC"}


def _is_base_verb(token: Token) -> bool:
    if not token.text.isalpha() or not token.text[0].islower():
        return False
    return any(r.part_of_speech == "VERB" and r.form == "VB" for r in readings(token.lower))


def _is_participle(token: Token) -> bool:
    if token.tag == "VBN":
        return token.text[0].islower()
    return token.tag == "VBD" and any(r.part_of_speech == "VERB" and r.form == "VBN" for r in readings(token.lower))


def _base_verb(rest: Sequence[Token]) -> int | None:
    """The place of the infinitive after an auxiliary verb and a subject."""
    limit = len(rest)
    for index, token in enumerate(rest):
        if index and (token.lower in _CLAUSE_STARTS | {"that", "which", "who", "to", "whose"} or token.text == ","):
            limit = index
            break
    for region in (limit, len(rest)):
        for index in range(1, region):
            token, last = rest[index], rest[index - 1]
            if token.lower in ("last", "first", "next"):
                continue
            is_after_noun = last.tag not in _BEFORE_NO_VERB and last.lower not in ("that", "who", "which")
            if token.tag in ("VB", "VBP") and is_after_noun and _is_base_verb(token):
                return index
        chunk: int | None = None
        for index in range(1, region + 1):
            if index == region or rest[index].tag in ("IN", "DT", "PRP$", "TO", ",", "CD", "WRB", "RP", "WP", "WDT"):
                if chunk is not None:
                    return chunk
            elif _is_base_verb(rest[index]) and rest[index - 1].tag in _HEADS | {"RB", ":", "."}:
                chunk = index
    return None


def _predicate(rest: Sequence[Token]) -> int | None:
    """The place of the participle or adjective that follows the subject after a form of *be*."""
    if len(rest) > 1 and _is_participle(rest[-1]) and rest[-2].tag in _HEADS | {"RB"}:
        return _with_adverb(rest, len(rest) - 1)
    for index in range(1, len(rest)):
        token, last = rest[index], rest[index - 1]
        if last.tag not in _HEADS | {"RB", "EX"} and last.lower not in ("not", "n't", ")", '"'):
            continue
        following = rest[index + 1 : index + 2]
        before_noun = bool(following) and following[0].tag in _NOUNS
        if _is_participle(token) or token.tag == "VBG" and not before_noun:
            return _with_adverb(rest, index)
        if token.tag == "JJ" and token.text[0].islower() and not (following and following[0].tag in _NOUNS | {"JJ"}):
            return _with_adverb(rest, index)
        if token.tag in ("DT", "PRP$") and last.tag in _NOUNS | {"PRP"}:
            return index
    return None


def _with_adverb(words: Sequence[Token], index: int) -> int:
    """The place of the adverb before words[index], or else ``index``."""
    if index > 2 and [token.lower for token in words[index - 2 : index]] == ["no", "longer"]:
        return index - 2
    return index - (words[index - 1].tag == "RB" and index > 1)


def _stranded(words: Sequence[Token], start: int = 0) -> int | None:
    """The place of the first preposition without a noun."""
    for index in range(start, len(words)):
        token = words[index]
        if token.lower not in _PREPOSITIONS or token.tag not in ("IN", "TO", "RP", "RB"):
            continue
        following = words[index + 1] if index + 1 < len(words) else None
        if following is None:
            return index
        is_pair = token.lower in ("up", "as") and following.lower in _PREPOSITIONS - {"of"}
        is_pair = is_pair and (token.lower, following.lower) != ("up", "to")
        if not is_pair and (following.lower in _NOT_STRANDED_BEFORE or token.lower in _NOT_STRANDED):
            continue
        if following.tag in ("IN", "WRB") and following.lower in _PREPOSITIONS | _CLAUSE_STARTS:
            return index
        if following.text == "," and _comma_ends(words, index + 1):
            return index
    return None


def _inflected(auxiliary: Token, subject: Sequence[Token], verb: Token) -> list[Token] | None:
    """The subject and the verb, with the tense of a form of *do*."""
    if subject[-1].lower in ("not", "n't") or subject[0].lower in ("not", "n't"):
        if subject[0].lower == "n't":
            return [*subject[1:], auxiliary, subject[0], verb]
        return [*subject[:-1], auxiliary, subject[-1], verb]
    form = {"did": "VBD", "does": "VBZ", "do": "VBP"}[auxiliary.lower]
    spellings = (verb.lower,) if form == "VBP" else inflect(verb.lower, "VERB", form)
    if not spellings:
        return None
    return [*subject, Token(spellings[0], form)]


def _verb_phrase(auxiliary: Token, rest: Sequence[Token]) -> tuple[list[Token], list[Token], Token] | None:
    """The subject with the verb, what follows, and the main verb, for an auxiliary verb other than *be*."""
    word = auxiliary.lower
    if word in _HAVE:
        for index in range(1, len(rest)):
            if _is_participle(rest[index]) and rest[index - 1].tag not in ("DT", "JJ", "PRP$", "IN"):
                adverb = rest[index - 1].tag == "RB" and index > 1
                subject = list(rest[: index - adverb])
                return (
                    [*subject, auxiliary, *rest[index - adverb : index], rest[index]],
                    list(rest[index + 1 :]),
                    rest[index],
                )
        return None
    place = _base_verb(rest)
    if place is None:
        return None
    verb = rest[place]._replace(tag="VB")
    if word in _DO:
        clause = _inflected(auxiliary, rest[:place], verb)
        return None if clause is None else (clause, list(rest[place + 1 :]), verb)
    adverb = rest[place - 1].tag == "RB" and place > 1
    subject = list(rest[: place - adverb])
    return [*subject, auxiliary, *rest[place - adverb : place], verb], list(rest[place + 1 :]), verb


def _adverbial(verb: Token, rest: Sequence[Token], auxiliary: str) -> tuple[list[Token], int] | None:
    """The clause in the order of a statement, and the place for an adverbial."""
    if not rest:
        return None
    if auxiliary in _BE:
        if rest[0].tag == "EX" or rest[0].lower == "there":
            clause = [rest[0], verb, *rest[1:]]
        elif not _starts_noun_phrase(rest):
            return None
        else:
            end = _clause_start(rest)
            place = _predicate(rest[:end])
            place = end if place is None else place
            clause = [*rest[:place], verb, *rest[place:]]
    elif auxiliary in _DO | _HAVE | _MODALS:
        if not _starts_noun_phrase(rest):
            return None
        found = _verb_phrase(verb, rest)
        if found is None:
            return None
        clause = [*found[0], *found[1]]
        start = len(found[0])
        return clause, start + _clause_start([found[2], *found[1]]) - 1
    else:
        return None
    return clause, _clause_start(clause)


def _thing(verb: Token, rest: list[Token], auxiliary: str, asked: _Asked) -> Statement | None:
    """A question for a subject or an object."""

    head = _head(asked.noun)
    is_named = head is not None and head.lower in NAMED

    def subject() -> Statement | None:
        if is_named:
            be = "was" if verb.tag == "VBD" or auxiliary in ("was", "were", "had") else "is"
            return _cleft([verb, *rest], be, asked)
        return Statement((), (*asked.kept_after, verb, *rest), asked.role, asked.asked, True)

    def at(clause: Sequence[Token], slot: int) -> Statement:
        return Statement(tuple(clause[:slot]), (*asked.kept_after, *clause[slot:]), asked.role, asked.asked)

    if auxiliary in _BE:
        return _be_thing(verb, rest, asked, subject, at)
    if auxiliary not in _DO | _HAVE | _MODALS:
        return subject()
    if not rest:
        return None
    following = next((token for token in rest if token.tag != "RB" and token.lower != "not"), rest[0])
    if auxiliary in _MODALS and (following.tag == "VB" or following.lower == "be"):
        return subject()
    if auxiliary in _HAVE and (_is_participle(following) or following.lower == "been"):
        return subject()
    if auxiliary in _DO and rest[0].lower in ("not", "n't"):
        return subject()
    if auxiliary not in _DO and not _starts_noun_phrase(rest):
        return None
    found = _verb_phrase(verb, rest)
    if found is None:
        return subject() if auxiliary in _HAVE else None
    before, after, main = found
    gap = None if main.lower in _DO | {"done"} else _gap(after, main)
    if gap is not None and not is_named:
        return at([*before, *after], len(before) + gap)
    return _cleft([*before, *after], auxiliary, asked)


def _cleft(clause: list[Token], auxiliary: str, asked: _Asked) -> Statement | None:
    """*What Tesla did in 1880 was ___*, *The city that ... was ___*, *The person that ... was ___*."""
    is_past = auxiliary in ("did", "was", "were", "had", "could", "would", "might")
    if asked.role != "thing" or asked.kept_after:
        return None
    is_plural = False
    if asked.noun:
        head = _head(asked.noun)
        if asked.noun[0].lower in ("of", "other", "one", "else") or asked.noun[0].tag == "DT":
            return None
        is_plural = head is not None and head.tag in ("NNS", "NNPS")
        start = [Token("the", "DT"), *asked.noun, Token("that", "IN")]
    elif asked.asked == "who":
        start = [Token("the", "DT"), Token("person", "NN"), Token("that", "IN")]
    else:
        start = [Token("what", "WP")]
    be = {(True, False): "was", (True, True): "were", (False, False): "is", (False, True): "are"}[is_past, is_plural]
    return Statement((*start, *clause, Token(be, "VBD")), (), "thing", asked.asked)


def _gap(after: Sequence[Token], verb: Token) -> int | None:
    """The place of the object in the words after the verb; None if it is uncertain."""
    stranded = _stranded(after)
    if stranded is not None:
        return stranded + 1
    if not after:
        return 0
    first = after[0]
    if first.lower == "to" and len(after) > 1 and _is_base_verb(after[1]) and after[1].tag not in ("NNP", "DT"):
        if len(after) == 2 or after[2].tag in ("IN", "RB", "WRB", ","):
            return 2
        return 0 if after[2].tag in _NOUNS | {"DT", "PRP$", "PRP", "JJ"} else None
    if (_is_participle(first) or first.tag == "VBG") and verb.lower in ("be", "been", "have"):
        inner = _gap(after[1:], first)
        return None if inner is None else inner + 1
    if first.lower == "that":
        return None
    if first.tag in ("IN", "RB", "WRB", "CC", "TO", "RP", ",") or first.lower in _PREPOSITIONS:
        return 0
    if _starts_noun_phrase(after):
        if verb.lower in _NAMING_VERBS:
            end = _noun_phrase_end(after, 0) if first.tag != "PRP" else 1
            return end if end and (end == len(after) or after[end].tag in ("IN", "RB", ",", "WRB")) else None
        return None
    return None


def _be_thing(verb: Token, rest: list[Token], asked: _Asked, subject, at) -> Statement | None:
    if not rest:
        return None
    if rest[0].lower == "there":
        return at([rest[0], verb, *rest[1:]], 2) if asked.role == "count" else None
    if not _starts_noun_phrase(rest):
        return subject() if rest[0].lower not in ("it", "that") else None
    if rest[0].lower == "it":
        return None
    has_relative = any(token.lower in ("that", "who", "which") for token in rest)
    stranded = None if has_relative else _stranded(rest, 1)
    if stranded is not None:
        candidates = [
            index
            for index in range(1, stranded)
            if _is_participle(rest[index]) and rest[index - 1].tag in _HEADS | {"RB"}
        ]
        place = candidates[-1] if candidates else _predicate(rest[:stranded])
        place = stranded if place is None else place
        return at([*rest[:place], verb, *rest[place:]], stranded + 2)
    named = _named_gap(rest, has_relative)
    if named is not None:
        return at([*rest[:named], verb, *rest[named:]], named + 2)
    if asked.noun and asked.noun[-1].lower in _TIMES | _DAYS:
        place = _predicate(rest)
        if place is not None and asked.role == "thing":
            preposition = "on" if asked.noun[-1].lower in _DAYS else "in"
            clause = [*rest[:place], verb, *rest[place:]]
            slot = _clause_start(clause)
            return at([*clause[:slot], Token(preposition, "IN"), *clause[slot:]], slot + 1)
    index = next((index for index, token in enumerate(rest) if token.tag not in ("NNP", "NNPS", "PRP")), len(rest))
    if 0 < index < len(rest) and rest[index].tag == "VBG":
        gap = _gap(rest[index + 1 :], rest[index])
        return at([*rest[:index], verb, *rest[index:]], index + 2 + gap) if gap is not None else None
    if asked.role in ("amount", "count") and (place := _predicate(rest)) is not None:
        if asked.role == "count" and rest[place + 1 : place + 2] and rest[place + 1].tag != "IN":
            return None
        clause = [*rest[:place], verb, *rest[place:]]
        return at(clause, _clause_start(clause))
    if asked.noun and _is_participle(rest[-1]) and rest[-2].tag in _HEADS:
        return at([*rest[:-1], verb, rest[-1]], len(rest) + 1)
    end = _clause_start(rest)
    return _copula(verb, rest, end, asked)


def _named_gap(rest: Sequence[Token], has_relative: bool) -> int | None:
    """The place of a participle that names its subject, or gives it something: *is called ___*, *was paid ___*."""
    for index in range(1, len(rest)):
        word, following = rest[index].lower, rest[index + 1 : index + 2]
        if word not in NAMING | _DITRANSITIVE or rest[index - 1].tag not in _HEADS | {"RB", "VBG"}:
            continue
        if word in _DITRANSITIVE and (has_relative or _stranded(rest[index:]) is not None):
            continue
        if not following or following[0].tag in ("IN", "RB", ",", "WRB") and following[0].lower not in ("as", "to"):
            return index
    return None


def _copula(verb: Token, rest: list[Token], end: int, asked: _Asked) -> Statement:
    """*The first president was ___*."""
    head = _head(rest) if asked.asked in ("what", "who") else None
    name = f"what {head.lower}" if head is not None and asked.asked == "what" else asked.asked
    return Statement((*rest[:end], verb), (*asked.kept_after, *rest[end:]), asked.role, name)
