import os
import stat
import subprocess
import urllib.error
import urllib.request

import nltk
import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms import wordnet
from tn_fairseq.synonyms.wordnet import ensure_wordnet, wordnet_synonyms, wordnet_version


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

    def no_network(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    return root


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
