"""Import and export weights of ``transformers``: ``python -m tn_fairseq.huggingface import|export``."""
