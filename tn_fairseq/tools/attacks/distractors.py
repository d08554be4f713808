"""AddSentenceDiverse: sentences that look like the answer to a question, and are not.

Each is the question's statement, altered, with a fake answer: one of another article, of the same form. As in Jia and
Liang (2017), numbers become near numbers, names other names of their kind, and nouns and adjectives antonyms.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count
from typing import NamedTuple

from ...core.errors import InputError
from ...core.files import sha256
from ...synonyms.inflection import VERSION as LEMMINFLECT
from ...synonyms.inflection import inflect, readings
from ...synonyms.wordnet import ensure_wordnet, process_reader, wordnet_version
from ..formats.squad_json import SquadExample, read_squad
from ..preprocessing.engines import map_chunks
from .attack_options import DistractorOptions
from .declarative import NOUNS, Statement, Token, head, spelled, statement, tokens
from .squad_file import Attacked, check_output, summary, write_attacked
from .synonym_swaps import article_of, drawn
from .tagging import VERSION as TAGGER
from .tagging import tag

_MONTHS = "January February March April May June July August September October November December".split()
_SMALL = "two three four five six seven eight nine ten eleven twelve".split()
_NEAR, _MONTH = (-4, -3, -2, -1, 1, 2, 3, 4), "|".join(_MONTHS)
# the first pattern that matches decides
_FORMS = {
    "year": r"\d{4}",
    "date": rf"(\d\d? )?({_MONTH})( \d\d?)?(,? \d{{4}})?",
    "money": r"[$£€¥].*\d.*",
    "percent": r"\d.* ?(%|percent)",
    "number": rf"\d[\d,.]*( (hundred|thousand|million|billion))?|{'|'.join(_SMALL)}",
}
# the forms that fit each role; the first one replaces any other
_FORMS_OF_ROLES = {
    "thing": ("noun", "name", "nouns", *_FORMS),
    "number": ("number", "money", "percent"),
    "time": ("year", "date"),
    "place": ("name",),
    "reason": ("noun", "nouns"),
    "manner": ("noun", "nouns"),
}
_FUNCTION_WORDS = set("a an the of in on at by to for from with and or as is was were are be been his her its".split())
# an answer with one of these words needs the sentence before it
_REFERRING = set("he she it they him them its their this that these those other another such both more less".split())
Choose = Callable[[Sequence[str]], str]


class Question(NamedTuple):
    """What a distractor needs to know of a question: its words, its statement, and its first answer with its form."""

    example: SquadExample
    words: list[Token]
    statement: Statement | None
    answer: str
    form: str


def read_question(example: SquadExample) -> Question:
    """Tag a question and its first answer."""
    words, answer = (tokens(text, tag(text)) for text in (example.question.strip(), example.answers[0][0]))
    form, text = answer_form(answer), spelled(answer).strip(" .")
    if form in ("noun", "nouns") and not answer[0].tag.startswith("NNP") and text[1:2].islower():
        text = text[0].lower() + text[1:]  # the capital was that of a sentence
    return Question(example, words, statement(words), text, form)


def answer_form(words: Sequence[Token]) -> str:
    """The form of an answer: year, date, money, percent, number, name, noun, nouns, or other."""
    text, noun = spelled(words).strip(" ."), head(words)
    for form, pattern in _FORMS.items():
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return form
    inner = [token for token in words if token.text[0].isalnum() and token.lower not in _FUNCTION_WORDS]
    if inner and all(token.text[0].isupper() or token.text[0].isdigit() for token in inner):
        return "name"
    if noun is not None and words[-1].tag in NOUNS and words[0].tag in {"DT", "PRP$", "JJ", "CD", *NOUNS}:
        return "nouns" if noun.tag in ("NNS", "NNPS") else "noun"
    return "other"


def near_numbers(text: str) -> list[str]:
    """Numbers or months near ``text``; none if it is something else, such as *CO2*."""
    for series in (_MONTHS, _SMALL):
        if text in series:
            place = series.index(text)
            return [series[place + step] for step in _NEAR if 0 <= place + step < len(series)]
    if not re.fullmatch(r"\d{1,18}", text):
        return []
    unit = 1 if 1000 <= int(text) <= 2100 else 10 ** max(len(text) - 2, 0)
    return [str(other) for step in _NEAR if (other := int(text) + step * unit) > 1 and len(str(other)) == len(text)]


@cache
def antonyms(word: str, penn: str) -> list[str]:
    """The antonyms of a noun or adjective in its two most frequent senses, in the form of the Penn tag."""
    letter, part_of_speech = ("a", "ADJ") if penn.startswith("JJ") else ("n", "NOUN")
    names = {
        antonym.name()
        for base in {reading.lemma for reading in readings(word) if reading[1:] == (part_of_speech, penn)}
        for synset in process_reader().synsets(base, letter)[:2]
        for own in synset.lemmas()
        for antonym in own.antonyms()
        if own.name() == base and antonym.name().isalpha()
    }
    return sorted({form for name in names for form in inflect(name, part_of_speech, penn)[:1]})


@cache
def name_kind(name: str) -> str:
    """What a name is, by WordNet or else by its number of words."""
    synsets = process_reader().synsets(name.removeprefix("the ").replace(" ", "_"))
    senses = [one.lexname() for one in synsets if any(lemma[0].isupper() for lemma in one.lemma_names())]
    senses.sort(key=lambda sense: sense == "noun.person")  # the Rhine is a river rather than a person of that name
    return senses[0] if senses else f"{len(name.split())} words"


def _parts(words: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """The tokens of each name and of each other word, and the text, with *the* if that is a name's article."""
    start = 0
    while start < len(words):
        end = start + 1
        while words[start].tag.startswith("NNP") and words[end:] and words[end].space and words[end].text[0].isupper():
            end += 1
        is_modifier = bool(words[end:]) and (words[end].tag in ("NN", "NNS", "JJ") or words[end].lower == "'s")
        has_article = words[start].tag.startswith("NNP") and start and words[start - 1].lower == "the"
        yield "the " * bool(has_article and not is_modifier) + spelled(words[start:end]), words[start:end]
        start = end


