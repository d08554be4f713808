#!/usr/bin/env python3
"""The same as ``tn-fairseq data binarize``."""

from tn_fairseq.commands.data_binarize import main

if __name__ == "__main__":
    main()
