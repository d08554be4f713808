"""A model's own input word embeddings as a source of synonyms."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ..core.checkpoints import check_dictionary, load_checkpoint, updates_of, word_embeddings
from ..core.dictionary import Symbols
from ..core.errors import InputError
from ..core.files import sha256
from .neighbors import Vectors


def read_embeddings(path: str | Path, dictionary: Symbols, words: Mapping[int, str]) -> Vectors:
    """Read the input word embeddings of ``words`` (id -> word) from a checkpoint of ELECTRA, BERT or fairseq's RoBERTa.

    Their common directions are removed, see ``remove_common_directions``, and they are scaled to length 1. Raises
    InputError for a file that is not such a checkpoint, and for a checkpoint trained with another dictionary.
    """
    state = load_checkpoint(path)
    embeddings = word_embeddings(state)
    if embeddings is None:
        raise InputError(
            f"{path}: contains no word embeddings of ELECTRA, BERT or RoBERTa; give such a model with --path"
        )
    check_dictionary(path, state, dictionary)
    updates = updates_of(state)
    trained = f"{updates} updates, " if updates else ""
    return embedding_vectors(
        embeddings[list(words)],
        words,
        path,
        f"{trained}embeddings of dimension {embeddings.size(1)}, sha256 {sha256(path)}",
    )


def embedding_vectors(matrix: Tensor, words: Mapping[int, str], path: str | Path, description: str) -> Vectors:
    """The embeddings of ``words``, (words, dimension), as vectors of length 1, without their common directions.

    The version has the name of ``path`` and the ``description``. Raises InputError if there are no words, and for
    embeddings that are not finite.
    """
    if not words:
        raise InputError("the vocabulary has no whole words except stop words; give one with more words")
    matrix = matrix.float()
    if not matrix.isfinite().all():
        raise InputError(f"{path}: contains embeddings that are not finite; give an earlier checkpoint with --path")
    matrix = torch.nn.functional.normalize(remove_common_directions(matrix))
    return Vectors(list(words.values()), matrix.numpy(), f"{Path(path).name}, {description}")


def remove_common_directions(embeddings: Tensor) -> Tensor:
    """Remove from embeddings (words, dimension) the mean and the first principal components, one per 100 dimensions.

    The mean and the first component of a masked language model's embeddings encode word frequency, because training
    pushes all rare words in the same direction (Gao et al. 2019): they become neighbors of each other whatever they
    mean. This fix is that of Mu and Viswanath (2018, "All-but-the-Top"), but with at least one component. If only the
    mean were removed, the frequent words, which are few and all on one side of it, would be neighbors of each other.
    """
    centered = embeddings - embeddings.mean(dim=0)
    components = max(embeddings.size(1) // 100, 1)
    directions = torch.linalg.eigh(centered.T @ centered).eigenvectors[:, -components:]
    return centered - centered @ directions @ directions.T
