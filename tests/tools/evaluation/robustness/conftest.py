"""Two checkpoints with runs on SQuAD, and the questions before and after attacks."""

from pathlib import Path

import pytest
from fine_tuned import random_questions, with_distractors, write_run, write_squad
from helpers import WORDS

from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.preprocessing.squad_data import binarize_squad

SEEDS = {"plain": (1, 2), "corrected": (1,)}


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
