"""Convert text into what fairseq reads: ``dict.txt`` and, for each split, ``.bin`` and ``.idx`` (or pieces as text).

The input is what ``text`` reads. The output is, byte for byte, that of ``fairseq-preprocess --only-source --srcdict
dict.txt`` on the same pieces: each line ends with ``</s>``, and a lone ``</s>`` separates documents, as
``--sample-break-mode complete_doc`` expects.

``binarize`` maps ``encode_chunk`` over the corpus with an engine and writes the results in order, so the output does
not depend on the engine or the number of workers. ``fairseq-train shard0:shard1`` reads one shard per epoch.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ...core.errors import InputError
from ...core.files import discard, publish, sync, write_folder
from ...tokenizers.base import Tokenizer
from .engines import open_engine
from .text import Chunk, Reading, Records, read_chunks
from .text_files import TEXT, TextFile, find_files
from .writers import BinaryWriter, TextWriter, Vocabulary


@dataclass(frozen=True)
class EncodedChunk:
    """The sentences of a chunk: dictionary indices, each with its ``</s>``, (tokens,), and lengths, (sentences,).

    ``starts`` are their byte positions in the chunk, and ``blanks`` the numbers of blank lines before them, both
    (sentences,). ``counts`` are those of ``SplitCounts`` that need no other chunk.
    """

    ids: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    blanks: np.ndarray
    trailing_blanks: int
    starts_document: bool
    nbytes: int
    counts: dict[str, int]


@dataclass
class SplitCounts:
    """Statistics of a split's lines; ``shard_tokens`` and ``tokens`` count every ``</s>``, as fairseq does.

    ``lowercase`` and ``uppercase`` are the lines that begin with such a letter.
    """

    documents: int = 0
    sentences: int = 0
    unknown: int = 0
    nothing_kept: int = 0
    repeated_blanks: int = 0
    outer_blanks: int = 0
    bad: int = 0
    lowercase: int = 0
    uppercase: int = 0
    shard_tokens: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """The number of tokens in all shards."""
        return sum(self.shard_tokens)

    @property
    def pieces(self) -> int:
        """The number of tokens without the ``</s>`` of sentences and boundaries."""
        return self.tokens - self.sentences - (self.documents - len(self.shard_tokens))

    @property
    def lines(self) -> int:
        """The number of lines that are not blank."""
        return self.sentences + self.nothing_kept

    @property
    def looks_wrapped(self) -> bool:
        """Whether many lines begin within a sentence: with a lowercase letter, although the text has uppercase ones."""
        return self.lowercase > 0.3 * self.lines and self.uppercase > 0.02 * self.lines


def encode_chunk(vocabulary: Vocabulary, reading: Reading, text: Chunk | Records) -> EncodedChunk:
    """Encode a chunk; raises InputError for invalid UTF-8 and bad records."""
    # Chunks are processed in parallel; the library's own threads would compete, and they do not survive a fork.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    chunk = text.plain(reading)
    lines = chunk.lines()
    blank = np.fromiter((not line or line.isspace() for line in lines), dtype=bool, count=len(lines))
    texts = [line for line, skip in zip(lines, blank) if not skip]
    token_ids, lengths = vocabulary.tokenizer.encode_chunk(texts)
    ids = vocabulary.table[token_ids]
    kept = lengths > 0
    counts = {
        "unknown": int((ids == vocabulary.unk).sum()),
        "nothing_kept": int((~kept).sum()),
        "bad": chunk.bad,
        "lowercase": sum(text[:1].islower() for text in texts),
        "uppercase": sum(text[:1].isupper() for text in texts),
    }
    lengths = lengths[kept]
    # The number of blank lines before each kept sentence tells where documents end, even if lines between were dropped.
    blanks = np.diff(np.cumsum(blank)[~blank][kept], prepend=0)
    line_starts = np.concatenate([[0], np.flatnonzero(np.frombuffer(chunk.data, dtype=np.uint8) == ord("\n")) + 1])
    return EncodedChunk(
        ids=np.insert(ids, np.cumsum(lengths), vocabulary.eos),
        lengths=(lengths + 1).astype(np.int32),
        starts=line_starts[: len(lines)][~blank][kept],
        blanks=blanks,
        trailing_blanks=int(blank.sum() - blanks.sum()),
        starts_document=chunk.starts_document,
        nbytes=chunk.size,
        counts=counts,
    )


def binarize(
    splits: dict[str, Sequence[str | Path]],
    tokenizer: Tokenizer,
    destdir: str | Path,
    workers: int | str = 1,
    text_only: bool = False,
    dict_path: str | Path | None = None,
    shards: int | None = None,
    reading: Reading = Reading(),  # noqa: B008, is immutable
) -> dict[str, SplitCounts]:
    """Binarize the text of each split into ``destdir`` and return statistics of their lines.

    ``dict_path`` is a released ``dict.txt`` to use instead of the tokenizer's own. ``workers`` is the number of local
    processes, or the address of a Dask scheduler whose workers are used. With ``shards``, ``destdir`` gets the folders
    of ``shard_names``, each with complete documents of train, about the same number of bytes, and all other splits. The
    content of ``destdir`` changes only when all splits are done. Raises InputError for invalid input, for a ``destdir``
    that another run is writing to, and as ``open_engine`` does.
    """
    destdir = Path(destdir)
    if shards is not None and os.pathsep in str(destdir):
        raise InputError(f"{destdir}: contains {os.pathsep!r}, which separates shards; give another --destdir")
    files = {}
    for split, inputs in splits.items():
        no_pipes = "--shards needs the file size" if shards is not None and split == "train" else None
        files[split] = find_files(inputs, reading.format, no_pipes)
    vocabulary = Vocabulary(tokenizer, dict_path)
    encode = partial(encode_chunk, vocabulary, reading)
    kind = TextWriter if text_only else BinaryWriter
    with write_folder(destdir, "--destdir") as staging:
        folders = [staging / name for name in shard_names(shards)]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        total = 0 if shards is None else _text_bytes(files["train"], reading, workers)
        counts = {}
        with open_engine(encode, workers) as encode_all:
            for split, inputs in splits.items():
                split_folders = folders if split == "train" else folders[:1]
                open_writers = [partial(kind, folder / split, vocabulary.dictionary) for folder in split_folders]
                writer = _SplitWriter(open_writers, total, vocabulary.eos)
                for chunk in encode_all(read_chunks(files[split], split, reading)):
                    writer.add(chunk)
                counts[split] = writer.close()
                _check_counts(split, inputs, counts[split], len(split_folders))
        vocabulary.write(folders[0])
        for folder in folders[1:]:
            shutil.copytree(folders[0], folder, ignore=shutil.ignore_patterns("train.*"), dirs_exist_ok=True)
        _publish(staging, destdir, shards)
    return counts


def shard_names(shards: int | None) -> list[str]:
    """The folders in ``destdir`` that get the output; without shards, ``destdir`` itself."""
    return [""] if shards is None else [f"shard{number}" for number in range(shards)]


def _text_bytes(files: Sequence[TextFile], reading: Reading, workers: int | str) -> int:
    """The size of the text; unless this is the size of the files, they are read once more."""
    are_plain = all(file.format == TEXT and file.compression is None and file.size for file in files)
    if are_plain and reading.split_sentences is None:
        return sum(file.size for file in files)
    with open_engine(partial(_plain_size, reading), workers) as measure_all:
        return sum(measure_all(read_chunks(files, "measuring train", reading)))


def _plain_size(reading: Reading, chunk: Chunk | Records) -> int:
    return chunk.plain(reading).size


class _SplitWriter:
    """Writes the encoded chunks of a split to one shard per writer, one shard after the other, and counts.

    ``total`` is the size of the split's text in bytes, which matters only if there are several shards.
    """

    def __init__(self, open_writers: Sequence[Callable[[], BinaryWriter | TextWriter]], total: int, eos: int):
        self._counts = SplitCounts()
        self._open_writers = open_writers
        self._total = total
        self._eos = eos
        self._writers: list[BinaryWriter | TextWriter] = []  # the last one is open
        self._blanks, self._new_document = 0, False  # since the last sentence
        self._position = 0  # of the next chunk, in bytes

    def add(self, chunk: EncodedChunk) -> None:
        """Write the next chunk."""
        for name, count in chunk.counts.items():
            setattr(self._counts, name, getattr(self._counts, name) + count)
        self._new_document |= chunk.starts_document
        if len(chunk.lengths):
            self._add_sentences(chunk)
            self._blanks, self._new_document = 0, False
        self._blanks += chunk.trailing_blanks
        self._position += chunk.nbytes

    def close(self) -> SplitCounts:
        """Close the last shard; return the complete counts."""
        if self._writers:
            self._writers[-1].close()
        self._counts.outer_blanks += self._blanks
        return self._counts

    def _add_sentences(self, chunk: EncodedChunk) -> None:
        blanks = chunk.blanks.copy()
        blanks[0] += self._blanks
        begins = blanks > 0  # a document
        begins[0] |= self._new_document
        if not self._writers:
            self._counts.outer_blanks += int(blanks[0])
            blanks[0] = 0
        documents = np.flatnonzero(begins)  # their first sentences
        opening = documents[self._openings(self._position + chunk.starts[documents])]
        separated = np.setdiff1d(documents, opening)  # by a lone </s>; none ends a shard
        self._counts.repeated_blanks += int((blanks - 1).clip(min=0).sum())
        self._counts.outer_blanks += int(blanks[opening].clip(max=1).sum())
        self._counts.documents += len(documents)
        self._counts.sentences += len(blanks)

        ends = np.concatenate([[0], np.cumsum(chunk.lengths)])
        moved = np.searchsorted(separated, opening)
        ids = np.split(np.insert(chunk.ids, ends[separated], self._eos), ends[opening] + moved)
        lengths = np.split(np.insert(chunk.lengths, separated, 1), opening + moved)
        for number, (shard_ids, shard_lengths) in enumerate(zip(ids, lengths)):
            if number > 0:
                if self._writers:
                    self._writers[-1].close()
                self._writers.append(self._open_writers[len(self._writers)]())
                self._counts.shard_tokens.append(0)
            if len(shard_ids):
                self._writers[-1].append(shard_ids, shard_lengths)
                self._counts.shard_tokens[-1] += len(shard_ids)

    def _openings(self, starts: np.ndarray) -> list[int]:
        """The documents that open a shard: the first one at or after the shard's share of the bytes.

        ``starts``, (documents,), are the byte positions at which the documents start.
        """
        shards, document = len(self._open_writers), 0
        openings: list[int] = []
        for shard in range(len(self._writers), shards):
            document += int(np.searchsorted(starts[document:] * shards, self._total * shard))
            if document == len(starts):
                break
            openings.append(document)
            document += 1
        return openings


def _check_counts(split: str, inputs: Sequence[str | Path], counts: SplitCounts, shards: int) -> None:
    names = ", ".join(map(str, inputs))
    if not counts.sentences and counts.bad:
        raise InputError(f"{names}: {counts.bad:,} bad records, and no text for {split}; give another --text-field")
    if not counts.sentences:
        raise InputError(f"{names}: no line with text for {split}; give a corpus with one sentence per line")
    if len(counts.shard_tokens) < shards:
        few = f"{counts.documents:,} documents are too few for {shards} shards"
        raise InputError(f"{names}: {few}; reduce --shards, or put blank lines between documents")


def _publish(staging: Path, destdir: Path, shards: int | None) -> None:
    """Move the finished files into place, ``dict.txt`` last: without it, fairseq does not read the folder."""
    if shards is None:
        old = destdir / "dict.txt"
        # Splits of an earlier run that are not replaced now would be read with the wrong dictionary.
        other = old.exists() and old.read_bytes() != (staging / "dict.txt").read_bytes()
        publish(staging, destdir, last="dict.txt", old=_splits(destdir) if other else ())
        return
    sync(staging)
    # Delete all shards of an earlier run: there may have been more of them, or another text. fairseq reads the dict.txt
    # of the first shard, so that file is deleted first and written last.
    earlier = sorted(path for path in destdir.glob("shard*") if re.fullmatch(r"shard\d+", path.name))
    discard([folder / "dict.txt" for folder in earlier], staging)
    for folder in earlier:
        discard([*_splits(folder), folder / "tokenizer"], staging)
        with suppress(OSError):
            folder.rmdir()
    for name in reversed(shard_names(shards)):
        publish(staging / name, destdir / name, last="dict.txt")


def _splits(folder: Path) -> list[Path]:
    """The files that can hold splits in a folder."""
    return [folder / f"{split}.{kind}" for split in ("train", "valid", "test") for kind in ("bin", "idx", "txt")]
