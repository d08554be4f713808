#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing glue``."""

from tn_fairseq.preprocessing.commands.glue import main

if __name__ == "__main__":
    main()
