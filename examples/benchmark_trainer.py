#!/usr/bin/env python3
"""The step of each objective in a Trainer of transformers, compared with that of the plain Trainer.

    python examples/benchmark_trainer.py --output trainer

All trainers have a BERT of the same size, the same random text and masks, and all of ``Trainer``'s own work. They take
turns of a few updates, so other load on the machine slows all of them alike. The first update of a turn does not count.
The script prints, and writes to OUTPUT.json, for each: the seconds of an update (median over the turns), and the median
over the rounds of its ratio to the plain Trainer. The extra passes of sentence KL are also measured on their own.
"""

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmark import SYNONYMS, VOCABULARY_SIZE, circumstances, results_name, show, write_results
from tokenizers import Tokenizer, models
from tqdm import tqdm
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from tn_fairseq.commands.arguments import positive
from tn_fairseq.core.synonym_table import PADDING
from tn_fairseq.huggingface import SynonymTable, TrueNegativeTrainer
from tn_fairseq.huggingface.synonyms import TokenizerSymbols

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
OBJECTIVES = ("mlm", "mlm_hard_correction", "mlm_soft_reg", "mlm_sent_kl", "mlm_synonym_marginal", "mlm_synonym_tying")
PLAIN, AGAIN, PASSES = "Trainer", "Trainer, again", "extra passes of mlm_sent_kl"
UNCOUNTED = 1  # updates at the start of each turn
HEAD = 64  # the size of an attention head, as in BERT


