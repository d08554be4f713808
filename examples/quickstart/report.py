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

import tn_fairseq  # noqa: F401  registers the checkpoint's task and model
from tn_fairseq import corruption, objectives
from tn_fairseq.errors import one_line_errors
from tn_fairseq.synonyms.table import load_synonym_table, read_description

EXAMPLES = 5
PASSES = 5  # over the held-out text, each with other masks
CONTEXT = 12  # tokens shown on either side of the masked word
BATCH = 64


class FalseNegative(NamedTuple):
    """One masked word of held-out text for which the generator put in a synonym."""

    probability: float
    text: str
    gold: str
    prediction: str
    synonyms: list


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

    found, masked, mismatches = find_false_negatives(model, task, load_synonym_table(table_path, task.dictionary))
    yield ""
    yield "hard correction on held-out text"
    yield f"  {masked:,} masked words, {mismatches:,} predicted wrongly, {len(found):,} of these by a synonym of the gold word:"
    yield f"  {len(found) / max(mismatches, 1):.2%} of the wrong predictions (the paper reports 1.3 to 1.6 % for trained BERT models)"

    yield ""
    yield "what plain masked LM would have punished"
    for number, example in enumerate(surest_of_each_word(found), start=1):
        yield f"  {number}. {example.text}"
        yield f"     gold {example.gold}, predicted {example.prediction} with probability {example.probability:.3f}"
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
        if " | train_inner | {" in line:
            record = json.loads(line[line.index("{") :])
            records[int(record["num_updates"])] = record
    records = [records[update] for update in sorted(records)]
    if not records:
        yield "pre-training: too few updates for a curve"
        return
    step = max(1, (len(records) - 1) / (points - 1))
    chosen = [records[round(step * point)] for point in range(points) if round(step * point) < len(records)]
    highest = max(float(record["nll_loss"]) for record in chosen)
    yield "pre-training (losses in bits, shares in %)"
    yield "  update   loss  masked LM                      accuracy  RTD recall  false negatives  tokens/s"
    for record in chosen:
        nll = float(record["nll_loss"])
        yield (
            f"  {int(record['num_updates']):6} {float(record['loss']):6.2f} {nll:6.2f} {'#' * round(24 * nll / highest):24}"
            f" {float(record['mlm_accuracy']):8.1f} {float(record['rtd_recall']):11.1f}"
            f" {float(record['false_negative_rate']):16.2f} {float(record['wps']):9,.0f}"
        )


@torch.no_grad()
def find_false_negatives(model, task, table) -> tuple[list, int, int]:
    """The generator's false negatives on the valid split; how many words were masked, and how many predicted wrongly.

    As in training, a prediction is a draw from the generator's softmax.
    """
    torch.manual_seed(1)
    model.eval()
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    pad = task.dictionary.pad()
    found, masked_count, mismatch_count = [], 0, 0
    batches = [range(start, min(start + BATCH, len(dataset))) for start in range(0, len(dataset), BATCH)]
    for number in range(PASSES):
        dataset.set_epoch(number + 1)
        for batch in batches:
            sample = dataset.collater([dataset[index] for index in batch])
            masked = sample["target"].ne(pad)
            targets = sample["target"][masked]
            logits, _ = model(**sample["net_input"], masked_tokens=masked)
            predictions = corruption.draw_replacements(logits)
            probabilities = logits.softmax(-1).gather(1, predictions.unsqueeze(1)).squeeze(1)
            masked_count += len(targets)
            mismatch_count += predictions.ne(targets).sum().item()
            text = corruption.original_tokens(sample["net_input"]["src_tokens"], sample["target"], masked)
            places = masked.nonzero().tolist()
            for index in objectives.false_negatives(predictions, targets, table).nonzero().flatten().tolist():
                row, column = places[index]
                gold = targets[index].item()
                found.append(
                    FalseNegative(
                        probability=probabilities[index].item(),
                        text=context(text[row].tolist(), column, task.dictionary),
                        gold=task.dictionary[gold],
                        prediction=task.dictionary[predictions[index].item()],
                        synonyms=[task.dictionary[synonym] for synonym in table[gold].tolist() if synonym != pad],
                    )
                )
    return found, masked_count, mismatch_count


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


def surest_of_each_word(found: list) -> list:
    """The examples of which the generator was surest, one for each gold word and each prediction."""
    chosen, seen = [], set()
    for example in sorted(found, reverse=True):
        if not seen & {example.gold, example.prediction}:
            chosen.append(example)
            seen |= {example.gold, example.prediction}
    return chosen[:EXAMPLES]


if __name__ == "__main__":
    with one_line_errors():
        write_report(Path(sys.argv[1]))
