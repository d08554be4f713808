#!/usr/bin/env python3
"""The quickstart: continue a small BERT with plain masked LM and with hard correction, and show its false negatives.

    python examples/quickstart/quickstart.py --output demo

It has six stages: the corpus, binarized data, the synonym table, the starting checkpoint, training, and the analysis of
the false negatives. The two runs train at the same time, with the same data, order and masks. Each stage prints its
command, and is skipped if its output already exists. Interrupted training resumes. At the end it prints a report.

With --from-scratch, it trains a tokenizer and an ELECTRA from nothing instead. That shows every step of pre-training,
but four minutes are too short for a model that is confident in synonyms.
"""

import argparse
import logging
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from tn_fairseq.arguments import positive
from tn_fairseq.errors import InputError, one_line_errors
from tn_fairseq.reporting.training_log import parse_record

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLUGIN = ROOT / "tn_fairseq"
SMALL_MODEL = ROOT / "examples" / "small_model" / "model"
PREPROCESSING = ["python", "-m", "tn_fairseq.preprocessing"]
Words = Sequence[object]

LOG_INTERVAL = 20
# Both runs have the same seed, so they see the same sequences and masks.
CONTINUED = """
    --task electra --arch bert_tiny --encoder-layers 4 --encoder-embed-dim 256 --encoder-attention-heads 4
    --max-positions 256 --dropout 0 --attention-dropout 0
    --optimizer electra_adamw --adam-bias-correction --lr 3e-4 --clip-norm 1.0
    --lr-scheduler polynomial_decay --warmup-updates 30
    --sample-break-mode none --tokens-per-sample 256 --batch-size 8 --cpu
    --save-interval-updates 250 --no-epoch-checkpoints
"""
CRITERIA = {"plain": "mlm", "corrected": "mlm_hard_correction"}

VOCABULARY_SIZE = 8192
# After such short training the most likely word is nearly always a function word, which has no synonyms. So the model
# from scratch takes the generator's samples as predictions. There is no dropout because no text is repeated. Without
# bias correction Adam's first steps are three times as large. That is harmless with a warm-up of 10,000 updates, but
# with this short one the discriminator's hidden states would all become equal.
FROM_SCRATCH = """
    --task electra --arch electra_tiny --dropout 0 --attention-dropout 0
    --criterion mlm_hard_correction --prediction-mode sample
    --optimizer electra_adamw --adam-bias-correction --lr 1e-3 --clip-norm 1.0
    --lr-scheduler polynomial_decay --warmup-updates 300
    --sample-break-mode none --tokens-per-sample 64 --batch-size 16 --cpu --num-workers 0
    --save-interval-updates 500 --no-epoch-checkpoints
"""


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for all output")
    parser.add_argument("--from-scratch", action="store_true", help="train a new ELECTRA instead of the small BERT")
    parser.add_argument(
        "--max-update", type=positive, metavar="N", help="updates of training (default: 500; --from-scratch: 2500)"
    )
    args = parser.parse_args(argv)
    # the other kind of run has other pieces
    other = args.output / ("start.pt" if args.from_scratch else "tokenizer")
    if other.exists():
        kind = "without" if args.from_scratch else "with"
        raise InputError(f"--output {args.output}: holds a run {kind} --from-scratch; give another folder")
    try:
        if args.from_scratch:
            from_scratch(args.output, args.max_update or 2500)
        else:
            continued(args.output, args.max_update or 500)
        stage("report")
        run_report(args.output)
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the same command again to resume")


def continued(folder: Path, updates: int) -> None:
    data_bin, table, start = folder / "data-bin", folder / "synonyms.safetensors", folder / "start.pt"
    corpus = write_corpus(folder)
    run(
        "2/6 data: the corpus in fairseq's format, in the small model's pieces",
        data_bin / "dict.txt",
        binarize(corpus, SMALL_MODEL, data_bin),
    )
    # WordNet counts mother and father as synonyms, because both can mean to beget; --no-contrasts removes such pairs
    filters = ["--same-inflection", "--no-contrasts"]
    run("3/6 synonym table: from WordNet, for this vocabulary", table, build_table(data_bin, table, *filters))
    run(
        "4/6 start: a small BERT, pre-trained on Wikipedia, novels and glosses",
        start,
        ["python", "-m", "tn_fairseq.huggingface", "import", SMALL_MODEL, "--data", data_bin, "--output", start],
    )
    train(
        "5/6 training: plain masked LM, and hard correction",
        {
            folder / arm: ["fairseq-train", data_bin, "--user-dir", PLUGIN, *CONTINUED.split()]
            + ["--finetune-from-model", start, "--criterion", criterion, "--synonym-table", table]
            for arm, criterion in CRITERIA.items()
        },
        updates,
    )
    analyze([folder / arm for arm in CRITERIA], data_bin, table, folder / "false-negatives")


def from_scratch(folder: Path, updates: int) -> None:
    tokenizer, data_bin, table = folder / "tokenizer", folder / "data-bin", folder / "synonyms.safetensors"
    corpus = write_corpus(folder)
    run(
        "2/6 tokenizer: WordPiece, trained on the corpus",
        tokenizer / "tokenizer_config.json",
        [*PREPROCESSING, "train-tokenizer", "--input", corpus / "train.txt", "--type", "wordpiece"]
        + ["--vocab-size", VOCABULARY_SIZE, "--output", tokenizer],
    )
    run(
        "3/6 data: the corpus in fairseq's format",
        data_bin / "dict.txt",
        binarize(corpus, tokenizer, data_bin),
    )
    run("4/6 synonym table: from WordNet, for this vocabulary", table, build_table(data_bin, table))
    train(
        "5/6 pre-training: ELECTRA with hard correction",
        {
            folder / "pretraining": ["fairseq-train", data_bin, "--user-dir", PLUGIN, *FROM_SCRATCH.split()]
            + ["--synonym-table", table]
        },
        updates,
    )
    analyze([folder / "pretraining"], data_bin, table, folder / "false-negatives", "--prediction-mode", "sample")


