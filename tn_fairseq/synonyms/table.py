"""The synonym table: its file format, and how words become rows of ids.

Row i of the int32 tensor (len(dictionary), columns) holds the ids of the synonyms of symbol i, best first, padded on
the right with -1, which is no id: a model that predicts the dictionary's pad must not hit the padding. Row i never
holds i, and a special symbol neither has nor is a synonym. Hence
``(table[targets] == predictions.unsqueeze(-1)).any(-1)`` says which predictions are synonyms of their targets.

The file is safetensors with one tensor, ``synonyms``, and a description (names and values, all text) in its header.
"""

import json
from pathlib import Path
from typing import Iterable, Mapping, NamedTuple, Sequence

import torch
from fairseq.data import Dictionary
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..dictionary import MASK, fingerprint
from ..errors import InputError
from ..files import save_tensors, write_whole
from .vocabulary import match_case

PADDING = -1
FORMAT, FORMAT_VERSION = "tn_fairseq synonym table", "1"
_REMEDY = "build it with preprocess/build_synonym_table.py from this data's dict.txt"


class Coverage(NamedTuple):
    """How many words a source knows; for how many it has another word; how many of these have one in the dictionary."""

    known: int
    with_another_word: int
    with_synonym: int


def build_table(
    dictionary: Dictionary, words: Mapping[int, str], candidates: Iterable[Sequence[str] | None]
) -> tuple[Tensor, Coverage]:
    """Return the table (len(dictionary), columns) and its coverage.

    ``words`` are the whole words (id -> word) that may be keys and values; ``candidates`` yields for each of them, in
    order, the words that a source offers as its synonyms, or None where it does not know the word. Kept are the
    candidates that are one of ``words`` when spelled in the key's casing pattern, and differ from it.
    """
    ids = {word: index for index, word in words.items()}
    rows = {}
    known = with_another_word = 0
    for (index, word), offered in zip(words.items(), candidates, strict=True):
        if offered is None:
            continue
        known += 1
        with_another_word += any(candidate.lower() != word.lower() for candidate in offered)
        synonyms = dict.fromkeys(ids.get(match_case(candidate, like=word)) for candidate in offered)
        kept = [synonym for synonym in synonyms if synonym not in (None, index)]
        if kept:
            rows[index] = kept

    columns = max(map(len, rows.values()), default=1)
    table = torch.full((len(dictionary), columns), PADDING, dtype=torch.int32)
    for index, row in rows.items():
        table[index, : len(row)] = torch.tensor(row, dtype=torch.int32)
    return table, Coverage(known, with_another_word, with_synonym=len(rows))


def save_synonym_table(path: str | Path, table: Tensor, dictionary: Dictionary, description: Mapping[str, str]) -> None:
    """Write ``table`` (int32, (len(dictionary), columns)) with its description; ``read_description`` gives that back.

    The format, its version and the dictionary's fingerprint and size are added. The file appears whole or not at all.
    """
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "dictionary_fingerprint": fingerprint(dictionary),
        "dictionary_size": str(len(dictionary)),
        **description,
    }
    with write_whole(path) as temporary:
        save_tensors({"synonyms": table.contiguous()}, temporary, metadata)
        _sort_header(temporary)


def _sort_header(path: Path) -> None:
    """Put a file's description in order, for safetensors writes it in another one each time."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        file.seek(8)
        file.write(json.dumps(header, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode().ljust(size))


def load_synonym_table(path: str | Path | None, dictionary: Dictionary) -> Tensor:
    """Read the table (len(dictionary), columns), int32, that was built for ``dictionary``.

    Raises InputError, in one line, for a file that is missing, damaged, of another format or of another dictionary, or
    whose rows break the rules of this module. Nothing is ever unpickled.
    """
    if not path:
        raise InputError(f"no --synonym-table given; {_REMEDY}")
    table, description = _read(path)
    if description.get("dictionary_fingerprint") != fingerprint(dictionary):
        size = description.get("dictionary_size", "?")
        raise InputError(
            f"{path}: the table of another dictionary (of {size} symbols; yours has {len(dictionary)}, not the same); "
            f"{_REMEDY}"
        )
    fault = _fault(table, dictionary)
    if fault is not None:
        raise InputError(f"{path}: {fault}; {_REMEDY}")
    return table


def read_description(path: str | Path) -> dict[str, str]:
    """The description of a table: its source, the dictionary's fingerprint, options and counts. Raises InputError."""
    return _read(path)[1]


def _read(path: str | Path) -> tuple[Tensor, dict[str, str]]:
    if Path(path).is_dir():
        raise InputError(f"{path}: a folder, not a table; {_REMEDY}")
    try:
        with safe_open(path, framework="pt") as file:
            description, tensors = file.metadata() or {}, file.keys()
            if description.get("format") != FORMAT or "synonyms" not in tensors:
                raise InputError(f"{path}: a safetensors file, but not a synonym table; {_REMEDY}")
            if description.get("format_version") != FORMAT_VERSION:
                version = description.get("format_version")
                raise InputError(
                    f"{path}: format version {version}, this is tn_fairseq for {FORMAT_VERSION}; {_REMEDY}"
                )
            return file.get_tensor("synonyms"), description
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {_REMEDY}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error}); {_REMEDY}") from None
    except SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise InputError(
            f"{path}: truncated, or not a safetensors file ({reason}; a pickle is never opened); {_REMEDY}"
        ) from None


def _fault(table: Tensor, dictionary: Dictionary) -> str | None:
    """What is wrong with the rows of a table, or None."""
    size = len(dictionary)
    if table.dtype != torch.int32 or table.dim() != 2 or table.size(0) != size or table.size(1) == 0:
        kind = str(table.dtype).removeprefix("torch.")
        return f"holds {kind} of shape {tuple(table.shape)} where int32 of shape ({size}, columns) belongs"
    is_pad = table == PADDING
    if ((table < PADDING) | (table >= size)).any():
        return f"holds ids outside the dictionary's 0 to {size - 1}"
    if (is_pad[:, :-1] & ~is_pad[:, 1:]).any():
        return "has padding between the ids of a row"
    if (table == torch.arange(size, dtype=torch.int32).unsqueeze(1))[~is_pad].any():
        return "lists a symbol among its own synonyms"
    special = torch.tensor([*range(dictionary.nspecial), dictionary.index(MASK)])
    if torch.isin(table[~is_pad], special).any() or not is_pad[special].all():
        return "has synonyms of a special symbol, or a special symbol as a synonym"
    return None
