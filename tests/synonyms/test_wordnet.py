import subprocess
from collections import defaultdict

import nltk
import pytest
from nltk.corpus.reader import CorpusReader

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms import wordnet
from tn_fairseq.synonyms.wordnet import (
    DownloadFailed,
    ensure_language,
    ensure_wordnet,
    inflected_synonyms,
    wordnet_synonyms,
    wordnet_version,
)

# The format of the Open Multilingual WordNet: offset and part of speech in WordNet 3.0, type, lemma.
FRENCH = """\
# A lexicon\tfra\thttps://example.org\tno licence
01277426-a\tfra:lemma\tprincipal
01277426-a\tfra:lemma\tprimaire
01277426-a\tfra:lemma\tde premier ordre
02913152-n\tfra:lemma\tbâtiment
02913152-n\tfra:lemma\tÉdifice
02913152-n\tfra:def\t0\tune construction
03544360-n\tfra:lemma\tmaison
03544360-n\tfra:lemma\tbâtiment
99999999-n\tfra:lemma\tnulle part
"""


@pytest.fixture
def without_languages(reader, monkeypatch, tmp_path, no_network):
    """WordNet is loaded, NLTK searches only an empty folder for other languages, and there is no network."""
    root = tmp_path / "nltk_data"
    root.mkdir(mode=0o755)
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    languages = nltk.corpus.LazyCorpusLoader("omw-2.0", CorpusReader, r".*/wn-data-.*\.tab", encoding="utf8")
    monkeypatch.setattr(reader, "_omw_reader", languages)
    monkeypatch.setattr(reader, "omw_langs", set())
    monkeypatch.setattr(reader, "provenances", defaultdict(str, eng=""))
    monkeypatch.setattr(reader, "_lang_data", defaultdict(list))
    return root


def write_lexicon(root, language, content):
    """Write the lemmas of a language to a folder of NLTK that only the owner can write."""
    folder = root / "corpora" / "omw-2.0" / "provider"
    for parent in (folder.parent.parent, folder.parent, folder):
        parent.mkdir(exist_ok=True)
        parent.chmod(0o755)
    path = folder / f"wn-data-{language}.tab"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o644)
    return path


@pytest.fixture
def french(reader, without_languages):
    write_lexicon(without_languages, "fra", FRENCH)
    ensure_language(reader, "fra")
    return lambda word: wordnet_synonyms(reader, word, "fra")


def test_the_version_of_wordnet(reader):
    assert wordnet_version(reader) == "WordNet 3.0"
    assert ensure_wordnet() is reader


def test_all_lemmas_of_all_parts_of_speech(reader):
    assert {"primary", "main", "chief", "principal", "primary_winding"} <= set(wordnet_synonyms(reader, "primary"))
    stay = wordnet_synonyms(reader, "stay")
    assert {"remain", "arrest", "abide", "bide", "quell"} <= set(stay)
    assert len(stay) == len(set(stay))


def test_base_forms_are_tried(reader):
    assert "dog" in wordnet_synonyms(reader, "dogs")


@pytest.mark.parametrize(
    ("word", "found", "not_found"),
    [
        ("elections", {"election", "elections"}, {"elects"}),
        ("requires", {"need", "needs", "demands"}, {"needed", "needing"}),
        ("went", {"travel", "traveled", "travelled", "became"}, {"gone", "travels"}),
        ("left", {"leave", "leftover", "departed", "exited"}, {"exiting"}),
        ("bigger", {"large", "larger"}, {"largest"}),
        ("Quickly", {"rapidly", "quickly"}, {"rapid"}),
    ],
)
def test_lemmas_are_also_offered_in_the_form_of_the_word(reader, word, found, not_found):
    offered = inflected_synonyms(reader, word)
    assert found <= set(offered) and not not_found & set(offered)
    assert len(offered) == len(set(offered))
    lemmas = wordnet_synonyms(reader, word)
    assert [name for name in offered if name in lemmas] == lemmas


def test_an_unknown_word_has_no_synonyms(reader):
    assert wordnet_synonyms(reader, "xyzzyx") == []


