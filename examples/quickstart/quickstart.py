#!/usr/bin/env python3
"""The quickstart: pre-train a small ELECTRA with hard correction on WordNet's glosses, and show what it found.

    python examples/quickstart/quickstart.py --output demo

Six stages, each of which prints the command it runs and is skipped where its output is already there: the corpus, a
tokenizer, binarised data, the synonym table, pre-training, which resumes where it was interrupted, and the analysis of
its false negatives. Then a report.
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

VOCABULARY_SIZE = 8192
LOG_INTERVAL = 20
# After so short a training the likeliest word is nearly always a function word, which has no synonyms: hence the demo
# takes as prediction what the generator puts in. Dropout is left out because no text is seen twice. Without bias
# correction Adam's first steps are three times as large; after a warm-up of 10,000 updates that does no harm, but after
# so short a one the discriminator's hidden states would all become one.
PRETRAINING = """
    --task electra --arch electra_tiny --dropout 0 --attention-dropout 0
    --criterion mlm_hard_correction --prediction-mode sample
    --optimizer electra_adamw --adam-bias-correction --lr 1e-3 --clip-norm 1.0
    --lr-scheduler polynomial_decay --warmup-updates 300
    --tokens-per-sample 64 --batch-size 16 --cpu --num-workers 0
    --save-interval-updates 500 --no-epoch-checkpoints
"""


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for everything it makes")
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
        ["python", ROOT / "preprocess/train_tokenizer.py", "--input", corpus / "train.txt", "--type", "wordpiece"]
        + ["--vocab-size", VOCABULARY_SIZE, "--output", tokenizer],
    )
    run(
        "3/6 data: the corpus as fairseq reads it",
        data_bin / "dict.txt",
        ["python", ROOT / "preprocess/binarize.py", "--train", corpus / "train.txt", "--valid", corpus / "valid.txt"]
        + ["--tokenizer", tokenizer, "--destdir", data_bin, "--workers", os.cpu_count() or 1],
    )
    run(
        "4/6 synonym table: from WordNet, for this vocabulary",
        table,
        ["python", ROOT / "preprocess/build_synonym_table.py", "--dict", data_bin / "dict.txt"]
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
    from report import write_report  # imports fairseq, which takes seconds: not before it is needed

    logging.getLogger().setLevel(logging.WARNING)
    write_report(folder)


def stage(title: str) -> None:
    print(f"\n=== {title}", flush=True)


def shown(command: Sequence[object]) -> str:
    """The command as one would type it, with paths relative to where one stands."""
    here = Path.cwd()
    words = []
    for word in command:
        if isinstance(word, Path) and word.resolve().is_relative_to(here):
            word = word.resolve().relative_to(here)
        words.append(str(word))
    return shlex.join(words)


def run(title: str, output: Path, command: Sequence[object], newer_than: Optional[Path] = None) -> None:
    """Run one stage, unless the file is there that it puts in place last, when all others are whole."""
    stage(title)
    if output.exists() and (newer_than is None or output.stat().st_mtime >= newer_than.stat().st_mtime):
        print(f"already there: {output}")
        return
    print(f"$ {shown(command)}", flush=True)
    code = subprocess.call([sys.executable, *map(str, command[1:])])
    if code:
        raise InputError(f"{title} failed with exit code {code}; the lines above say why")


def pretrain(title: str, log: Path, max_update: int, command: Sequence[object]) -> None:
    """Run fairseq-train with its output in a log file, and a progress bar instead."""
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
                bar.set_postfix_str(f"loss {record['loss']}, false negatives {record['false_negative_rate']} %")
        code = process.wait()
    if code:
        raise InputError(f"fairseq-train stopped with exit code {code}; {log} says why; run this again to go on")
    finished.write_text(str(max_update))


def json_record(line: str, name: str) -> Optional[dict]:
    """The JSON record in a line of fairseq's log, if it is one of the given name."""
    marker = f" | {name} | {{"
    return json.loads("{" + line.split(marker, 1)[1]) if marker in line else None


if __name__ == "__main__":
    main()
