"""Read what the commands of preprocessing wrote, and serve data sets instead of the Hugging Face Hub."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq.data import Dictionary, indexed_dataset

from tn_fairseq.core.dictionary import MASK
from tn_fairseq.core.errors import InputError


def write(path: Path, content: object) -> Path:
    """Write bytes, text, or anything else as JSON."""
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder and its subfolders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sentences(folder: Path, split: str = "train") -> list[str]:
    """The sentences that fairseq reads from a folder, each with its </s>."""
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dataset = indexed_dataset.make_dataset(str(folder / split), "mmap")
    return [" ".join(dictionary[index] for index in dataset[i].tolist()) for i in range(len(dataset))]


def dictionary_of(*pieces: str) -> Dictionary:
    """A dictionary with some pieces and <mask>."""
    dictionary = Dictionary()
    for piece in (*pieces, MASK):
        dictionary.add_symbol(piece)
    return dictionary


def released_dictionary(path: Path, tokenizer) -> Path:
    """A dict.txt with the tokenizer's symbols in another order, and another symbol."""
    symbols = [*reversed(tokenizer.symbols.values()), "madeupword0000"]
    return write(path, "".join(f"{symbol} {count}\n" for count, symbol in enumerate(symbols)))


def refused(function: Callable, *args, **options) -> str:
    """The one-line error of a function, or of a command."""
    with pytest.raises((InputError, SystemExit)) as caught:
        function(*args, **options)
    message = str(caught.value)
    assert "\n" not in message and (isinstance(caught.value, InputError) or message.startswith("error: "))
    return message


def serve_hub(monkeypatch, answer: Callable) -> list[tuple]:
    """Call ``answer`` instead of the Hub, with the names of the data set; returns a list of all that was asked."""
    asked = []

    def load_dataset(*names, split):
        asked.append((*names, split))
        return answer(*names, split)

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return asked


def offline(*_):
    """An answer of the Hub if there is no connection."""
    raise ConnectionError("Couldn't reach the Hub\nmore")
