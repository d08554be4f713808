"""The commands of ``python -m tn_fairseq.preprocessing``."""
