#!/usr/bin/env python3
"""The quickstart: pre-train a small ELECTRA with hard correction on WordNet's glosses, and report its false negatives.

    python examples/quickstart/quickstart.py --output demo

It has six stages: the corpus, a tokenizer, binarized data, the synonym table, pre-training, and the analysis of the
false negatives. Each stage prints its command, and is skipped if its output already exists. Interrupted pre-training
resumes. At the end it prints a report.
"""

import argparse
import json
import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Optional, Sequence

from tqdm import tqdm

from tn_fairseq.errors import InputError, one_line_errors

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLUGIN = ROOT / "tn_fairseq"
PREPROCESSING = ["python", "-m", "tn_fairseq.preprocessing"]

VOCABULARY_SIZE = 8192
LOG_INTERVAL = 20
# After such short training the most likely word is nearly always a function word, which has no synonyms. So the demo
# takes the generator's samples as predictions. There is no dropout because no text is repeated. Without bias correction
# Adam's first steps are three times as large. That is harmless with a warm-up of 10,000 updates, but with this short
# one the discriminator's hidden states would all become equal.
PRETRAINING = """
    --task electra --arch electra_tiny --dropout 0 --attention-dropout 0
    --criterion mlm_hard_correction --prediction-mode sample
    --optimizer electra_adamw --adam-bias-correction --lr 1e-3 --clip-norm 1.0
    --lr-scheduler polynomial_decay --warmup-updates 300
    --sample-break-mode none --tokens-per-sample 64 --batch-size 16 --cpu --num-workers 0
    --save-interval-updates 500 --no-epoch-checkpoints
"""


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for all output")
    parser.add_argument(
        "--max-update", type=int, default=2500, metavar="N", help="updates of pre-training (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    folder = args.output
    corpus, tokenizer, data_bin = folder / "corpus", folder / "tokenizer", folder / "data-bin"
    table, checkpoints = folder / "synonyms.safetensors", folder / "checkpoints"

    run(
        "1/6 corpus: the glosses and examples of WordNet",
        corpus / "valid.txt",
        ["python", HERE / "wordnet_corpus.py", "--output-dir", corpus],
    )
    run(
        "2/6 tokenizer: WordPiece, trained on the corpus",
        tokenizer / "tokenizer_config.json",
        [*PREPROCESSING, "train-tokenizer", "--input", corpus / "train.txt", "--type", "wordpiece"]
        + ["--vocab-size", VOCABULARY_SIZE, "--output", tokenizer],
    )
    run(
        "3/6 data: the corpus in fairseq's format",
        data_bin / "dict.txt",
        [*PREPROCESSING, "binarize", "--train", corpus / "train.txt", "--valid", corpus / "valid.txt"]
        + ["--tokenizer", tokenizer, "--destdir", data_bin, "--workers", os.cpu_count() or 1],
    )
    run(
        "4/6 synonym table: from WordNet, for this vocabulary",
        table,
        [*PREPROCESSING, "build-synonym-table", "--dict", data_bin / "dict.txt"]
        + ["--source", "wordnet", "--output", table],
    )
    pretrain(
        "5/6 pre-training: ELECTRA with hard correction",
        folder / "pretraining.log",
        args.max_update,
        ["fairseq-train", data_bin, "--user-dir", PLUGIN, *PRETRAINING.split(), "--synonym-table", table]
        + ["--total-num-update", args.max_update, "--max-update", args.max_update, "--save-dir", checkpoints],
    )
    run(
        "6/6 analysis: the false negatives in held-out text",
        folder / "false-negatives" / "cases.html",
        ["python", "-m", "tn_fairseq.analysis", data_bin, "--path", checkpoints / "checkpoint_*.pt"]
        + ["--synonym-table", table, "--prediction-mode", "sample", "--output", folder / "false-negatives"],
        newer_than=checkpoints / "checkpoint_last.pt",
    )
    stage("report")
    run_report(folder)


def run_report(folder: Path) -> None:
    from report import write_report  # imported late because it imports fairseq, which takes seconds

    logging.getLogger().setLevel(logging.WARNING)
    write_report(folder)


def stage(title: str) -> None:
    print(f"\n=== {title}", flush=True)


def shown(command: Sequence[object]) -> str:
    """The command as a user would type it, with paths relative to the current folder."""
    here = Path.cwd()
    words = []
    for word in command:
        if isinstance(word, Path) and word.resolve().is_relative_to(here):
            word = word.resolve().relative_to(here)
        words.append(str(word))
    return shlex.join(words)


def run(title: str, output: Path, command: Sequence[object], newer_than: Optional[Path] = None) -> None:
    """Run one stage, unless ``output``, the file that it writes last, already exists."""
    stage(title)
    if output.exists() and (newer_than is None or output.stat().st_mtime >= newer_than.stat().st_mtime):
        print(f"already there: {output}")
        return
    print(f"$ {shown(command)}", flush=True)
    code = subprocess.call([sys.executable, *map(str, command[1:])])
    if code:
        raise InputError(f"{title} failed with exit code {code}; see the lines above")


def pretrain(title: str, log: Path, max_update: int, command: Sequence[object]) -> None:
    """Run fairseq-train with a progress bar, and write its output to a log file."""
    stage(title)
    finished = log.with_suffix(".done")
    if finished.exists() and finished.read_text() == str(max_update):
        print(f"already done: {max_update} updates in {log}")
        return
    print(f"$ {shown(command)}", flush=True)
    executable = Path(sys.executable).with_name(command[0])
    words = [executable, *command[1:], "--log-format", "json", "--log-interval", LOG_INTERVAL]
    with open(log, "a", encoding="utf-8") as lines, tqdm(total=max_update, unit="update", ncols=110) as bar:
        process = subprocess.Popen(
            [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for line in process.stdout:
            lines.write(line)
            lines.flush()
            record = json_record(line, "train_inner")
            if record:
                bar.update(int(record["num_updates"]) - bar.n)
                bar.set_postfix_str(f"loss {record['loss']}, false negatives {record['false_negative_rate']}%")
        code = process.wait()
    if code:
        raise InputError(f"fairseq-train failed with exit code {code}; see {log}; run this again to resume")
    finished.write_text(str(max_update))


def json_record(line: str, name: str) -> Optional[dict]:
    """The JSON record in a line of fairseq's log, or ``None`` if the line has no record of this name."""
    marker = f" | {name} | {{"
    return json.loads("{" + line.split(marker, 1)[1]) if marker in line else None


if __name__ == "__main__":
    main()
