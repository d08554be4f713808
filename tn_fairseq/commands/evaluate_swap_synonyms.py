"""Swap words for WordNet synonyms in SQuAD, to test how robust a fine-tuned model is.

    tn-fairseq evaluate swap-synonyms --squad dev-v1.1.json --output dev-swapped.json

This is the attack SwapSynWordNet of the paper's section "Robustness Evaluation". In every text, int(share x words)
words, at least one and at most --most, become a synonym of the same part of speech. Names, numbers, stop words, words
of more than 15 senses, words in phrases of WordNet, and every occurrence of an answer stay.

The output has one paragraph for each question, because answers differ. Each question has its "swaps", and the file has
the settings as "attack". Questions that cannot be attacked are left out and counted. The same seed gives the same
output with any number of workers.
"""

from ..tools.attacks.attack_options import SwapOptions
from .arguments import command_line


def swap_synonyms(options: SwapOptions) -> None:
    """Swap, and print what was swapped."""
    # imported here because nltk takes seconds to import and --help does not need it
    from ..tools.attacks import synonym_swaps

    synonym_swaps.swap_synonyms(options)


main = command_line("evaluate swap-synonyms", __doc__, swap_synonyms)
