"""Parts of speech from WordNet."""

from nltk_folders import without_languages

from tn_fairseq.synonyms.wordnet import ensure_wordnet
from tn_fairseq.tools.look.parts_of_speech import UNKNOWN, part_of_speech_in


def test_the_shared_sense_decides_the_part_of_speech(capsys):
    ensure_wordnet()
    part_of_speech = part_of_speech_in("eng")
    for word, other, expected in (
        ("primary", "main", "adjective"),
        ("stay", "remain", "verb"),
        ("stay", "hitch", "noun"),
        ("quickly", "rapidly", "adverb"),
        ("began", "started", "verb"),  # their base forms are compared
        ("dog", "quickly", "noun"),  # no shared sense, so the first sense decides
        ("qzxv", "dog", UNKNOWN),
    ):
        assert part_of_speech(word, other) == expected, word
    assert capsys.readouterr().err == ""


def test_parts_of_speech_of_a_language_that_nltk_lacks_are_unknown(monkeypatch, tmp_path, capsys):
    without_languages(tmp_path, monkeypatch)
    assert part_of_speech_in("fra")("maison", "édifice") == UNKNOWN
    assert "--source wordnet --lang fra" in capsys.readouterr().err
    assert part_of_speech_in("eng")("primary", "main") == "adjective"
