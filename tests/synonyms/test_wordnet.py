import io
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import nltk
import pytest
from files import refused
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk_folders import make_folder, without_languages, write_lexicon

from tn_fairseq.core.errors import InputError
from tn_fairseq.synonyms import wordnet
from tn_fairseq.synonyms.wordnet import (
    FETCH,
    DownloadFailed,
    check_synsets,
    ensure_wordnet,
    find_wordnet,
    inflected_synonyms,
    language_notes,
    wordnet_synonyms,
    wordnet_version,
)

FAILED = "and downloading it failed"
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
def languages(monkeypatch, tmp_path, no_network):
    """The only folder that NLTK searches for other languages; WordNet is loaded, and there is no network."""
    without_languages(tmp_path, monkeypatch)
    return tmp_path


def test_an_existing_wordnet_is_not_downloaded_again(reader, monkeypatch, capfd):
    monkeypatch.setattr(wordnet, "_download", lambda package: pytest.fail("downloaded again"))
    assert ensure_wordnet() is reader and wordnet_version(reader) == "WordNet 3.0"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("primary", {"primary", "main", "chief", "principal", "primary_winding"}),
        ("stay", {"remain", "arrest", "abide", "bide", "quell"}),  # of all parts of speech
        ("dogs", {"dog"}),
        ("xyzzyx", set()),
    ],
)
def test_all_lemmas_of_a_word_and_of_its_base_form(reader, word, found):
    offered = wordnet_synonyms(reader, word)
    assert found <= set(offered) and len(offered) == len(set(offered)) and bool(offered) == bool(found)


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


def refusal(language="eng"):
    with pytest.raises(InputError) as raised:
        ensure_wordnet(language)
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("language", "downloaded", "reason"),
    [
        ("eng", None, f"no wordnet, {FAILED} (no network); get it with {FETCH}"),
        ("eng", lambda: ElementTree.XML("<html><br></html>"), f"no wordnet, {FAILED} (mismatched tag"),  # a login
        ("fra", lambda: True, f"no omw-2.0, {FAILED} (NLTK does not find it afterwards); get it with python -m"),
    ],
)
def test_what_is_missing_is_downloaded_or_refused(request, monkeypatch, capfd, language, downloaded, reason):
    request.getfixturevalue("without_wordnet" if language == "eng" else "languages")
    if downloaded:
        monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO())
        monkeypatch.setattr(nltk, "download", lambda *_, **__: downloaded())
    error = refusal(language)
    assert isinstance(error, DownloadFailed) and str(error).startswith(reason)
    assert "not found by NLTK; trying nltk.download" in capfd.readouterr().err


def test_an_error_while_loading_is_not_taken_for_a_missing_package():
    assert "not a complete wordnet" in refused(wordnet._loads, "wordnet", {}.popitem)  # KeyError is a LookupError


def test_lemmas_of_another_language_share_synsets_of_wordnet(languages, monkeypatch):
    # the lexicon is missing at first, and is downloaded
    monkeypatch.setattr(wordnet, "_download", lambda package: write_lexicon(languages, "fra", FRENCH))
    reader = ensure_wordnet("fra")
    for word, expected in {
        "principal": ["principal", "primaire", "de_premier_ordre"],  # a satellite
        "primaire": ["principal", "primaire", "de_premier_ordre"],
        "bâtiment": ["bâtiment", "Édifice", "maison"],
        "maison": ["maison", "bâtiment"],
        "édifice": ["bâtiment", "Édifice"],
        "ÉDIFICE": ["bâtiment", "Édifice"],
        "primary": [],
        "maisons": [],
        "batiment": [],
        "nulle_part": [],  # WordNet has no such synset
    }.items():
        assert wordnet_synonyms(reader, word, "fra") == expected, word
    assert wordnet_version(reader, "fra") == "WordNet 3.0 with omw-2.0 (fra)"
    # English does not change
    assert wordnet_synonyms(reader, "edifice") == ["building", "edifice"] and not wordnet_synonyms(reader, "maison")
    assert wordnet_version(reader) == "WordNet 3.0"
    assert language_notes(reader, "fra") == [
        f"{'lemmas of fra: ADJ':36}{3:11,} found, 0 lost",
        f"{'lemmas of fra: NOUN':36}{4:11,} found, 1 lost, such as nulle part (99999999-n)",
    ]


def test_other_languages(languages):
    write_lexicon(languages, "spa", "99999998-v\tspa:lemma\thacer\n")
    write_lexicon(languages, "cmn", "01277426-a\tcmn:lemma\t大+的\n01277426-a\tcmn:lemma\tكَتَبَ\n")
    # the synsets of another WordNet
    assert "1 of 1 lemmas of VERB, such as hacer" in refused(language_notes, ensure_wordnet("spa"), "spa")
    # marks that texts lack
    assert wordnet_synonyms(ensure_wordnet("cmn"), "大的", "cmn") == ["大的", "كتب"]
    for _ in range(2):  # NLTK would rename languages that it loads twice
        assert str(refusal("deu")) == "--lang deu: not in omw-2.0; give one of its languages: cmn, eng, spa"


def test_a_damaged_lexicon_or_download_is_reported(languages):
    archive = make_folder(languages / "corpora", languages) / "omw-2.0.zip"
    archive.write_bytes(b"PK, but no archive")
    archive.chmod(0o644)
    assert str(refusal("fra")).startswith(f"{archive}: not a complete omw-2.0")
    archive.unlink()
    write_lexicon(languages, "fra", FRENCH, encoding="latin-1")
    assert str(refusal("fra")).startswith(f"{languages}/corpora/omw-2.0: not a complete omw-2.0")


# what damages a file of WordNet -> what the error must name
DAMAGE = {
    "a bar in a gloss": ("data.adj", lambda path: change(path, b"; ", b"| "), "data.adj, line "),
    "a file cut after a line": ("data.verb", lambda path: cut(path), "data.verb and index.verb"),
    "a line that is missing": ("data.adv", lambda path: change(path, b"\n", b""), "data.adv, line "),
    "a count of lemmas": ("data.noun", lambda path: change(path, b" 03 n 01 ", b" 03 n 02 "), "data.noun, line "),
    "a count of pointers": ("data.adv", lambda path: change(path, b" 001 \\ ", b" 002 \\ "), "data.adv, line "),
    "cut exceptions": ("verb.exc", lambda path: path.write_bytes(b"abode abide\nabou"), "verb.exc"),
}


def change(path, old: bytes, new: bytes) -> None:
    head, _, body = path.read_bytes().partition(b"\n0")
    path.write_bytes(head + b"\n0" + body.replace(old, new, 1))


def cut(path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"\n", 0, -9) + 1])


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_kind_of_damage_is_found(damage, reader, tmp_path, monkeypatch):
    name, do, message = DAMAGE[damage]
    shutil.copyfile(Path(reader.root) / name, tmp_path / name)
    do(tmp_path / name)
    monkeypatch.setattr(reader, "abspath", lambda file: str((tmp_path if file == name else Path(reader.root)) / file))
    check_synsets.cache_clear()
    with pytest.raises(ValueError, match=message):
        check_synsets(reader)


def test_a_damaged_wordnet_is_one_line(reader, tmp_path, monkeypatch):
    folder = make_folder(tmp_path / "corpora" / "wordnet", tmp_path)
    for path in Path(reader.root).iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / path.name).chmod(0o644)
    cut(folder / "index.adv")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    monkeypatch.setattr(nltk.corpus, "wordnet", nltk.corpus.LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    error = refused(find_wordnet)
    assert "data.adv and index.adv have other synsets" in error and f"{folder}: not a complete wordnet" in error
