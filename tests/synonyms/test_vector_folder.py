import sys

import numpy as np
import pyarrow as pa
import pytest
from helpers import Bomb
from pyarrow import parquet

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms.vectors import read_vectors

WORDS = ["main", "Far", "chief", "basal", "far", "main"]
MATRIX = np.array([[1, 0], [3, 4], [2, 0.2], [1, 1], [-1, 0], [0, 1]], dtype=np.float32)


def write_words(path, words):
    if path.suffix == ".parquet":
        parquet.write_table(pa.table({"index": words}), path)
    else:
        path.write_text("".join(f"{word}\n" for word in words))


@pytest.fixture(params=["words.txt", "index.parquet"])
def folder(tmp_path, request):
    folder = tmp_path / "vectors"
    folder.mkdir()
    np.save(folder / "emb.npy", MATRIX)
    write_words(folder / request.param, WORDS)
    (folder / "README.md").touch()
    return folder


def test_a_folder_gives_the_vectors_of_the_same_text_file(folder, tmp_path):
    lines = [f"{word} {x:.9g} {y:.9g}\n" for word, (x, y) in zip(WORDS, MATRIX)]
    (tmp_path / "vectors.txt").write_text("".join(lines))
    wanted = ["Far", "far", "Main", "main", "unknown", "basal"]
    ours, expected = read_vectors(folder, wanted), read_vectors(tmp_path / "vectors.txt", wanted)
    assert ours.words == expected.words == ["Far", "far", "Main", "main", "basal"]
    assert ours.matrix.dtype == np.float32 and ours.matrix == pytest.approx(expected.matrix, abs=1e-7)
    assert ours.not_utf8 == 0


def test_rare_line_separators_belong_to_words(tmp_path):
    np.save(tmp_path / "emb.npy", MATRIX[:2])
    (tmp_path / "words.txt").write_bytes("a\u2028b\r\nmain".encode())
    assert read_vectors(tmp_path, ["main"]).matrix == pytest.approx(np.array([[0.6, 0.8]]))


@pytest.mark.parametrize("kind", [">f8", "<f2"])
def test_the_precision_and_order_of_the_matrix_do_not_matter(folder, kind):
    expected = read_vectors(folder, ["far", "basal"]).matrix
    np.save(folder / "emb.npy", np.asfortranarray(MATRIX.astype(kind)))
    assert read_vectors(folder, ["far", "basal"]).matrix == pytest.approx(expected)


def test_the_version_names_both_files_and_their_content(folder):
    version = read_vectors(folder, WORDS).version
    (words,) = (path for path in folder.iterdir() if path.suffix in (".txt", ".parquet"))
    assert version.startswith(f"emb.npy with {words.name}, 6 vectors of dimension 2, sha256 ")
    write_words(words, ["other", *WORDS[1:]])
    changed = read_vectors(folder, WORDS).version
    np.save(folder / "emb.npy", MATRIX + 1)
    assert len({version, changed, read_vectors(folder, WORDS).version}) == 3


def refusal(folder, words=WORDS):
    with pytest.raises(InputError) as raised:
        read_vectors(folder, words)
    assert str(raised.value).startswith(str(folder)) and "\n" not in str(raised.value)
    return str(raised.value)


def test_missing_and_ambiguous_files_are_refused(folder):
    np.save(folder / "other.npy", MATRIX)
    assert ".npy: emb.npy, other.npy; --vectors needs a folder with one matrix" in refusal(folder)
    (folder / "other.npy").unlink()
    (folder / "more.txt").touch()
    (folder / "more.parquet").touch()
    assert ".txt or .parquet: " in refusal(folder)
    (folder / "emb.npy").unlink()
    assert "no such file" in refusal(folder)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (MATRIX[0], "float32 values of shape .2,."),
        (MATRIX[:, :0], "of shape .6, 0."),
        (MATRIX.astype(int), "int64 values"),
        (MATRIX[:5], "contains 6 words, but emb.npy has 5 rows"),
        (np.where(MATRIX == -1, np.nan, MATRIX), "row 4 .'far'.: contains a number that is not finite"),
        (np.where(MATRIX == -1, 0, MATRIX), "row 4 .'far'.: all numbers are zero"),
    ],
)
def test_an_invalid_matrix_is_refused(folder, matrix, reason):
    np.save(folder / "emb.npy", matrix)
    with pytest.raises(InputError, match=reason):
        read_vectors(folder, WORDS)


def test_rows_that_are_not_wanted_are_not_checked(folder):
    np.save(folder / "emb.npy", np.where(MATRIX == -1, np.nan, MATRIX))
    assert read_vectors(folder, ["main", "chief"]).words == ["main", "chief"]


def test_nothing_is_unpickled(folder, tmp_path):
    trace = tmp_path / "exploded"
    np.save(folder / "emb.npy", np.array([[Bomb(trace)]], dtype=object), allow_pickle=True)
    assert "not a matrix in NumPy's format" in refusal(folder)
    assert not trace.exists()


@pytest.mark.parametrize("keep", [0, 4, 60, 130])
def test_a_damaged_matrix_is_refused(folder, keep):
    content = (folder / "emb.npy").read_bytes()
    (folder / "emb.npy").write_bytes(content[:keep])
    assert "not a matrix in NumPy's format" in refusal(folder)


def test_a_damaged_list_of_words_is_refused(folder):
    (words,) = (path for path in folder.iterdir() if path.suffix in (".txt", ".parquet"))
    words.write_bytes(words.read_bytes()[:-3] + b"\xff")
    assert "not UTF-8" in refusal(folder) or "not a Parquet file" in refusal(folder)


@pytest.mark.parametrize("columns", [{"a": WORDS, "b": WORDS}, {"a": [1, 2, 3, 4, 5, 6]}])
def test_other_columns_are_refused(folder, columns):
    for path in folder.glob("words.txt"):
        path.unlink()
    parquet.write_table(pa.table(columns), folder / "index.parquet")
    assert "must be one column of text" in refusal(folder)


def test_without_pyarrow_the_error_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    if (folder / "words.txt").exists():
        assert read_vectors(folder, WORDS).words  # a text file does not need it
    else:
        assert "pip install 'tn_fairseq[parquet]'" in refusal(folder)
