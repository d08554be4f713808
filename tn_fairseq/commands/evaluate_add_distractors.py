"""Add a distractor to the context of each question of SQuAD, to test how robust a fine-tuned model is.

    tn-fairseq evaluate add-distractors --squad dev-v1.1.json --output dev-distractors.json

This is the attack AddSentenceDiverse of the paper's section "Robustness Evaluation". A distractor is the statement of
the altered question with a fake answer: *What city did Tesla move to in 1880?* gives *The city that Edison moved to in
1882 was Geneva.* It looks like the answer, but does not answer the question. It is appended to the context. Names,
numbers, and words with antonyms are altered. Fake answers are the answers of other articles of the file.

The output has one paragraph for each question, and each question has its "distractor". Questions that get none are left
out and counted. The same seed gives the same output with any number of workers.
"""

from ..tools.attacks.attack_options import DistractorOptions
from .arguments import command_line


def add_distractors(options: DistractorOptions) -> None:
    """Add distractors, and print how many questions have none, and why."""
    # imported here because nltk takes seconds to import and --help does not need it
    from ..tools.attacks import distractors

    distractors.add_distractors(options)


main = command_line("evaluate add-distractors", __doc__, add_distractors)
