"""The site of the guides has what it links to, and its search knows the pages."""

import json
import re
import subprocess
import sys

import pytest
from helpers import PLUGIN

ROOT = PLUGIN.parent
GUIDES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.slow
def test_the_site_has_every_guide_and_what_it_links_to_and_its_search_knows_the_functions(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]  # as `make docs` does
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    for page in GUIDES:
        assert (tmp_path / f"{page.stem}.html").exists(), page
    for page in tmp_path.glob("*.html"):
        for target in re.findall(r'(?:href|src)="(?!https?:)([^"#?]+)', page.read_text(encoding="utf-8")):
            assert page.name == "404.html" or (page.parent / target).exists(), (page.name, target)
    assert (tmp_path / "examples" / "pictures" / "findings.svg").exists()
    assert not list(tmp_path.rglob("hooks.py"))

    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"]}
    assert {"index.html", *(f"{page.stem}.html" for page in GUIDES)} <= found
    functions = {
        place.partition("#")[2].rpartition(".")[2] for place in found if place.startswith("reference.html#tn_fair")
    }
    assert {"from_pretrained", "TrueNegativeTrainer", "hard_correction", "load_synonym_table", "register"} <= functions
    # it also works from files, so nothing is read from the network
    assert (tmp_path / "search" / "search_index.js").exists()
    assert not re.findall(r'<(?:script|link)[^>]*(?:src|href)="(https?:[^"]+)', (tmp_path / "index.html").read_text())
