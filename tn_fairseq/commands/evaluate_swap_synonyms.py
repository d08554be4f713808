"""Swap words for WordNet synonyms in SQuAD, to test how robust a fine-tuned model is.

    tn-fairseq evaluate swap-synonyms --squad dev-v1.1.json --output dev-swapped.json

This is the attack SwapSynWordNet of the paper's section "Robustness Evaluation". In every text, int(share x words)
words, at least one and at most --most, become a synonym of the same part of speech. Names, numbers, stop words, words
of more than 15 senses, words in phrases of WordNet, and every occurrence of an answer stay.

The output has one paragraph for each question, because answers differ. Each question has its "swaps", and the file has
the settings as "attack". Questions that cannot be attacked are left out and counted. The same seed gives the same
output with any number of workers.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import one_line_errors
from ..core.files import sha256
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
from ..tools.reporting.layout import align
from .arguments import command_parser, positive, share

PLACES = ("context", "question")


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("evaluate swap-synonyms", __doc__)
    parser.add_argument("--squad", type=Path, required=True, metavar="FILE", help="questions in SQuAD 1.1's format")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="file for the attacked questions")
    text = "what to swap (default: %(default)s)"
    parser.add_argument("--in", dest="place", choices=PLACES, default="context", help=text)
    text = "share of the words to swap (default: %(default)s)"
    parser.add_argument("--share", type=share, metavar="X", help=text)
    text = "at most N words (default: %(default)s)"
    parser.add_argument("--most", type=positive, metavar="N", help=text)
    text = "keep: give synonyms the form of the word, and correct a and an before them; any: WordNet's lemmas, as in "
    text += "the paper (default: %(default)s)"
    parser.add_argument("--inflection", choices=INFLECTIONS, help=text)
    text = "all: synonyms in any sense; first: only in the most frequent sense (default: %(default)s)"
    parser.add_argument("--senses", choices=SENSES, help=text)
    parser.add_argument("--seed", type=int, metavar="N", help="seed (default: %(default)s)")
    parser.set_defaults(**asdict(Swapping()))
    parser.add_argument("--workers", type=positive, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--show", type=positive, default=0, metavar="N", help="print N random attacked texts")
    parser.add_argument("--swords", metavar="FILE", help="print how people judge such swaps; a file of SWORDS")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Swap, and print what was swapped."""
    args = get_parser().parse_args(argv)
    place: str = args.place
    targets = read_swords(args.swords) if args.swords else None
    swapping = Swapping(args.share, args.most, args.inflection, args.senses, args.seed)
    examples = read_squad(args.squad)
    check_output(args.squad, args.output)
    attack = {
        "name": "swap-synonyms",
        **asdict(swapping),
        "lemminflect": LEMMINFLECT,
        "tagger": TAGGER,
        "in": place,
        "wordnet": wordnet_version(ensure_wordnet()),
        "input": args.squad.name,
        "sha256": sha256(args.squad),
    }
    answered = [example for example in examples if example.answers]
    skipped = {example.id: "they have no answers" for example in examples if not example.answers}
    texts = [_protected_text(example, place) for example in answered]
    swaps = map_chunks(partial(choose_swaps, swapping), texts, args.workers, "swap", "texts")
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
    _report(texts, swaps, args.seed, args.show)
    write_attacked(args.output, questions, attack)
    print(f"wrote {args.output}")
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
