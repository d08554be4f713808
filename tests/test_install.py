"""The installation: what it asks for, what it says, and which commands it runs."""

import io
import os
import platform
import sys
from pathlib import Path

import pytest
from files import refused
from helpers import load_script
from packaging.requirements import Requirement

from tn_fairseq.synonyms.fetch_wordnet import DEBIAN_PACKAGES

PLACES = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]


@pytest.fixture
def install():
    """The script, as a module."""
    return load_script("install.py")


@pytest.fixture
def ran(install, monkeypatch):
    """The commands that it runs, which do nothing here; the machine has neither uv nor a compiler."""
    commands = []
    monkeypatch.setattr(install, "run", lambda command, **options: commands.append(command))
    monkeypatch.setattr(install, "variables_of_uv", lambda *python: {})
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    return commands


def on(monkeypatch, version, place=PLACES[0]):
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    monkeypatch.setattr(sys, "platform", place[0])
    monkeypatch.setattr(platform, "machine", lambda: place[1])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_fairseq_is_built_if_its_requirements_say_so(install, monkeypatch, version, place):
    on(monkeypatch, version, place)
    lines = (Path(install.__file__).parent / "fairseq.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.rstrip("\\ ")) for line in lines if "==" in line]
    names = {"sys_platform": place[0], "platform_machine": place[1], "python_version": ".".join(map(str, version))}
    chosen = [pin.name for pin in pins if pin.marker.evaluate(names)]
    assert chosen == ["fairseq-fixed" if install.builds_fairseq(version) else "ve-fairseq"]


def test_the_machine_has_everything(install, ran, monkeypatch, tmp_path):
    monkeypatch.setattr(install, "lacks", lambda version: [])
    on(monkeypatch, (3, 13))
    assert install.make_environment(str(tmp_path / "env")) == str(tmp_path / "env" / "bin" / "python")
    assert ran == [[sys.executable, "-m", "venv", str(tmp_path / "env")]]


@pytest.mark.parametrize("version, asked", [((3, 13), "g++ python3-dev"), ((3, 12), "")])
def test_a_machine_that_lacks_everything_but_uv(install, ran, monkeypatch, tmp_path, version, asked):
    """Uv brings its own Python only if the machine's would need a compiler, too."""
    on(monkeypatch, version)
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(install.os.path, "exists", lambda path: False)
    message = refused(install.make_environment, str(tmp_path / "env"))
    assert f"apt-get install python3-venv {asked}".strip() + " (Debian, Ubuntu)" in message and ran == []
    monkeypatch.setattr(install.shutil, "which", lambda name: "/bin/uv" if name == "uv" else None)
    install.make_environment(str(tmp_path / "env"))
    python = "3.12" if asked else sys.executable
    assert ran == [["/bin/uv", "venv", "--quiet", "--clear", "--seed", "--python", python, str(tmp_path / "env")]]


@pytest.mark.parametrize("version", [(3, 10), (3, 14)])
def test_a_python_that_is_too_old_or_too_new(install, ran, monkeypatch, tmp_path, version):
    on(monkeypatch, version)
    message = refused(install.make_environment, str(tmp_path / "env"))
    assert f"is Python 3.{version[1]}" in message and "3.12" in message
    monkeypatch.setattr(install.shutil, "which", lambda name: "/bin/uv" if name == "uv" else None)
    install.make_environment(str(tmp_path / "env"))
    (command,) = ran
    assert command[:2] == ["/bin/uv", "venv"] and command[-3:] == ["--python", "3.12", str(tmp_path / "env")]


def test_an_environment_of_another_python_is_refused(install, monkeypatch, tmp_path):
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 3 9\n")
    python.chmod(0o755)
    assert refused(install.make_environment, str(tmp_path / "env")).endswith("another Python; delete it, and try again")
    message = refused(install.main, [str(tmp_path), "--torch", "gpu"])
    assert message.startswith("error: TORCH=gpu: not a folder of PyTorch's index; give cpu, or ")


@pytest.mark.parametrize("uv", [None, "/bin/uv"])
def test_torch_of_another_index(install, ran, monkeypatch, uv):
    monkeypatch.setattr(install, "make_environment", lambda venv: sys.executable)
    monkeypatch.setattr(install, "fetch_wordnet", lambda python: None)
    monkeypatch.setattr(install.shutil, "which", lambda name: uv)
    monkeypatch.setattr(install.urllib.request, "urlopen", lambda url, timeout: io.BytesIO())
    install.main([".venv", "--torch", "cpu"])
    torch, fairseq, package = [command for command in ran if "install" in command]
    assert torch[torch.index("--extra-index-url") + 1] == "https://download.pytorch.org/whl/cpu"
    assert "--extra-index-url" not in fairseq + package
    assert "torch" in torch and "--require-hashes" in fairseq and package[-2:] == ["--editable", ".[fairseq,test]"]
    assert {command[0] for command in (torch, fairseq, package)} == {uv or sys.executable}


def test_an_index_of_torch_that_cannot_be_reached(install, monkeypatch, capsys):
    """The other steps retry as usual."""
    tried = []
    monkeypatch.setattr(install, "make_environment", lambda venv: sys.executable)
    monkeypatch.setattr(install, "fetch_wordnet", lambda python: None)
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install, "PYTORCH", "http://127.0.0.1:9/whl/")
    monkeypatch.setattr(install, "run", lambda command, **more: tried.append((command, more.get("env", {}))))
    install.main([".venv", "--torch", "cpu"])
    assert [env.get("PIP_RETRIES") for command, env in tried if "install" in command] == ["0", None, None]
    note = capsys.readouterr().out.splitlines()[1].strip()
    assert note.startswith("http://127.0.0.1:9/whl/cpu/ cannot be reached (") and "with CUDA" in note


