"""The site of the guides: `make docs` finds no broken link, and its search knows the pages."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import PLUGIN

ROOT = PLUGIN.parent
GUIDES = sorted((ROOT / "docs").glob("*.md"))


def build(config: Path, site: Path) -> subprocess.CompletedProcess:
    """What `make docs` runs, with another folder for the site."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        config,
        "--site-dir",
        site,
    ]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=config.parent)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = build(ROOT / "mkdocs.yml", folder)
    assert run.returncode == 0, run.stderr
    return folder


@pytest.mark.slow
def test_the_site_has_every_guide_and_what_it_links_to(site):
    assert "mkdocs build --strict" in (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in GUIDES:
        assert (site / f"{page.stem}.html").exists(), page
    for page in site.glob("*.html"):
        for target in re.findall(r'(?:href|src)="(?!https?:)([^"#?]+)', page.read_text(encoding="utf-8")):
            assert page.name == "404.html" or (page.parent / target).exists(), (page.name, target)
    assert (site / "examples" / "pictures" / "findings.svg").exists()
    assert not list(site.rglob("hooks.py"))


@pytest.mark.slow
def test_the_search_knows_the_guides_and_the_functions(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"]}
    assert {"index.html", *(f"{page.stem}.html" for page in GUIDES)} <= found
    functions = {
        place.partition("#")[2].rpartition(".")[2] for place in found if place.startswith("reference.html#tn_fair")
    }
    assert {"from_pretrained", "TrueNegativeTrainer", "hard_correction", "load_synonym_table", "register"} <= functions
    # it also works from files, so nothing is read from the network
    assert (site / "search" / "search_index.js").exists()
    scripts = re.findall(r'<(?:script|link)[^>]*(?:src|href)="(https?:[^"]+)', (site / "index.html").read_text())
    assert scripts == []


@pytest.mark.slow
def test_broken_links_are_errors(tmp_path):
    for path in ROOT.iterdir():
        if path.suffix in (".md", ".yml") or path.name == "LICENSE":
            shutil.copy(path, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("examples", "preprocess", "tests", "tn_fairseq"):
        (tmp_path / name).symlink_to(ROOT / name)
    links = ["nowhere.md", "train.md#nowhere", "../examples/nowhere.py"]
    with open(tmp_path / "docs" / "study.md", "a", encoding="utf-8") as file:
        file.writelines(f"\n[a link]({link})\n" for link in links)
    run = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    warnings = [line for line in run.stderr.splitlines() if "nowhere" in line]
    assert run.returncode == 1 and len(warnings) == len(links), run.stderr
    assert all("study.md" in line for line in warnings)
