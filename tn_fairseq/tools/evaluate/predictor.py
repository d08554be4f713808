"""Predictions of a fine-tuned checkpoint."""

from pathlib import Path

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.data import SortDataset
from omegaconf import OmegaConf
from tqdm import tqdm

from ...core.checkpoints import load_checkpoint
from ...fairseq_patches.bf16 import has_fast_bf16, run_under_autocast

MAX_TOKENS = {"cpu": 2048, "cuda": 32768}  # in a batch; small ones stay in the caches of a CPU


class Predictor:
    """A fine-tuned model, built from the configuration in its checkpoint, on a GPU if there is one.

    A model that was trained with ``--bf16`` on a CPU also predicts in bfloat16, if the CPU is faster with it.
    """

    def __init__(self, checkpoint: Path):
        state = load_checkpoint(checkpoint)
        cfg = OmegaConf.create(state["cfg"], flags={"allow_objects": True})
        self.task = tasks.setup_task(cfg.task)
        self.model = self.task.build_model(cfg.model)
        self.model.load_state_dict(state["model"])
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(self.device).eval()
        if cfg.common.bf16 and self.device.type == "cpu" and has_fast_bf16():
            run_under_autocast(self.model)

    @torch.inference_mode()
    def predict(self, split: str, head: str, data: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The head's logits, (classes) or (T, 2), and the targets of all examples of a split, in the order of the data.

        ``data`` is a folder like that of the training. The list of targets is empty if the split has no labels.
        """
        self.task.cfg.data = str(data)
        self.task.load_dataset(split)
        dataset = self.task.dataset(split)
        if isinstance(dataset, SortDataset):  # shuffles the dataset below it; --no-shuffle omits it
            dataset = dataset.dataset
        sizes = np.array([dataset.size(index) for index in range(len(dataset))])
        # batch examples of similar length
        max_tokens = max(MAX_TOKENS[self.device.type], int(sizes.max(initial=0)))
        batches = dataset.batch_by_size(sizes.argsort(kind="stable"), max_tokens=max_tokens)
        predictions: dict[int, np.ndarray] = {}
        targets: dict[int, np.ndarray] = {}
        for members in tqdm(batches, desc=f"predicting {split}", leave=False, disable=None):
            batch = dataset.collater([dataset[index] for index in members])
            net_input = utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch["net_input"])
            logits, _ = self.model(**net_input, classification_head_name=head)
            for member, row in zip(members, logits.float().cpu().numpy()):
                # positions after the end of a window are padding
                predictions[member] = row[: sizes[member]] if row.ndim == 2 else row
            if "target" in batch:
                targets.update(zip(members, batch["target"].numpy()))
        return [predictions[index] for index in range(len(dataset))], [targets[index] for index in range(len(targets))]
