import json
import logging
import pickle

import pytest
import torch
from files import refused
from helpers import Bomb
from preprocessed import dictionary_of
from safetensors.torch import save_file

from tn_fairseq.core.errors import InputError
from tn_fairseq.core.synonym_table import (
    PADDING,
    load_synonym_table,
    names_of,
    read_description,
    rows_to_table,
    save_synonym_table,
)
from tn_fairseq.core.vocabulary import continues_word

WORDS = {4: "main", 5: "chief", 6: "stay", 7: "Main", 8: "Chief"}
ROWS = {4: [5], 5: [4], 7: [8]}


@pytest.fixture
def dictionary():
    return dictionary_of(*WORDS.values())


@pytest.fixture
def saved(dictionary, tmp_path):
    """A function that saves a valid or invalid table and returns its path."""

    def save(table=None):
        path = tmp_path / "synonyms.safetensors"
        if table is None:
            table = rows_to_table(dictionary, ROWS)
        save_synonym_table(path, table, dictionary, {"source": "wordnet", "source_version": "WordNet 3.0"})
        return path

    return save


def test_rows_are_padded_on_the_right(dictionary):
    table = rows_to_table(dictionary, {4: [6, 5], 6: [4]})
    assert rows_to_table(dictionary, {}).tolist() == [[PADDING]] * len(dictionary)
    assert table.dtype == torch.int32 and table[4:7].tolist() == [[6, 5], [PADDING, PADDING], [4, PADDING]]


def test_saving_and_loading_gives_the_same_table_and_description(dictionary, saved):
    table = rows_to_table(dictionary, ROWS)
    path = saved(table)
    assert torch.equal(load_synonym_table(path, dictionary).synonyms, table)
    description = read_description(path)
    assert description["source_version"] == "WordNet 3.0"
    assert description["dictionary_size"] == str(len(dictionary))
    assert list(path.parent.iterdir()) == [path]
    (path.parent / "other").touch()
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode  # the usual permissions


def test_saving_again_gives_the_same_bytes_for_any_description(dictionary, tmp_path):
    table = rows_to_table(dictionary, ROWS)
    description = {f"key {number}": 'é 雪 " \\ / \n \t \x01 \x7f \u2028 😀' for number in range(20)}
    paths = [tmp_path / name for name in ("one.safetensors", "two.safetensors")]
    for path in paths:
        save_synonym_table(path, table, dictionary, description)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert description.items() <= read_description(paths[0]).items()


def test_a_failed_save_keeps_the_old_table(dictionary, saved, monkeypatch):
    path = saved()
    before = path.read_bytes()

    def disk_full(tensors, filename, metadata):
        filename.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", disk_full)
    with pytest.raises(InputError, match="No space left"):
        saved()
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def refusal(path, dictionary):
    message = refused(load_synonym_table, path, dictionary)
    assert "tn-fairseq synonyms build" in message
    return message


def test_missing_damaged_and_other_files_are_refused(dictionary, saved, tmp_path):
    path, content = saved(), saved().read_bytes()
    for kept in (0, 40, -1):
        path.write_bytes(content[:kept])
        assert "truncated" in refusal(path, dictionary)
    for save in (lambda: path.write_bytes(pickle.dumps(Bomb(tmp_path / "trap"))), lambda: torch.save({}, path)):
        save()
        assert "pickles are never opened" in refusal(path, dictionary)
    assert not (tmp_path / "trap").exists()
    assert "No such file" in refusal(tmp_path / "missing.safetensors", dictionary)
    assert "folder" in refusal(tmp_path, dictionary)
    save_file({"synonyms": torch.zeros(3)}, tmp_path / "model.safetensors")
    assert "not a synonym table" in refusal(tmp_path / "model.safetensors", dictionary)


