"""Released weights in and out: ``python -m tn_fairseq.huggingface import|export``."""
