#!/usr/bin/env python3
"""The same as ``tn-fairseq data twins``."""

from tn_fairseq.commands.data_twins import main

if __name__ == "__main__":
    main()
