"""What pip installs."""

import ast
import email
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


def test_setup_requires_the_fairseq_that_the_makefile_installs_by_hash():
    lines = (ROOT / "fairseq.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pins = [line.partition(" --hash=sha256:")[0] for line in lines if " --hash=sha256:" in line]
    script = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    values = {line.targets[0].id: line.value for line in script.body if isinstance(line, ast.Assign)}
    required = {Requirement(ast.literal_eval(values[name])) for name in ("WHEEL", "SOURCE")}
    assert len(pins) == 2 and {Requirement(pin.strip()) for pin in pins} == required


@pytest.fixture(scope="module")
def requirements(tmp_path_factory) -> list[Requirement]:
    """What the metadata of the package require."""
    source = tmp_path_factory.mktemp("source")
    (source / "tn_fairseq").mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "tn_fairseq/__init__.py"):
        shutil.copy(ROOT / name, source / name)
    code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
    run = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    content = (source / run.stdout.splitlines()[-1] / "METADATA").read_bytes()
    return list(map(Requirement, email.message_from_bytes(content).get_all("Requires-Dist")))


@pytest.mark.parametrize(
    ("python", "system", "extra", "expected"),
    [
        ("3.11", ("linux", "x86_64"), "", {"ve-fairseq"}),
        ("3.12", ("linux", "x86_64"), "transformers", {"ve-fairseq", "transformers", "accelerate"}),
        ("3.12", ("darwin", "arm64"), "", set()),
        ("3.13", ("linux", "x86_64"), "hf", {"transformers", "accelerate"}),
        ("3.13", ("linux", "x86_64"), "fairseq", {"fairseq-fixed"}),
        ("3.14", ("linux", "x86_64"), "fairseq", set()),
    ],
)
def test_fairseq_is_required_if_it_has_a_wheel_or_if_asked_for(requirements, python, system, extra, expected):
    environment = {"python_version": python, "extra": extra} | dict(zip(("sys_platform", "platform_machine"), system))
    named = {need.name for need in requirements if need.marker is None or need.marker.evaluate(environment)}
    assert "torch" in named and named & {"ve-fairseq", "fairseq-fixed", "transformers", "accelerate"} == expected


@pytest.mark.parametrize(
    ("python", "system", "newest"), [("3.11", "linux", False), ("3.13", "darwin", True), ("3.14", "linux", True)]
)
def test_torch_is_one_beside_which_torchaudio_can_be_imported(requirements, python, system, newest):
    environment = {"python_version": python, "sys_platform": system}
    (torch,) = [need for need in requirements if need.name == "torch" and need.marker.evaluate(environment)]
    assert torch.specifier.contains("2.6.0") and torch.specifier.contains("2.15.0") == newest
