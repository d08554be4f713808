"""The building blocks of the models, in plain torch.nn."""
