#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing build-synonym-table``."""

from tn_fairseq.preprocessing.commands.build_synonym_table import main

if __name__ == "__main__":
    main()
