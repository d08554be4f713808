#!/usr/bin/env python3
"""The same as ``tn-fairseq data glue``."""

from tn_fairseq.commands.data_glue import main

if __name__ == "__main__":
    main()
