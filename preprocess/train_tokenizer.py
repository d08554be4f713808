#!/usr/bin/env python3
"""The same as ``tn-fairseq data train-tokenizer``."""

from tn_fairseq.commands.data_train_tokenizer import main

if __name__ == "__main__":
    main()
