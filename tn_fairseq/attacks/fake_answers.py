"""Fake answers: the answers of other articles that have the form of a question's answer, in its statement.

As in Jia and Liang (2017), the form of an answer is its type, such as a year, a name or a noun phrase.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from ..synonyms.inflection import lemmas
from .alterations import MONTHS, is_common_noun, synsets
from .declarative import NAMED, NAMING, Statement, Token, spelled

_MONTH = "|".join(MONTHS)
_NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|trillion"
)
_DAY = r"\d{1,2}(st|nd|rd|th)?"
_PLAIN_NUMBER = rf"(?:\d[\d,]*(?:\.\d+)?|(?:{_NUMBER_WORDS}))(?:[ -](?:{_NUMBER_WORDS}))*"
_UNITS = (
    "years? months? weeks? days? hours? minutes? seconds? decades? centuries generations? seasons? metres? meters? "
    "kilometres? kilometers? km m cm mm miles? mi feet ft foot inch(?:es)? yards? acres? hectares? tons? tonnes? kg "
    "pounds? grams? degrees? times percentage"
)
_TIME_UNITS = re.compile(r"(years?|months?|weeks?|days?|hours?|minutes?|seconds?|decades?|centuries)$")
# the first pattern that matches the text in lower case decides
_PATTERNS = {
    "year": r"\d{4}( ?(ad|bc|ce|bce))?",
    "date": rf"((the )?{_DAY}( of)? ({_MONTH})|({_MONTH}) {_DAY})(,? \d{{4}})?".lower(),
    "month": rf"({_MONTH}),? \d{{4}}".lower(),
    "decade": r"the (early |late |mid-?)?\d{3,4}'?s",
    "century": r"the (early |late |mid-?)?\w+ century",
    "percent": rf"{_PLAIN_NUMBER} ?(%|percent|per cent)",
    "money": rf"(us)?[$£€¥] ?{_PLAIN_NUMBER}",
    "number": _PLAIN_NUMBER,
    "other": r"(early |late |mid-?)?\d{3,4}'?s",
    "quantity": rf"{_PLAIN_NUMBER}[ -]({'|'.join(_UNITS.split())})",
}
_COMPILED = {form: re.compile(pattern) for form, pattern in _PATTERNS.items()}
DATES = ("year", "date", "month", "decade", "century")
_NUMBERS = ("percent", "money", "number", "quantity")
_THINGS = (*DATES, *_NUMBERS, "name", "names", "noun", "nouns", "the noun", "the nouns", "gerund")
# the forms that fit each role, and the form to take if the answer has another one
_FORMS_OF_ROLES: dict[str, tuple[tuple[str, ...], str]] = {
    "thing": (_THINGS, "the noun"),
    "count": (("number",), "number"),
    "amount": (_NUMBERS, "percent"),
    "extent": (("quantity",), "quantity"),
    "duration": (("quantity",), "quantity"),
    "time": (DATES, "year"),
    "place": (("name", "the noun", "prepositional"), "name"),
    "reason": (("the noun", "the nouns", "nouns", "infinitive"), "the noun"),
    "manner": (("gerund", "prepositional", "adverb", "the noun", "nouns"), "gerund"),
}
_MOTION = set("move go travel come migrate flee emigrate return immigrate relocate lead flow retreat head sail".split())
_ARTICLES = {"the", "a", "an"}
_BE = {"is", "are", "was", "were", "be", "been"}
_MEASURED = {"long", "tall", "high", "wide", "deep", "thick", "old"}
_FUNCTION_WORDS = set(
    "a an the of in on at by to for from with and or as is was are were be been that this it its their his her".split()
)
# words whose meaning depends on the sentence before
_REFERRING = set(
    "he she it they him her them his its their this that these those other others another such same both former latter "
    "more less than not who which what".split()
)
_MAX_WORDS = 6
_ENOUGH = 5  # candidates for which a more specific kind of question is used


@cache
def content_words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without function words."""
    return frozenset(re.findall(r"\w+", text.lower())) - _FUNCTION_WORDS


