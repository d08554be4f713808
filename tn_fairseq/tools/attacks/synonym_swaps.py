"""Swap words of an English text for WordNet synonyms.

The paper's section "Robustness Evaluation" attacks SQuAD with SwapSynWordNet (Wang et al. 2021, TextFlint). This is our
own implementation of the published description.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

from ...core.files import sha256
from ...core.vocabulary import STOP_WORDS, match_case
from ...synonyms.acceptance import judged_synonyms
from ...synonyms.contrasts import entry
from ...synonyms.inflection import VERSION as LEMMINFLECT
from ...synonyms.inflection import Relation, inflect, lemmas, readings, relation
from ...synonyms.swords import VERDICTS, Target, read_swords, verdict
from ...synonyms.wordnet import ensure_wordnet, process_reader, wordnet_version
from ..formats.squad_json import SquadExample, read_squad
from ..preprocessing.engines import map_chunks
from ..results.layout import align
from .attack_options import INFLECTIONS, SENSES, SwapOptions, Swapping
from .squad_file import Attacked, check_output, summary, write_attacked
from .tagging import VERSION as TAGGER
from .tagging import Word, tag

ARTICLES = ("a", "an")

# tags of words that can be swapped -> part of speech for LemmInflect and for WordNet, and the form for LemmInflect
_SWAPPED = {
    **{form: ("NOUN", "n", form) for form in ("NN", "NNS")},
    **{form: ("VERB", "v", form) for form in ("VB", "VBZ", "VBG", "VBD", "VBN")},
    "VBP": ("VERB", "v", "VB"),  # looks like VB
    **{form: ("ADJ", "a", form) for form in ("JJ", "JJR", "JJS")},
    **{form: ("ADV", "r", form) for form in ("RB", "RBR", "RBS")},
}
_LEMMA = re.compile(r"[a-z]{2,}(-[a-z]+)*")  # no phrase (_), name, abbreviation or number
# Words with more senses are mostly light verbs (make, take, hold). In SWORDS, people accept 7% of their synonyms, and
# 14% of them as synonyms of other words, but 27% of the rest.
_MOST_SENSES = 15
# Lemmas with forms such as bigger, happier and simpler. LemmInflect also has forms such as adulter and orotunder.
_COMPARED = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]*(e|y|le|ow)?")
_LONGEST_PHRASE = 4  # words
# The text around a word, unless the word is part of something like km/h, AT&T or $2-a-day.
_BEFORE, _AFTER = re.compile(r"[\s(\[{\"“‘'—]?"), re.compile(r"[\s.,;:?!)\]}\"”’'—]?")
# an hour, but a unit, a European, a one-way street
_VOWEL = re.compile(r"hour|hono|heir|(?!eu|ewe|onc?e\b|uni(?![mnd])|u[kr][aeiou]|us[aeu]|ut[ei]|ubi)[aeiou]")


class Text(NamedTuple):
    """A text to attack: a unique name, and the ranges of characters that must not change."""

    name: str
    text: str
    protected: tuple[tuple[int, int], ...] = ()


class Candidate(NamedTuple):
    """A word that can be swapped, its synonyms in alphabetical order, and the article before it (*a*, *an*)."""

    word: Word
    synonyms: tuple[str, ...]
    article: Word | None


class Swap(NamedTuple):
    """A change of a text: from ``start`` on, ``old`` becomes ``new``. An article may change with the word after it."""

    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """The end of ``old`` in the text before the swap."""
        return self.start + len(self.old)

    @property
    def is_article(self) -> bool:
        """Whether an article changes."""
        return self.old.lower() in ARTICLES


def choose_swaps(swapping: Swapping, text: Text) -> list[Swap]:
    """The swaps of a text, in order; none if no word can be swapped.

    Which words are swapped for what depends only on the seed, the text and its name. A larger share makes the same
    swaps, and more.
    """
    words, swap_candidates = candidates(text.text, swapping.inflection, swapping.senses)
    fitting = [_fitting(one, text, swapping) for one in swap_candidates if not _is_protected(one.word, text)]
    fitting = [candidate for candidate in fitting if candidate.synonyms]
    count = min(max(int(swapping.share * words), 1), swapping.most)
    first = sorted(fitting, key=lambda candidate: drawn(swapping.seed, text.name, candidate.word.start))[:count]
    in_order = sorted(first, key=lambda candidate: candidate.word.start)
    return [swap for candidate in in_order for swap in _swap(candidate, text, swapping)]


def apply_swaps(text: str, swaps: Sequence[Swap]) -> str:
    """The text with its swaps, which are in order."""
    for swap in reversed(swaps):
        text = text[: swap.start] + swap.new + text[swap.end :]
    return text


def moved(offset: int, swaps: Sequence[Swap]) -> int:
    """Where a character that is not part of a swap is after the swaps."""
    return offset + sum(len(swap.new) - len(swap.old) for swap in swaps if swap.start < offset)


def occurrences(text: str, answers: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """The ranges of characters where an answer occurs and does not begin or end inside a word, ignoring case."""
    patterns = (rf"(?<!\w){re.escape(answer)}(?!\w)" for answer in set(answers))
    return tuple(sorted(match.span() for pattern in patterns for match in re.finditer(pattern, text, re.IGNORECASE)))


def changed_sentences(text: str, swaps: Sequence[Swap]) -> list[tuple[str, str]]:
    """The sentences of a text that its swaps change, before and after."""
    starts = [0, *(word.start for word in tag(text) if word.begins_sentence)]
    pairs = []
    for start, end in zip(starts, [*starts[1:], len(text)]):
        inside = [swap._replace(start=swap.start - start) for swap in swaps if start <= swap.start < end]
        if inside:
            pairs.append((text[start:end].strip(), apply_swaps(text[start:end], inside).strip()))
    return pairs


def judge_swaps(targets: Iterable[Target], inflection: str, senses: str) -> tuple[int, int, Counter[str]]:
    """How people judge the swaps of SWORDS's targets, by lemma; see ``judged_synonyms``.

    Returns the number of targets that can be swapped, that of their swaps, and how many of these have which verdict.
    """
    swappable = swaps = 0
    verdicts: Counter[str] = Counter()
    for target in targets:
        words = candidates(target.context, inflection, senses)[1]
        for synonyms in (word.synonyms for word in words if word.word.start == target.start):
            swappable += 1
            swaps += len(synonyms)
            judged = judged_synonyms(target, range(len(synonyms)), dict(enumerate(synonyms)))
            verdicts.update(verdict(substitute.score) for substitute in judged.values())
    return swappable, swaps, verdicts


@lru_cache(maxsize=64)  # the questions about a context follow each other
def candidates(text: str, inflection: str, senses: str) -> tuple[int, tuple[Candidate, ...]]:
    """The number of words of a text, and the words that can be swapped, in order.

    Left out are names, numbers, stop words, words of more than 15 senses, words in phrases of WordNet (*oil painting*,
    *carried out*), verbs before a particle, and words that are written together with others (*km/h*).
    """
    words = tag(text)
    in_phrases = set(_in_phrases(words))
    names = {word.text for word in words if word.tag.startswith("NNP") and not word.begins_sentence}
    swap_candidates = []
    for index, word in enumerate(words):
        after = words[index + 1].tag if index + 1 < len(words) else ""
        if (
            index in in_phrases
            or (word.text[0].isupper() and not word.begins_sentence)
            or word.text in names  # it begins this sentence, but it is capitalized inside of another one
            or (word.tag.startswith("VB") and after == "RP")
            or not _BEFORE.fullmatch(text[max(word.start - 1, 0) : word.start])
            or not _AFTER.fullmatch(text[word.end : word.end + 1])
        ):
            continue
        others = _synonyms(word.text.lower(), word.tag, inflection, senses)
        if after == "POS":  # people's, but not humans's
            others = tuple(other for other in others if other.endswith("s") == word.text.lower().endswith("s"))
        if others:
            has_article = index and words[index - 1].text.lower() in ARTICLES
            swap_candidates.append(Candidate(word, others, words[index - 1] if has_article else None))
    return sum(any(map(str.isalnum, word.text)) for word in words), tuple(swap_candidates)


@cache
def _synonyms(word: str, penn: str, inflection: str, senses: str) -> tuple[str, ...]:
    """The one-word synonyms of a lowercase word with a tag of the Penn Treebank, in alphabetical order."""
    reader = process_reader()
    word_entry = entry(reader, word)
    if penn not in _SWAPPED or word in STOP_WORDS or word_entry.is_name or word_entry.is_number:
        return ()
    part_of_speech, letter, form = _SWAPPED[penn]
    bases = {reading.lemma for reading in readings(word) if reading[1:] == (part_of_speech, form)}
    if bases & STOP_WORDS:
        return ()
    names: set[str] = set()
    for base in bases:
        synsets = reader.synsets(base, letter)  # also those of words with such a form (found)
        synsets = [synset for synset in synsets if base in map(str.lower, synset.lemma_names())]
        if len(synsets) <= _MOST_SENSES:
            names.update(
                name for synset in synsets[: 1 if senses == "first" else None] for name in synset.lemma_names()
            )
    names = {
        name
        for name in names
        if _LEMMA.fullmatch(name)
        and name not in STOP_WORDS
        and not entry(reader, name).is_number
        and len(reader.synsets(name, letter)) <= _MOST_SENSES
    }
    if inflection == "keep":
        if form in ("JJR", "JJS", "RBR", "RBS"):
            names = {name for name in names if _COMPARED.fullmatch(name)}
        names = {spelling for name in names for spelling in inflect(name, part_of_speech, form)[:1]}
    return tuple(sorted(name for name in names if relation(word, name) != Relation.OWN_WORD))


@cache
def _phrases() -> frozenset[str]:
    return frozenset(name.lower() for name in process_reader().all_lemma_names() if "_" in name)


def _in_phrases(words: Sequence[Word]) -> Iterator[int]:
    """The indices of the words that are part of a phrase of WordNet, such as *prime ministers*."""
    phrases = _phrases()
    for start in range(len(words)):
        for length in range(2, _LONGEST_PHRASE + 1):
            part = [word.text.lower() for word in words[start : start + length]]
            if len(part) < length or not part[-1][0].isalnum():
                break
            firsts, lasts = lemmas(part[0]) | {part[0]}, lemmas(part[-1]) | {part[-1]}
            if any("_".join([first, *part[1:-1], last]) in phrases for first, last in product(firsts, lasts)):
                yield from range(start, start + length)


def _fitting(candidate: Candidate, text: Text, swapping: Swapping) -> Candidate:
    """The candidate with the synonyms that fit an article that must stay, and the article only if it may change."""
    article = candidate.article
    if article is None or swapping.inflection == "any":
        return candidate._replace(article=None)
    if not _is_protected(article, text):
        return candidate
    fitting = (other for other in candidate.synonyms if article_of(other) == article.text.lower())
    return Candidate(candidate.word, tuple(fitting), None)


def _swap(candidate: Candidate, text: Text, swapping: Swapping) -> Iterator[Swap]:
    """The swap of a word and, if necessary, of the article before it."""
    word, synonyms, article = candidate
    new = synonyms[drawn(swapping.seed, text.name, word.start, "synonym") % len(synonyms)]
    if article and article_of(new) != article.text.lower():
        yield Swap(article.start, article.text, match_case(article_of(new), like=article.text))
    yield Swap(word.start, word.text, match_case(new, like=word.text))


def article_of(word: str) -> str:
    """*a* or *an*, as fits a lowercase word."""
    return "an" if _VOWEL.match(word) else "a"


def _is_protected(word: Word, text: Text) -> bool:
    return any(word.start < end and start < word.end for start, end in text.protected)


def drawn(seed: int, *names: object) -> int:
    """A number that looks random and depends only on the arguments, not on the platform or the version of Python."""
    return int.from_bytes(hashlib.sha256("\0".join(map(str, (seed, *names))).encode()).digest()[:8], "big")


def swap_synonyms(options: SwapOptions) -> None:
    """Swap, and print what was swapped."""
    place = options.place
    targets = read_swords(options.swords) if options.swords else None
    swapping = Swapping(**{entry.name: getattr(options, entry.name) for entry in fields(Swapping)})
    examples = read_squad(options.squad)
    check_output(options.squad, options.output)
    attack = {
        "name": "swap-synonyms",
        **asdict(swapping),
        "lemminflect": LEMMINFLECT,
        "tagger": TAGGER,
        "in": place,
        "wordnet": wordnet_version(ensure_wordnet()),
        "input": options.squad.name,
        "sha256": sha256(options.squad),
    }
    answered = [example for example in examples if example.answers]
    skipped = {example.id: "they have no answers" for example in examples if not example.answers}
    texts = [_protected_text(example, place) for example in answered]
    swaps = map_chunks(partial(choose_swaps, swapping), texts, options.workers, "swap", "texts")
    questions = []
    for example, text, text_swaps in zip(answered, texts, swaps):
        if not text_swaps:
            skipped[example.id] = "no word outside of their answers can be swapped"
            continue
        changes: dict[str, Any] = {place: apply_swaps(text.text, text_swaps)}
        if place == "context":
            changes["answers"] = tuple((answer, moved(start, text_swaps)) for answer, start in example.answers)
        record = [[swap.old, swap.new] for swap in text_swaps if not swap.is_article]
        questions.append(Attacked(replace(example, **changes), {"swaps": record}))
    print(*summary(len(questions), skipped), sep="\n")
    _report(texts, swaps, options.seed, options.show)
    write_attacked(options.output, questions, attack)
    print(f"wrote {options.output}")
    if targets is not None:
        print(*_judgments(targets), sep="\n")


def _protected_text(example: SquadExample, place: str) -> Text:
    text = getattr(example, place)
    protected = set(occurrences(text, [answer for answer, _ in example.answers]))
    if place == "context":  # an answer may begin or end inside a word
        protected.update((start, start + len(answer)) for answer, start in example.answers)
    return Text(example.id, text, tuple(sorted(protected)))


def _report(texts: Sequence[Text], swaps: Sequence[Sequence[Swap]], seed: int, show: int) -> None:
    """Print how many words were swapped, and some texts before and after."""
    attacked = [(text, text_swaps) for text, text_swaps in zip(texts, swaps) if text_swaps]
    words = sum(not swap.is_article for _, text_swaps in attacked for swap in text_swaps)
    print(f"swapped words: {words:,}, {words / max(len(attacked), 1):.1f} in an attacked text")
    attacked.sort(key=lambda pair: drawn(seed, pair[0].name, "sample"))
    for text, text_swaps in attacked[:show]:
        print(f"\n{text.name}")
        for old, new in changed_sentences(text.text, text_swaps):
            print(f"  - {old}\n  + {new}")


def _judgments(targets: Sequence[Target]) -> list[str]:
    """What people say about all swaps that would be possible at SWORDS's targets, one row for each variant."""
    rows: list[Sequence[str]] = [("--inflection", "--senses", "targets", "swaps", "judged", *VERDICTS)]
    for inflection in INFLECTIONS:
        for senses in SENSES:
            swappable, swaps, verdicts = judge_swaps(targets, inflection, senses)
            judged = verdicts.total()
            shares = [f"{100 * verdicts[name] / max(judged, 1):.1f}%" for name in VERDICTS]
            rows.append((inflection, senses, f"{swappable:,}", f"{swaps:,}", f"{judged:,}", *shares))
    return [f"\nswaps at {len(targets):,} targets of SWORDS", *align(rows, left=(0, 1))]
