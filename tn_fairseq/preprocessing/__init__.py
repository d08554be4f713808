"""Convert raw text into the files that fairseq-train reads. See ``python -m tn_fairseq.preprocessing --help``."""
