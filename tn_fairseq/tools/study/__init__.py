"""A study: the same model trained with several objectives and seeds, measured and compared."""
