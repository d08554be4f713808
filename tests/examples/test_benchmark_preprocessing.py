import json
import sys

import pytest
from helpers import PLUGIN, run_command

SCRIPT = PLUGIN.parent / "examples" / "benchmark_preprocessing.py"


@pytest.mark.slow
def test_it_measures_everything_on_a_short_text(tmp_path):
    """The test asserts no speed, because that depends on the machine."""
    (tmp_path / "text").write_text("the dog begins to run\na cat ran home\n" * 200)
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "run"]))
    inputs = ["--text", tmp_path / "text", "--tokenizer", tmp_path / "vocab.txt"]
    small = ["--rounds", 1, "--vectors", 50, "--sizes", 1, 2, "--workers", 1]
    run = run_command(sys.executable, SCRIPT, *inputs, "--output", tmp_path / "out", *small)
    assert run.code == 0, run.output
    results = json.loads((tmp_path / "out.json").read_text())
    rows = results["binarize"]["rows"]
    assert [row["MB"] for row in rows] == [times * 400 * 18.5 / 1e6 for times in (1, 2)]
    assert all(row["ratio"] > 0 and row["peak bytes"] > 1e8 for row in rows)
    assert results["synonym tables"]["dict.txt lines"] == 3
    for source in ("WordNet", "50 x 50 vectors"):
        assert results["synonym tables"][source]["seconds"] > 0 and source in run.stdout
