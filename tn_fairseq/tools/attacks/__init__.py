"""Attacks: evaluation data that are changed to test how robust a model is."""
