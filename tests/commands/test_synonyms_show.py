"""Rows of a table, for a dictionary."""

import pytest
from files import refused
from helpers import write_table

from tn_fairseq.commands.synonyms_show import main
from tn_fairseq.core.dictionary import load_dictionary

ROWS = {"primary": ["main", "chief"], "main": ["primary"]}


@pytest.fixture
def shown(tmp_path, capsys):
    """What the command prints for some words."""
    dict_txt = tmp_path / "dict.txt"
    dict_txt.write_text("".join(f"{word} 1\n" for word in ("primary", "main", "chief", "halt", "the", "##s")))
    table = write_table(tmp_path / "synonyms.safetensors", load_dictionary(dict_txt), ROWS)

    def run(*words: str) -> list[str]:
        main([str(table), *words, "--dict", str(dict_txt)])
        return capsys.readouterr().out.splitlines()

    return run


def test_the_description_and_then_the_rows_are_printed(shown):
    printed = shown("primary", "halt", "the")
    assert printed[-3:] == ["primary: main, chief", "halt: (no synonym)", "the: (a stop word)"]
    assert any(line.startswith("dictionary_fingerprint") for line in printed)
    assert printed[:-3] == shown()


def test_unknown_words_are_reported_after_the_rows(shown, tmp_path, capsys):
    message = refused(lambda words: shown(*words), ["##s", "primary", "zzz", "halt"])
    assert message == f"error: '##s', 'zzz' are not whole words in {tmp_path / 'dict.txt'}"
    assert capsys.readouterr().out.splitlines()[-2:] == ["primary: main, chief", "halt: (no synonym)"]


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("no.safetensors --dict dict.txt", "no.safetensors"),
        ("x", "--dict"),
        ("x --dict d --tokenizer t", "--tokenizer"),
        ("x --tokenizer t --encoder-json e", "--encoder-json"),
    ],
)
def test_wrong_input(tmp_path, shown, monkeypatch, flags, named):
    monkeypatch.chdir(tmp_path)
    assert named in refused(main, flags.split())
