"""Damaged files are read or refused with a one-line error: no traceback, no hang, no excessive memory."""

import random
import re
from collections import Counter

import pytest
from fuzzing import check_reads_or_refuses, kinds, mutate, peak_memory
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

NAMES = ["dict.txt", "synonym table", "vectors", "vector matrix", "vocab.txt", "tokenizer_config.json"]
NAMES += ["encoder.json", "vocab.bpe", "SentencePiece", "tokenizer.json", "GLUE", "SQuAD", "csv", "groups", "mythes"]
NAMES += [
    "ppdb",
    "json",
    "swords.json.gz",
    "word pairs",
    "BLiMP",
    "checkpoint",
    "a.jsonl.zst",
    "a.xz",
    "a.parquet",
    "a.arrow",
]


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
    """Prints how many could be read, and the errors of the others."""
    caplog.set_level("CRITICAL")
    for name, kind in kinds(tmp_path).items():
        good, before = kind.path.read_bytes(), peak_memory()
        rng = random.Random(name)
        said = Counter()
        for number in range(10_000):
            content = mutate(good, rng)
            try:
                found = check_reads_or_refuses(kind, content)
            except BaseException:
                print(f"{name}, damage {number}: {content[:2000]!r}")
                raise
            said[re.sub(r"\d+|'.*?'|\(.*?\)", "…", found.replace(str(kind.path), "FILE"))[:100]] += 1
        kind.path.write_bytes(good)
        grown = (peak_memory() - before) / 1e6
        print(f"\n{name}: {said.pop('read', 0):,} read; memory grew by {grown:.0f} MB")
        for message, count in said.most_common(8):
            print(f"  {count:6,}  {message}")
        assert grown < 200
