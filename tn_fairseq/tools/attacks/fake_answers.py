"""Fake answers: the answers of other articles that have the form of a question's answer, in its statement.

As in Jia and Liang (2017), the form of an answer is its type, such as a year, a name or a noun phrase.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from .alterations import MONTHS, is_common_noun, synsets
from .declarative import BE, NOUNS, Statement, Token, head, spelled
from .synonym_swaps import article_of

_MONTH = "|".join(MONTHS).lower()
_NUMBER_WORD = (
    "(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|trillion)"
)
_NUMBER = rf"(\d[\d,]*(\.\d+)?|{_NUMBER_WORD})([ -]{_NUMBER_WORD})*"
_UNIT = (
    "(years?|months?|weeks?|days?|hours?|minutes?|seconds?|decades?|centuries|seasons?|met(er|re)s?|kilomet(er|re)s?|"
    "km|miles?|feet|foot|inch(es)?|yards?|acres?|hectares?|tons?|tonnes?|kg|pounds?|degrees?|times)"
)
# the first pattern that matches the text in lower case decides
_FORMS = {
    "year": r"\d{4}( ?(ad|bc|ce|bce))?",
    "date": rf"((the )?\d\d?(st|nd|rd|th)?( of)? ({_MONTH})|({_MONTH}) \d\d?(st|nd|rd|th)?)(,? \d{{4}})?",
    "month": rf"({_MONTH}),? \d{{4}}",
    "decade": r"the (early |late |mid-?)?\d{3,4}'?s",
    "century": r"the (early |late |mid-?)?\w+ century",
    "percent": rf"{_NUMBER} ?(%|percent|per cent)",
    "money": rf"(us)?[$£€¥] ?{_NUMBER}",
    "number": _NUMBER,
    "other": r"(early |late |mid-?)?\d{3,4}'?s",
    "quantity": rf"{_NUMBER}[ -]{_UNIT}",
}
_DATES = ("year", "date", "month", "decade", "century")
_NUMBERS = ("percent", "money", "number", "quantity")
# the forms that fit each role; the first fits if the answer has another one
_FORMS_OF_ROLES = {
    "thing": ("the noun", *_DATES, *_NUMBERS, "name", "names", "nouns", "the nouns", "gerund"),
    "count": ("number",),
    "amount": _NUMBERS,
    "time": _DATES,
    "place": ("name", "the noun", "prepositional"),
    "reason": ("the noun", "the nouns", "nouns"),
    "manner": ("gerund", "prepositional", "adverb", "the noun", "nouns"),
}
_FUNCTION_WORDS = set(
    "a an the of in on at by to for from with and or as is was were are be been that this it its their his her".split()
)
# words whose meaning depends on the sentence before
_REFERRING = set(
    "he she it they him her them his its their this that these those other others another such same both former latter "
    "more less than not who which what".split()
)
_MAX_WORDS = 6
_ENOUGH = 5  # with fewer candidates, a wider kind of question is used


@cache
def content_words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without function words."""
    return frozenset(re.findall(r"\w+", text.lower())) - _FUNCTION_WORDS


def answer_form(words: Sequence[Token]) -> str:
    """The form of an answer, such as year, money, name or the noun; forms that end in *s* are plural."""
    text = spelled(words).lower().strip(" .")
    for form, pattern in _FORMS.items():
        if re.fullmatch(pattern, text):
            return form
    words = [token for token in words if token.text not in ".,\"'"]
    if not words or any(token.tag in ("VBD", "VBZ", "VBP", "MD", "WP", "WDT", "WRB") for token in words):
        return "other"
    first, last, noun = words[0], words[-1], head(words)
    is_several = any(token.lower == "and" for token in words)
    inner = [token for token in words if token.lower not in ("the", "of", "and", "&", "for", "de", "von", "in", "'s")]
    # the tagger cannot know that a single word with a capital is a name
    is_named = any(token.tag in ("NNP", "NNPS", "FW", "CD") for token in inner)
    is_named = is_named or last.tag == "NN" and not is_common_noun(last.text)
    if is_named and all(token.text[0].isupper() or token.text[0].isdigit() for token in inner) and last.tag != "CC":
        return "names" if is_several else "name"
    if first.tag == "IN":
        return "prepositional"
    if first.tag == "VBG" and len(words) > 1:
        return "gerund"
    if len(words) == 1 and first.tag[:2] in ("RB", "JJ"):
        return "adverb" if first.tag.startswith("RB") else "adjective"
    if noun is not None and last.tag in NOUNS and first.tag in {"DT", "PRP$", "JJ", "CD", *NOUNS}:
        is_plural = is_several or noun.tag in ("NNS", "NNPS")
        return ("the " if first.tag in ("DT", "PRP$") else "") + ("nouns" if is_plural else "noun")
    return "other"


