"""A small English vocabulary with its data folder, and new models of each family."""

from importlib import import_module
from pathlib import Path

import pytest
from helpers import FAMILIES
from lexical_files import save_model

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.models.loading import find_checkpoints, load

VOCABULARY = """
. , the a and is are was in of total sum amount whole price due tree trees election elections poll polls vote votes
dog dogs cat cats bark barked barks howl howled cry cried shouted shout loud noisy quiet he she they we it saw ##s
""".split()


@pytest.fixture(scope="session")
def english(tmp_path_factory) -> Path:
    """A data folder with the vocabulary, as binarize writes it."""
    folder = tmp_path_factory.mktemp("english")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *VOCABULARY]) + "\n")
    (folder / "text").write_text("the total is due .\nthey saw the dogs .\n" * 4)
    words = ["--train", folder / "text", "--valid", folder / "text", "--tokenizer", folder / "vocab.txt"]
    binarize = import_module("tn_fairseq.commands.data_binarize").main
    binarize([str(word) for word in (*words, "--destdir", folder / "data-bin", "--workers", 1)])
    return folder / "data-bin"


@pytest.fixture(scope="session")
def checkpoints(english, tmp_path_factory) -> dict[str, Path]:
    """A checkpoint of each family."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return {family: save_model(folder / f"{family}.pt", english, family) for family in FAMILIES}


@pytest.fixture(scope="session")
def models(english, checkpoints):
    """The loaded model of each family."""
    dictionary = load_dictionary(english / "dict.txt")
    return {family: load(find_checkpoints([str(path)], dictionary)[0], english) for family, path in checkpoints.items()}
