"""Rates of false negatives over training (Table 2 of the paper), and by source of synonyms."""
