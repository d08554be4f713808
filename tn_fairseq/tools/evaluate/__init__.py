"""Fine-tuning and scoring as in the paper, with the spread over seeds.

``metrics`` and ``squad_score`` score predictions, and ``answers`` turns logits into answers for SQuAD. ``score_tables``
compares checkpoints over seeds, and ``bootstrap`` over items and seeds.
"""
