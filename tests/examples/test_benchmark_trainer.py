import json
import sys

import pytest
from helpers import PLUGIN, load_script

pytest.importorskip("transformers")


def test_it_measures_all_objectives_at_a_tiny_size(tmp_path, monkeypatch, capsys):
    """The test asserts no speed, because that depends on the machine."""
    monkeypatch.syspath_prepend(PLUGIN.parent / "examples")
    benchmark = load_script("examples/benchmark_trainer.py")
    monkeypatch.setattr(benchmark, "VOCABULARY_SIZE", 200)
    sizes = "--layers 1 --width 64 --batch-size 2 --length 8 --rounds 1 --updates 1 --threads 1".split()
    monkeypatch.setattr(sys, "argv", ["benchmark_trainer.py", "--output", str(tmp_path / "tiny"), *sizes])
    benchmark.main()
    (found,) = json.loads((tmp_path / "tiny.json").read_text())["seconds an update"]
    subjects = [benchmark.PLAIN, *benchmark.OBJECTIVES, benchmark.AGAIN, benchmark.PASSES]
    assert list(found) == subjects and all(seconds > 0 for seconds in found.values())
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in subjects)
