#!/usr/bin/env python3
"""The quickstart: continue half of a small BERT with three objectives, and show what plain masked LM punishes.

    python examples/quickstart/quickstart.py --output demo

The objectives are plain masked LM, hard correction, and distillation with the complete small BERT as the teacher, which
reads the text once before the training. There are six stages: the corpus, binarized data, the synonym table and the
checkpoints, the teacher's reading, training, and the analysis of the false negatives. With each of three seeds, the
objectives have the same data, order and masks. A stage is skipped if its output already exists. Interrupted training
resumes. The commands of the stages are in commands.jsonl, and what they print in logs. At the end it prints a report,
and the path of a page with all results.

With --from-scratch, it trains a tokenizer and an ELECTRA from nothing instead. That shows every step of pre-training,
but a few minutes are too short for a model that is confident in synonyms.
"""

import argparse
import logging
import os
import sys
import time
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tn_fairseq.commands.arguments import positive
from tn_fairseq.core import PLUGIN
from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.fairseq_patches.bf16 import has_fast_bf16
from tn_fairseq.tools import jobs
from tn_fairseq.tools.jobs import RECORD, Job, shown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SMALL_MODEL = ROOT / "examples" / "small_model" / "model"
PAGE = Path("false-negatives", "cases.html")

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
WRITE_CORPUS = ["python", HERE / "wordnet_corpus.py", "--output-dir"]
MASKS = "--sample-break-mode none --tokens-per-sample 128 --mask-seed 1"  # also those that the teacher reads
CRITERIA = {"plain": "mlm", "corrected": "mlm_hard_correction", "taught": "mlm_distillation"}
ANALYSIS = "analysis: the false negatives in held-out text"
READ = "draws.job.json"  # says how many seconds the teacher has read

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
    folder = args.output
    # the other kind of run has other pieces
    other = folder / ("half.pt" if args.from_scratch else "tokenizer")
    if other.exists():
        kind = "without" if args.from_scratch else "with"
        raise InputError(f"--output {folder}: holds a run {kind} --from-scratch; give another folder")
    if args.from_scratch:
        stages = from_scratch(folder, args.max_update or 2500)
    else:
        stages = continued(folder, args.max_update or 120)
    try:
        run_stages(stages, folder)
        run_report(folder)
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the same command again to resume")
    page = folder / PAGE
    print(f"\nall results on one page: {page} (the commands behind them: {folder / RECORD})")
    if args.open and not opens(page):
        print("no browser found here; copy the page, which is one file, to a machine that has one")


def opens(page: Path) -> bool:
    """Open the page in a browser; return whether there is one."""
    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error:
        return False


