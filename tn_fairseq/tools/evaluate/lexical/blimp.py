"""BLiMP: minimal pairs of a good and a bad sentence (Warstadt et al. 2020), scored by pseudo-log-likelihood.

The data are BLiMP.zip of github.com/alexwarstadt/blimp: 67 files of 1,000 pairs, one JSON object a line.
"""

import json
import logging
import lzma
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from ....core.errors import InputError, first_line
from ....core.files import is_unicode
from ....models.loading import Loaded
from ....tokenizers.base import Tokenizer
from .scoring import Place, log_probabilities

logger = logging.getLogger(__name__)
_PHENOMENA = {"s-selection": "argument_structure"}  # as the paper counts its 12 phenomena
_REMEDY = "give BLiMP.zip of github.com/alexwarstadt/blimp"
_FIELDS = ("sentence_good", "sentence_bad", "linguistics_term", "UID")
_SAMPLE_SEED = 1
_PAIRS_AT_A_TIME = 500  # to sort their sequences by length


class MinimalPair(NamedTuple):
    """A good and a bad sentence, the phenomenon (one of 12 in BLiMP), and the paradigm (one of 67, a file)."""

    good: str
    bad: str
    phenomenon: str
    paradigm: str


def read_blimp(path: str | Path, pairs_per_file: int | None = None) -> list[MinimalPair]:
    """Read all pairs, or a random sample of each file, which is always the same; in the order of file names.

    Raises InputError, with the place in the archive, for a file that is missing, damaged or of another format.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            # Apple's archives have a hidden copy of each name in __MACOSX
            names = [name for name in sorted(archive.namelist()) if not PurePosixPath(name).name.startswith(".")]
            files = {name: archive.read(name).decode("utf-8-sig") for name in names if name.endswith(".jsonl")}
            others = [name for name in names if not name.endswith((".jsonl", "/"))]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or first_line(error)}; {_REMEDY}") from None
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError, RuntimeError) as error:
        # an encrypted archive is a RuntimeError, and so is an unknown compression
        raise InputError(f"{path}: damaged, or not a zip file ({first_line(error)}); {_REMEDY}") from None
    pairs = []
    for name, text in files.items():
        lines = text.rstrip().split("\n") if text.strip() else []  # a sentence may contain other separators of lines
        chosen = np.arange(len(lines))
        if pairs_per_file is not None and pairs_per_file < len(lines):
            chosen = np.sort(np.random.default_rng(_SAMPLE_SEED).permutation(len(lines))[:pairs_per_file])
        pairs += [_pair(lines[number], f"{path}: {name}, line {number + 1}") for number in chosen]
    if others:
        logger.warning(f"{path}: {len(others):,} files whose names lack .jsonl are not read, such as {others[0]!r}")
    if not pairs:
        raise InputError(f"{path}: contains no pairs in files *.jsonl; {_REMEDY}")
    return pairs


def _pair(line: str, place: str) -> MinimalPair:
    try:
        content = json.loads(line)
        pair = MinimalPair(*(content[field] for field in _FIELDS))
    except (ValueError, KeyError, TypeError, RecursionError):
        pair = MinimalPair("", "", "", "")
    if not all(isinstance(field, str) and field and is_unicode(field) for field in pair):
        raise InputError(f"{place}: not an object with the texts {', '.join(_FIELDS)}; {_REMEDY}")
    return pair._replace(phenomenon=_PHENOMENA.get(pair.phenomenon, pair.phenomenon))


def by_group(pairs: Sequence[MinimalPair]) -> dict[tuple[str, str], np.ndarray]:
    """The indices of the pairs of each group by (kind, name): all pairs, then phenomena, then paradigms."""
    groups = {("", ""): np.arange(len(pairs))}
    for kind in ("phenomenon", "paradigm"):
        names = np.array([getattr(pair, kind) for pair in pairs])
        groups |= {(f" by {kind}", str(name)): np.flatnonzero(names == name) for name in np.unique(names)}
    return groups


def prefers_good(loaded: Loaded, pairs: Sequence[MinimalPair], tokenizer: Tokenizer, table: np.ndarray) -> np.ndarray:
    """100 for each pair whose good sentence has the higher pseudo-log-likelihood, else 0, and 50 if equal: (pairs,).

    ``table`` maps the tokenizer's ids to the dictionary's (``lookup_table``). For ELECTRA, the generator's likelihood.
    """
    dictionary = loaded.task.source_dictionary
    token_ids, lengths = tokenizer.encode_chunk([sentence for pair in pairs for sentence in (pair.good, pair.bad)])
    sentences = [
        np.concatenate([[dictionary.bos()], tokens, [dictionary.eos()]])
        for tokens in np.split(table[token_ids], np.cumsum(lengths)[:-1])
    ]
    preferences = []
    with tqdm(total=len(pairs), desc="BLiMP", unit=" pairs", leave=False, disable=None) as progress:
        for start in range(0, len(sentences), 2 * _PAIRS_AT_A_TIME):
            likelihoods = pseudo_log_likelihoods(loaded, sentences[start : start + 2 * _PAIRS_AT_A_TIME])
            preferences.append(50 * (1 + np.sign(likelihoods[::2] - likelihoods[1::2])))
            progress.update(len(preferences[-1]))
    return np.concatenate(preferences)


def pseudo_log_likelihoods(loaded: Loaded, sentences: Sequence[np.ndarray]) -> np.ndarray:
    """Salazar et al. (2020): sum over t of log p(w_t | all other tokens), with w_t masked; (T,) each -> (sentences,).

    A sentence starts with ``<s>`` and ends with ``</s>``, which are not scored.
    """
    places = [Place(tokens, position) for tokens in sentences for position in range(1, len(tokens) - 1)]
    owners = np.repeat(np.arange(len(sentences)), [len(tokens) - 2 for tokens in sentences])
    values = np.empty(len(places))
    for members, log_probs in log_probabilities(loaded, places):
        tokens = torch.tensor([places[member].tokens[places[member].position] for member in members])
        values[members] = log_probs.gather(1, tokens.to(log_probs.device)[:, None]).squeeze(1).cpu().numpy()
    return np.bincount(owners, weights=values, minlength=len(sentences))
