"""Damaged files are read or refused with a one-line error: no traceback, no hang, no excessive memory."""

import json
import lzma
import random
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import torch
from fairseq.data import Dictionary
from helpers import WORDS, synonyms_of, write_squad, write_table, write_tsv, zstd
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lexical_files import swords_content, write_blimp, write_swords
from pyarrow import ipc, parquet
from tokenizer_folders import bert_folder, gpt2_folder, sentencepiece_folder
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from tn_fairseq.core.checkpoints import load_checkpoint
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.core.errors import InputError
from tn_fairseq.core.synonym_table import load_synonym_table
from tn_fairseq.synonyms.lists import SynonymList
from tn_fairseq.synonyms.neighbors import nearest_neighbors
from tn_fairseq.synonyms.swords import read_swords
from tn_fairseq.synonyms.vectors import read_vectors
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.evaluate.lexical.blimp import read_blimp
from tn_fairseq.tools.evaluate.lexical.word_pairs import read_word_pairs
from tn_fairseq.tools.formats.glue_tsv import TASKS, read_task
from tn_fairseq.tools.formats.squad_json import read_squad
from tn_fairseq.tools.preprocessing.text import Reading, read_chunks
from tn_fairseq.tools.preprocessing.text_files import find_files

NAMES = ["dict.txt", "synonym table", "vectors", "vector matrix", "vocab.txt", "tokenizer_config.json"]
NAMES += ["encoder.json", "vocab.bpe", "SentencePiece", "tokenizer.json", "GLUE", "SQuAD", "csv", "groups", "mythes"]
NAMES += ["ppdb", "json", "swords.json.gz", "word pairs", "BLiMP", "checkpoint", "a.jsonl.zst", "a.xz", "a.parquet"]
NAMES += ["a.arrow"]
LINES = ["The cat sat on the mat.", "café 汉字 [MASK]"]
# strings that are likely to confuse a reader
TOKENS = [b"", b"\x00", b"\xff", b"\n", b"\t", b" ", b'"', b"{", b"]", b"-1", b"NaN", b"1e999", b"99999999999", b"null"]


