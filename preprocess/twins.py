#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing twins``."""

from tn_fairseq.preprocessing.commands.twins import main

if __name__ == "__main__":
    main()
