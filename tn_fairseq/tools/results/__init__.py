"""Results: one long table, what its measures mean, comparisons with a baseline, and how they are shown."""
