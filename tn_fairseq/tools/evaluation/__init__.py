"""Fine-tuning and scoring as in the paper, with the spread over seeds.

``metrics`` and ``squad_score`` score predictions, ``answers`` turns logits into answers for SQuAD, and ``tables``
compares checkpoints.
"""
