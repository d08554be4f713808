"""Two checkpoints with runs on SQuAD and on tasks of GLUE, and the data before and after attacks."""

import random
from pathlib import Path

import pytest
from fine_tuned import LABELS, attack_glue, random_questions, with_distractors, write_glue, write_run, write_squad
from helpers import WORDS

from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.formats.glue import TASKS, read_task
from tn_fairseq.tools.preprocessing.glue_data import binarize_task
from tn_fairseq.tools.preprocessing.squad_data import binarize_squad

SEEDS = {"plain": (1, 2), "corrected": (1,)}
RUNS = {"SST-2": ("plain", "corrected"), "MNLI": ("corrected",)}


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", *WORDS]) + "\n")
    return load_tokenizer(path)


@pytest.fixture(scope="session")
def squad(tokenizer, tmp_path_factory) -> Path:
    """A folder with scores/, original.json, and the attacked files distractors.json and half.json."""
    folder = tmp_path_factory.mktemp("squad")
    examples = random_questions(30, seed=1)
    # long contexts have several windows, which other lengths would change
    binarize_squad({"train": examples, "valid": examples}, tokenizer, folder / "bin", 24, 4, 8)
    for name, seeds in SEEDS.items():
        for seed in seeds:
            write_run(folder / "scores", folder / "bin", name, seed=seed)
    write_squad(folder / "original.json", examples)
    write_squad(folder / "distractors.json", with_distractors(examples), attack={"placement": "end"})
    write_squad(folder / "half.json", with_distractors(examples[::2]))
    return folder


@pytest.fixture(scope="session")
def glue_rows() -> dict[str, list[list[str]]]:
    rng = random.Random(2)
    sentence = lambda: " ".join(rng.choices(WORDS, k=rng.randint(3, 8)))  # noqa: E731
    rows = {"SST-2/dev.tsv": [[sentence(), rng.choice("01")] for _ in range(20)]}
    for name in ("dev_matched", "dev_mismatched"):
        rows[f"MNLI/{name}.tsv"] = [[sentence(), sentence(), rng.choice(LABELS["MNLI"])] for _ in range(16)]
    return rows


@pytest.fixture(scope="session")
def glue(tokenizer, glue_rows, tmp_path_factory) -> Path:
    """A folder with scores/, original/ and swapped/, in which some rows of SST-2 and MNLI are changed.

    The checkpoint plain has no run on MNLI.
    """
    folder = tmp_path_factory.mktemp("glue")
    rows = glue_rows | {
        "SST-2/train.tsv": glue_rows["SST-2/dev.tsv"],
        "MNLI/train.tsv": glue_rows["MNLI/dev_matched.tsv"],
    }
    write_glue(folder / "original", rows)
    changed = {"SST-2/dev.tsv": [0, 3, 4, 17], "MNLI/dev_mismatched.tsv": [1, 2, 15], "MNLI/dev_matched.tsv": []}
    attack_glue(folder / "swapped", glue_rows, changed)
    for task in ("SST-2", "MNLI"):
        splits = read_task(folder / "original" / task, TASKS[task])
        binarize_task(TASKS[task], splits, tokenizer, folder / "bin", 12)
        for name in RUNS[task]:
            write_run(folder / "scores", folder / "bin", name, task)
    return folder
