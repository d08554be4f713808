#!/usr/bin/env python3
"""The same as ``tn-fairseq data squad``."""

from tn_fairseq.commands.data_squad import main

if __name__ == "__main__":
    main()
