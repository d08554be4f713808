"""Fixtures: a vocabulary, text binarized with it, and models saved by ``transformers``."""

from pathlib import Path

import pytest
from huggingface_models import PIECES, make_bert, make_electra, save_models, transformers, write_bin, write_vocabulary


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory) -> Path:
    return write_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="session")
def wordpiece_bin(tmp_path_factory, tokenizer_folder) -> Path:
    return write_bin(tmp_path_factory.mktemp("wordpiece"), tokenizer_folder)


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> Path:
    """Models written by ``save_pretrained``, each with its vocabulary; "alone" is BERT without its head."""
    folder = tmp_path_factory.mktemp("released")
    discriminator, generator = make_electra(len(PIECES))
    save_models(folder, {"discriminator": discriminator, "generator": generator, "bert": make_bert(len(PIECES))})
    save_models(folder, {"alone": transformers.BertModel.from_pretrained(folder / "bert")})
    return folder
