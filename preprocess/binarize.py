#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing binarize``."""

from tn_fairseq.preprocessing.commands.binarize import main

if __name__ == "__main__":
    main()
