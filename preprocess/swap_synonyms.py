#!/usr/bin/env python3
"""The same as ``tn-fairseq evaluate swap-synonyms``."""

from tn_fairseq.commands.evaluate_swap_synonyms import main

if __name__ == "__main__":
    main()
