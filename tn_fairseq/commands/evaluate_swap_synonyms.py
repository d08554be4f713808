"""Swap words for WordNet synonyms in SQuAD, to test how robust a fine-tuned model is.

    tn-fairseq evaluate swap-synonyms --squad dev-v1.1.json --output dev-swapped.json

This is the attack SwapSynWordNet of the paper's section "Robustness Evaluation". In every text, int(share x words)
words, at least one and at most --most, become a synonym of the same part of speech. Names, numbers, stop words, words
of more than 15 senses, words in phrases of WordNet, and every occurrence of an answer stay.

The output has one paragraph for each question, because answers differ. Each question has its "swaps", and the file has
the settings as "attack". Questions that cannot be attacked are left out and counted. The same seed gives the same
output with any number of workers.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..core.files import sha256
from ..core.options import option
from ..synonyms.inflection import VERSION as LEMMINFLECT
from ..synonyms.swords import VERDICTS, Target, read_swords
from ..synonyms.wordnet import ensure_wordnet, wordnet_version
from ..tools.attacks.squad_file import Attacked, check_output, summary, write_attacked
from ..tools.attacks.synonym_swaps import (
    INFLECTIONS,
    SENSES,
    Swap,
    Swapping,
    Text,
    apply_swaps,
    changed_sentences,
    choose_swaps,
    drawn,
    judge_swaps,
    moved,
    occurrences,
)
from ..tools.attacks.tagging import VERSION as TAGGER
from ..tools.formats.squad import SquadExample, read_squad
from ..tools.preprocessing.engines import map_chunks
from ..tools.results.layout import align
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class SwapOptions(Swapping):
    """The questions, and how to attack them."""

    squad: Path = option("questions in SQuAD 1.1's format")
    output: Path = option("file for the attacked questions")
    place: Literal["context", "question"] = option("what to swap", default="context", flag="--in")
    workers: int = option("processes", default=1, at_least=1)
    show: int = option("print N random attacked texts", default=0, at_least=0)
    swords: str | None = option("print how people judge such swaps; a file of SWORDS", default=None, metavar="FILE")


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


main = command_line("evaluate swap-synonyms", __doc__, swap_synonyms)
