"""Add a distractor to the context of each question of SQuAD, to test how robust a fine-tuned model is.

    tn-fairseq evaluate add-distractors --squad dev-v1.1.json --output dev-distractors.json

This is the attack AddSentenceDiverse of the paper's section "Robustness Evaluation". A distractor is the statement of
the altered question with a fake answer: *What city did Tesla move to in 1880?* gives *The city that Edison moved to in
1882 was Geneva.* It looks like the answer, but does not answer the question. It is appended to the context. Names,
numbers, and words with antonyms are altered. Fake answers are the answers of other articles of the file.

The output has one paragraph for each question, and each question has its "distractor". Questions that get none are left
out and counted. The same seed gives the same output with any number of workers.
"""

import random
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

from ..core.errors import InputError
from ..core.files import sha256
from ..core.options import option
from ..synonyms.inflection import VERSION as LEMMINFLECT
from ..synonyms.wordnet import ensure_wordnet, wordnet_version
from ..tools.attacks.distractors import Distractors, Question, read_question
from ..tools.attacks.squad_file import Attacked, check_output, summary, write_attacked
from ..tools.attacks.synonym_swaps import drawn
from ..tools.attacks.tagging import VERSION as TAGGER
from ..tools.formats.squad import read_squad
from ..tools.preprocessing.engines import map_chunks
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class DistractorOptions:
    """The questions, and how to attack them."""

    squad: Path = option("questions in SQuAD 1.1's format")
    output: Path = option("file for the attacked questions")
    seed: int = option("seed", default=1)
    workers: int = option("processes", default=1, at_least=1)
    show: int = option("print N random distractors", default=0, at_least=0)


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


main = command_line("evaluate add-distractors", __doc__, add_distractors)
