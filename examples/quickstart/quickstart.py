#!/usr/bin/env python3
"""The quickstart: continue half of a small BERT with three objectives, and show what plain masked LM punishes.

    python examples/quickstart/quickstart.py --output demo

The objectives are plain masked LM, hard correction, and distillation with the complete small BERT as the teacher, which
reads the text once before the training. There are six stages: the corpus, binarized data, the synonym table and the
checkpoints, the teacher's reading, training, and the analysis of the false negatives. With each of three seeds, the
objectives have the same data, order and masks. A stage is skipped if its output already exists. Interrupted training
resumes. The commands of the stages and what they print are in demo.log. At the end it prints a report, and the path of
a page with all results.

With --from-scratch, it trains a tokenizer and an ELECTRA from nothing instead. That shows every step of pre-training,
but a few minutes are too short for a model that is confident in synonyms.
"""

import argparse
import logging
import os
import shlex
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from tn_fairseq.commands.arguments import positive
from tn_fairseq.core import PLUGIN
from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.fairseq_patches.bf16 import has_fast_bf16
from tn_fairseq.tools.launching import Launcher, last_line, launching

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SMALL_MODEL = ROOT / "examples" / "small_model" / "model"
Words = Sequence[object]
PAGE = Path("false-negatives", "cases.html")

LOG_INTERVAL = 20
LAYERS = "0,3"  # of the small BERT's four, with which the students start
SEEDS = (1, 2, 3)  # with the same seed, the objectives see the same sequences
SHARE = 8  # the training text is every eighth document, so that the teacher reads it in seconds
CONTINUED = """
    --task electra --arch bert_tiny --encoder-layers 2 --encoder-embed-dim 256 --encoder-attention-heads 4
    --max-positions 256 --dropout 0 --attention-dropout 0
    --optimizer electra_adamw --adam-bias-correction --lr 5e-4 --clip-norm 1.0
    --lr-scheduler polynomial_decay --batch-size 8 --cpu
    --save-interval-updates 250 --no-epoch-checkpoints
"""
MASKS = "--sample-break-mode none --tokens-per-sample 128 --mask-seed 1"  # also those that the teacher reads
CRITERIA = {"plain": "mlm", "corrected": "mlm_hard_correction", "taught": "mlm_distillation"}
READ = "draws.done"  # says how many seconds the teacher has read

VOCABULARY_SIZE = 8192
# After such short training the most likely word is nearly always a function word, which has no synonyms. So the model
# from scratch takes the generator's samples as predictions. There is no dropout because no text is repeated. Without
# bias correction Adam's first steps are three times as large. That is harmless with a warm-up of 10,000 updates, but
# with this short one the discriminator's hidden states would all become equal. With 15% of the tokens masked, the
# discriminator found no replaced token in this time.
FROM_SCRATCH = """
    --task electra --arch electra_tiny --dropout 0 --attention-dropout 0
    --init-std 0.09 --sinusoidal-positions --mask-prob 0.4
    --criterion mlm_hard_correction --prediction-mode sample
    --optimizer electra_adamw --adam-bias-correction --lr 1e-3 --clip-norm 1.0
    --lr-scheduler polynomial_decay
    --sample-break-mode none --tokens-per-sample 64 --batch-size 16 --cpu --num-workers 0
    --save-interval-updates 500 --no-epoch-checkpoints
"""


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for all output")
    parser.add_argument("--from-scratch", action="store_true", help="train a new ELECTRA instead of the small BERT")
    parser.add_argument(
        "--max-update", type=positive, metavar="N", help="updates of training (default: 120; --from-scratch: 2500)"
    )
    parser.add_argument("--open", action="store_true", help="open the page of results in a browser")
    args = parser.parse_args(argv)
    # the other kind of run has other pieces
    other = args.output / ("half.pt" if args.from_scratch else "tokenizer")
    if other.exists():
        kind = "without" if args.from_scratch else "with"
        raise InputError(f"--output {args.output}: holds a run {kind} --from-scratch; give another folder")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        log = args.output / "demo.log"
        log.touch()
    except OSError as error:
        raise InputError(f"--output {args.output}: {error.strerror}; give a folder that you can write to") from None
    try:
        with launching(
            log, f"--output {args.output}: another quickstart is running there; wait for it to end"
        ) as launcher:
            stages = Stages(args.output, launcher)
            if args.from_scratch:
                from_scratch(stages, args.max_update or 2500)
            else:
                continued(stages, args.max_update or 120)
        run_report(args.output)
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the same command again to resume")
    page = args.output / PAGE
    print(f"\nall results on one page: {page} (the commands behind them: {log})")
    if args.open and not opens(page):
        print("no browser found here; copy the page, which is one file, to a machine that has one")


def opens(page: Path) -> bool:
    """Open the page in a browser; return whether there is one."""
    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        return False