def test_without_wordnet_the_error_says_how_to_get_it(without_wordnet, monkeypatch):
    def no_command(*args, **kwargs):
        pytest.fail("a library must not start a package manager")

    monkeypatch.setattr(subprocess, "Popen", no_command)
    with pytest.raises(DownloadFailed) as raised:
        ensure_wordnet()
    message = "no WordNet, and downloading it failed (no network); get it with python -m tn_fairseq.synonyms."
    assert str(raised.value) == f"{message}fetch_wordnet"


def test_a_damaged_wordnet_is_reported(without_wordnet):
    folder = without_wordnet / "corpora" / "wordnet"
    for created in (without_wordnet, folder.parent, folder):
        created.mkdir(mode=0o755)
    (folder / "data.noun").touch()
    with pytest.raises(InputError, match="not a complete WordNet") as raised:
        ensure_wordnet()
    assert str(folder) in str(raised.value) and "\n" not in str(raised.value)


def test_lemmas_of_another_language_share_synsets_of_wordnet(french):
    assert french("principal") == french("primaire") == ["principal", "primaire", "de_premier_ordre"]  # a satellite
    assert french("bâtiment") == ["bâtiment", "Édifice", "maison"]
    assert french("maison") == ["maison", "bâtiment"]


def test_lookup_ignores_case(french):
    assert french("édifice") == french("ÉDIFICE") == french("Édifice") == ["bâtiment", "Édifice"]


def test_words_of_other_languages_and_inflected_forms_are_unknown(french):
    assert french("primary") == french("maisons") == french("batiment") == []
    assert french("nulle_part") == []  # WordNet has no such synset


def test_english_does_not_change(french, reader):
    assert wordnet_synonyms(reader, "edifice") == ["building", "edifice"]
    assert wordnet_synonyms(reader, "maison") == []


def test_the_version_names_the_release_and_the_language(french, reader):
    assert wordnet_version(reader, "fra") == "WordNet 3.0 with omw-2.0 (fra)"
    assert wordnet_version(reader) == wordnet_version(reader, "eng") == "WordNet 3.0"


def language_error(reader, language):
    with pytest.raises(InputError) as raised:
        ensure_language(reader, language)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_the_error_for_an_unknown_language_lists_all_languages(reader, without_languages):
    write_lexicon(without_languages, "spa", "")
    write_lexicon(without_languages, "fra", FRENCH)
    assert language_error(reader, "deu").startswith("--lang deu: not in omw-2.0")
    assert language_error(reader, "deu").endswith("eng, fra, spa")


def test_without_the_multilingual_wordnet_the_error_says_how_to_get_it(reader, without_languages, capfd):
    message = language_error(reader, "fra")
    assert "python -m nltk.downloader omw-2.0" in message and "no network" in message
    assert "trying nltk.download" in capfd.readouterr().err


def test_a_missing_multilingual_wordnet_is_downloaded(reader, without_languages, monkeypatch):
    downloaded = []

    def download(package):
        downloaded.append(package)
        write_lexicon(without_languages, "fra", FRENCH)

    monkeypatch.setattr(wordnet, "_download", download)
    ensure_language(reader, "fra")
    assert downloaded == ["omw-2.0"] and wordnet_synonyms(reader, "maison", "fra") == ["maison", "bâtiment"]


def test_a_damaged_lexicon_is_reported(reader, without_languages):
    write_lexicon(without_languages, "fra", FRENCH.encode("latin-1"))
    message = language_error(reader, "fra")
    assert "not a complete Open Multilingual WordNet" in message and str(without_languages) in message


def test_a_damaged_download_is_reported(reader, without_languages):
    archive = without_languages / "corpora" / "omw-2.0.zip"
    archive.parent.mkdir(mode=0o755)
    archive.write_bytes(b"PK, but no archive")
    archive.chmod(0o644)
    assert "omw-2.0: not a complete Open Multilingual WordNet" in language_error(reader, "fra")


def test_an_existing_wordnet_is_not_downloaded_again(reader, monkeypatch, capfd):
    monkeypatch.setattr(wordnet, "_download", lambda package: pytest.fail("downloaded again"))
    assert ensure_wordnet() is reader
    assert capfd.readouterr().err == ""
