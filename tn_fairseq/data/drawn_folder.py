"""The folder of ``tn-fairseq data teach``: draws of a teacher for each version of the masks and each block."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..core.draws import Draws
from ..core.errors import InputError
from ..core.files import read_json_object, write_atomically, write_text

HEADER = "draws.json"
PARTS = 128  # files of a version at most, because all of them can be open
SMALLEST = 256  # blocks in a file
_START = np.dtype("<i8")
_COUNT = np.dtype(np.uint8)
_AGAIN = "run tn-fairseq data teach again"


class DrawnFolder:
    """Draws in files of consecutive blocks, which are mapped into memory.

    The header has ``teacher``, ``dictionary`` and ``text``, which are digests, ``options``, which decide blocks and
    masks, ``symbols``, ``draws``, ``blocks``, the number of blocks in each version, and ``size``, that in a file.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path, self.header = path, dict(header)
        self.draws: int = header["draws"]
        self.size: int = header["size"]
        self.versions = len(header["blocks"])
        self.word_type = np.dtype("<u2" if header["symbols"] <= 1 << 16 else "<u4")
        self.bytes_of_word = self.word_type.itemsize + _COUNT.itemsize
        self._parts: dict[tuple[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises InputError if the folder is not one of ``data teach``, or not complete."""
        header = read_json_object(path / HEADER, "give the --output of tn-fairseq data teach")
        try:
            folder = cls(path, header)
        except (KeyError, TypeError) as error:
            raise InputError(f"{path / HEADER}: has no valid {error}; {_AGAIN}") from None
        parts, missing = folder.parts(), folder.missing()
        if missing:
            done = 1 - len(missing) / len(parts)
            raise InputError(f"{path}: not complete ({done:.0%}); run the same tn-fairseq data teach again to go on")
        return folder

    @classmethod
    def begin(cls, path: Path, header: dict[str, Any]) -> Self:
        """Write the header of a new folder; raises InputError if the folder has another one, with what differs."""
        header = {**header, "size": max(SMALLEST, -(-max(header["blocks"]) // PARTS))}
        if (path / HEADER).exists():
            theirs = read_json_object(path / HEADER, _AGAIN)
            for name, value in header.items():
                if theirs.get(name) != value:
                    raise InputError(f"--output {path}: was begun with another {name}; give another folder")
        else:
            path.mkdir(parents=True, exist_ok=True)
            write_text(path / HEADER, json.dumps(header, indent=1) + "\n")
        return cls(path, header)

    def parts(self) -> list[tuple[int, int]]:
        """The version and number of each file; versions begin with 1."""
        return [
            (version, part)
            for version in range(1, self.versions + 1)
            for part in range(-(-self.header["blocks"][version - 1] // self.size))
        ]

    def missing(self) -> list[tuple[int, int]]:
        """The parts that have not been written."""
        return [part for part in self.parts() if not self.file(*part).exists()]

    def file(self, version: int, part: int) -> Path:
        return self.path / f"{version}-{part:03}.npy"

    def blocks_of(self, version: int, part: int) -> range:
        """The blocks of a part."""
        return range(part * self.size, min((part + 1) * self.size, self.header["blocks"][version - 1]))

    def write(self, version: int, part: int, masked: np.ndarray, draws: Draws) -> None:
        """Write the draws of a part, whose blocks have ``masked`` positions, (B)."""
        ends = draws.counts.cumsum(dtype=np.int64).searchsorted(self.draws * masked.cumsum(), side="right")
        arrays = np.append(0, ends).astype(_START), draws.words.astype(self.word_type), draws.counts.astype(_COUNT)
        content = np.frombuffer(b"".join(array.tobytes() for array in arrays), dtype=np.uint8)
        advice = "make room, and run the same command again"
        with write_atomically(self.file(version, part), advice) as temporary, open(temporary, "wb") as file:
            np.save(file, content)

    def version_of(self, epoch: int) -> int:
        """The version that an epoch of training reads; both begin with 1."""
        return (epoch - 1) % self.versions + 1

    def of(self, version: int, blocks: np.ndarray) -> Draws:
        """The draws of some blocks, one after another; raises InputError for a damaged file."""
        size, words, counts = self.size, [], []
        for block in blocks.tolist():
            starts, all_words, all_counts = self._map(version, block // size)
            here = slice(starts[block % size], starts[block % size + 1])
            words.append(all_words[here])
            counts.append(all_counts[here])
        return Draws(np.concatenate(words), np.concatenate(counts))

    def _map(self, version: int, part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if (version, part) not in self._parts:
            if any(known != version for known, _ in self._parts):
                self._parts.clear()  # an epoch reads one version
            path, ends = self.file(version, part), (len(self.blocks_of(version, part)) + 1) * _START.itemsize
            try:
                content = np.load(path, mmap_mode="r", allow_pickle=False)
                starts = content[:ends].view(_START)
                middle = ends + int(starts[-1]) * self.word_type.itemsize
                arrays = starts, content[ends:middle].view(self.word_type), content[middle:]
                if not len(arrays[1]) == len(arrays[2]) == starts[-1]:
                    raise ValueError("cut off")
            except (OSError, ValueError, IndexError, EOFError) as error:
                raise InputError(f"{path}: damaged ({error}); delete it, and {_AGAIN}") from None
            self._parts[version, part] = arrays
        return self._parts[version, part]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parts": {}}  # loader processes map the files themselves


def check_same(folder: DrawnFolder, run: Mapping[str, Any]) -> None:
    """Raises InputError if the text, dictionary or options of a run are not those of the folder, with the option."""
    place = f"--distillation-draws {folder.path}: was made with"
    for name, value in run["options"].items():
        theirs, flag = folder.header["options"].get(name), f"--{name.replace('_', '-')}"
        if theirs != value:
            advice = (
                f"omit {flag}" if theirs is False else f"give {flag}" if theirs is True else f"give {flag} {theirs}"
            )
            raise InputError(f"{place} {flag} {theirs}, not {value}; {advice}, or run tn-fairseq data teach again")
    for name in ("dictionary", "text"):
        if folder.header[name] != run[name]:
            raise InputError(f"{place} another {name}; give the data-bin of tn-fairseq data teach, or run it again")
