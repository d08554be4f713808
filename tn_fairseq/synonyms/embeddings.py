"""A model's own input word embeddings as a source of synonyms."""

import hashlib
from pathlib import Path
from typing import Any, Mapping

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..checkpoints import check_dictionary, load_checkpoint, word_embeddings
from ..errors import InputError
from .vectors import Vectors


def read_embeddings(path: str | Path, dictionary: Dictionary, words: Mapping[int, str]) -> Vectors:
    """Read the input word embeddings of ``words`` (id -> word) from a checkpoint of ELECTRA, BERT or fairseq's RoBERTa.

    What they have in common is taken out, see ``remove_common_directions``; then they are scaled to length 1.
    Raises InputError for a file that is no such checkpoint, and for one that was trained with another dictionary.
    """
    state = load_checkpoint(path)
    embeddings = word_embeddings(state)
    if embeddings is None:
        raise InputError(f"{path}: holds no word embeddings of ELECTRA, BERT or RoBERTa; name such a model with --path")
    check_dictionary(path, state, dictionary)
    if not words:
        raise InputError("the dictionary holds no whole words but stop words: there is nothing to compare")
    matrix = embeddings[list(words)].float()
    if not matrix.isfinite().all():
        raise InputError(f"{path}: holds embeddings that are not finite; name an earlier checkpoint with --path")
    matrix = torch.nn.functional.normalize(remove_common_directions(matrix))
    return Vectors(list(words.values()), matrix.numpy(), _version(path, state, embeddings.size(1)))


def remove_common_directions(embeddings: Tensor) -> Tensor:
    """Take out of embeddings (words, dimension) their mean and their first principal components, one in 100 dimensions.

    Mean and first component of a masked language model's embeddings tell how frequent a word is, for training pushes
    all rare words the same way (Gao et al. 2019): they are neighbours of each other whatever they mean. The remedy is
    that of Mu and Viswanath (2018, "All-but-the-Top"), though with at least one component. Were only the mean taken
    out, the frequent words of a vocabulary, few and all on one side of it, would be neighbours of each other.
    """
    centred = embeddings - embeddings.mean(dim=0)
    components = max(embeddings.size(1) // 100, 1)
    directions = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -components:]
    return centred - centred @ directions @ directions.T


def _version(path: str | Path, state: Mapping[str, Any], dimension: int) -> str:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # 0 where it is not known: weights that were released, or fairseq's older checkpoints
    updates = (state.get("optimizer_history") or [{}])[-1].get("num_updates")
    trained = f"{updates} updates, " if updates else ""
    return f"{Path(path).name}, {trained}embeddings of dimension {dimension}, sha256 {digest}"
