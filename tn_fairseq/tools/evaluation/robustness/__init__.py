"""Robustness of checkpoints fine-tuned on SQuAD: scores on attacked questions, and on the same before the attack."""