def continued(folder: Path, updates: int) -> dict[str, list[Job]]:
    """The jobs of each stage, by its title."""
    job = partial(make_job, folder)
    data_bin, table, draws = folder / "data-bin", folder / "synonyms.safetensors", folder / "draws"
    corpus = job("corpus", [*WRITE_CORPUS, folder / "corpus", "--share", SHARE], folder / "corpus" / "valid.txt")
    data = job("data", binarize(folder, SMALL_MODEL), data_bin / "dict.txt", corpus)
    # WordNet counts mother and father as synonyms, because both can mean to beget; --no-contrasts removes such pairs
    filters = ["--same-inflection", "--no-contrasts"]
    synonyms = job("synonyms", build_table(folder, *filters), table, data)
    importing = ["tn-fairseq", "exchange", "import", SMALL_MODEL, "--data", data_bin, "--output"]
    teacher = job("teacher", [*importing, folder / "teacher.pt"], folder / "teacher.pt", data)
    half = job("half", [*importing, folder / "half.pt", "--keep-layers", LAYERS], folder / "half.pt", data)
    precision = ["--bf16"] if has_fast_bf16() else []
    teach = ["tn-fairseq", "data", "teach", data_bin, "--teacher", teacher.output, *MASKS.split(), *precision]
    reading = job("reading", [*teach, "--output", draws], draws, teacher)

    runs = {
        # the longest first, so that all cores have work until the end
        (arm, seed): training(
            folder,
            f"seed{seed}/{arm}",
            [*CONTINUED.split(), *MASKS.split(), "--warmup-updates", min(30, updates // 2), *precision, "--seed", seed]
            + ["--finetune-from-model", half.output, "--synonym-table", table, "--criterion", CRITERIA[arm]]
            + (["--distillation-draws", draws] if arm == "taught" else []),
            updates,
            *(synonyms, half, reading),
        )
        for arm in reversed(CRITERIA)
        for seed in SEEDS
    }
    # among checkpoints with as many updates, the cases are those of the first
    of_first = [runs[arm, SEEDS[0]] for arm in CRITERIA]
    return {
        "corpus: the glosses and examples of WordNet": [corpus],
        "data: the corpus in fairseq's format": [data],
        "start: the synonym table, the small BERT as a teacher, and half of it": [synonyms, teacher, half],
        "reading: the teacher reads the text once": [reading],
        f"training: plain masked LM, hard correction, and a teacher, {len(SEEDS)} times each": [*runs.values()],
        ANALYSIS: [analysis(folder, of_first, "--teacher", teacher.output, "--mask-seeds", 1)],
    }


def from_scratch(folder: Path, updates: int) -> dict[str, list[Job]]:
    """The jobs of each stage, by its title."""
    job = partial(make_job, folder)
    data_bin, tokenizer = folder / "data-bin", folder / "tokenizer"
    corpus = job("corpus", [*WRITE_CORPUS, folder / "corpus"], folder / "corpus" / "valid.txt")
    words = ["tn-fairseq", "data", "train-tokenizer", "--input", folder / "corpus" / "train.txt", "--type", "wordpiece"]
    words += ["--vocab-size", VOCABULARY_SIZE, "--output", tokenizer]
    pieces = job("tokenizer", words, tokenizer / "tokenizer_config.json", corpus)
    data = job("data", binarize(folder, tokenizer), data_bin / "dict.txt", pieces)
    synonyms = job("synonyms", build_table(folder), folder / "synonyms.safetensors", data)
    words = [*FROM_SCRATCH.split(), "--warmup-updates", min(300, updates // 2), "--synonym-table", synonyms.output]
    pretraining = training(folder, "pretraining", words, updates, synonyms)
    return {
        "corpus: the glosses and examples of WordNet": [corpus],
        "tokenizer: WordPiece, trained on the corpus": [pieces],
        "data: the corpus in fairseq's format": [data],
        "synonym table: from WordNet, for this vocabulary": [synonyms],
        "pre-training: ELECTRA with hard correction": [pretraining],
        ANALYSIS: [analysis(folder, [pretraining], "--prediction-mode", "sample")],
    }


def binarize(folder: Path, tokenizer: Path) -> list[object]:
    texts = ["--train", folder / "corpus" / "train.txt", "--valid", folder / "corpus" / "valid.txt"]
    return ["tn-fairseq", "data", "binarize", *texts, "--tokenizer", tokenizer, "--destdir", folder / "data-bin"]


def build_table(folder: Path, *flags: str) -> list[object]:
    words = ["tn-fairseq", "synonyms", "build", "--dict", folder / "data-bin" / "dict.txt", "--source", "wordnet"]
    return [*words, *flags, "--output", folder / "synonyms.safetensors"]


def training(folder: Path, name: str, words: Sequence[object], updates: int, *needs: Job) -> Job:
    """A run of fairseq-train, with its log beside its folder of checkpoints."""
    words = ["fairseq-train", folder / "data-bin", "--user-dir", PLUGIN, *words, "--save-dir", folder / name]
    words += ["--total-num-update", updates, "--max-update", updates]
    words += ["--log-format", "json", "--log-interval", min(20, updates)]
    job = make_job(folder, name, words, folder / name / "checkpoint_last.pt", *needs)
    return replace(job, log=folder / f"{name}.log")


def analysis(folder: Path, trainings: Sequence[Job], *flags: object) -> Job:
    words = ["tn-fairseq", "look", "analysis", folder / "data-bin", "--path", *(job.output for job in trainings)]
    words += ["--synonym-table", folder / "synonyms.safetensors", *flags]
    words += ["--training-log", *(job.log_path for job in trainings), "--output", (folder / PAGE).parent]
    job = make_job(folder, "analysis", words, folder / PAGE, *trainings)
    return replace(job, redo=True)  # if a training is repeated


def make_job(folder: Path, name: str, words: Sequence[object], output: Path, *needs: Job) -> Job:
    # the same if the folder or this repository has moved, or is named from another place
    short = [str(word).replace(f"{folder}/", "").replace(f"{ROOT}/", "") for word in words]
    return Job(name, [*map(str, words)], output, {"command": shown(short)}, needs, folder / "logs" / f"{name}.log")


def run_stages(stages: Mapping[str, Sequence[Job]], folder: Path) -> None:
    """Run the stages one after the other, with a line for each: its title, and how many seconds it took."""
    for number, (title, stage) in enumerate(stages.items(), start=1):
        line, start = f"{f'{number}/{len(stages)} {title}':80} ", time.monotonic()
        print(line, end="", flush=True)
        done = not jobs.left(stage)
        try:
            failed = jobs.run(stage, folder, parallel=os.cpu_count() or 1, quiet=True)
        except BaseException:
            print(flush=True)
            raise
        on_top = f"\r{line}" if sys.stderr.isatty() else ""  # of where the bar was
        print(f"{on_top}{'failed' if failed else 'already there' if done else f'{time.monotonic() - start:.0f} s'}")
        if failed:
            raise InputError(f"{failed[0]}{f' (and {len(failed) - 1} more)' if failed[1:] else ''}")


def run_report(folder: Path) -> None:
    from report import write_report  # imported late because it imports fairseq, which takes seconds

    logging.getLogger().setLevel(logging.WARNING)
    write_report(folder)


if __name__ == "__main__":
    main()
