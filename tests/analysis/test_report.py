"""Names and parts of speech of the report; its contents are tested in tests/integration/test_analysis.py."""

import nltk
from nltk.corpus.reader import CorpusReader

from tn_fairseq.analysis.report import _part_of_speech
from tn_fairseq.reporting.layout import table_names
from tn_fairseq.synonyms.wordnet import ensure_wordnet


def test_tables_are_named_after_their_files_unless_two_names_are_equal(tmp_path):
    assert table_names([tmp_path / "wordnet.safetensors", tmp_path / "glove.safetensors"]) == ["wordnet", "glove"]
    same = [tmp_path / "a" / "t.safetensors", tmp_path / "b" / "t.safetensors"]
    assert table_names(same) == list(map(str, same))


def test_parts_of_speech_of_a_language_that_nltk_lacks_are_unknown(monkeypatch, tmp_path, capsys):
    wordnet = ensure_wordnet()
    monkeypatch.setattr(wordnet, "_omw_reader", nltk.corpus.LazyCorpusLoader("omw-2.0", CorpusReader, ".*"))
    monkeypatch.setattr(wordnet, "omw_langs", set())
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    assert _part_of_speech("fra")("maison", "édifice") == "unknown"
    assert "--source wordnet --lang fra" in capsys.readouterr().err
    assert _part_of_speech("eng")("primary", "main") == "adjective"
    assert capsys.readouterr().err == ""