def write_corpus(folder: Path) -> Path:
    corpus = folder / "corpus"
    run(
        "1/6 corpus: the glosses and examples of WordNet",
        corpus / "valid.txt",
        ["python", HERE / "wordnet_corpus.py", "--output-dir", corpus],
    )
    return corpus


def binarize(corpus: Path, tokenizer: Path, data_bin: Path) -> Words:
    return [
        *[*PREPROCESSING, "binarize", "--train", corpus / "train.txt", "--valid", corpus / "valid.txt"],
        *["--tokenizer", tokenizer, "--destdir", data_bin, "--workers", os.cpu_count() or 1],
    ]


def build_table(data_bin: Path, table: Path, *flags: str) -> Words:
    dictionary = data_bin / "dict.txt"
    return [*PREPROCESSING, "build-synonym-table", "--dict", dictionary, "--source", "wordnet", *flags] + [
        "--output",
        table,
    ]


def analyze(runs: Sequence[Path], data_bin: Path, table: Path, output: Path, *flags: str) -> None:
    # among checkpoints with as many updates, the cases are those of the first
    checkpoints = [run / "checkpoint_*.pt" for run in runs]
    run(
        "6/6 analysis: the false negatives in held-out text",
        output / "cases.html",
        ["python", "-m", "tn_fairseq.analysis", data_bin, "--path", *checkpoints]
        + ["--synonym-table", table, *flags, "--output", output],
        newer_than=[run / "checkpoint_last.pt" for run in runs],
    )


def run_report(folder: Path) -> None:
    from report import write_report  # imported late because it imports fairseq, which takes seconds

    logging.getLogger().setLevel(logging.WARNING)
    write_report(folder)


def stage(title: str) -> None:
    print(f"\n=== {title}", flush=True)


def shown(command: Words) -> str:
    """The command as a user would type it, with paths relative to the current folder."""
    here = Path.cwd()
    words = []
    for word in command:
        if isinstance(word, Path) and word.resolve().is_relative_to(here):
            word = word.resolve().relative_to(here)
        words.append(str(word))
    return shlex.join(words)


def run(title: str, output: Path, command: Words, newer_than: Sequence[Path] = ()) -> None:
    """Run one stage, unless ``output``, the file that it writes last, already exists and is newer than its input."""
    stage(title)
    if output.exists() and all(output.stat().st_mtime >= path.stat().st_mtime for path in newer_than):
        print(f"already there: {output}")
        return
    print(f"$ {shown(command)}", flush=True)
    code = subprocess.call([sys.executable, *map(str, command[1:])])
    if code:
        raise InputError(f"{title} failed with exit code {code}; see the lines above")


class Training:
    """A running fairseq-train with its progress bar."""

    def __init__(self, command: Words, log: Path, max_update: int, threads: int, position: int):
        executable = Path(sys.executable).with_name(str(command[0]))
        interval = min(LOG_INTERVAL, max_update)
        words = [executable, *command[1:], "--log-format", "json", "--log-interval", interval]
        self._log = log
        self._bar = tqdm(desc=log.stem, total=max_update, unit="update", ncols=110, position=position)
        self._process = subprocess.Popen(
            [str(word) for word in words],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with open(self._log, "a", encoding="utf-8") as lines:
            for line in self._process.stdout:
                lines.write(line)
                lines.flush()
                record = parse_record(line, "train_inner")
                if record:
                    self._bar.update(int(record["num_updates"]) - self._bar.n)
                    self._bar.set_postfix_str(f"loss {record['loss']}, accuracy {record['mlm_accuracy']}%")

    def wait(self) -> int:
        """Return the exit code."""
        self._reader.join()
        self._bar.close()
        return self._process.wait()

    def stop(self) -> None:
        """End the process; the same command resumes from its last checkpoint."""
        self._process.terminate()
        self.wait()


def train(title: str, commands: Mapping[Path, Words], max_update: int) -> None:
    """Run the fairseq-train of each folder of checkpoints, all at the same time, and write the output to log files."""
    stage(title)
    left = {}
    for folder, command in commands.items():
        finished = folder.with_suffix(".done")
        if finished.exists() and finished.read_text() == str(max_update):
            print(f"already done: {max_update} updates in {folder.with_suffix('.log')}")
            continue
        left[folder] = [*command, "--total-num-update", max_update, "--max-update", max_update, "--save-dir", folder]
        print(f"$ {shown(left[folder])}", flush=True)
    threads = max(1, (os.cpu_count() or 1) // max(1, len(left)))
    running = {
        folder: Training(command, folder.with_suffix(".log"), max_update, threads, position)
        for position, (folder, command) in enumerate(left.items())
    }
    try:
        codes = {folder: training.wait() for folder, training in running.items()}
    except KeyboardInterrupt:
        for training in running.values():
            training.stop()
        raise
    for folder, code in codes.items():
        if code:
            log = folder.with_suffix(".log")
            raise InputError(f"fairseq-train failed with exit code {code}; see {log}; run this again to resume")
        folder.with_suffix(".done").write_text(str(max_update))


if __name__ == "__main__":
    main()
