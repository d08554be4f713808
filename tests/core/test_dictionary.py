import pytest
from fairseq.data import Dictionary
from files import refused, write

from tn_fairseq.core.dictionary import (
    MASK,
    SPECIAL_SYMBOLS,
    fingerprint,
    load_dictionary,
    read_symbols,
    symbols_of_pieces,
)


@pytest.mark.parametrize(
    "content",
    [
        b"one 5\ntwo 3\n",
        b"<unk> 9 #fairseq:overwrite\none 1\none 2 #fairseq:overwrite\n",
        "spaces in it 1\r\n\u2028 2\ra\u0085b 007\n \t 1\ntrailing 3 \n<mask> 4\nlast 1_0".encode(),
    ],
)
def test_a_dictionary_is_that_of_fairseq_plus_mask(tmp_path, content):
    path = write(tmp_path / "dict.txt", content)
    expected = Dictionary.load(str(path))
    expected.add_symbol(MASK)
    dictionary = load_dictionary(path)
    assert (dictionary.symbols, dictionary.count) == (expected.symbols, expected.count)
    assert dictionary.indices == expected.indices
    assert read_symbols(path).symbols == dictionary.symbols


# what ends a line for Python's splitlines or for a file, white space, nothing, and what means something in dict.txt
ODD_PIECES = [
    *"\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\u3000\xa0\t \x00\x1a\ufeff",
    "",
    "  ",
    "a b",
    " a",
    "a ",
    "5",
    "a 5",
]
ODD_PIECES += ["#fairseq:overwrite", "a #fairseq:overwrite", " #fairseq:overwrite", "<\\n>", "<<s>>"]
UNREADABLE_PIECES = ["\r", "\n", "\r\n", "a\nb", "\n\n", *SPECIAL_SYMBOLS, MASK]


def test_every_piece_has_a_symbol_that_fairseq_reads_back(tmp_path):
    symbols = symbols_of_pieces([*UNREADABLE_PIECES, *ODD_PIECES])
    assert symbols[len(UNREADABLE_PIECES) :] == ODD_PIECES  # fairseq takes them as they are
    named = [
        "<\\r>",
        "<<\\n>>",
        "<\\r\\n>",
        "<a\\nb>",
        "<\\n\\n>",
        "<<<s>>>",
        "<<pad>>",
        "<</s>>",
        "<<unk>>",
        "<<mask>>",
    ]
    assert symbols[: len(UNREADABLE_PIECES)] == named
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    dictionary.save(str(tmp_path / "dict.txt"))
    assert Dictionary.load(str(tmp_path / "dict.txt")).symbols == [*SPECIAL_SYMBOLS, *symbols]
    assert load_dictionary(tmp_path / "dict.txt").symbols == [*SPECIAL_SYMBOLS, *symbols, MASK]


@pytest.mark.parametrize("piece", UNREADABLE_PIECES)
def test_only_pieces_that_fairseq_does_not_read_back_are_escaped(tmp_path, piece):
    dictionary = Dictionary()
    dictionary.add_symbol(piece)
    dictionary.add_symbol(MASK)  # as tasks do
    dictionary.save(str(tmp_path / "dict.txt"))
    try:
        symbols = Dictionary.load(str(tmp_path / "dict.txt")).symbols
    except ValueError:
        return
    assert symbols != [*SPECIAL_SYMBOLS, piece, MASK]


def test_the_fingerprint_depends_on_symbols_and_order_but_not_on_counts(tmp_path):
    prints = [
        fingerprint(load_dictionary(write(tmp_path / "dict.txt", content)))
        for content in (b"one 5\ntwo 3\n", b"one 1\ntwo 1\n", b"two 3\none 5\n", b"one 5\ntwo 3\nthree 1\n")
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3 and all(len(p) == 64 for p in prints)


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "No such file"),
        (b"one 5\nb\xffd 3\n", "line 2: not UTF-8 (byte 7);"),
        (b"", "no symbols"),
        (b"one\n", "line 1: not a fairseq dictionary"),
        (b"one 1\n\ntwo 2\n", "line 2: not a fairseq dictionary"),
        (b"one five\n", "line 1: not a fairseq dictionary"),
        (b"one 1\none 1\n", "line 2: 'one' is in the dictionary twice"),
        (b"one 1\n<pad> 1\n", "line 2: '<pad>' is in the dictionary twice"),
    ],
)
def test_invalid_files_are_named_in_one_line(tmp_path, content, said):
    path = tmp_path / "dict.txt"
    if content is not None:
        write(path, content)
    message = refused(load_dictionary, path)
    assert str(path) in message and said in message