def answer_form(words: Sequence[Token]) -> str:
    """The form of an answer, such as year, money, name or the noun; forms that end in *s* are plural."""
    text = spelled(words).lower().strip(" .")
    for form, pattern in _COMPILED.items():
        if pattern.fullmatch(text):
            return form
    words = [token for token in words if token.text not in ".,\"'"]
    if not words:
        return "other"
    first, last = words[0], words[-1]
    inner = [token for token in words if token.lower not in ("the", "of", "and", "&", "for", "de", "von", "in", "'s")]
    # the tagger cannot know that a single word with a capital is a name
    is_named = any(token.tag in ("NNP", "NNPS", "FW", "CD") for token in inner)
    is_named = is_named or last.tag == "NN" and not is_common_noun(last.text)
    if is_named and all(token.text[0].isupper() or token.text[0].isdigit() for token in inner) and last.tag != "CC":
        return "names" if any(token.lower == "and" for token in words) else "name"
    if any(token.tag in ("VBD", "VBZ", "VBP", "MD", "WP", "WDT", "WRB") for token in words):
        return "clause"
    if first.lower == "to" and len(words) > 1 and words[1].tag == "VB":
        return "infinitive"
    if first.tag in ("IN", "TO"):
        return "prepositional"
    if first.tag == "VBG" and len(words) > 1:
        return "gerund"
    if len(words) == 1 and first.tag.startswith("RB"):
        return "adverb"
    if len(words) == 1 and first.tag.startswith("JJ"):
        return "adjective"
    if last.tag in ("NN", "NNS", "NNP", "NNPS") and first.tag in ("DT", "PRP$", "JJ", "NN", "NNS", "NNP", "NNPS", "CD"):
        is_plural = _head_tag(words) in ("NNS", "NNPS") or any(token.lower == "and" for token in words)
        return ("the " if first.tag in ("DT", "PRP$") else "") + ("nouns" if is_plural else "noun")
    return "other"


def inside_sentence(words: Sequence[Token], form: str) -> str:
    """An answer as it is inside a sentence: a capital of its first word, if that is no name, becomes small."""
    text = spelled(words)
    if not words or form in ("name", "names", "date", "month") or words[0].tag in ("NNP", "NNPS", "FW", "CD"):
        return text
    return text[0].lower() + text[1:] if words[0].text[1:].islower() or words[0].text == "A" else text


def _head_tag(words: Sequence[Token]) -> str:
    """The tag of the last noun before the first preposition."""
    tag = words[-1].tag
    for token, following in zip(words, words[1:]):
        if following.tag == "IN":
            return token.tag
    return tag


def fitting_form(statement: Statement, form: str) -> str:
    """The form of fake answers for a statement, if the question's answer has ``form``."""
    role = statement.role.split()[0]
    forms, otherwise = _FORMS_OF_ROLES[role]
    if form == "adjective" and role == "thing" and statement.before and statement.before[-1].lower in _BE:
        return form
    form = form if form in forms else otherwise
    number = _verb_number(statement)
    if form == "noun" and role == "thing" and not _is_naming(statement):
        # few nouns in the singular need no article
        is_singular = number == "singular" or statement.before and statement.before[-1].lower in ("is", "was")
        form = "the noun" if is_singular else "nouns"
    if number and role == "thing" and form in ("noun", "nouns", "name", "names", "the noun", "the nouns"):
        return form.rstrip("s") + ("s" if number == "plural" else "")
    return form


def _is_naming(statement: Statement) -> bool:
    """Whether a noun without an article can fill the gap: *the type that he used was ___*, *it is called ___*."""
    last = statement.before[-1].lower if statement.before else ""
    return last in NAMING or last in _BE and statement.asked.removeprefix("what ") in NAMED


def _verb_number(statement: Statement) -> str | None:
    if not statement.is_subject:
        return None
    for token in statement.after:
        if token.lower in ("are", "were", "have") or token.tag == "VBP":
            return "plural"
        if token.lower in ("is", "was", "has") or token.tag == "VBZ":
            return "singular"
        if token.tag.startswith("VB"):
            return None
    return None


@cache
def _kind_of_asked(asked: str) -> str:
    """A wider kind of question: *what city* and *where* ask for places, according to WordNet."""
    if asked in ("who", "where", "when", "what", "why", "how", ""):
        return {"who": "noun.person", "where": "noun.location", "when": "noun.time"}.get(asked, asked)
    found = synsets(asked.split()[-1], "n")
    return found[0].lexname() if found else "what"


