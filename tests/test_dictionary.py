import pytest

from tn_fairseq.dictionary import MASK, fingerprint, load_dictionary
from tn_fairseq.errors import InputError


def write(tmp_path, content: bytes):
    path = tmp_path / "dict.txt"
    path.write_bytes(content)
    return path


def test_mask_comes_last(tmp_path):
    dictionary = load_dictionary(write(tmp_path, b"one 5\ntwo 3\n"))
    assert dictionary.symbols == ["<s>", "<pad>", "</s>", "<unk>", "one", "two", MASK]


def test_the_fingerprint_depends_on_symbols_and_order_but_not_on_counts(tmp_path):
    prints = [
        fingerprint(load_dictionary(write(tmp_path, content)))
        for content in (b"one 5\ntwo 3\n", b"one 1\ntwo 1\n", b"two 3\none 5\n", b"one 5\ntwo 3\nthree 1\n")
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3 and all(len(p) == 64 for p in prints)


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "No such file"),
        (b"one 5\nb\xffd 3\n", "line 2: not UTF-8 .byte 7.;"),
        (b"", "no symbols"),
        (b"one\n", "not a fairseq dictionary"),
        (b"one five\n", "not a fairseq dictionary"),
        (b"one 1\none 1\n", "Duplicate"),
    ],
)
def test_invalid_files_are_named_in_one_line(tmp_path, content, said):
    path = tmp_path / "dict.txt" if content is None else write(tmp_path, content)
    with pytest.raises(InputError, match=said) as error:
        load_dictionary(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
