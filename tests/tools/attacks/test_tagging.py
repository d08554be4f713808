"""Words with their character offsets and parts of speech."""

import re

import pytest

from tn_fairseq.tools.attacks import tagging
from tn_fairseq.tools.attacks.tagging import tag


def tags(text: str) -> list[str]:
    return [f"{word.text}/{word.tag}" for word in tag(text)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The Panthers' $5.3 million (10,000%) don’t -- “end”.\n\nIt's Zürich’s U.S.-born 1990s O'Brien: naïve\u00a0x²!",
        "北京 is Peking ... \u200b\u0301 \U0001f600 ' '' ` n't 's",
    ],
)
def test_only_white_space_is_between_the_words(text):
    words = tag(text)
    assert [text[word.start : word.end] for word in words] == [word.text for word in words]
    gaps = [text[one.end : other.start] for one, other in zip(words, words[1:])]
    assert "".join(text.split()) == "".join(word.text for word in words)
    assert not "".join(gaps).strip()


@pytest.mark.parametrize(
    "tagged",
    [
        "She/PRP plans/VBZ to/TO play/VB in/IN the/DT plays/NNS that/IN he/PRP plans/VBZ ./.",  # the sentence decides
        "they/PRP do/VBP n't/RB know/VB it/PRP 's/VBZ Anna/NNP ’s/POS ,/, we/PRP 'll/MD see/VB",
        "Super/NNP Bowl/NNP games/NNS are/VBP American/JJ football/NN games/NNS of/IN the/DT Denver/NNP Broncos/NNPS "
        "./.",
    ],
)
def test_tags(tagged):
    words = [word.rpartition("/")[0] for word in tagged.split()]
    text = re.sub(r" (?=[.,]|n't|['’](?:s|ll)\b)", "", " ".join(words))
    assert tags(text) == tagged.split()


def test_words_that_begin_a_sentence():
    text = 'Teachers work. "Pupils learn" in the U.S. too? J. S. Bach did. of 3.5 days\nImmune systems'
    assert [word.text for word in tag(text) if word.begins_sentence] == ["Teachers", "Pupils", "J", "Immune"]
    assert tags("Immune systems. Teachers work")[0::3] == ["Immune/JJ", "Teachers/NNS"]


def test_a_model_in_the_current_folder_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "morphmodel_en.pgz").write_bytes(b"not a model")
    monkeypatch.chdir(tmp_path)
    tagging._tagger.cache_clear()
    assert tags("the words") == ["the/DT", "words/NNS"]