@pytest.mark.parametrize("has_gpu", [False, True])
def test_the_size_of_torch(install, monkeypatch, has_gpu):
    on(monkeypatch, (3, 12))
    monkeypatch.setattr(install.os.path, "exists", lambda path: has_gpu)
    assert ("type make install TORCH=cpu" in install.size_of_torch(None)) != has_gpu


def test_the_settings_of_pip_are_those_of_uv(install):
    listing = "global.index-url='https://one'\nglobal.find-links='/a /b'\ninstall.index-url='https://two'\n"
    listing += ":env:.default-timeout='9'\nglobal.no-color='true'"
    expected = {"UV_DEFAULT_INDEX": "https://two", "UV_FIND_LINKS": "/a,/b", "UV_HTTP_TIMEOUT": "9"}
    assert install.settings(listing) == expected


@pytest.mark.slow  # reads WordNet
def test_wordnet_comes_from_the_command_of_the_package(install, monkeypatch, capfd):
    monkeypatch.setattr(install.shutil, "which", lambda name: "/usr/bin/name")
    install.fetch_wordnet(sys.executable)
    assert "WordNet 3.0 is ready" in capfd.readouterr().out


def test_debian_files_are_downloaded_and_not_installed(install, monkeypatch, tmp_path):
    """A made-up apt-get and dpkg-deb: the first is asked for the packages that the error of the package names."""
    log = tmp_path / "log"
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {log}\ncase "$@" in *download*) touch a.deb;; esac\n')
    (tools / "dpkg-deb").write_text("#!/bin/sh\nmkdir -p files/usr/share/wordnet\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    folder = tmp_path / "packages"
    folder.mkdir()
    assert os.path.isdir(install.debian_files(str(folder)))
    update, download = log.read_text().splitlines()
    assert update.endswith(" update") and download.endswith(f" download {DEBIAN_PACKAGES}")
    assert f"Dir::State::Lists={folder}/lists" in update and " install" not in update + download