@dataclass
class FakeAnswers:
    """The usable answers of a file by the kind of their question and their form, each with its articles."""

    answers: dict[tuple[str, str], dict[str, set[str]]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, asked: str, form: str, text: str, article: str) -> None:
        """Add the answer ``text`` of a question that asks for ``asked``."""
        if form in ("other", "clause") or not _is_usable(text):
            return
        for kind in (asked, _kind_of_asked(asked), ""):
            self.answers[kind, form].setdefault(text, set()).add(article)

    def candidates(self, asked: str, form: str, article: str, allowed: Callable[[str], bool]) -> list[str]:
        """The sorted answers of other articles that are ``allowed``: of the most specific kind that has enough."""
        best: list[str] = []
        for kind in (asked, _kind_of_asked(asked), ""):
            found = self.answers.get((kind, form), {})
            best = sorted(text for text, articles in found.items() if article not in articles and allowed(text))
            if len(best) >= _ENOUGH:
                break
        return best


def _is_usable(text: str) -> bool:
    words = text.split()
    return (
        len(words) <= _MAX_WORDS
        and re.fullmatch(r"[\w\s,.'’&%$£€-]*[\w%]", text) is not None
        and words[-1].lower() not in _FUNCTION_WORDS
        and not _REFERRING & {word.lower() for word in words}
    )


def filled(statement: Statement, form: str, answer: str) -> str:
    """The statement with the answer in its gap, as a sentence."""
    if answer.split()[0].lower() in _FUNCTION_WORDS:
        answer = answer[0].lower() + answer[1:]
    last = statement.before[-1].lower if statement.before else ""
    before, after = list(statement.before), list(statement.after)
    gap = _with_preposition(statement.role, form, answer, before[-1] if before else None)
    if statement.role == "count" and last in _ARTICLES:
        before.pop()
    words = [*before, Token(gap, ""), *after]
    return _sentence(words)


def _with_preposition(role: str, form: str, answer: str, last: Token | None) -> str:
    if last is not None and last.tag == "IN" and role in ("time", "place"):
        return answer
    if role == "time":
        return f"{'on' if form == 'date' else 'in'} {answer}"
    if role == "place" and form != "prepositional":
        is_motion = last is not None and last.tag.startswith("VB") and bool(_MOTION & lemmas(last.lower))
        return f"{'to' if is_motion else 'in'} {answer}"
    if role == "duration":
        return answer if last is not None and last.lower == "for" else f"for {answer}"
    if role == "reason" and form != "infinitive":
        return f"because of {answer}"
    if role == "manner" and form in ("gerund", "the noun", "nouns"):
        return f"by {answer}" if form == "gerund" else f"through {answer}"
    if role.startswith("extent"):
        kind = role.removeprefix("extent").strip()
        if kind == "far":
            return f"{answer} away"
        is_time = _TIME_UNITS.search(answer)
        if kind in _MEASURED and (kind == "old" or not is_time or kind == "long"):
            return f"{answer} {kind}"
    return answer


def fits(statement: Statement, form: str, answer: str) -> bool:
    """Whether the unit of a quantity fits the statement's role."""
    role = statement.role
    if role == "count":
        return answer.lower() not in ("1", "one", "0", "zero")
    if role == "duration" or role == "extent old":
        return bool(_TIME_UNITS.search(answer))
    if role.startswith("extent") and role != "extent long":
        return not _TIME_UNITS.search(answer) and "times" not in answer
    return True


def _sentence(words: Iterable[Token]) -> str:
    """The words as a sentence, with *a* or *an* as the next word sounds, a capital and a period."""
    words = list(words)
    for index, token in enumerate(words[:-1]):
        if token.text in ("a", "an") or index == 0 and token.text in ("A", "An"):
            following = words[index + 1].text.lstrip("\"'“‘")
            article = (
                "an" if re.match(r"[aeio]|un[^i]|u[^n]|(?-i:[FHLMNRSX](?=[A-Z]))", following, re.IGNORECASE) else "a"
            )
            if _sounds_regular(following):
                words[index] = token._replace(text=article if token.text.islower() else article.capitalize())
    text = re.sub(r"\s+([,.;:])", r"\1", spelled(words)).strip(" ,")
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _sounds_regular(word: str) -> bool:
    """Not *hour*, *European*, *one*, *US* or *use*, whose articles do not follow from their first letter."""
    return not re.match(r"hour|honou?r|honest|heir|eu|one|once|us[aeu]?\b|ut|ub|ur|8|11|18", word, re.IGNORECASE)
