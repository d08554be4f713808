"""A teacher reads a tokenized text once, for a ``Trainer`` that needs no teacher."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..core.corruption import block_keys, mask
from ..core.draws import MOST, draw, uniform_for_draws
from ..core.errors import InputError
from .trainer import IGNORED, Teacher, open_teacher

Row = dict[str, np.ndarray]


@torch.no_grad()
def teach(
    rows: Sequence[Mapping[str, Any]],
    teacher: Any,
    tokenizer: PreTrainedTokenizerBase,
    *,
    draws: int = 50,
    versions: int = 1,
    seed: int = 1,
    mask_prob: float = 0.15,
    leave_unmasked_prob: float = 0.1,
    random_token_prob: float = 0.1,
    batch_size: int = 32,
) -> list[Row]:
    """Masked rows with labels, and what a teacher says about the masked words, for ``objective="mlm_distillation"``.

    The ``rows`` are those of a tokenizer, with ``input_ids``, such as a data set of ``datasets``. Each is masked
    ``versions`` times. ``draw_words`` and ``draw_counts``, (N, K) for N masked words, are the different words among
    ``draws`` from the teacher's distribution, and how often they were drawn. Masks and draws depend only on the seed,
    the version and the number of the row. Raises InputError for a teacher with another vocabulary, and for shares or
    draws out of range.
    """
    if not 1 <= draws <= MOST:
        raise InputError(f"draws must be between 1 and {MOST}, not {draws}")
    shares = {"leave_unmasked_prob": leave_unmasked_prob, "random_token_prob": random_token_prob}
    if not 0 < mask_prob < 1 or min(shares.values()) < 0 or sum(shares.values()) > 1:
        raise InputError("mask_prob must be above 0 and below 1, and the other shares add up to at most 1")
    core, size = open_teacher(teacher, tokenizer)
    reader, device = Teacher(core.eval(), size, size), next(core.parameters()).device
    special = np.array(sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id}))
    corruption = {**shares, "mask_index": tokenizer.mask_token_id, "random_token_range": (0, len(tokenizer))}
    taught: list[Row] = []
    for version in range(1, versions + 1):
        for start in range(0, len(rows), batch_size):
            some = [dict(rows[number]) for number in range(start, min(start + batch_size, len(rows)))]
            for row in some:
                row.pop("labels", None)
                row.setdefault("attention_mask", [1] * len(row["input_ids"]))
            inputs = tokenizer.pad(some, return_tensors="pt")
            tokens, numbers = inputs["input_ids"].numpy(), np.arange(start, start + len(some))
            maskable = inputs["attention_mask"].bool().numpy() & ~np.isin(tokens, special)
            masked = mask(tokens, maskable, block_keys(seed, version, numbers), mask_prob, **corruption)
            labels = np.full_like(tokens, IGNORED)
            labels.ravel()[masked.indices] = tokens.ravel()[masked.indices]
            inputs = {name: value.to(device) for name, value in inputs.items() if name != "input_ids"}
            where = torch.from_numpy(labels != IGNORED).to(device)
            logits, _ = reader(torch.from_numpy(masked.src_tokens).to(device), where, **inputs)
            row_of, column = np.divmod(masked.indices, tokens.shape[1])
            found = draw(logits, uniform_for_draws(seed, version, numbers[row_of], column, draws))
            words, counts = (tensor.numpy() for tensor in found.padded(draws))
            for place, row in enumerate(some):
                length, here = len(row["input_ids"]), row_of == place
                # padding may be on either side
                kept = np.flatnonzero(inputs["attention_mask"][place].cpu().numpy())[:length]
                width = int((counts[here] > 0).sum(axis=1).max(initial=0))
                taught.append(
                    {
                        **{name: np.asarray(value) for name, value in row.items()},
                        "input_ids": masked.src_tokens[place][kept],
                        "labels": labels[place][kept],
                        "draw_words": words[here, :width],
                        "draw_counts": counts[here, :width].astype(np.uint8),
                    }
                )
    return taught


class DrawsCollator:
    """A data collator for the rows of ``teach``: draws are (B, M, K), filled with counts of 0."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    def __call__(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Tensor]:
        """A batch of tensors."""
        rows = list(rows)
        others = ("labels", "draw_words", "draw_counts")
        inputs = [{name: value for name, value in row.items() if name not in others} for row in rows]
        batch = dict(self.tokenizer.pad(inputs, return_tensors="pt"))
        batch["labels"] = torch.full_like(batch["input_ids"], IGNORED)
        for place, row in enumerate(rows):
            labels = torch.as_tensor(np.asarray(row["labels"]), dtype=torch.long)
            at_end = self.tokenizer.padding_side == "right"
            (batch["labels"][place, : len(labels)] if at_end else batch["labels"][place, -len(labels) :]).copy_(labels)
        for name in ("draw_words", "draw_counts"):
            tables = [np.asarray(row[name], dtype=np.int64).reshape(len(row[name]) or 1, -1) for row in rows]
            shape = [max(table.shape[axis] for table in tables) for axis in (0, 1)]
            batch[name] = torch.stack(
                [
                    torch.from_numpy(np.pad(table, [(0, size - own) for size, own in zip(shape, table.shape)]))
                    for table in tables
                ]
            )
        return batch
