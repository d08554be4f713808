"""Text to what fairseq reads: ``dict.txt`` and, for each split, ``.bin`` and ``.idx`` (or piece text).

The input is UTF-8, one sentence (or paragraph) a line, with blank lines between documents. The output is, byte for
byte, that of ``fairseq-preprocess --only-source --srcdict dict.txt`` on the same pieces: each line ends with ``</s>``,
and a lone ``</s>`` parts documents, as ``--sample-break-mode complete_doc`` expects.

``encode_chunk`` is a pure function of a piece of a file; ``binarize`` maps it over the corpus with an engine and writes
the results in order, so the output does not depend on the engine and the number of workers. It may lie in shards, each
a folder of its own with some of the documents to train on, as ``fairseq-train shard0:shard1`` reads one an epoch.
"""

import errno
import fcntl
import io
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder, best_fitting_int_dtype
from tqdm import tqdm

from .dictionary import MASK, load_dictionary
from .engines import open_engine
from .errors import InputError
from .tokenization import Tokenizer

# Enough text to make the overhead of a chunk vanish, little enough that the library's encodings stay in the cache.
CHUNK_BYTES = 1 << 18
STAGING = ".binarize-unfinished"
LOCK = ".binarize-lock"
INDEX_ROWS = 1 << 20  # of an index, handled at a time


@dataclass(frozen=True)
class Chunk:
    """Some whole lines of a file, as read."""

    path: Path
    offset: int
    data: bytes

    def __str__(self) -> str:
        return f"{self.path}, from byte {self.offset} on"

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
    for what they mean is known beside its neighbours. ``starts`` are the bytes of the chunk at which its documents
    begin, (boundaries + 1,), the first of them, or what the chunk holds of it, with the first sentence.
    """

    ids: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    starts_file: bool
    nbytes: int
    unknown: int
    nothing_kept: int
    leading_blanks: int
    repeated_blanks: int
    trailing_blanks: int


@dataclass
class SplitCounts:
    """What became of a split's lines; ``shard_tokens`` and their sum count every ``</s>``, as fairseq does."""

    documents: int = 0
    sentences: int = 0
    unknown: int = 0
    nothing_kept: int = 0
    repeated_blanks: int = 0
    outer_blanks: int = 0
    shard_tokens: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """The tokens of all shards."""
        return sum(self.shard_tokens)

    @property
    def pieces(self) -> int:
        """The tokens without the ``</s>`` of sentences and boundaries."""
        return self.tokens - self.sentences - (self.documents - len(self.shard_tokens))


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
    """Encode a chunk; ``table`` maps token ids to dictionary indices, in whose type they are returned.

    Pure, but for InputError on bad UTF-8.
    """
    # A chunk is the unit of parallel work; the library's own threads would compete, and do not survive a fork.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
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
    line_starts = np.concatenate([[0], np.flatnonzero(np.frombuffer(chunk.data, dtype=np.uint8) == ord("\n")) + 1])
    sentence_starts = line_starts[: len(lines)][~blank][kept]
    return EncodedChunk(
        ids=np.insert(ids, np.concatenate([ends, ends[first_of_document - 1]]), eos),
        lengths=np.insert(lengths + 1, first_of_document, 1).astype(np.int32),
        starts=sentence_starts[np.concatenate([[0], first_of_document])] if len(lengths) else sentence_starts,
        starts_file=chunk.offset == 0,
        nbytes=len(chunk.data),
        unknown=int((ids == unk).sum()),
        nothing_kept=int((~kept).sum()),
        leading_blanks=int(blanks_before[0]) if len(lengths) else nblank,
        repeated_blanks=int((gaps - 1).clip(min=0).sum()),
        trailing_blanks=nblank - int(blanks_before[-1]) if len(lengths) else 0,
    )


