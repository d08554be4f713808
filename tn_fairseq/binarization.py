"""Text to what fairseq reads: ``dict.txt`` and, for each split, ``.bin`` and ``.idx`` (or piece text).

The input is UTF-8, one sentence (or paragraph) a line, with blank lines between documents. The output is, byte for
byte, that of ``fairseq-preprocess --only-source --srcdict dict.txt`` on the same pieces: each line ends with ``</s>``,
and a lone ``</s>`` parts documents, as ``--sample-break-mode complete_doc`` expects.

``encode_chunk`` is a pure function of a piece of a file; ``binarize`` maps it over the corpus, in this process or in a
pool, and writes the results in order, so the output does not depend on the number of workers.
"""

import io
import multiprocessing
import os
import shutil
import signal
import struct
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder, best_fitting_int_dtype
from tqdm import tqdm

from .dictionary import MASK, load_dictionary
from .errors import InputError
from .tokenization import Tokenizer

# Enough text to make the overhead of a chunk vanish, little enough that the library's encodings stay in the cache.
CHUNK_BYTES = 1 << 18
STAGING = ".binarize-unfinished"

Item, Result = TypeVar("Item"), TypeVar("Result")


@dataclass(frozen=True)
class Chunk:
    """Some whole lines of a file, as read."""

    path: Path
    offset: int
    data: bytes

    def lines(self) -> list[str]:
        """The lines without their ends (LF or CRLF) and without a byte order mark.

        Raises InputError with the offset in the file if the bytes are not UTF-8.
        """
        try:
            text = self.data.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path}: not UTF-8 at byte {self.offset + error.start}; convert it, for example with iconv"
            ) from None
        if self.offset == 0:
            text = text.removeprefix("\ufeff")
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


@dataclass(frozen=True)
class EncodedChunk:
    """The sentences of a chunk: dictionary indices with each ``</s>``, (tokens,), and lengths, (lines,).

    A length of 1 is a boundary between two documents of the chunk; the blank lines at its two ends are only counted,
    for what they mean is known beside its neighbours.
    """

    ids: np.ndarray
    lengths: np.ndarray
    starts_file: bool
    nbytes: int
    unknown: int
    nothing_kept: int
    leading_blanks: int
    repeated_blanks: int
    trailing_blanks: int


@dataclass
class SplitCounts:
    """What became of a split's lines; ``tokens`` counts every ``</s>``, as fairseq does."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    nothing_kept: int = 0
    repeated_blanks: int = 0
    outer_blanks: int = 0

    @property
    def pieces(self) -> int:
        """The tokens without the ``</s>`` of sentences and boundaries."""
        return self.tokens - self.sentences - (self.documents - 1)


def corpus_bytes(paths: Iterable[Path]) -> int:
    """Total size of the files; raises InputError if one is missing or a folder."""
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; name a text file") from None
        if path.is_dir():
            raise InputError(f"{path}: a folder; name the text files in it")
    return total


def read_chunks(paths: Iterable[Path], chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Read the files in order, in chunks of whole lines of about the given size."""
    for path in paths:
        try:
            with open(path, "rb") as file:
                offset = 0
                while data := file.read(chunk_bytes) + file.readline():
                    yield Chunk(path, offset, data)
                    offset += len(data)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; name a readable text file") from None


