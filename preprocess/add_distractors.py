#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing add-distractors``."""

from tn_fairseq.preprocessing.commands.add_distractors import main

if __name__ == "__main__":
    main()
