import os
import stat
import subprocess
import urllib.error
import urllib.request
from collections import defaultdict

import nltk
import pytest
from nltk.corpus.reader import CorpusReader
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms import wordnet
from tn_fairseq.synonyms.wordnet import ensure_language, ensure_wordnet, wordnet_synonyms, wordnet_version

# The format of the Open Multilingual WordNet: offset and part of speech in WordNet 3.0, what it is, lemma.
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


@pytest.fixture(scope="module")
def reader():
    return ensure_wordnet()


@pytest.fixture
def without_wordnet(monkeypatch, tmp_path):
    """NLTK searches only a folder of ours, which lacks WordNet, and there is no network."""
    root = tmp_path / "nltk_data"
    tmp_path.chmod(0o755)
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    monkeypatch.setattr(nltk.corpus, "wordnet", nltk.corpus.LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    cut_off(monkeypatch)
    return root


@pytest.fixture
def without_languages(reader, monkeypatch, tmp_path):
    """WordNet is loaded, NLTK searches only a folder of ours for other languages, and there is no network."""
    root = tmp_path / "nltk_data"
    root.mkdir(mode=0o755)
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    languages = nltk.corpus.LazyCorpusLoader("omw-2.0", CorpusReader, r".*/wn-data-.*\.tab", encoding="utf8")
    monkeypatch.setattr(reader, "_omw_reader", languages)
    monkeypatch.setattr(reader, "omw_langs", set())
    monkeypatch.setattr(reader, "provenances", defaultdict(str, eng=""))
    monkeypatch.setattr(reader, "_lang_data", defaultdict(list))
    cut_off(monkeypatch)
    return root


def cut_off(monkeypatch):
    def no_network(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)


def write_lexicon(root, language, content):
    """Write the lemmas of a language where NLTK looks for them, and nobody else may write."""
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


@pytest.fixture
def debian_folder(monkeypatch, tmp_path, reader):
    """WordNet as Debian's packages install it: without lexnames."""
    folder = tmp_path / "usr-share-wordnet"
    folder.mkdir()
    for name in WordNetCorpusReader._FILES:
        if name != "lexnames":
            with reader.open(name) as file:
                (folder / name).write_text(file.read(), encoding="utf-8")
    monkeypatch.setattr(wordnet, "DEBIAN_FOLDER", folder)
    return folder


def test_it_is_wordnet_and_names_its_version(reader):
    assert wordnet_version(reader) == "WordNet 3.0"
    assert ensure_wordnet() is reader


def test_all_lemmas_of_all_parts_of_speech(reader):
    assert {"primary", "main", "chief", "principal", "primary_winding"} <= set(wordnet_synonyms(reader, "primary"))
    stay = wordnet_synonyms(reader, "stay")
    assert {"remain", "arrest", "abide", "bide", "quell"} <= set(stay)
    assert len(stay) == len(set(stay))


def test_base_forms_are_tried(reader):
    assert "dog" in wordnet_synonyms(reader, "dogs")


def test_an_unknown_word_has_none(reader):
    assert wordnet_synonyms(reader, "xyzzyx") == []


def test_debian_files_are_prepared_for_nltk(without_wordnet, debian_folder, capfd):
    reader = ensure_wordnet()
    assert wordnet_version(reader) == "WordNet 3.0"
    assert reader.synsets("primary")[0].lexname() == "noun.act"
    folder = without_wordnet / "corpora" / "wordnet"
    lexnames = (folder / "lexnames").read_text().splitlines()
    assert len(lexnames) == 45
    assert (lexnames[0], lexnames[3], lexnames[44]) == ("00\tadj.all\t3", "03\tnoun.Tops\t1", "44\tadj.ppl\t3")
    assert os.listdir(folder.parent) == ["wordnet"]  # no temporary folder is left
    for path in (without_wordnet, folder.parent, folder, *folder.iterdir()):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), path
    assert "no network" in capfd.readouterr().err


def test_a_failing_copy_leaves_nothing_that_looks_whole(without_wordnet, debian_folder, monkeypatch):
    def disk_full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(wordnet.shutil, "copyfile", disk_full)
    with pytest.raises(InputError, match="No space left"):
        ensure_wordnet()
    assert os.listdir(without_wordnet / "corpora") == []


