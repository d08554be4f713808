#!/usr/bin/env python3
"""The same as ``tn-fairseq synonyms build``."""

from tn_fairseq.commands.synonyms_build import main

if __name__ == "__main__":
    main()