@cache
def content_words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without function words."""
    return frozenset(re.findall(r"\w+", text.lower())) - _FUNCTION_WORDS


class Distractors:
    """Makes distractors from all questions and answers of a file; raises InputError if they are about one article."""

    def __init__(self, questions: Sequence[Question]):
        # what articles are known by, in files with and without titles
        self._key = "title" if len({question.example.title for question in questions}) > 1 else "context"
        if len({getattr(question.example, self._key) for question in questions}) < 2:
            raise InputError("fake answers are those of other articles; give a file with at least 2 articles")
        self._frequencies = Counter(word.text for question in questions for word in question.words)
        parts = (pair for question in questions for pair in _parts(question.words))
        names = Counter(text for text, part in parts if part[0].tag.startswith("NNP"))
        self._names: dict[tuple[str, bool], list[str]] = defaultdict(list)  # by kind, and whether with an article
        for name in sorted(names):
            word = name.removeprefix("the ")
            if names[name] > 1 and len(word) > 1 and self._frequencies[word.lower()] <= self._frequencies[word]:
                self._names[name_kind(name), word != name].append(name)
        # the articles of each answer, by its form and what is asked, or by its form only
        self._answers: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
        for question in questions:
            words = question.answer.lower().split()
            asked = question.statement.asked if question.statement else ""
            article = getattr(question.example, self._key)
            for key in {asked, ""} if 0 < len(words) <= 6 and not _REFERRING & set(words) else ():
                self._answers[question.form, key].setdefault(question.answer, set()).add(article)

    def sentence(self, question: Question, choose: Choose) -> tuple[str | None, str]:
        """The distractor of a question, or None, and the reason; ``choose`` chooses from sorted candidates."""
        if question.statement is None:
            return None, "no rule makes a statement of them"
        context, article = question.example.context.lower(), getattr(question.example, self._key)
        changed = self._altered(question.statement, content_words(f"{context} {question.example.question}"), choose)
        if changed is None:
            return None, "no word of their statement can be altered"
        forms = _FORMS_OF_ROLES[changed.role]
        form = question.form if question.form in forms else forms[0]
        golds = (content_words(text) for text, _ in question.example.answers)
        excluded = content_words(spelled([*changed.before, *changed.after])).union(*golds)
        for asked in (changed.asked, ""):
            answers = self._answers.get((form, asked), {})
            others = (text for text, articles in answers.items() if article not in articles)
            fakes = [text for text in others if not content_words(text) & excluded and text.lower() not in context]
            if fakes:
                return filled(changed, form, choose(sorted(fakes))), ""
        return None, "no answer of another article has the form of theirs"

    def _altered(self, statement: Statement, excluded: frozenset[str], choose: Choose) -> Statement | None:
        """The statement with new words, none of which is ``excluded``; None if nothing can be altered."""
        new: dict[str, str] = {}  # the same word becomes the same word
        sides: list[list[Token]] = [[], []]
        for result, side in zip(sides, statement[:2]):
            for text, part in _parts(side):
                penn, near = part[0].tag, near_numbers(text)
                if penn.startswith("NNP"):
                    near = near or [one for one in self._names[name_kind(text), text.startswith("the ")] if one != text]
                elif text.islower() and penn[:2] in ("JJ", "NN"):
                    near = near or [word for word in antonyms(text, penn) if self._frequencies[word] > 1]
                fitting = [word for word in near if not content_words(word) & excluded]
                if text not in new and fitting:
                    new[text] = choose(fitting)
                if text in new:
                    part = [Token(new[text].removeprefix("the "), part[-1].tag, part[0].space)]
                result += part
        return statement._replace(before=sides[0], after=sides[1]) if new else None


def filled(statement: Statement, form: str, answer: str) -> str:
    """The statement with the answer in its gap, as a sentence: with *a* or *an* as the next word sounds."""
    if not (statement.before and statement.before[-1].tag == "IN"):
        time = "on " if form == "date" and re.search(r"\b\d\d?\b", answer) else "in "
        prepositions = {"time": time, "place": "in ", "reason": "because of ", "manner": "through "}
        answer = prepositions.get(statement.role, "") + answer
    text = re.sub(r"\s+([,.;:])", r"\1", spelled([*statement.before, Token(answer, ""), *statement.after])).strip(" ,")
    text = re.sub(r"\b(a)n?(?= ([a-z]\w*))", lambda match: article_of(match[2]), text)
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def add_distractors(options: DistractorOptions) -> None:
    """Add distractors, and print how many questions have none, and why."""
    examples = read_squad(options.squad)
    check_output(options.squad, options.output)
    attack = {
        "name": "add-distractors",
        "position": "end",
        "seed": options.seed,
        "wordnet": wordnet_version(ensure_wordnet()),
        "lemminflect": LEMMINFLECT,
        "tagger": TAGGER,
        "input": options.squad.name,
        "sha256": sha256(options.squad),
    }
    skipped = {example.id: "they have no answers" for example in examples if not example.answers}
    answered = [example for example in examples if example.answers]
    if not answered:
        raise InputError(f"{options.squad}: no question has an answer; give a labeled file")
    questions: list[Question] = map_chunks(read_question, answered, options.workers, "read", "questions")
    distractors = Distractors(questions)
    attacked: list[Attacked] = []
    attack_one = partial(_attack, distractors, options.seed)
    outcomes = map_chunks(attack_one, questions, options.workers, "attack", "questions")
    for question, (result, reason) in zip(questions, outcomes):
        if result is None:
            skipped[question.example.id] = reason
        else:
            attacked.append(result)
    print(*summary(len(attacked), skipped), sep="\n")
    for shown in random.Random(options.seed).sample(attacked, min(options.show, len(attacked))):
        print(f"\n{shown.example.id}: {shown.example.question.strip()}")
        print(f"  answer:     {shown.example.answers[0][0]}\n  distractor: {shown.record['distractor']}")
    write_attacked(options.output, attacked, attack)
    print(f"wrote {options.output}")


def _attack(distractors: Distractors, seed: int, question: Question) -> tuple[Attacked | None, str]:
    example, draws = question.example, count(1)
    sentence, reason = distractors.sentence(
        question, lambda items: items[drawn(seed, example.id, next(draws)) % len(items)]
    )
    if sentence is None:
        return None, reason
    attacked = replace(example, context=f"{example.context} {sentence}")
    return Attacked(attacked, {"distractor": sentence}), ""
