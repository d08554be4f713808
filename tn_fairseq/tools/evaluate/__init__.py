"""Evaluations: fine-tuning on GLUE and SQuAD, attacked questions, and words."""