def encode_chunk(tokenizer: Tokenizer, table: np.ndarray, eos: int, unk: int, chunk: Chunk) -> EncodedChunk:
    """Encode a chunk; ``table`` maps token ids to dictionary indices. Pure, but for InputError on bad UTF-8."""
    lines = chunk.lines()
    blank = np.fromiter((not line or line.isspace() for line in lines), dtype=bool, count=len(lines))
    token_ids, lengths = tokenizer.encode_chunk(
        [line for line, is_blank in zip(lines, blank, strict=True) if not is_blank]
    )
    ids = table[token_ids]
    kept = lengths > 0
    # How many blank lines stand before each kept sentence tells where a document ends, whatever was dropped between.
    blanks_before = np.cumsum(blank)[~blank][kept]
    nblank = int(blank.sum())
    lengths = lengths[kept]
    gaps = np.diff(blanks_before)
    first_of_document = np.flatnonzero(gaps) + 1
    ends = np.cumsum(lengths)
    return EncodedChunk(
        ids=np.insert(ids, np.concatenate([ends, ends[first_of_document - 1]]), eos),
        lengths=np.insert(lengths + 1, first_of_document, 1),
        starts_file=chunk.offset == 0,
        nbytes=len(chunk.data),
        unknown=int((ids == unk).sum()),
        nothing_kept=int((~kept).sum()),
        leading_blanks=int(blanks_before[0]) if len(lengths) else nblank,
        repeated_blanks=int((gaps - 1).clip(min=0).sum()),
        trailing_blanks=nblank - int(blanks_before[-1]) if len(lengths) else 0,
    )


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    pool: ProcessPoolExecutor | None = None,
    look_ahead: int = 0,
) -> Iterator[Result]:
    """``map`` over a pool, or in this process without one; at most ``look_ahead`` items wait for their turn."""
    if pool is None:
        yield from map(function, items)
        return
    pending = deque()
    for item in items:
        pending.append(pool.submit(function, item))
        if len(pending) > look_ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


class BinaryWriter(MMapIndexedDatasetBuilder):
    """fairseq's builder, which also takes many sentences at once."""

    def __init__(self, prefix: Path, dictionary: Dictionary):
        super().__init__(f"{prefix}.bin", dtype=best_fitting_int_dtype(len(dictionary)))
        self._index_path = f"{prefix}.idx"
        self._sizes = array("i")  # a list would take ten times the memory

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        self._data_file.write(ids.astype(self._dtype).tobytes())
        self._sizes.frombytes(lengths.astype(np.intc).tobytes())

    def close(self) -> None:
        """Write the index, in one piece where fairseq would loop over the sentences."""
        self._data_file.close()
        sizes = np.asarray(self._sizes, dtype=np.int32)
        offsets = (np.cumsum(sizes, dtype=np.int64) - sizes) * np.dtype(self._dtype).itemsize
        with MMapIndexedDataset.Index.writer(self._index_path, self._dtype) as index:
            index._file.write(struct.pack("<Q", len(sizes)) + sizes.tobytes() + offsets.tobytes())


class TextWriter:
    """The pieces as text, one sentence a line: the input of ``fairseq-preprocess``."""

    def __init__(self, prefix: Path, dictionary: Dictionary):
        self._file = open(f"{prefix}.txt", "w", encoding="utf-8", newline="\n")  # noqa: SIM115, close() ends it
        self._symbols = np.array(dictionary.symbols, dtype=object)

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        for sentence in np.split(ids, np.cumsum(lengths)[:-1]):
            self._file.write(" ".join(self._symbols[sentence[:-1]]) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def binarize(
    splits: dict[str, Sequence[Path]],
    tokenizer: Tokenizer,
    destdir: str | Path,
    workers: int = 1,
    text_only: bool = False,
    dict_path: str | Path | None = None,
) -> dict[str, SplitCounts]:
    """Binarize the files of each split into ``destdir`` and return what became of their lines.

    ``dict_path`` names a released ``dict.txt`` to be used in place of the tokenizer's own. What ``destdir`` holds
    changes only when all splits are done. Raises InputError for input that cannot be used.
    """
    destdir = Path(destdir)
    totals = {split: corpus_bytes(paths) for split, paths in splits.items()}
    dictionary = tokenizer.dictionary() if dict_path is None else released_dictionary(dict_path)
    encode = partial(encode_chunk, tokenizer, tokenizer.lookup_table(dictionary), dictionary.eos(), dictionary.unk())
    writer_class = TextWriter if text_only else BinaryWriter
    # The chunk is the unit of parallel work; the library's own threads would compete, and do not survive a fork.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    staging = destdir / STAGING
    pool = None
    try:
        shutil.rmtree(staging, ignore_errors=True)
        (staging / "tokenizer").mkdir(parents=True)
        if workers > 1:
            pool = ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(encode,))
        counts = {}
        for split, paths in splits.items():
            function = encode if pool is None else _encode_in_worker
            chunks = map_in_order(function, read_chunks(paths), pool, look_ahead=2 * workers)
            writer = writer_class(staging / split, dictionary)
            with tqdm(total=totals[split], unit="B", unit_scale=True, desc=split, disable=None) as progress:
                counts[split] = _write_split(_advance(chunks, progress), writer, dictionary.eos())
            writer.close()
            if not counts[split].sentences:
                names = ", ".join(map(str, paths))
                raise InputError(f"{names}: no line with text for {split}; name a corpus, one sentence a line")
        for name, content in tokenizer.files.items():
            (staging / "tokenizer" / name).write_bytes(content)
        (staging / "dict.txt").write_bytes(dict_txt(dictionary))
        _publish(staging, destdir, splits)
        return counts
    except BrokenProcessPool:
        raise InputError(f"a worker was killed (out of memory?); try fewer than {workers} --workers") from None
    except OSError as error:
        raise InputError(f"{error.filename or destdir}: {error.strerror}; give a --destdir you can write to") from None
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        shutil.rmtree(staging, ignore_errors=True)


