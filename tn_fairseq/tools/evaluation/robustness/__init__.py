"""Robustness of fine-tuned checkpoints: scores on attacked data, and on the same data before the attack."""