class Updates(TrainerCallback):
    """The times at which updates end."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, args: TrainingArguments, *_: Any, **others: Any) -> None:
        if args.device.type == "cuda":
            torch.cuda.synchronize()
        self.ends.append(time.perf_counter())


def main() -> None:
    """Measure, print a table, and write it."""
    args = parse_args()
    torch.set_num_threads(args.threads)
    tokenizer = make_tokenizer()
    ids = np.random.default_rng(1).integers(len(SPECIAL), VOCABULARY_SIZE, (args.batch_size * 4, args.length))
    rows = [{"input_ids": row} for row in ids.tolist()]
    with tempfile.TemporaryDirectory() as folder:
        trainers = make_trainers(args, tokenizer, rows, Path(folder))
        takes = {name: lambda trainer=trainer: take_turn(trainer) for name, trainer in trainers.items()}
        takes[PASSES] = make_passes(trainers[PLAIN], rows[: args.batch_size], args.updates)
        rounds: list[dict[str, float]] = []
        for _ in tqdm(range(args.rounds + 1), desc="rounds", leave=False, disable=None):
            rounds.append({name: take() for name, take in takes.items()})
    rounds = rounds[1:]  # the first turns allocate memory
    ratios = {name: [found[name] / found[PLAIN] for found in rounds] for name in takes}
    results = circumstances(trainers[PLAIN].args.device.type, args.threads)
    print(
        f"BERT of {args.layers} x {args.width}, batch {args.batch_size} x {args.length}, {results['machine']['device']}"
    )
    table = []
    for name in takes:
        quarters = statistics.quantiles(ratios[name], n=4) if args.rounds > 1 else [ratios[name][0]] * 3
        seconds = statistics.median(found[name] for found in rounds)
        table.append([name, f"{1e3 * seconds:,.1f}", *(f"{quarters[part]:.3f}" for part in (1, 0, 2))])
    show(["", "ms an update", "ratio", "lower quartile", "upper quartile"], table)
    write_results({**results, "seconds an update": rounds}, args.output)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=results_name, required=True, metavar="NAME", help="NAME.json is written")
    parser.add_argument("--layers", type=positive, default=12, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--width", type=positive, default=256, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--batch-size", type=positive, default=8, metavar="N", help="sequences (default: %(default)s)")
    parser.add_argument(
        "--length", type=positive, default=128, metavar="N", help="tokens in each (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=positive, default=7, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument(
        "--updates", type=positive, default=2, metavar="N", help="that count in a turn (default: %(default)s)"
    )
    parser.add_argument("--threads", type=positive, default=os.cpu_count(), metavar="N", help="(default: all cores)")
    args = parser.parse_args()
    if args.width % HEAD:
        parser.error(f"--width {args.width}: must be a multiple of {HEAD}, the size of an attention head")
    return args


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer with as many tokens as BERT's."""
    words = [*SPECIAL.values(), *(f"word{number}" for number in range(VOCABULARY_SIZE - len(SPECIAL)))]
    tokenizer = Tokenizer(models.WordLevel(dict(zip(words, itertools.count())), SPECIAL["unk"]))
    names = {f"{name}_token": token for name, token in SPECIAL.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def make_trainers(
    args: argparse.Namespace, tokenizer: PreTrainedTokenizerFast, rows: list[dict[str, list[int]]], folder: Path
) -> dict[str, Trainer]:
    """A trainer for each row of the table."""
    synonyms = make_table(tokenizer)
    trainers = {}
    for name in (PLAIN, *OBJECTIVES, AGAIN):
        torch.manual_seed(1)
        sizes = {"num_hidden_layers": args.layers, "hidden_size": args.width, "num_attention_heads": args.width // HEAD}
        config = BertConfig(vocab_size=VOCABULARY_SIZE, intermediate_size=4 * args.width, **sizes)
        settings = TrainingArguments(
            output_dir=str(folder / name),
            max_steps=UNCOUNTED + args.updates,
            per_device_train_batch_size=args.batch_size,
            logging_steps=UNCOUNTED + args.updates,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        own = {} if name in (PLAIN, AGAIN) else {"objective": name, "synonyms": synonyms}
        trainers[name] = (TrueNegativeTrainer if own else Trainer)(
            model=BertForMaskedLM(config),
            args=settings,
            train_dataset=rows,
            data_collator=DataCollatorForLanguageModeling(tokenizer, seed=1),
            callbacks=[Updates()],
            **own,
        )
        trainers[name].remove_callback(PrinterCallback)
    return trainers


def make_table(tokenizer: PreTrainedTokenizerFast) -> SynonymTable:
    """Random synonyms of a third of the words."""
    symbols, rng = TokenizerSymbols(tokenizer), np.random.default_rng(1)
    words = np.array(sorted(set(range(len(symbols))) - set(symbols.special)))
    # sums, so that a word has no synonym twice and is not its own
    away = rng.integers(1, len(words) // SYNONYMS, (len(words), SYNONYMS)).cumsum(axis=1)
    table = np.full((len(symbols), SYNONYMS), PADDING)
    table[words] = words[(np.arange(len(words))[:, None] + away) % len(words)]
    table[words[rng.random(len(words)) < 2 / 3]] = PADDING
    return SynonymTable(symbols, torch.from_numpy(table).int(), torch.zeros(len(symbols), dtype=torch.bool), {})


def take_turn(trainer: Trainer) -> float:
    """The mean seconds of the updates that count."""
    (updates,) = (one for one in trainer.callback_handler.callbacks if isinstance(one, Updates))
    updates.ends.clear()
    trainer.train()
    counted = updates.ends[UNCOUNTED - 1 :]
    return (counted[-1] - counted[0]) / (len(counted) - 1)


def make_passes(trainer: Trainer, rows: list[dict[str, list[int]]], updates: int) -> Callable[[], float]:
    """The encoder once without gradients and once with them."""
    model, device = trainer.model, trainer.args.device
    ids = torch.tensor([row["input_ids"] for row in rows], device=device)

    def turn() -> float:
        start = time.perf_counter()
        for _ in range(updates):
            with torch.no_grad():
                model.base_model(input_ids=ids)
            model.base_model(input_ids=ids)[0].square().sum().backward()
            model.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / updates

    return turn


if __name__ == "__main__":
    main()
