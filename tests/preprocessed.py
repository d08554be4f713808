"""Read what the commands of preprocessing wrote, and serve data sets instead of the Hugging Face Hub."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from fairseq.data import Dictionary, indexed_dataset
from files import write

from tn_fairseq.core.dictionary import MASK


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