def continued(stages: "Stages", updates: int) -> None:
    folder = stages.folder
    data_bin, table = folder / "data-bin", folder / "synonyms.safetensors"
    start, teacher, draws = folder / "half.pt", folder / "teacher.pt", folder / "draws"
    corpus = write_corpus(stages, "--share", SHARE)
    stages.run(
        "2/6 data: the corpus in fairseq's format",
        {data_bin / "dict.txt": binarize(corpus, SMALL_MODEL, data_bin)},
    )
    # WordNet counts mother and father as synonyms, because both can mean to beget; --no-contrasts removes such pairs
    filters = ["--same-inflection", "--no-contrasts"]
    imported = ["tn-fairseq", "exchange", "import", SMALL_MODEL, "--data", data_bin]
    stages.run(
        "3/6 start: the synonym table, the small BERT as a teacher, and half of it",
        {
            table: build_table(data_bin, table, *filters),
            teacher: [*imported, "--output", teacher],
            start: [*imported, "--keep-layers", LAYERS, "--output", start],
        },
    )
    precision = ["--bf16"] if has_fast_bf16() else []
    reading = ["tn-fairseq", "data", "teach", data_bin, "--teacher", teacher, "--output", draws, *MASKS.split()]
    seconds = stages.run("4/6 reading: the teacher reads the text once", {folder / READ: [*reading, *precision]})
    if seconds is not None:
        (folder / READ).write_text(f"{seconds:.0f}")
    # the longest first, so that all cores have work until the end
    runs = [(arm, seed) for arm in reversed(CRITERIA) for seed in SEEDS]
    stages.train(
        f"5/6 training: plain masked LM, hard correction, and a teacher, {len(SEEDS)} times each",
        {
            folder / f"seed{seed}" / arm: ["fairseq-train", data_bin, "--user-dir", PLUGIN, *CONTINUED.split()]
            + [*MASKS.split(), "--warmup-updates", min(30, updates // 2)]
            + [*precision, "--seed", seed, "--finetune-from-model", start, "--synonym-table", table]
            + ["--criterion", CRITERIA[arm], *(["--distillation-draws", draws] if arm == "taught" else [])]
            for arm, seed in runs
        },
        updates,
    )
    of_first = [folder / f"seed{SEEDS[0]}" / arm for arm in CRITERIA]
    analyze("6/6", stages, of_first, "--teacher", teacher, "--mask-seeds", 1)


def from_scratch(stages: "Stages", updates: int) -> None:
    folder = stages.folder
    tokenizer, data_bin, table = folder / "tokenizer", folder / "data-bin", folder / "synonyms.safetensors"
    corpus = write_corpus(stages)
    words = ["tn-fairseq", "data", "train-tokenizer", "--input", corpus / "train.txt", "--type", "wordpiece"]
    stages.run(
        "2/6 tokenizer: WordPiece, trained on the corpus",
        {tokenizer / "tokenizer_config.json": [*words, "--vocab-size", VOCABULARY_SIZE, "--output", tokenizer]},
    )
    stages.run(
        "3/6 data: the corpus in fairseq's format",
        {data_bin / "dict.txt": binarize(corpus, tokenizer, data_bin)},
    )
    stages.run("4/6 synonym table: from WordNet, for this vocabulary", {table: build_table(data_bin, table)})
    stages.train(
        "5/6 pre-training: ELECTRA with hard correction",
        {
            folder / "pretraining": ["fairseq-train", data_bin, "--user-dir", PLUGIN, *FROM_SCRATCH.split()]
            + ["--warmup-updates", min(300, updates // 2), "--synonym-table", table]
        },
        updates,
    )
    analyze("6/6", stages, [folder / "pretraining"], "--prediction-mode", "sample")


def write_corpus(stages: "Stages", *flags: object) -> Path:
    corpus = stages.folder / "corpus"
    stages.run(
        "1/6 corpus: the glosses and examples of WordNet",
        {corpus / "valid.txt": ["python", HERE / "wordnet_corpus.py", "--output-dir", corpus, *flags]},
    )
    return corpus


def binarize(corpus: Path, tokenizer: Path, data_bin: Path) -> Words:
    return [
        *["tn-fairseq", "data", "binarize", "--train", corpus / "train.txt", "--valid", corpus / "valid.txt"],
        *["--tokenizer", tokenizer, "--destdir", data_bin, "--workers", os.cpu_count() or 1],
    ]


def build_table(data_bin: Path, table: Path, *flags: str) -> Words:
    dictionary = data_bin / "dict.txt"
    words = ["tn-fairseq", "synonyms", "build", "--dict", dictionary, "--source", "wordnet", *flags]
    return [*words, "--output", table]


def analyze(number: str, stages: "Stages", runs: Sequence[Path], *flags: object) -> None:
    folder = stages.folder
    # among checkpoints with as many updates, the cases are those of the first
    checkpoints = [run / "checkpoint_last.pt" for run in runs]
    output = folder / PAGE
    stages.run(
        f"{number} analysis: the false negatives in held-out text",
        {
            output: ["tn-fairseq", "look", "analysis", folder / "data-bin", "--path", *checkpoints]
            + ["--synonym-table", folder / "synonyms.safetensors", *flags]
            + ["--training-log", *(run.with_suffix(".log") for run in runs), "--output", output.parent]
        },
        newer_than=checkpoints,
    )


def run_report(folder: Path) -> None:
    from report import write_report  # imported late because it imports fairseq, which takes seconds

    logging.getLogger().setLevel(logging.WARNING)
    write_report(folder)


@contextmanager
def stage(title: str) -> Iterator[list[str]]:
    """Print the title, and at the end how long the stage took, or what is in the list that this yields."""
    start, result = time.monotonic(), []
    print(f"{title:80} ", end="", flush=True)
    try:
        yield result
    except BaseException:
        print(flush=True)
        raise
    print(*(result or [f"{time.monotonic() - start:.0f} s"]), flush=True)


def shown(command: Words) -> str:
    """The command as a user would type it, with paths relative to the current folder."""
    here = Path.cwd()
    words = []
    for word in command:
        if isinstance(word, Path) and word.resolve().is_relative_to(here):
            word = word.resolve().relative_to(here)
        words.append(str(word))
    return shlex.join(words)


class Stages:
    """Runs the stages in the output folder, and writes their commands and what they print to demo.log."""

    def __init__(self, folder: Path, launcher: Launcher):
        self.folder, self.launcher = folder, launcher
        self._log = folder / "demo.log"

    def run(self, title: str, commands: Mapping[Path, Words], newer_than: Sequence[Path] = ()) -> float | None:
        """Run the commands of one stage at the same time, and return how many seconds they took, or None if none ran.

        A command is left out if the file that it writes last, its key, already exists and is newer than its input.
        """
        left = {
            output: command
            for output, command in commands.items()
            if not output.exists() or any(output.stat().st_mtime < path.stat().st_mtime for path in newer_than)
        }
        with stage(title) as result:
            if not left:
                result.append("already there")
                return None
            start = time.monotonic()
            with TemporaryDirectory() as folder:
                logs = [Path(folder, str(number)) for number in range(len(left))]
                started = [self.launcher.start(command, log) for command, log in zip(left.values(), logs)]
                codes = [command.wait() for command in started]
                printed = [log.read_text(encoding="utf-8", errors="replace") for log in logs]
                last = [last_line(log).removeprefix("error: ") for log in logs]
            for command, text in zip(left.values(), printed):
                self._write(f"=== {title}\n$ {shown(command)}\n{text}\n")
            for code, reason in zip(codes, last):
                if code:
                    raise InputError(f"{title.partition(':')[0]}: {reason} (all output: {self._log})")
            return time.monotonic() - start

    def train(self, title: str, commands: Mapping[Path, Words], max_update: int) -> None:
        """Run the fairseq-train of each folder of checkpoints, one on each core, with a log beside each folder."""
        left = {}
        for save_dir, command in commands.items():
            finished = save_dir.with_suffix(".done")
            if not (finished.exists() and finished.read_text() == str(max_update)):
                ends = ["--total-num-update", max_update, "--max-update", max_update, "--save-dir", save_dir]
                log = ["--log-format", "json", "--log-interval", min(LOG_INTERVAL, max_update)]
                left[save_dir] = [*command, *ends, *log]
        with stage(title) as result:
            if not left:
                result.append("already there")
                return
            self._write("\n".join([f"=== {title}", *(f"$ {shown(command)}" for command in left.values()), "\n"]))
            cores = os.cpu_count() or 1
            threads = max(1, cores // len(left))
            if sys.stderr.isatty():
                print()  # the bar has a line of its own
            with (
                tqdm(total=max_update * len(left), unit="update", ncols=100, leave=False, disable=None) as bar,
                ThreadPoolExecutor(cores) as pool,
            ):
                list(pool.map(lambda one: self._train(one, left[one], max_update, threads, bar), left))

    def _train(self, save_dir: Path, command: Words, max_update: int, threads: int, bar: tqdm) -> None:
        """Run or resume one training, which moves the bar that all share."""
        done = 0
        for record in filter(None, self.launcher.train(command, save_dir.with_suffix(".log"), threads)):
            bar.set_postfix_str(f"loss {float(record['nll_loss']):.2f} bits", refresh=False)
            bar.update(int(record["num_updates"]) - done)
            done = int(record["num_updates"])
        save_dir.with_suffix(".done").write_text(str(max_update))

    def _write(self, text: str) -> None:
        with open(self._log, "a", encoding="utf-8") as log:
            log.write(text)


if __name__ == "__main__":
    main()
