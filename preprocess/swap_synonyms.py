#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing swap-synonyms``."""

from tn_fairseq.preprocessing.commands.swap_synonyms import main

if __name__ == "__main__":
    main()