def test_without_apt_get_the_error_names_every_way(without_wordnet, monkeypatch, tmp_path):
    monkeypatch.setattr(wordnet, "DEBIAN_FOLDER", tmp_path / "nowhere")
    monkeypatch.setattr(wordnet.shutil, "which", lambda name: None)
    with pytest.raises(InputError) as raised:
        ensure_wordnet()
    message = str(raised.value)
    assert "nltk.downloader wordnet" in message and "wordnet-base wordnet-sense-index" in message
    assert "no network" in message and "\n" not in message


def test_apt_get_updates_its_lists_only_if_needed(without_wordnet, monkeypatch, tmp_path):
    commands = []

    def failing_run(command, **kwargs):
        commands.append(command)
        return subprocess.CompletedProcess(command, 100, stdout="Reading\nE: Unable to locate package wordnet-base\n")

    monkeypatch.setattr(wordnet, "DEBIAN_FOLDER", tmp_path / "nowhere")
    monkeypatch.setattr(wordnet.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(wordnet.os, "geteuid", lambda: 0)
    monkeypatch.setattr(wordnet.subprocess, "run", failing_run)
    with pytest.raises(InputError, match="Unable to locate package") as raised:
        ensure_wordnet()
    assert ["install" in command for command in commands] == [True, False, True]
    assert "nltk.downloader wordnet" in str(raised.value) and "\n" not in str(raised.value)


def test_a_damaged_wordnet_is_named(without_wordnet):
    folder = without_wordnet / "corpora" / "wordnet"
    for created in (without_wordnet, folder.parent, folder):
        created.mkdir(mode=0o755)
    (folder / "data.noun").touch()
    with pytest.raises(InputError, match="not a complete WordNet") as raised:
        ensure_wordnet()
    assert str(folder) in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:NLTK will not read data")
def test_a_folder_that_others_may_write_is_left_alone(without_wordnet, debian_folder):
    without_wordnet.mkdir()
    without_wordnet.chmod(0o777)
    with pytest.raises(InputError, match="NLTK_DATA"):
        ensure_wordnet()
    assert os.listdir(without_wordnet) == []


def test_lemmas_of_another_language_share_synsets_of_wordnet(french):
    assert french("principal") == french("primaire") == ["principal", "primaire", "de_premier_ordre"]  # a satellite
    assert french("bâtiment") == ["bâtiment", "Édifice", "maison"]
    assert french("maison") == ["maison", "bâtiment"]


def test_casing_does_not_matter_to_a_look_up(french):
    assert french("édifice") == french("ÉDIFICE") == french("Édifice") == ["bâtiment", "Édifice"]


def test_words_of_other_languages_and_inflected_forms_are_unknown(french):
    assert french("primary") == french("maisons") == french("batiment") == []
    assert french("nulle_part") == []  # WordNet has no such synset


def test_english_is_what_it_was(french, reader):
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


def test_an_unknown_language_gets_a_list_of_those_that_are_there(reader, without_languages):
    write_lexicon(without_languages, "spa", "")
    write_lexicon(without_languages, "fra", FRENCH)
    assert language_error(reader, "deu").startswith("--lang deu: not in omw-2.0")
    assert language_error(reader, "deu").endswith("eng, fra, spa")


def test_without_the_multilingual_wordnet_the_error_says_how_to_get_it(reader, without_languages, capfd):
    message = language_error(reader, "fra")
    assert "python -m nltk.downloader omw-2.0" in message and "no network" in message
    assert "trying nltk.download" in capfd.readouterr().err


def test_the_multilingual_wordnet_is_downloaded_where_it_is_missing(reader, without_languages, monkeypatch):
    fetched = []

    def download(package):
        fetched.append(package)
        write_lexicon(without_languages, "fra", FRENCH)

    monkeypatch.setattr(wordnet, "_download", download)
    ensure_language(reader, "fra")
    assert fetched == ["omw-2.0"] and wordnet_synonyms(reader, "maison", "fra") == ["maison", "bâtiment"]


def test_a_damaged_lexicon_is_named(reader, without_languages):
    write_lexicon(without_languages, "fra", FRENCH.encode("latin-1"))
    message = language_error(reader, "fra")
    assert "not a complete Open Multilingual WordNet" in message and str(without_languages) in message


def test_a_damaged_download_is_named(reader, without_languages):
    archive = without_languages / "corpora" / "omw-2.0.zip"
    archive.parent.mkdir(mode=0o755)
    archive.write_bytes(b"PK, but no archive")
    archive.chmod(0o644)
    assert "omw-2.0: not a complete Open Multilingual WordNet" in language_error(reader, "fra")
