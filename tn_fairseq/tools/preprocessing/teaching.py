"""A teacher reads the training text once, and draws of its distributions are stored."""

import math
import os
import shutil
import time
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq import tasks, utils
from torch.utils.data import DataLoader
from tqdm import tqdm

from ...core.configuration import training_config
from ...core.draws import Draws, draw, uniform_for_draws
from ...core.errors import InputError
from ...core.files import sha256
from ...data.drawn_folder import HEADER, DrawnFolder
from ...models.loading import load_reader
from ...modules.cross_entropy import log_probabilities
from .teach_options import TeachOptions

SCORED = 8  # of so many masked positions, one is scored for the summary, which costs two passes over its logits
WORDS_PER_DRAW = 0.5  # different words of a usual teacher, to estimate the size


class Reading(NamedTuple):
    """What a teacher says about a batch of B blocks."""

    draws: Draws
    masked: np.ndarray  # (B), the masked positions of each block
    scored: int
    bits: float  # of all scored positions together
    right: int
    seconds: float  # of the teacher's forward pass


def teach(options: TeachOptions, share: tuple[int, int]) -> str:
    """Store the draws that are missing of the I-th of N shares, and return a summary.

    Raises InputError if anything does not fit.
    """
    cfg = training_config([options.data, "--task", "electra", "--arch", "bert_tiny", *options.flags()])
    task: Any = tasks.setup_task(cfg.task)
    model = load_reader(task, "--teacher", options.teacher)
    device = torch.device("cpu")
    if torch.cuda.is_available() and not options.cpu:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    model.to(device)
    datasets = []
    for epoch in range(1, len(utils.split_paths(options.data)) + 1):
        task.load_dataset(cfg.task.train_subset, epoch=epoch, combine=True)
        datasets.append(task.dataset(cfg.task.train_subset))
    if options.versions % len(datasets):
        raise InputError(
            f"--versions {options.versions}: an epoch reads one of {len(datasets)} folders; give a multiple of that"
        )
    datasets *= options.versions // len(datasets)
    header = {
        **task.decides_masks(),
        "teacher": sha256(options.teacher),
        "symbols": len(task.source_dictionary),
        "draws": options.draws,
        "blocks": list(map(len, datasets)),
    }
    if not (options.output / HEADER).exists():
        check_space(options.output, sum(int(data.sizes.sum()) for data in datasets) * cfg.task.mask_prob, header)
    drawn = DrawnFolder.begin(options.output, header)
    (part, parts), size = share, options.batch_size
    left = [key for key in drawn.parts()[part - 1 :: parts] if not drawn.file(*key).exists()]
    tokens = sum(int(datasets[version - 1].sizes[drawn.blocks_of(version, number)].sum()) for version, number in left)
    masked = words = scored = right = 0
    bits = forward = 0.0
    start = time.monotonic()
    with tqdm(total=tokens, unit=" tokens", unit_scale=True, desc="Reading", disable=None) as bar:
        for version, keys in groupby(left, key=itemgetter(0)):
            dataset = datasets[version - 1]
            dataset.set_epoch(version)
            batches = [
                (number, list(blocks[i : i + size]))
                for _, number in keys
                for blocks in [drawn.blocks_of(version, number)]
                for i in range(0, len(blocks), size)
            ]
            loader = DataLoader(
                dataset,
                batch_sampler=[blocks for _, blocks in batches],
                collate_fn=dataset.collater,
                num_workers=options.num_workers,
            )
            for number, of_part in groupby(zip(batches, loader), key=lambda pair: pair[0][0]):
                readings = []
                for _, batch in of_part:
                    readings.append(read(model, batch, drawn, version, device, options.bf16))
                    bar.update(batch["ntokens"])
                draws, positions, some_scored, some_bits, some_right, some_seconds = zip(*readings)
                drawn.write(version, number, np.concatenate(positions), Draws(*map(np.concatenate, zip(*draws))))
                words += sum(len(some.words) for some in draws)
                masked += sum(int(some.sum()) for some in positions)
                scored, bits, right = scored + sum(some_scored), bits + sum(some_bits), right + sum(some_right)
                forward += sum(some_seconds)
    seconds = time.monotonic() - start
    lines = []
    if masked:
        lines = [
            f"{tokens:,} tokens in {seconds:.0f} s ({tokens / seconds:,.0f} a second); "
            f"the teacher's forward pass took {forward / seconds:.0%} of the time",
            f"the teacher predicts {right / scored:.2%} of {scored:,} masked tokens; loss: {bits / scored:.3f} bits",
            f"{words / masked:.1f} different words a position, {words / masked * drawn.bytes_of_word:.0f} bytes",
        ]
    missing = f", of which {len(drawn.missing())} are not written yet" if drawn.missing() else ""
    lines.append(f"{options.output}: {sum(header['blocks']):,} blocks in {len(drawn.parts())} files{missing}")
    return "\n".join(lines)


def check_space(folder: Path, positions: float, header: dict[str, Any]) -> None:
    """Raises InputError if the disk is probably too small."""
    needed = positions * WORDS_PER_DRAW * header["draws"] * (3 if header["symbols"] <= 1 << 16 else 5)
    free = shutil.disk_usage(next(place for place in (folder, *folder.absolute().parents) if place.exists())).free
    if needed > free:
        raise InputError(
            f"--output {folder}: needs about {needed / 1e9:,.1f} GB, but {free / 1e9:,.1f} GB are free; give another "
            "folder, or fewer --draws or --versions"
        )


@torch.no_grad()
def read(
    model: Any, batch: dict[str, Any], drawn: DrawnFolder, version: int, device: torch.device, bf16: bool
) -> Reading:
    """Read a masked batch with the teacher, and draw words at the masked positions."""
    shape, indices = batch["target"].shape, batch["masked_indices"]
    gold = batch["target"].flatten()[indices].to(device)
    masked_tokens = torch.zeros(shape, dtype=torch.bool)
    masked_tokens.view(-1)[indices] = True
    inputs = {**batch["net_input"], "masked_tokens": masked_tokens, "masked_indices": indices}
    start = time.monotonic()
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        logits = model(**utils.apply_to_sample(lambda tensor: tensor.to(device), inputs))[0]
    if device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.monotonic() - start
    rows, columns = np.divmod(indices.numpy(), shape[1])
    seed = drawn.header["options"]["mask_seed"]
    draws = draw(logits, uniform_for_draws(seed, version, batch["id"].numpy()[rows], columns, drawn.draws))
    logits, gold = logits[::SCORED], gold[::SCORED]
    bits = -log_probabilities(logits, gold.unsqueeze(1)).sum().item() / math.log(2)
    right = int(logits.argmax(dim=1).eq(gold).sum())
    return Reading(draws, np.bincount(rows, minlength=shape[0]), len(gold), bits, right, seconds)
