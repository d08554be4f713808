"""Predictions of a fine-tuned checkpoint."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.data import SortDataset
from tqdm import tqdm

from ..checkpoints import load_checkpoint
from ..configuration import training_config

BATCH_SIZE = 64


class Predictor:
    """A fine-tuned model, built from the flags that it was trained with, on a GPU if there is one."""

    def __init__(self, checkpoint: Path, flags: Sequence[str]):
        cfg = training_config(flags)
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model)
        self.model.load_state_dict(load_checkpoint(checkpoint)["model"])
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(self.device).eval()

    @torch.no_grad()
    def predict(self, split: str, head: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The head's logits, (classes) or (T, 2), and the targets of all examples of a split, in the order of the data.

        The list of targets is empty if the split has no labels.
        """
        self.task.load_dataset(split)
        dataset = self.task.dataset(split)
        if isinstance(dataset, SortDataset):  # shuffles the dataset below it; --no-shuffle omits it
            dataset = dataset.dataset
        sizes = np.array([dataset.size(index) for index in range(len(dataset))])
        order = sizes.argsort(kind="stable")  # batch examples of similar length
        found: dict[int, np.ndarray] = {}
        targets: dict[int, np.ndarray] = {}
        starts = tqdm(range(0, len(order), BATCH_SIZE), desc=f"predicting {split}", leave=False, disable=None)
        for start in starts:
            members = order[start : start + BATCH_SIZE]
            batch = dataset.collater([dataset[index] for index in members])
            net_input = utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch["net_input"])
            logits, _ = self.model(**net_input, classification_head_name=head)
            for member, row in zip(members, logits.float().cpu().numpy()):
                # positions after the end of a window are padding
                found[member] = row[: sizes[member]] if row.ndim == 2 else row
            if "target" in batch:
                targets.update(zip(members, batch["target"].numpy()))
        return [found[index] for index in range(len(dataset))], [targets[index] for index in range(len(targets))]
