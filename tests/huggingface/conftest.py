"""Fixtures: a vocabulary, text binarized with it, and models saved by ``transformers``."""

from pathlib import Path

import pytest
from huggingface_models import PIECES, make_bert, make_electra, write_bin, write_vocabulary


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory) -> Path:
    return write_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="session")
def wordpiece_bin(tmp_path_factory, tokenizer_folder) -> Path:
    return write_bin(tmp_path_factory.mktemp("wordpiece"), tokenizer_folder)


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> Path:
    """A folder with three models written by ``save_pretrained``, each with its vocabulary."""
    folder = tmp_path_factory.mktemp("released")
    discriminator, generator = make_electra(len(PIECES))
    models = {"discriminator": discriminator, "generator": generator, "bert": make_bert(len(PIECES))}
    for name, model in models.items():
        model.save_pretrained(folder / name)
        write_vocabulary(folder / name)
    return folder
