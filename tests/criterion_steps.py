"""One step of a criterion on the first batch, and what it consists of."""

from types import SimpleNamespace

import torch
from helpers import first_batch


def step(task, model, criterion, batch: dict, seed: int = 5):
    """Loss, sample size and log of one step from a fixed seed."""
    torch.manual_seed(seed)
    return criterion(model, batch)


def outputs(built, batch: dict):
    """The masked positions of a batch, and the model's output without dropout."""
    task, model, _ = built
    masked = batch["target"].ne(task.dictionary.pad())
    draws = {key: batch.get(key) for key in ("masked_indices", "uniform_draws")}
    return masked, model.eval()(**batch["net_input"], masked_tokens=masked, target_tokens=batch["target"], **draws)


def regularization(built) -> SimpleNamespace:
    """The regularization term, with its graph, the masked predictions, and the rest of a step without dropout."""
    task, model, criterion = built
    found, original = SimpleNamespace(batch=first_batch(task)), criterion.objective.regularization

    def capture(model, sample, masked):
        if masked.logits.requires_grad:
            masked.logits.retain_grad()
        found.masked = masked
        found.term, logs = original(model, sample, masked)
        return found.term, logs

    criterion.objective.regularization = capture
    torch.manual_seed(5)
    found.loss, found.sample_size, found.log = criterion(model.eval(), found.batch)
    criterion.objective.regularization = original
    return found
