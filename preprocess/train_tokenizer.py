#!/usr/bin/env python3
"""The same as ``python -m tn_fairseq.preprocessing train-tokenizer``."""

from tn_fairseq.preprocessing.commands.train_tokenizer import main

if __name__ == "__main__":
    main()