def _write_split(chunks: Iterable[EncodedChunk], writer: BinaryWriter | TextWriter, eos: int) -> SplitCounts:
    counts = SplitCounts()
    boundary = np.array([eos]), np.array([1])
    blanks, new_file = 0, False  # since the last sentence
    for chunk in chunks:
        counts.nothing_kept += chunk.nothing_kept
        counts.unknown += chunk.unknown
        blanks += chunk.leading_blanks
        new_file |= chunk.starts_file
        if not len(chunk.lengths):
            continue
        if not counts.sentences:
            counts.documents = 1
            counts.outer_blanks += blanks
        elif blanks or new_file:
            counts.documents += 1
            counts.tokens += 1
            counts.repeated_blanks += max(blanks - 1, 0)
            writer.append(*boundary)
        writer.append(chunk.ids, chunk.lengths)
        boundaries = int((chunk.lengths == 1).sum())
        counts.documents += boundaries
        counts.sentences += len(chunk.lengths) - boundaries
        counts.tokens += len(chunk.ids)
        counts.repeated_blanks += chunk.repeated_blanks
        blanks, new_file = chunk.trailing_blanks, False
    counts.outer_blanks += blanks
    return counts


def _advance(chunks: Iterable[EncodedChunk], progress: tqdm) -> Iterator[EncodedChunk]:
    for chunk in chunks:
        yield chunk
        progress.update(chunk.nbytes)


def released_dictionary(path: str | Path) -> Dictionary:
    """Read a released ``dict.txt``, without the ``<mask>`` that tasks append. Raises InputError."""
    dictionary = load_dictionary(path)
    if dictionary.symbols[-1] == MASK:  # appended by the tasks, so dict.txt needs none
        dictionary.symbols.pop()
        dictionary.count.pop()
        del dictionary.indices[MASK]
    return dictionary


def dict_txt(dictionary: Dictionary) -> bytes:
    """The dictionary as the content of a ``dict.txt``."""
    text = io.StringIO()
    dictionary.save(text)
    return text.getvalue().encode()


def _publish(staging: Path, destdir: Path, splits: Iterable[str]) -> None:
    """Move the finished files to their places, ``dict.txt`` last: without it fairseq takes nothing for whole."""
    dict_txt = destdir / "dict.txt"
    stale = []
    if dict_txt.exists():
        if dict_txt.read_bytes() != (staging / "dict.txt").read_bytes():
            # What an earlier run left of a split that is not given now would be read with a foreign dictionary.
            stale = [
                destdir / f"{split}.{kind}" for split in ("train", "valid", "test") for kind in ("bin", "idx", "txt")
            ]
        dict_txt.unlink()
    for path in stale:
        path.unlink(missing_ok=True)
    shutil.rmtree(destdir / "tokenizer", ignore_errors=True)
    for path in sorted(staging.iterdir(), key=lambda path: path.name == "dict.txt"):
        os.replace(path, destdir / path.name)


def _start_worker(encode: Callable[[Chunk], EncodedChunk]) -> None:
    global _encode
    _encode = encode
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C for all
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    # A pool's workers wait for ever for the work of a parent that was killed.
    multiprocessing.parent_process().join()
    os._exit(1)


def _encode_in_worker(chunk: Chunk) -> EncodedChunk:
    return _encode(chunk)