class Kind(NamedTuple):
    """A kind of file: a valid example, and the function that reads it."""

    path: Path
    read: Callable[[Path], object]


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Apply one to four random faults: flip bits or bytes; delete, duplicate, move or insert pieces."""
    for _ in range(rng.randint(1, 4)):
        place, length = rng.randint(0, len(content)), rng.choice([1, 1, 4, 30, len(content) // 3])
        before, piece, after = content[:place], content[place : place + length], content[place + length :]
        flipped = bytes([piece[0] ^ 1 << rng.randrange(8)]) + piece[1:] if piece else b""
        content = rng.choice(
            [
                before + after,
                before,
                before + piece + piece + after,
                after + piece + before,
                before + rng.choice(TOKENS) + piece + after,
                before + rng.choice(TOKENS) + after,
                before + rng.randbytes(len(piece)) + after,
                before + flipped + after,
            ]
        )
    return content


def check_reads_or_refuses(kind: Kind, content: bytes) -> str:
    """Read a file with this content; returns "read" or a one-line error, and fails on anything else."""
    kind.path.write_bytes(content)
    try:
        kind.read(kind.path)
    except InputError as error:
        assert "\n" not in str(error), error
        return str(error)
    except SystemExit as error:
        assert str(error).startswith("error: ") and "\n" not in str(error), error
        return str(error)
    return "read"


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def kinds(folder: Path) -> dict[str, Kind]:
    """A valid file of each kind, each in its own folder."""
    made = {}

    def add(name: str, path: Path, read: Callable[[Path], object]) -> None:
        made[name] = Kind(path, read)

    def make(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    text = "".join(f"{word} {number}\n" for number, word in enumerate(WORDS))
    path = make("dictionary") / "dict.txt"
    path.write_text(text)
    add("dict.txt", path, load_dictionary)
    dictionary = load_dictionary(path)

    path = write_table(make("table") / "t.safetensors", dictionary, {word: synonyms_of(word) for word in WORDS[:20]})
    add("synonym table", path, lambda path: load_synonym_table(path, dictionary))

    path = make("vectors") / "vectors.txt"
    path.write_text("".join(f"{word} {n % 7 - 2.5} {n % 5} 0.25\n" for n, word in enumerate(WORDS)))
    add("vectors", path, lambda path: list(nearest_neighbors(read_vectors(path, WORDS)[0], 3)))

    path = make("vector folder") / "matrix.npy"
    np.save(path, np.arange(1, 1 + 2 * len(WORDS)).reshape(-1, 2) % 7 - 2.5)
    (path.parent / "words.txt").write_text("\n".join(WORDS))
    add("vector matrix", path, lambda path: read_vectors(path.parent, WORDS))

    pairs = list(zip(WORDS, WORDS[1:]))
    for name, text in {
        "csv": "word,synonym,score\n" + "".join(f"{word},{other},{n}.5\n" for n, (word, other) in enumerate(pairs)),
        "groups": "".join(f"{word}, {other}, a phrase\n" for word, other in pairs),
        "mythes": "UTF-8\n" + "".join(f"{word}|1\n-|{other}|a phrase\n" for word, other in pairs),
        "ppdb": "".join(
            f"[X] ||| {word} ||| {other} ||| PPDB2.0Score=1.5 ||| 0-0 ||| Equivalence\n" for word, other in pairs
        ),
        "json": json.dumps({word: [other, "a phrase"] for word, other in pairs}, indent=0),
    }.items():
        path = make(name) / "synonyms.txt"
        path.write_text(text)
        add(name, path, partial(SynonymList, words=WORDS, format=name))

    add("vocab.txt", bert_folder(folder / "bert") / "vocab.txt", use_tokenizer)
    bert_folder(folder / "configured", do_lower_case=True, strip_accents=False)
    add(
        "tokenizer_config.json",
        folder / "configured" / "tokenizer_config.json",
        lambda path: use_tokenizer(path.parent),
    )
    add("encoder.json", gpt2_folder(folder / "gpt2") / "encoder.json", use_tokenizer)
    add("vocab.bpe", gpt2_folder(folder / "merges") / "vocab.bpe", lambda path: use_tokenizer(path.parent))
    add("SentencePiece", sentencepiece_folder(folder / "sp") / "any.model", use_tokenizer)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "."]
    backend = Backend(models.WordPiece({name: index for index, name in enumerate(names)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    path = make("fast") / "tokenizer.json"
    backend.save(str(path))
    add("tokenizer.json", path, use_tokenizer)

    rows = [["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]]
    rows += [[n % 2, n, n, f"A cat {n}.", f'The "cat\'s" {n}.'] for n in range(20)]
    for split in ("dev", "train"):
        path = write_tsv(folder / "glue" / "MRPC" / f"{split}.tsv", rows)
    add("GLUE", path, lambda path: read_task(path.parent, TASKS["MRPC"]))

    path = make("squad") / "train.json"
    add("SQuAD", write_squad(path, [("The cat sat on the mat.", "Where?", "the mat")] * 3), read_squad)

    content = swords_content([("The total is due.", "total", {"sum": 9, "all": 0})])
    add("swords.json.gz", write_swords(make("swords") / "swords.json.gz", content), read_swords)
    path = make("word pairs") / "pairs.txt"
    path.write_text("".join(f"{word}\t{other}\t{n}.5\n" for n, (word, other) in enumerate(zip(WORDS, WORDS[1:]))))
    add("word pairs", path, read_word_pairs)
    add("BLiMP", write_blimp(make("blimp") / "B.zip", {"x": [("the cat", "a cats")] * 9}), read_blimp)

    texts = pa.table({"text": LINES * 9})
    records = "".join(json.dumps({"text": line}) + "\n" for line in LINES * 9).encode()
    for name, content in (("a.jsonl.zst", zstd.compress(records)), ("a.xz", lzma.compress(records))):
        path = make(name) / name
        path.write_bytes(content)
        add(name, path, use_text)
    path = make("parquet") / "a.parquet"
    parquet.write_table(texts, path, row_group_size=5)
    add("a.parquet", path, use_text)
    path = make("arrow") / "a.arrow"
    with ipc.new_stream(path, texts.schema) as stream:
        stream.write_table(texts, max_chunksize=5)
    add("a.arrow", path, use_text)

    path = make("checkpoint") / "checkpoint.pt"
    torch.save({"cfg": {"model": {"_name": "x"}}, "model": {"w": torch.arange(20.0)}}, path)
    add("checkpoint", path, load_checkpoint)
    return made


def use_text(path: Path) -> None:
    """Read text as binarize does."""
    for chunk in read_chunks(find_files([path]), "", Reading()):
        chunk.plain(Reading()).lines()


def use_tokenizer(path: Path) -> None:
    """Load a tokenizer and use it as binarize does."""
    tokenizer = load_tokenizer(path)
    dictionary: Dictionary = tokenizer.dictionary()
    table = tokenizer.lookup_table(dictionary)
    ids, lengths = tokenizer.encode_chunk(LINES)
    assert len(table[ids]) == lengths.sum()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    made = kinds(tmp_path_factory.mktemp("files"))
    assert sorted(made) == sorted(NAMES)
    return made


ANY = st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_and_any_bytes_are_read_or_refused(files, name):
    good = files[name].path.read_bytes()
    assert check_reads_or_refuses(files[name], good) == "read"

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 32).map(random.Random).map(lambda rng: mutate(good, rng)) | ANY)
    @example(b"")
    def check(content):
        check_reads_or_refuses(files[name], content)

    try:
        check()
    finally:
        files[name].path.write_bytes(good)


@pytest.mark.soak
def test_ten_thousand_damaged_files_of_every_kind(tmp_path, caplog):
    caplog.set_level("CRITICAL")
    for name, kind in kinds(tmp_path).items():
        good, before, rng = kind.path.read_bytes(), peak_memory(), random.Random(name)
        for number in range(10_000):
            content = mutate(good, rng)
            try:
                check_reads_or_refuses(kind, content)
            except BaseException:
                print(f"{name}, damage {number}: {content[:2000]!r}")
                raise
        kind.path.write_bytes(good)
        assert peak_memory() - before < 200e6, name
