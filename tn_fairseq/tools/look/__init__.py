"""Look at what models predict: false negatives over training, by synonym table, and in their sentences."""