class BinaryWriter(MMapIndexedDatasetBuilder):
    """fairseq's builder, which also takes many sentences at once and keeps none of their lengths in memory."""

    def __init__(self, prefix: Path, dictionary: Dictionary):
        super().__init__(f"{prefix}.bin", dtype=best_fitting_int_dtype(len(dictionary)))
        self._index_path = f"{prefix}.idx"
        with MMapIndexedDataset.Index.writer(self._index_path, self._dtype):
            pass  # its header
        self._index = open(self._index_path, "r+b")  # noqa: SIM115, close() ends it
        self._count_position = self._index.seek(0, os.SEEK_END)
        self._index.write(struct.pack("<Q", 0))  # the number of sentences, filled in at the end

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        self._data_file.write(ids.astype(self._dtype, copy=False).data)
        self._index.write(lengths.astype(np.int32, copy=False).data)

    def close(self) -> None:
        """Complete the index with where each sentence begins, which fairseq would hold in memory for all of them."""
        self._data_file.close()
        first = self._count_position + 8
        count = (self._index.seek(0, os.SEEK_END) - first) // 4
        start = 0
        for row in range(0, count, INDEX_ROWS):
            self._index.seek(first + 4 * row)
            sizes = np.frombuffer(self._index.read(4 * min(INDEX_ROWS, count - row)), dtype=np.int32)
            ends = start + np.cumsum(sizes, dtype=np.int64) * np.dtype(self._dtype).itemsize
            self._index.seek(0, os.SEEK_END)
            self._index.write(np.concatenate([[start], ends[:-1]]).data)
            start = int(ends[-1])
        self._index.seek(self._count_position)
        self._index.write(struct.pack("<Q", count))
        self._index.close()


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
    dask: str | None = None,
    shards: int | None = None,
) -> dict[str, SplitCounts]:
    """Binarize the files of each split into ``destdir`` and return what became of their lines.

    ``dict_path`` names a released ``dict.txt`` to be used in place of the tokenizer's own. ``dask`` is the address of
    a Dask scheduler, whose workers are used instead of local ones. With ``shards``, ``destdir`` gets the folders of
    ``shard_names``, each with whole documents of train, about equally many bytes, and with the other splits. What
    ``destdir`` holds changes only when all splits are done. Raises InputError for input that cannot be used, for a
    ``destdir`` that another run is writing to, and as ``open_engine`` does.
    """
    destdir = Path(destdir)
    totals = {split: corpus_bytes(paths) for split, paths in splits.items()}
    if shards is not None:
        _check_shards(splits["train"], destdir)
    dictionary = tokenizer.dictionary() if dict_path is None else released_dictionary(dict_path)
    # In the type of the .bin file, for what workers return has to travel.
    table = tokenizer.lookup_table(dictionary).astype(best_fitting_int_dtype(len(dictionary)))
    encode = partial(encode_chunk, tokenizer, table, dictionary.eos(), dictionary.unk())
    open_writer = partial(TextWriter if text_only else BinaryWriter, dictionary=dictionary)
    staging = destdir / STAGING
    folders = [staging / name for name in shard_names(shards)]
    try:
        destdir.mkdir(parents=True, exist_ok=True)
        with _only_run(destdir), open_engine(encode, workers, dask) as engine:
            try:
                shutil.rmtree(staging, ignore_errors=True)
                for folder in folders:
                    (folder / "tokenizer").mkdir(parents=True)
                counts = {}
                for split, paths in splits.items():
                    writers = [partial(open_writer, folder / split) for folder in folders]
                    if split != "train":
                        del writers[1:]
                    with tqdm(total=totals[split], unit="B", unit_scale=True, desc=split, disable=None) as progress:
                        chunks = _advance(engine.map(read_chunks(paths)), progress)
                        counts[split] = _write_split(chunks, writers, totals[split], dictionary.eos())
                    _check_counts(split, paths, counts[split], len(writers))
                for folder in folders:
                    for name, content in tokenizer.files.items():
                        (folder / "tokenizer" / name).write_bytes(content)
                    (folder / "dict.txt").write_bytes(dict_txt(dictionary))
                for path in folders[0].iterdir():
                    if path.is_file() and path.name != "dict.txt" and path.stem != "train":
                        for folder in folders[1:]:
                            _link(path, folder / path.name)
                _publish(staging, destdir, shards)
                return counts
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        place = f"{error.filename or destdir}: {error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(f"{place}; make room there, or give another --destdir") from None
        raise InputError(f"{place}; give a --destdir you can write to") from None


def shard_names(shards: int | None) -> list[str]:
    """The folders in ``destdir`` that hold the output; without shards, ``destdir`` itself."""
    return [""] if shards is None else [f"shard{number}" for number in range(shards)]


def _check_shards(paths: Iterable[Path], destdir: Path) -> None:
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: not a regular file; --shards must know the size, so write the text to a file")
    if os.pathsep in str(destdir):
        raise InputError(
            f"{destdir}: fairseq separates shards by {os.pathsep!r}; give a --destdir without it, or no --shards"
        )


