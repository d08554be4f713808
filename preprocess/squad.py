#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing squad``."""

from tn_fairseq.preprocessing.commands.squad import main

if __name__ == "__main__":
    main()
