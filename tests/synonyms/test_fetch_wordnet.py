"""Getting WordNet without a download: Debian's packages, and the errors without them."""

import os
import stat

import pytest
from files import refused
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk_folders import make_folder

from tn_fairseq.commands.synonyms_fetch_wordnet import main
from tn_fairseq.synonyms import fetch_wordnet
from tn_fairseq.synonyms.wordnet import wordnet_version


@pytest.fixture
def debian(monkeypatch, tmp_path):
    """A function that writes files as Debian's packages install them, without lexnames, and returns their folder."""
    folder = tmp_path / "usr-share-wordnet"

    def install(reader=None):
        folder.mkdir()
        for name in WordNetCorpusReader._FILES:
            if name != "lexnames":
                (folder / name).write_text(reader.open(name).read() if reader else name, encoding="utf-8")
        return folder

    return install


def test_debian_files_are_prepared_for_nltk(reader, without_wordnet, debian, capfd):
    found = fetch_wordnet.fetch_wordnet(debian(reader))
    assert wordnet_version(found) == "WordNet 3.0"
    assert found.synsets("primary")[0].lexname() == "noun.act"
    folder = without_wordnet / "corpora" / "wordnet"
    lexnames = (folder / "lexnames").read_text().splitlines()
    assert len(lexnames) == 45
    assert (lexnames[0], lexnames[3], lexnames[44]) == ("00\tadj.all\t3", "03\tnoun.Tops\t1", "44\tadj.ppl\t3")
    assert os.listdir(folder.parent) == ["wordnet"]  # no temporary folder is left
    assert {stat.S_IMODE(path.stat().st_mode) for path in (without_wordnet, folder.parent, folder)} == {0o755}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
    assert f"WordNet: ready in {folder}" in capfd.readouterr().err


def test_a_failed_copy_leaves_nothing(without_wordnet, debian, monkeypatch):
    def disk_full(*args):
        raise OSError(28, "No space left on device")

    files = debian()
    monkeypatch.setattr(fetch_wordnet.shutil, "copyfile", disk_full)
    assert "No space left" in refused(fetch_wordnet.fetch_wordnet, files)
    assert os.listdir(without_wordnet / "corpora") == []


def test_the_copy_of_a_faster_process_is_kept(without_wordnet, debian):
    files = debian()
    theirs = fetch_wordnet.copy_files(files)
    (theirs / "data.noun").write_text("theirs")
    assert fetch_wordnet.copy_files(files) == theirs
    assert (theirs / "data.noun").read_text() == "theirs" and os.listdir(theirs.parent) == ["wordnet"]


def test_without_files_the_error_says_how_to_get_them(without_wordnet, debian, tmp_path, monkeypatch):
    folder = make_folder(tmp_path / "dict", tmp_path)
    assert f"--from {folder}: has no cntlist.rev" in refused(main, ["--from", str(folder)])
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", folder)
    message = refused(fetch_wordnet.fetch_wordnet)
    assert f"(no network), and {folder} has no cntlist.rev; " in message
    assert "apt-get install wordnet-base wordnet-sense-index" in message and "--from" in message


@pytest.mark.parametrize("of, mode", [("nltk_data", 0o775), ("nltk_data/corpora", 0o757)])
def test_a_folder_that_a_group_or_anyone_can_write_is_not_used(without_wordnet, debian, of, mode):
    files = debian()
    folder = make_folder(without_wordnet / "corpora", without_wordnet)
    (without_wordnet.parent / of).chmod(mode)
    assert "; set NLTK_DATA" in refused(fetch_wordnet.copy_files, files)
    assert os.listdir(folder) == []


def test_an_existing_wordnet_is_kept(reader, capsys):
    main([])
    assert capsys.readouterr() == ("WordNet 3.0 is ready\n", "")