@contextmanager
def _only_run(destdir: Path) -> Iterator[None]:
    """Lock ``destdir`` for this process alone; even its being killed unlocks. Raises InputError if it is locked."""
    path = destdir / LOCK
    with ExitStack() as stack:
        while True:
            file = stack.enter_context(open(path, "w"))
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock, which workers would inherit
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise InputError(
                        f"{destdir}: another run is writing there; wait for it, or give another --destdir"
                    ) from None
                break  # a file system without locks
            # A run that has just ended may have removed the file; then the next run would lock another one.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                break
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _write_split(
    chunks: Iterable[EncodedChunk],
    open_writers: Sequence[Callable[[], BinaryWriter | TextWriter]],
    total: int,
    eos: int,
) -> SplitCounts:
    """Write as many shards as there are writers, one after the other; ``total`` is the size of the text in bytes."""
    counts = SplitCounts()
    shards = len(open_writers)
    boundary = np.array([eos]), np.array([1])
    writer = None
    blanks, new_file = 0, False  # since the last sentence
    position = 0  # of the chunk, in bytes

    def append(ids: np.ndarray, lengths: np.ndarray) -> None:
        writer.append(ids, lengths)
        counts.shard_tokens[-1] += len(ids)

    for chunk in chunks:
        counts.nothing_kept += chunk.nothing_kept
        counts.unknown += chunk.unknown
        counts.repeated_blanks += chunk.repeated_blanks
        blanks += chunk.leading_blanks
        new_file |= chunk.starts_file
        starts = position + chunk.starts
        position += chunk.nbytes
        if not len(chunk.lengths):
            continue
        begins = writer is None or blanks > 0 or new_file  # a document, or goes on with one
        openings = _openings(starts, 0 if begins else 1, len(counts.shard_tokens), shards, total)
        if writer is None:
            counts.outer_blanks += blanks
        elif begins:
            counts.repeated_blanks += max(blanks - 1, 0)
            if openings[:1] == [0]:
                counts.outer_blanks += min(blanks, 1)
            else:
                append(*boundary)
        firsts = np.concatenate([[0], np.flatnonzero(chunk.lengths == 1) + 1])  # sentences of the documents
        counts.documents += len(firsts) - (not begins)
        counts.sentences += len(chunk.lengths) - (len(firsts) - 1)
        ends = np.concatenate([[0], np.cumsum(chunk.lengths)])
        written = 0
        for first in firsts[openings]:
            if first > 0:
                append(chunk.ids[ends[written] : ends[first - 1]], chunk.lengths[written : first - 1])
                counts.outer_blanks += 1
            if writer is not None:
                writer.close()
            writer = open_writers[len(counts.shard_tokens)]()
            counts.shard_tokens.append(0)
            written = first
        append(chunk.ids[ends[written] :], chunk.lengths[written:])
        blanks, new_file = chunk.trailing_blanks, False
    if writer is not None:
        writer.close()
    counts.outer_blanks += blanks
    return counts


def _openings(starts: np.ndarray, document: int, opened: int, shards: int, total: int) -> list[int]:
    """Which documents, from ``document`` on, open a shard: the first at or after the start of its share of the bytes.

    ``starts`` are the bytes at which the documents begin, (documents,); ``opened`` shards have been opened before.
    """
    found = []
    for shard in range(opened, shards):
        document += int(np.searchsorted(starts[document:] * shards, total * shard))
        if document == len(starts):
            break
        found.append(document)
        document += 1
    return found


def _check_counts(split: str, paths: Sequence[Path], counts: SplitCounts, shards: int) -> None:
    names = ", ".join(map(str, paths))
    if not counts.sentences:
        raise InputError(f"{names}: no line with text for {split}; name a corpus, one sentence a line")
    if len(counts.shard_tokens) < shards:
        raise InputError(
            f"{names}: {counts.documents:,} documents do not fill {shards} shards; give fewer --shards, or put blank "
            "lines between documents"
        )


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


def _link(source: Path, target: Path) -> None:
    """Let a file appear in a second folder without taking its room twice, where the file system can do that."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _publish(staging: Path, destdir: Path, shards: int | None) -> None:
    """Move the finished files to their places, ``dict.txt`` last: without it fairseq takes nothing for whole.

    Of several shards fairseq reads the first one's ``dict.txt``, which goes first and comes last of all.
    """
    for path in (*staging.rglob("*"), staging):
        _sync(path)  # before anything old goes: it is now that a full disk shows, and not every machine stays up
    names = shard_names(shards)
    if shards is None:
        dict_txt = destdir / "dict.txt"
        # What an earlier run left of a split that is not given now would be read with a foreign dictionary.
        if dict_txt.exists() and dict_txt.read_bytes() != (staging / "dict.txt").read_bytes():
            _clear([destdir])
        dict_txt.unlink(missing_ok=True)
        shutil.rmtree(destdir / "tokenizer", ignore_errors=True)
    else:
        # Of more shards than now, or of another text, none must be left.
        _clear(sorted(path for path in destdir.glob("shard*") if re.fullmatch(r"shard\d+", path.name)))
    for name in names:
        (destdir / name).mkdir(exist_ok=True)
        for path in (staging / name).iterdir():
            if path.name != "dict.txt":
                os.replace(path, destdir / name / path.name)
        _sync(destdir / name)
    for name in reversed(names):
        os.replace(staging / name / "dict.txt", destdir / name / "dict.txt")


def _clear(folders: Sequence[Path]) -> None:
    """Remove what earlier runs left in the folders, and those that are empty then."""
    for folder in folders:
        (folder / "dict.txt").unlink(missing_ok=True)
    for folder in folders:
        for split in ("train", "valid", "test"):
            for kind in ("bin", "idx", "txt"):
                (folder / f"{split}.{kind}").unlink(missing_ok=True)
        shutil.rmtree(folder / "tokenizer", ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()


def _sync(path: Path) -> None:
    """Have a file, or what a folder lists, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # not every file system can do it for folders
            raise
    finally:
        os.close(descriptor)