def test_a_table_of_another_dictionary_or_version_is_refused(dictionary, saved, monkeypatch):
    assert "another dictionary" in refusal(saved(), dictionary_of(*reversed(WORDS.values())))
    monkeypatch.setattr("tn_fairseq.core.synonym_table.FORMAT_VERSION", "2")
    path = saved()
    monkeypatch.undo()
    assert "has format version 2, but this tn_fairseq reads 1" in refusal(path, dictionary)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.long(), "int64"),
        (lambda table: table[:-1].clone(), "of shape"),
        (lambda table: table[:, :0].clone(), "of shape"),
        (lambda table: table.flatten(), "of shape"),
        (lambda table: torch.cat([torch.full_like(table, PADDING), table], dim=1), "padding between"),
        ((4, 10_000), "ids outside"),
        ((4, 10), "ids outside the dictionary's 0 to 9"),
        ((4, -2), "ids outside"),
        ((4, 4), "own synonyms"),
        (lambda table: torch.cat([table[:, :1], table], dim=1), "synonym twice in a row"),
        ((4, 3), "special symbol"),
        ((3, 4), "special symbol"),
        ((4, 9), "special symbol"),
    ],
)
def test_invalid_rows_are_refused(dictionary, saved, change, reason):
    table = rows_to_table(dictionary, ROWS)
    if callable(change):
        table = change(table)
    else:
        word, synonym = change
        table[word, 0] = synonym
    path = saved(table)
    message = refusal(path, dictionary)
    assert reason in message and str(path) in message


def without_continuations(path, dictionary):
    """A table as version 0.1 wrote it."""
    save_file({"synonyms": load_synonym_table(path, dictionary).synonyms}, path, read_description(path))
    return path


@pytest.mark.parametrize("version_01", [False, True])
@pytest.mark.parametrize(
    "pieces", [("mer", "##le", "dog", "."), ("▁mer", "le", "▁dog", "."), ("Ġmer", "le", "Ġdog", ".")]
)
def test_a_table_says_which_pieces_continue_a_word(tmp_path, pieces, version_01):
    dictionary = dictionary_of(*pieces)
    path = tmp_path / "synonyms.safetensors"
    save_synonym_table(path, rows_to_table(dictionary, {}), dictionary, {})
    if version_01:
        without_continuations(path, dictionary)
    assert load_synonym_table(path, dictionary).continues_word.tolist() == [False] * 5 + [True] + [False] * 3


def test_a_table_for_a_dictionary_of_numbers_knows_its_pieces(tmp_path, caplog):
    path, encoder_json = tmp_path / "synonyms.safetensors", tmp_path / "encoder.json"
    encoder_json.write_text(json.dumps({"Ġmer": 5, "le": 6, "Ġdog": 7, ".": 8}), encoding="utf-8")
    dictionary = dictionary_of("5", "6", "7", "8")
    table = rows_to_table(dictionary, {})
    with pytest.raises(InputError, match="--encoder-json"):
        save_synonym_table(path, table, dictionary, {})
    assert not path.exists()
    save_synonym_table(path, table, dictionary, {}, continues_word(dictionary, encoder_json))
    with caplog.at_level(logging.WARNING):
        assert load_synonym_table(path, dictionary).continues_word.nonzero().tolist() == [[dictionary.index("6")]]
        assert not caplog.messages
        # without its pieces, no number is known to continue a word
        assert not load_synonym_table(without_continuations(path, dictionary), dictionary).continues_word.any()
    (message,) = caplog.messages
    assert "which pieces continue a word" in message and str(path) in message and "\n" not in message


@pytest.mark.parametrize(
    "wrong", [torch.zeros(10), torch.zeros(9, dtype=torch.bool), torch.zeros(10, 1, dtype=torch.bool)]
)
def test_invalid_continuations_are_refused(dictionary, saved, wrong):
    path = saved()
    tensors = {"synonyms": load_synonym_table(path, dictionary).synonyms, "continues_word": wrong}
    save_file(tensors, path, read_description(path))
    with pytest.raises(InputError, match=f"{path}: continues_word must be boolean of shape"):
        load_synonym_table(path, dictionary)


def test_tables_are_named_after_their_files_unless_two_names_are_equal(tmp_path):
    paths = [tmp_path / "wordnet.safetensors", tmp_path / "glove.safetensors"]
    assert names_of(paths) == {"wordnet": paths[0], "glove": paths[1]}
    same = [tmp_path / "a" / "t.safetensors", tmp_path / "b" / "t.safetensors"]
    assert names_of(same) == {str(path): path for path in same}
