"""Datasets: from binarized text to masked batches."""
