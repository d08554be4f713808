#!/usr/bin/env python3
"""The same as ``tn-fairseq evaluate add-distractors``."""

from tn_fairseq.commands.evaluate_add_distractors import main

if __name__ == "__main__":
    main()
