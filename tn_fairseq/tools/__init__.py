"""The tools around the training: they prepare data, look at predictions, evaluate models and compare objectives."""
