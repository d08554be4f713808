"""Getting WordNet without a download: Debian's packages, and the errors without them."""

import os
import stat
import subprocess

import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms import fetch_wordnet
from tn_fairseq.synonyms.wordnet import wordnet_version


@pytest.fixture
def debian_folder(monkeypatch, tmp_path, reader):
    """WordNet as Debian's packages install it: without lexnames."""
    folder = tmp_path / "usr-share-wordnet"
    folder.mkdir()
    for name in WordNetCorpusReader._FILES:
        if name != "lexnames":
            with reader.open(name) as file:
                (folder / name).write_text(file.read(), encoding="utf-8")
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", folder)
    return folder


def test_debian_files_are_prepared_for_nltk(without_wordnet, debian_folder, capfd):
    reader = fetch_wordnet.fetch_wordnet()
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


def test_a_failed_copy_leaves_nothing(without_wordnet, debian_folder, monkeypatch):
    def disk_full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch_wordnet.shutil, "copyfile", disk_full)
    with pytest.raises(InputError, match="No space left"):
        fetch_wordnet.fetch_wordnet()
    assert os.listdir(without_wordnet / "corpora") == []


def test_without_apt_get_the_error_lists_every_option(without_wordnet, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", tmp_path / "nowhere")
    monkeypatch.setattr(fetch_wordnet.shutil, "which", lambda name: None)
    with pytest.raises(InputError) as raised:
        fetch_wordnet.fetch_wordnet()
    message = str(raised.value)
    assert "nltk.downloader wordnet" in message and "wordnet-base wordnet-sense-index" in message
    assert "\n" not in message
    assert "downloading it failed (no network); trying Debian's packages" in capfd.readouterr().err


def test_apt_get_updates_its_lists_only_if_needed(without_wordnet, monkeypatch, tmp_path):
    commands = []

    def failing_run(command, **kwargs):
        commands.append(command)
        return subprocess.CompletedProcess(command, 100, stdout="Reading\nE: Unable to locate package wordnet-base\n")

    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", tmp_path / "nowhere")
    monkeypatch.setattr(fetch_wordnet.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(fetch_wordnet.os, "geteuid", lambda: 0)
    monkeypatch.setattr(fetch_wordnet.subprocess, "run", failing_run)
    with pytest.raises(InputError, match="Unable to locate package") as raised:
        fetch_wordnet.fetch_wordnet()
    assert ["install" in command for command in commands] == [True, False, True]
    assert "nltk.downloader wordnet" in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:NLTK will not read data")
def test_a_folder_that_others_can_write_is_not_used(without_wordnet, debian_folder):
    without_wordnet.mkdir()
    without_wordnet.chmod(0o777)
    with pytest.raises(InputError, match="NLTK_DATA"):
        fetch_wordnet.fetch_wordnet()
    assert os.listdir(without_wordnet) == []


def test_an_existing_wordnet_is_kept(reader, capsys):
    fetch_wordnet.main([])
    assert capsys.readouterr() == ("WordNet 3.0 is ready\n", "")


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("of", ["nltk_data", "nltk_data/corpora"])
def test_a_folder_that_a_group_or_anyone_can_write_is_not_used(without_wordnet, monkeypatch, of, mode):
    folder = without_wordnet.parent / of
    for created in (without_wordnet, folder):
        created.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(mode)
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", without_wordnet.parent / "nowhere")
    with pytest.raises(InputError, match="none of NLTK's folders is writable only by you .*; set NLTK_DATA"):
        fetch_wordnet.copy_debian_files()
    assert [path for path in without_wordnet.rglob("*") if path.name != "corpora"] == []
    folder.chmod(0o755)
    with pytest.raises(InputError, match="No such file"):  # it got to copying the files
        fetch_wordnet.copy_debian_files()


def write_debian_files(folder):
    folder.mkdir(exist_ok=True)
    for name in WordNetCorpusReader._FILES:
        (folder / name).write_text(name)


def test_everyone_can_read_the_copy_and_only_its_owner_can_write_it(without_wordnet, monkeypatch, tmp_path):
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", tmp_path / "debian")
    write_debian_files(tmp_path / "debian")
    folder = fetch_wordnet.copy_debian_files()
    assert folder == without_wordnet / "corpora" / "wordnet"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}


def test_the_copy_of_a_faster_process_is_kept(without_wordnet, monkeypatch, tmp_path):
    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", tmp_path / "debian")
    write_debian_files(tmp_path / "debian")
    theirs = fetch_wordnet.copy_debian_files()
    (theirs / "data.noun").write_text("theirs")
    assert fetch_wordnet.copy_debian_files() == theirs
    assert (theirs / "data.noun").read_text() == "theirs"
    assert os.listdir(theirs.parent) == ["wordnet"]


@pytest.mark.parametrize(("user", "runs"), [(0, 1), (1000, 0)])
def test_only_root_installs_packages_and_stops_once_they_are_installed(monkeypatch, tmp_path, user, runs):
    commands = []

    def run(command, **kwargs):
        commands.append(command)
        write_debian_files(tmp_path / "debian")

    monkeypatch.setattr(fetch_wordnet, "DEBIAN_FOLDER", tmp_path / "debian")
    monkeypatch.setattr(fetch_wordnet.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(fetch_wordnet.os, "geteuid", lambda: user)
    monkeypatch.setattr(fetch_wordnet.subprocess, "run", run)
    if runs:
        fetch_wordnet.install_debian_packages()
    else:
        with pytest.raises(InputError, match="as root with apt-get install"):
            fetch_wordnet.install_debian_packages()
    assert len(commands) == runs
