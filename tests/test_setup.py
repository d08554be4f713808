"""setup.py and fairseq.txt name the same fairseq."""

import re
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


def test_setup_requires_the_fairseq_that_the_makefile_installs_by_hash():
    lines = (ROOT / "fairseq.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pins = [line.partition(" --hash=sha256:")[0] for line in lines if " --hash=sha256:" in line]
    required = re.findall(r'"((?:ve-fairseq|fairseq-fixed)\b.*)",', (ROOT / "setup.py").read_text(encoding="utf-8"))
    assert len(pins) == 2
    assert {Requirement(pin.strip()) for pin in pins} == {Requirement(name) for name in required}
