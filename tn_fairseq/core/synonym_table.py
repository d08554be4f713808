"""The synonym table and its file format.

Row i of the int32 tensor (len(dictionary), columns) contains the ids of the synonyms of symbol i, best first, padded on
the right with -1. This is not an id, so a prediction of the dictionary's pad does not match the padding. Row i never
contains i, and a special symbol neither has nor is a synonym. Hence
``(table[targets] == predictions.unsqueeze(-1)).any(-1)`` tells which predictions are synonyms of their targets.

The file is safetensors with a description (names and values, all text) in its header and two tensors: ``synonyms``, and
the boolean ``continues_word`` (len(dictionary)), because a token that the next one continues is only a part of a word
and has no synonyms. Files of version 0.1 have only the first.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .dictionary import Symbols, fingerprint, special_ids
from .errors import InputError
from .files import save_tensors, write_atomically
from .vocabulary import continues_word

logger = logging.getLogger(__name__)

PADDING = -1
FORMAT, FORMAT_VERSION = "tn_fairseq synonym table", "1"
_REMEDY = "build it with tn-fairseq synonyms build for this dict.txt or tokenizer"


def rows_to_table(dictionary: Symbols, rows: Mapping[int, Sequence[int]]) -> Tensor:
    """The table (len(dictionary), columns), with as many columns as the longest row has synonyms, but at least one."""
    columns = max(map(len, rows.values()), default=1)
    table = torch.full((len(dictionary), columns), PADDING, dtype=torch.int32)
    for index, row in rows.items():
        table[index, : len(row)] = torch.tensor(row, dtype=torch.int32)
    return table


def save_synonym_table(
    path: str | Path,
    table: Tensor,
    dictionary: Symbols,
    description: Mapping[str, str],
    continuations: Sequence[bool] | None = None,
) -> None:
    """Write ``table`` (int32, (len(dictionary), columns)) with its description, which ``read_description`` reads.

    ``continuations`` are the symbols that make the one before them a part of a word, by default those of
    ``vocabulary.continues_word``.
    The format, its version and the dictionary's fingerprint and size are added. Writes the complete file or nothing.
    """
    if continuations is None:
        continuations = continues_word(dictionary)
    metadata = {
        **description,  # first, because it may be that of a table for another dictionary
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "dictionary_fingerprint": fingerprint(dictionary),
        "dictionary_size": str(len(dictionary)),
    }
    with write_atomically(path) as temporary:
        save_tensors(
            {"synonyms": table.contiguous(), "continues_word": torch.tensor(continuations)}, temporary, metadata
        )
        _sort_header(temporary)


def _sort_header(path: Path) -> None:
    """Sort a file's description, because safetensors writes it in random order."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        file.seek(8)
        file.write(json.dumps(header, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode().ljust(size))


class Table(NamedTuple):
    """A synonym table of V symbols with at most S synonyms each."""

    synonyms: Tensor  # (V, S), int32
    continues_word: Tensor  # (V) boolean, the symbols that continue a word
    description: dict[str, str]


def load_synonym_table(path: str | Path, dictionary: Symbols) -> Table:
    """Read the table that was built for ``dictionary``.

    A table of version 0.1 does not say which symbols continue a word, so this is derived from the dictionary. If that
    contains numbers (GPT-2 BPE), a warning is logged and no symbol continues a word. Raises InputError for a file that
    is missing, damaged, of another format or of another dictionary, or whose rows break the rules of this module.
    Nothing is unpickled.
    """
    tensors, description = _read(path)
    if description.get("dictionary_fingerprint") != fingerprint(dictionary):
        size = description.get("dictionary_size", "?")
        raise InputError(
            f"{path}: the table of another dictionary ({size} symbols; yours has {len(dictionary)} different ones); "
            f"{_REMEDY}"
        )
    fault = _fault(tensors["synonyms"], dictionary)
    if fault is not None:
        raise InputError(f"{path}: {fault}; {_REMEDY}")
    continuations = tensors.get("continues_word")
    if continuations is None:
        try:
            continuations = torch.tensor(continues_word(dictionary))
        except InputError:
            logger.warning(f"{path}: does not say which pieces continue a word, so parts of words count; {_REMEDY}")
            continuations = torch.zeros(len(dictionary), dtype=torch.bool)
    if continuations.dtype != torch.bool or continuations.shape != (len(dictionary),):
        raise InputError(f"{path}: continues_word must be boolean of shape ({len(dictionary)},); {_REMEDY}")
    return Table(tensors["synonyms"], continuations, description)


def load_synonym_tables(paths: Sequence[Path], dictionary: Symbols) -> dict[str, Table]:
    """Read tables as ``load_synonym_table`` does, by the names of ``names_of``."""
    return {name: load_synonym_table(path, dictionary) for name, path in names_of(paths).items()}


def names_of(paths: Sequence[Path]) -> dict[str, Path]:
    """The paths by the names of the files without suffix, or by the full paths if two names are the same."""
    names = [path.stem for path in paths]
    return dict(zip(names if len(set(names)) == len(names) else map(str, paths), paths))


def read_description(path: str | Path) -> dict[str, str]:
    """The description of a table: its source, the dictionary's fingerprint, options and counts. Raises InputError."""
    return _read(path)[1]


def _read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, not a table; {_REMEDY}")
    try:
        with safe_open(path, framework="pt") as file:
            description, tensors = file.metadata() or {}, file.keys()
            if description.get("format") != FORMAT or "synonyms" not in tensors:
                raise InputError(f"{path}: is a safetensors file, but not a synonym table; {_REMEDY}")
            if description.get("format_version") != FORMAT_VERSION:
                version = description.get("format_version")
                raise InputError(
                    f"{path}: has format version {version}, but this tn_fairseq reads {FORMAT_VERSION}; {_REMEDY}"
                )
            return {name: file.get_tensor(name) for name in tensors}, description
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error}); {_REMEDY}") from None
    except SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise InputError(
            f"{path}: truncated, or not a safetensors file ({reason}; pickles are never opened); {_REMEDY}"
        ) from None


def _fault(table: Tensor, dictionary: Symbols) -> str | None:
    """What is wrong with the rows of a table, or None."""
    size = len(dictionary)
    if table.dtype != torch.int32 or table.dim() != 2 or table.size(0) != size or table.size(1) == 0:
        kind = str(table.dtype).removeprefix("torch.")
        return f"has {kind} values of shape {tuple(table.shape)}, must be int32 of shape ({size}, columns)"
    is_pad = table == PADDING
    if ((table < PADDING) | (table >= size)).any():
        return f"has ids outside the dictionary's 0 to {size - 1}"
    if (is_pad[:, :-1] & ~is_pad[:, 1:]).any():
        return "has padding between the ids of a row"
    if (table == torch.arange(size, dtype=torch.int32).unsqueeze(1))[~is_pad].any():
        return "lists a symbol among its own synonyms"
    ordered = table.sort(dim=1).values
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != PADDING)).any():
        return "lists a synonym twice in a row"
    special = torch.tensor(special_ids(dictionary))
    if torch.isin(table[~is_pad], special).any() or not is_pad[special].all():
        return "has synonyms of a special symbol, or a special symbol as a synonym"
    return None
