"""Getting WordNet without a download: Debian's packages, and the errors without them."""

import os
import stat
import subprocess

import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk_folders import make_folder
from preprocessed import refused

from tn_fairseq.synonyms import fetch_wordnet
from tn_fairseq.synonyms.wordnet import wordnet_version


def contents(reader, name):
    """A file of WordNet, but of an index only the words near "primary", because NLTK keeps all words in memory."""
    text = reader.open(name).read()
    if not name.startswith("index"):
        return text
    related = [one for synset in reader.synsets("primary") for one in (synset, *synset.similar_tos())]
    words = {lemma for one in related for lemma in one.lemma_names()} | {""}  # the license has spaces in front
    return "".join(line for line in text.splitlines(keepends=True) if line.split(" ")[0].split("%")[0] in words)


@pytest.fixture
def debian(monkeypatch, tmp_path):
    """A function that writes files as Debian's packages install them, without lexnames; until then there are none."""
    folder = tmp_path / "usr-share-wordnet"
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", folder)

    def install(reader=None):
        folder.mkdir()
        for name in WordNetCorpusReader._FILES:
            if name != "lexnames":
                (folder / name).write_text(contents(reader, name) if reader else name, encoding="utf-8")

    return install


def test_debian_files_are_prepared_for_nltk(reader, without_wordnet, debian, capfd):
    debian(reader)
    found = fetch_wordnet.fetch_wordnet()
    assert wordnet_version(found) == "WordNet 3.0"
    assert found.synsets("primary")[0].lexname() == "noun.act"
    folder = without_wordnet / "corpora" / "wordnet"
    lexnames = (folder / "lexnames").read_text().splitlines()
    assert len(lexnames) == 45
    assert (lexnames[0], lexnames[3], lexnames[44]) == ("00\tadj.all\t3", "03\tnoun.Tops\t1", "44\tadj.ppl\t3")
    assert os.listdir(folder.parent) == ["wordnet"]  # no temporary folder is left
    assert {stat.S_IMODE(path.stat().st_mode) for path in (without_wordnet, folder.parent, folder)} == {0o755}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
    assert "downloading it failed (no network); trying Debian's packages" in capfd.readouterr().err


def test_a_failed_copy_leaves_nothing(without_wordnet, debian, monkeypatch):
    def disk_full(*args):
        raise OSError(28, "No space left on device")

    debian()
    monkeypatch.setattr(fetch_wordnet.shutil, "copyfile", disk_full)
    assert "No space left" in refused(fetch_wordnet.fetch_wordnet)
    assert os.listdir(without_wordnet / "corpora") == []


def test_the_copy_of_a_faster_process_is_kept(without_wordnet, debian):
    debian()
    theirs = fetch_wordnet.copy_debian_files()
    (theirs / "data.noun").write_text("theirs")
    assert fetch_wordnet.copy_debian_files() == theirs
    assert (theirs / "data.noun").read_text() == "theirs" and os.listdir(theirs.parent) == ["wordnet"]


@pytest.mark.parametrize("installs", [None, "install", "update"])
def test_apt_get_updates_its_lists_only_if_needed(debian, monkeypatch, tmp_path, installs):
    """``apt-get`` installs at the first attempt, only after an update, or never."""
    log, run = tmp_path / "log", subprocess.run
    script = make_folder(tmp_path / "bin", tmp_path) / "apt-get"
    script.write_text(f'#!/bin/sh\necho "$4" >> {log}\necho "E: Unable to locate package"\ngrep -q {installs} {log}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")

    def run_and_install(*args, **options):
        finished = run(*args, **options)
        if finished.returncode == 0:
            debian()
        return finished

    monkeypatch.setattr(fetch_wordnet.subprocess, "run", run_and_install)
    if installs:
        fetch_wordnet.install_debian_packages()
        fetch_wordnet.install_debian_packages()  # does nothing
    else:
        message = refused(fetch_wordnet.install_debian_packages)
        assert "(E: Unable to locate package); " in message and message.endswith(" -m nltk.downloader wordnet")
    assert log.read_text().split() == (["install"] if installs == "install" else ["install", "update", "install"])


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("of", ["nltk_data", "nltk_data/corpora"])
def test_a_folder_that_a_group_or_anyone_can_write_is_not_used(without_wordnet, debian, of, mode):
    debian()
    folder = make_folder(without_wordnet / "corpora", without_wordnet)
    (without_wordnet.parent / of).chmod(mode)
    message = refused(fetch_wordnet.copy_debian_files)
    assert "none of NLTK's folders is writable only by you" in message and "; set NLTK_DATA" in message
    assert os.listdir(folder) == []


def test_an_existing_wordnet_is_kept(reader, capsys):
    fetch_wordnet.main([])
    assert capsys.readouterr() == ("WordNet 3.0 is ready\n", "")
