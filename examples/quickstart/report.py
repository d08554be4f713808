#!/usr/bin/env python3
"""What the quickstart's run learned, and which false negatives its generator finds in held-out text.

    python examples/quickstart/report.py demo

prints the report and writes it to demo/report.txt.
"""

import json
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

import torch
from fairseq import checkpoint_utils
from fairseq.data import indexed_dataset
from quickstart import json_record

import tn_fairseq  # noqa: F401  registers the checkpoint's task and model
from tn_fairseq import corruption
from tn_fairseq.errors import one_line_errors
from tn_fairseq.synonyms.table import PADDING, load_synonym_table, read_description

EXAMPLES = 5
CANDIDATES = 20  # examples kept of each batch
CONTEXT = 12  # tokens shown on either side of the masked word
BATCH = 64


class FalseNegative(NamedTuple):
    """One masked word of held-out text, and the synonym that the generator is likeliest to put in."""

    probability: float
    text: str
    gold: str
    prediction: str
    synonyms: list


class HeldOut(NamedTuple):
    """What the generator makes of the masked words of held-out text; the shares are expectations over its draws."""

    masked: int
    wrong: float
    false_negative: float
    examples: list


def write_report(folder: Path) -> None:
    lines = list(report(folder))
    (folder / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def report(folder: Path) -> Iterator[str]:
    data_bin, table_path = folder / "data-bin", folder / "synonyms.safetensors"
    checkpoint = folder / "checkpoints" / "checkpoint_last.pt"
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data_bin)})
    description = read_description(table_path)

    yield "corpus and vocabulary"
    for split in ("train", "valid"):
        dataset = indexed_dataset.make_dataset(str(data_bin / split), impl="mmap")
        yield f"  {split:6} {(dataset.sizes > 1).sum():9,} sentences {dataset.sizes.sum():11,} tokens"
    yield f"  dictionary of {len(task.dictionary):,} symbols"
    for label, count in json.loads(description["counts"]).items():
        yield f"  {count:,} of them {label} ({count / len(task.dictionary):.1%})"

    yield ""
    yield from loss_curve(folder / "pretraining.log")

    held_out = find_false_negatives(model, task, load_synonym_table(table_path, task.dictionary))
    yield ""
    yield "false negatives in held-out text"
    yield f"  {held_out.masked:,} masked words; the generator puts in a wrong word for {held_out.wrong:.1%} of them"
    share = held_out.false_negative / held_out.wrong
    yield f"  of the wrong words {share:.3%} are synonyms: hard correction takes them out of the loss"
    yield "  (so young a generator prefers function words; the paper reports 1.3 to 1.6 % for trained BERT models)"

    yield ""
    yield "what plain masked LM would have punished: the synonyms likeliest to be put in"
    for number, example in enumerate(held_out.examples, start=1):
        yield f"  {number}. {example.text}"
        yield f"     gold {example.gold}, predicted {example.prediction} (probability {example.probability:.2%})"
        yield f"     synonyms of {example.gold}: {', '.join(example.synonyms)}"

    yield ""
    yield "files"
    for path, what in (
        (data_bin, "what fairseq-train reads; the tokenizer lies in tokenizer/"),
        (table_path, "the synonym table: build_synonym_table.py --show WORD prints a row"),
        (checkpoint, "the model: fairseq-train goes on from here"),
        (folder / "pretraining.log", "everything fairseq-train said"),
        (folder / "report.txt", "this report"),
    ):
        yield f"  {path}  {what}"


def loss_curve(log: Path, points: int = 8) -> Iterator[str]:
    """A few lines of the training log, evenly spaced from first to last."""
    records = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        record = json_record(line, "train_inner")
        if record:
            records[int(record["num_updates"])] = record
    records = [records[update] for update in sorted(records)]
    if not records:
        yield "pre-training: too few updates for a curve"
        return
    step = max(1, (len(records) - 1) / (points - 1))
    chosen = [records[round(step * point)] for point in range(points) if round(step * point) < len(records)]
    highest = max(float(record["nll_loss"]) for record in chosen)
    fired = sum(float(record["false_negative_rate"]) for record in records) / len(records)
    yield "pre-training (losses in bits, shares in %)"
    yield "  update   loss  masked LM                      accuracy  RTD recall  false negatives  tokens/s"
    for record in chosen:
        nll = float(record["nll_loss"])
        bar = "#" * round(24 * nll / highest)
        yield (
            f"  {int(record['num_updates']):6} {float(record['loss']):6.2f} {nll:6.2f} {bar:24}"
            f" {float(record['mlm_accuracy']):8.1f} {float(record['rtd_recall']):11.1f}"
            f" {float(record['false_negative_rate']):16.2f} {float(record['wps']):9,.0f}"
        )
    yield f"  hard correction fired on {fired:.3f} % of the wrong predictions"


@torch.no_grad()
def find_false_negatives(model, task, table) -> HeldOut:
    """How often the generator's draws on the valid split are false negatives, and the likeliest of them."""
    model.eval()
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    found, masked_count, wrong, false_negative = [], 0, 0.0, 0.0
    for start in range(0, len(dataset), BATCH):
        sample = dataset.collater([dataset[index] for index in range(start, min(start + BATCH, len(dataset)))])
        masked = sample["target"].ne(task.dictionary.pad())
        targets = sample["target"][masked]
        logits, _ = model(**sample["net_input"], masked_tokens=masked)
        probabilities = logits.softmax(-1)
        rows = table[targets].long()
        of_synonyms = probabilities.gather(1, rows.clamp(min=0)).masked_fill(rows == PADDING, 0.0)
        masked_count += len(targets)
        wrong += (1 - probabilities.gather(1, targets.unsqueeze(1))).sum().item()
        false_negative += of_synonyms.sum().item()

        text = corruption.original_tokens(sample["net_input"]["src_tokens"], sample["target"], masked)
        places = masked.nonzero().tolist()
        best, column = of_synonyms.max(dim=1)
        for index in best.topk(min(CANDIDATES, len(best))).indices.tolist():
            row, place = places[index]
            synonyms = [task.dictionary[synonym] for synonym in rows[index].tolist() if synonym != PADDING]
            found.append(
                FalseNegative(
                    probability=best[index].item(),
                    text=context(text[row].tolist(), place, task.dictionary),
                    gold=task.dictionary[targets[index].item()],
                    prediction=synonyms[column[index]] if synonyms else "",
                    synonyms=synonyms,
                )
            )
    return HeldOut(masked_count, wrong / masked_count, false_negative / masked_count, likeliest_of_each_word(found))


def context(tokens: list, place: int, dictionary) -> str:
    """The words around a place, with the word there in brackets."""
    special = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
    first, last = max(0, place - CONTEXT), place + CONTEXT + 1
    pieces = [
        f"[{dictionary[token]}]" if index == place else dictionary[token]
        for index, token in enumerate(tokens[first:last], start=first)
        if token not in special
    ]
    words = " ".join(pieces).replace(" ##", "").removeprefix("##")
    return f"… {words} …"


def likeliest_of_each_word(found: list) -> list:
    """The likeliest examples, one for each gold word and each prediction."""
    chosen, seen = [], set()
    for example in sorted(found, reverse=True):
        if example.synonyms and not seen & {example.gold, example.prediction}:
            chosen.append(example)
            seen |= {example.gold, example.prediction}
    return chosen[:EXAMPLES]


if __name__ == "__main__":
    with one_line_errors():
        write_report(Path(sys.argv[1]))