def inside_sentence(words: Sequence[Token], form: str) -> str:
    """An answer as it is inside a sentence: a capital of its first word, if that is no name, becomes small."""
    text = spelled(words)
    if not words or form in ("name", "names", "date", "month") or words[0].tag in ("NNP", "NNPS", "FW", "CD"):
        return text
    return text[0].lower() + text[1:] if words[0].text[1:].islower() or words[0].text == "A" else text


def fitting_form(statement: Statement, form: str) -> str:
    """The form of fake answers for a statement, if the question's answer has ``form``."""
    is_predicate = statement.before and statement.before[-1].lower in BE
    if form == "adjective" and statement.role == "thing" and is_predicate:
        return form
    forms = _FORMS_OF_ROLES[statement.role]
    return form if form in forms else forms[0]


@cache
def _kind_of_asked(asked: str) -> str:
    """A wider kind of question: *what city* and *where* ask for places, according to WordNet."""
    if asked in ("who", "where", "when", "what", "why", "how", ""):
        return {"who": "noun.person", "where": "noun.location", "when": "noun.time"}.get(asked, asked)
    noun_synsets = synsets(asked.split()[-1], "n")
    return noun_synsets[0].lexname() if noun_synsets else "what"


class FakeAnswers:
    """The usable answers of a file by the kind of their question and their form, each with its articles."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], dict[str, set[str]]] = {}

    def add(self, asked: str, form: str, text: str, article: str) -> None:
        """Add the answer ``text`` of a question that asks for ``asked``, unless its meaning depends on its context."""
        words = text.lower().split()
        if (
            0 < len(words) <= _MAX_WORDS
            and re.fullmatch(r"[\w\s,.'’&%$£€-]*[\w%]", text)
            and words[-1] not in _FUNCTION_WORDS
            and not _REFERRING & set(words)
        ):
            for kind in (asked, _kind_of_asked(asked), ""):
                self._answers.setdefault((kind, form), {}).setdefault(text, set()).add(article)

    def candidates(self, asked: str, form: str, article: str, allowed: Callable[[str], bool]) -> list[str]:
        """The sorted answers of other articles that are ``allowed``: of the most specific kind that has enough."""
        best: list[str] = []
        for kind in (asked, _kind_of_asked(asked), ""):
            answers = self._answers.get((kind, form), {})
            best = sorted(text for text, articles in answers.items() if article not in articles and allowed(text))
            if len(best) >= _ENOUGH:
                break
        return best


def filled(statement: Statement, form: str, answer: str) -> str:
    """The statement with the answer in its gap, as a sentence: with *a* or *an* as the next word sounds."""
    if answer.split()[0].lower() in _FUNCTION_WORDS:
        answer = answer[0].lower() + answer[1:]
    before = statement.before
    if form not in ("prepositional", "adverb") and not (before and before[-1].tag == "IN"):
        time, manner = "on " if form == "date" else "in ", "by " if form == "gerund" else "through "
        prepositions = {"time": time, "place": "in ", "reason": "because of ", "manner": manner}
        answer = prepositions.get(statement.role, "") + answer
    words = [*before, Token(answer, ""), *statement.after]
    for index, (token, following) in enumerate(zip(words, words[1:])):
        if token.lower in ("a", "an") and not following.text.isupper():  # an FCC rule, a UNESCO site
            article = article_of(following.text.lower().lstrip("\"'“‘"))
            words[index] = token._replace(text=article if token.text.islower() else article.capitalize())
    text = re.sub(r"\s+([,.;:])", r"\1", spelled(words)).strip(" ,")
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")
