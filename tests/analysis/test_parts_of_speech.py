"""Parts of speech from WordNet."""

from tn_fairseq.analysis.parts_of_speech import UNKNOWN, part_of_speech
from tn_fairseq.synonyms.wordnet import ensure_wordnet


def test_the_shared_sense_decides_the_part_of_speech():
    reader = ensure_wordnet()
    assert part_of_speech(reader, "primary", "main") == "adjective"
    assert part_of_speech(reader, "stay", "remain") == "verb"
    assert part_of_speech(reader, "stay", "hitch") == "noun"
    assert part_of_speech(reader, "quickly", "rapidly") == "adverb"
    assert part_of_speech(reader, "began", "started") == "verb"  # their base forms are compared


def test_without_a_shared_sense_the_first_sense_decides():
    reader = ensure_wordnet()
    assert part_of_speech(reader, "dog", "quickly") == "noun"
    assert part_of_speech(reader, "qzxv", "dog") == UNKNOWN
