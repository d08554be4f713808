"""Scoring checkpoints as the paper does, with the spread over seeds.

``metrics`` and ``squad_score`` say how good predictions are, ``answers`` turns logits into SQuAD's answers,
``statistics`` and ``tables`` compare checkpoints, and ``paper`` holds the paper's figures to stand beside them.
"""
