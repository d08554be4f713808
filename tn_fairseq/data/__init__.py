"""Datasets: binarised text in, masked batches out."""
