import numpy as np
import pyarrow as pa
import pytest
from files import refused
from helpers import Bomb
from pyarrow import parquet

from tn_fairseq.synonyms.vectors import read_vectors

WORDS = ["main", "Far", "chief", "basal", "far", "main"]
MATRIX = np.array([[1, 0], [3, 4], [2, 0.2], [1, 1], [-1, 0], [0, 1]], dtype=np.float32)
LINES = ["main 1 0", "Far 3 4", "chief 2 0.2", "basal 1 1", "far -1 0", "main 0 1"]
WANTED = ["Far", "far", "Main", "main", "unknown", "basal"]


@pytest.fixture
def file_of(tmp_path):
    def write(lines, ending="\n"):
        path = tmp_path / "vectors.txt"
        path.write_bytes(b"".join(line if isinstance(line, bytes) else f"{line}{ending}".encode() for line in lines))
        return path

    return write


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


@pytest.fixture
def words_file(folder):
    (path,) = (path for path in folder.iterdir() if path.suffix in (".txt", ".parquet"))
    return path


def assert_expected(path):
    vectors, _ = read_vectors(path, WANTED)
    assert vectors.words == ["Far", "far", "Main", "main", "basal"]  # Main gets the vector of main, the first of two
    assert vectors.matrix.dtype == np.float32
    expected = np.array([[0.6, 0.8], [-1, 0], [1, 0], [1, 0], [0.5**0.5, 0.5**0.5]])
    np.testing.assert_allclose(vectors.matrix, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("lines", "ending"),
    [
        (LINES, "\n"),
        (LINES, " \r\n"),
        (["6 2", *LINES], "\n"),  # the header of word2vec
        ([*LINES, ". . . 1 0", "at name@domain.com 1 1"], "\n"),  # words of GloVe
        (["windows 7 0.1 1", *LINES, "catch 22 1 1"], "\n"),
        ([*LINES, "  1 1", "\u00a0 1 1"], "\n"),  # tokens of white space
        (["7 2", "windows 7 1 1", *LINES], "\n"),
        ([*LINES, "other 0 0"], "\n"),  # vectors of other words are not checked
    ],
)
def test_text_files(file_of, lines, ending):
    assert_expected(file_of(lines, ending))


def test_words_that_are_not_utf8_are_counted_and_skipped(file_of):
    path = file_of([*LINES, b"\x96 1 0\n"])
    assert_expected(path)
    assert read_vectors(path, WANTED)[1] == 1


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<f2"])
def test_folders_of_any_precision_and_order(folder, kind):
    np.save(folder / "emb.npy", np.asfortranarray(np.where(np.float32(0.2) == MATRIX, np.nan, MATRIX).astype(kind)))
    assert_expected(folder)  # chief is not wanted, so it is not checked
    assert read_vectors(folder, WANTED)[1] == 0


def test_rare_line_separators_belong_to_words(tmp_path):
    np.save(tmp_path / "emb.npy", MATRIX[:2])
    (tmp_path / "words.txt").write_bytes("a\u2028b\r\nmain".encode())
    assert read_vectors(tmp_path, ["main"])[0].matrix == pytest.approx(np.array([[0.6, 0.8]]))


def test_the_version_names_the_files_and_their_content(file_of, folder, words_file):
    def version_of(path):
        return read_vectors(path, WORDS)[0].version

    found = [version_of(file_of(LINES)), version_of(folder)]
    assert found[0].startswith("vectors.txt, 6 vectors of dimension 2, sha256 ")
    assert found[1].startswith(f"emb.npy with {words_file.name}, 6 vectors of dimension 2, sha256 ")
    found.append(version_of(file_of([*LINES[:-1], "main 1 1"])))
    write_words(words_file, ["other", *WORDS[1:]])
    found.append(version_of(folder))
    np.save(folder / "emb.npy", MATRIX + 1)
    assert len({*found, version_of(folder)}) == 5


def refusal(path):
    message = refused(read_vectors, path, WORDS)
    assert message.startswith(str(path))
    return message


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([*LINES, "short 1"], "line 7: 1 numbers, not 2"),
        ([*LINES[:2], "", *LINES[2:]], "line 3: 0 numbers, not 2"),
        (["7 2", *LINES], "promises 7 vectors, but it has 6"),
        (["main 1 x"], "line 1: not a word followed by numbers"),
        (["main"], "line 1: not a word followed by numbers"),
        ([b"\x1f\x8b\x08 \x00\xff\n"], "gunzip"),
        (["2 2", b"main \x00\x00\x80\x3f\x00\x00\x00\x40big \x00\x00\x80\x3f\x00\x00"], "binary format"),
        ([*LINES[1:5], "main 1 x"], "line 5: could not convert"),
        ([*LINES[1:5], "main inf 1"], "line 5: contains a number that is not finite"),
        ([*LINES[1:5], "main 0 0.0"], "line 5: all numbers are zero"),
        ([], "contains no vectors"),
        (["other 3 4"], "none of the dictionary's whole words"),
        (["2 2", "/c/en/big 1 0", "/c/en/small 0 1"], "line 2: /c/en/big is a word with its language"),
    ],
)
def test_an_invalid_text_file_is_reported_with_the_line(file_of, lines, reason):
    assert reason in refusal(file_of(lines))


def with_matrix(matrix):
    return lambda folder, words: np.save(folder / "emb.npy", matrix)


def with_columns(**columns):
    return lambda folder, words: (words.unlink(), parquet.write_table(pa.table(columns), folder / "a.parquet"))


def cut(kept):
    return lambda folder, words: (folder / "emb.npy").write_bytes((folder / "emb.npy").read_bytes()[:kept])


# what is done to a folder, and what the error must say
FOLDERS = [
    (lambda folder, words: np.save(folder / "other.npy", MATRIX), ".npy: emb.npy, other.npy"),
    (lambda folder, words: (folder / f"more{words.suffix}").touch(), ".txt or .parquet: "),
    (lambda folder, words: (folder / "emb.npy").unlink(), "no such file"),
    (with_matrix(MATRIX[0]), "of shape (2,)"),
    (with_matrix(MATRIX[:, :0]), "of shape (6, 0)"),
    (with_matrix(MATRIX.astype(int)), "int64 values"),
    (with_matrix(MATRIX[:5]), "contains 6 words, but emb.npy has 5 rows"),
    (with_matrix(np.where(MATRIX == -1, np.nan, MATRIX)), "row 4 ('far'): contains a number that is not finite"),
    *((cut(kept), "not a matrix in NumPy's format") for kept in (0, 60, 130)),
    (with_columns(a=WORDS, b=WORDS), "one column of text"),
    (with_columns(a=[1, 2, 3, 4, 5, 6]), "one column of text"),
    (lambda folder, words: words.write_bytes(words.read_bytes()[:-3] + b"\xff"), "not "),  # UTF-8, or a Parquet file
    (lambda folder, words: write_words(words, [f"/c/en/{word}" for word in WORDS]), "row 0: /c/en/main is a word with"),
]


@pytest.mark.parametrize(("change", "reason"), FOLDERS)
def test_an_invalid_folder_is_refused(folder, words_file, change, reason):
    change(folder, words_file)
    assert reason in refusal(folder)


def test_a_missing_file_is_refused(tmp_path):
    refusal(tmp_path / "missing.txt")


def test_nothing_is_unpickled(folder, tmp_path):
    trace = tmp_path / "exploded"
    np.save(folder / "emb.npy", np.array([[Bomb(trace)]], dtype=object), allow_pickle=True)
    assert "not a matrix in NumPy's format" in refusal(folder)
    assert not trace.exists()
