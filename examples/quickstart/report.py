#!/usr/bin/env python3
"""Report what the quickstart learned, and what its models get wrong in held-out text.

    python examples/quickstart/report.py demo

prints the report and writes it to demo/report.txt.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from quickstart import CRITERIA, READ, SEEDS

from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import read_json
from tn_fairseq.tools.results.compare import compare
from tn_fairseq.tools.results.layout import align
from tn_fairseq.tools.results.show import COLUMNS, number
from tn_fairseq.tools.results.table import read_table, table_of
from tn_fairseq.tools.training_log import read_records

EXAMPLES = 3
CONTEXT = 45  # characters on either side of the masked word
# in the logs of fairseq-train -> measure, label
COMPARED = {
    "valid_nll_loss": ("loss", "masked-LM loss, in bits"),
    "valid_mlm_accuracy": ("accuracy", "masked words predicted, in %"),
    "valid_false_negative_rate": ("prediction_rate", "wrong words that are synonyms, in %"),
    "train_train_wall": ("training_time", "seconds of training on one core"),
}


def write_report(folder: Path) -> None:
    lines = list(report(folder))
    (folder / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def report(folder: Path) -> Iterator[str]:
    analysis = folder / "false-negatives"
    cases = read_json(analysis / "cases.json", "give the folder of a demo that has finished")
    rates, _ = read_table(analysis / "results.parquet")
    if (folder / "half.pt").exists():
        yield from comparison(folder)
        share = of_last(rates, "plain").mean()["teacher_as_likely_rate"]
        yield f"  The teacher finds {share:.0f}% of plain's wrong words at least as likely as the masked word."
        yield ""
        yield "what plain masked LM punishes: wrong words that the teacher finds likely"
        for number, case in enumerate(likeliest_of_each_word([case for case in cases if "teacher" in case]), start=1):
            word, probability = likeliest_word(case)
            yield f"  {number}. {sentence(case)}"
            yield f"     teacher: {word} {probability:.1%}, {case['gold']} {case['teacher_gold_probability']:.1%}"
        return
    log = folder / "pretraining.log"
    yield from loss_curve(log)
    yield from discriminator(log)
    yield from false_negatives(of_last(rates, "pretraining"))
    yield ""
    yield "what plain masked LM punishes: the most likely synonyms"
    for number, case in enumerate(likeliest_of_each_word(cases), start=1):
        synonym, probability = likeliest_word(case)
        yield f"  {number}. {sentence(case)}"
        yield f"     gold {case['gold']}, synonym {synonym} (probability {probability:.2%})"


def of_last(rates: pd.DataFrame, run: str) -> Any:
    """The values of each measure, a group for each, of the run's checkpoint with the most updates."""
    rows = rates[[Path(arm).parent.name == run for arm in rates["arm"]]]
    updates = rows["checkpoint"].astype(int)
    return rows[updates == updates.max()].groupby("measure")["value"]


def comparison(folder: Path) -> Iterator[str]:
    """The objectives on held-out text, where those with the same seed have the same masks."""
    last = {(arm, seed): last_records(folder / f"seed{seed}" / f"{arm}.log") for arm in CRITERIA for seed in SEEDS}
    rows = [
        {"arm": arm, "seed": seed, "measure": measure, "value": float(record[name])}
        for name, (measure, _) in COMPARED.items()
        for (arm, seed), record in last.items()
    ]
    compared = compare(table_of(rows), baseline="plain").groupby("measure", sort=False)
    lines = [["", *CRITERIA]]
    for measure, label in COMPARED.values():
        by_arm = compared.get_group(measure).to_dict("records")
        lines.append([f"  {label}", *(COLUMNS["difference"](row) or number(row, "value") for row in by_arm)])
    seconds = json.loads((folder / READ).read_text(encoding="utf-8"))["seconds"]
    yield f"held-out text: means of {len(SEEDS)} seeds, and differences from plain with 95% intervals over the seeds"
    yield from align(lines)
    yield f"  Before, the teacher read the text once for all seeds, in {seconds:.0f} seconds."


def last_records(log: Path) -> dict[str, Any]:
    """The values of the last epoch of training, and of the last validation."""
    return read_records(log, "train")[-1] | read_records(log, "valid")[-1]


def discriminator(log: Path) -> Iterator[str]:
    """How well ELECTRA's discriminator finds replaced words in the held-out text."""
    last = read_records(log, "valid")[-1]
    recall, precision, share = (
        float(last[f"valid_{name}"]) for name in ("rtd_recall", "rtd_precision", "replaced_rate")
    )
    yield f"discriminator: on held-out text, it finds {recall:.1f}% of the replaced words (recall)"
    if recall:
        yield f"  {precision:.1f}% of the words that it calls replaced are (precision), and {share:.1f}% of all words"
    else:
        yield '  "original" is still the best answer everywhere; the discriminator needs far longer training'


def false_negatives(values: Any) -> Iterator[str]:
    sums, rate = values.sum().astype(int), values.mean()["prediction_rate"]
    yield f"false negatives in held-out text ({values.count()['masked']} maskings of it)"
    yield f"  {sums['masked']:,} masked words, and the generator's word is wrong for {sums['mismatches']:,}"
    yield f"  {sums['corrected']:,} of the wrong words are synonyms ({rate:.3f}%): hard correction"
    yield "  removes them from the loss (the paper reports 1.3 to 1.6% for trained BERT models)"


def loss_curve(log: Path, points: int = 8) -> Iterator[str]:
    """A table of evenly spaced records of the training log, from the first to the last."""
    records = read_records(log, "train_inner")
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
    yield f"  hard correction fired on {fired:.3f}% of the wrong predictions"


def likeliest_word(case: dict[str, Any]) -> tuple[str, float]:
    """The wrong word of a teacher's case, or else the most likely synonym; and its probability."""
    if "teacher" in case:
        return case["prediction"], case["teacher_prediction_probability"]
    return max(case["synonyms"].items(), key=lambda item: item[1])


def sentence(case: dict[str, Any]) -> str:
    """The masked word in brackets, with the words around it."""
    place = next(index for index, (_, kind) in enumerate(case["context"]) if kind == 2)
    before, gold, after = (
        "".join(text for text, _ in segments)
        for segments in (case["context"][:place], case["context"][place : place + 1], case["context"][place + 1 :])
    )
    before = before if len(before) <= CONTEXT else f"… {before[-CONTEXT:].partition(' ')[2]}"
    after = after if len(after) <= CONTEXT else f"{after[:CONTEXT].rpartition(' ')[0]} …"
    space = " " if gold.startswith(" ") else ""
    return f"{before}{space}[{gold.strip()}]{after}".strip()


def likeliest_of_each_word(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most likely cases, with no word in more than one of them, and without single letters."""
    chosen, seen = [], set()
    for case in sorted(cases, key=lambda case: -likeliest_word(case)[1]):
        pair = {case["gold"], likeliest_word(case)[0]}
        if not seen & pair and min(len(word.strip()) for word in pair) > 1:
            chosen.append(case)
            seen |= pair
    return chosen[:EXAMPLES]


if __name__ == "__main__":
    with one_line_errors():
        if len(sys.argv) != 2:
            raise InputError("give one folder, that of a demo: report.py DEMO")
        write_report(Path(sys.argv[1]))
