import json
import re
import sys

import pytest
from helpers import PLUGIN, load_script, run_command

from tn_fairseq.core.errors import one_line_errors

SCRIPT = PLUGIN.parent / "examples" / "benchmark_scale.py"
# processes take the place of a Dask cluster, whose workers take long to start
WITHOUT_CLUSTER = """
import sys
sys.path.insert(0, "{}")
import benchmark_scale
run_one = benchmark_scale.run_one
benchmark_scale.run_one = lambda engine, *words: run_one("processes", *words) | {{"engine": engine}}
benchmark_scale.main()
"""


def test_it_measures_both_engines(tmp_path):
    """The test asserts no speed, because that depends on the machine."""
    (tmp_path / "text").write_text("the dog begins to run\na cat ran home\n" * 200)
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "run"]))
    inputs = ["--text", tmp_path / "text", "--tokenizer", tmp_path / "vocab.txt", "--output", tmp_path / "out"]
    (tmp_path / "script.py").write_text(WITHOUT_CLUSTER.format(SCRIPT.parent))
    run = run_command(sys.executable, tmp_path / "script.py", *inputs, "--copies", 1, 40, "--workers", 2)
    assert run.code == 0, run.output
    results = json.loads((tmp_path / "out.json").read_text())
    tokens = [run["tokens"] for run in results["runs"]]
    assert tokens[:2] == [200 * (6 + 5)] * 2 and tokens[2:] == [8_000 * (6 + 5)] * 2
    for engine, cost in results["costs"].items():
        assert cost["written bytes"] == pytest.approx(1e9 * (2 + 12 / 5.5))  # two bytes per token, twelve per sentence
        assert cost["text bytes"] == pytest.approx(1e9 * 18.5 / 5.5)
        # on a busy machine, the CPU time of the longer text may be less than that of the shorter one
        less, more = (run for run in results["runs"] if run["engine"] == engine)
        for name in ("writer seconds", "worker seconds"):
            assert less[name] > 0 and more[name] > 0
            assert cost[name] == pytest.approx((more[name] - less[name]) / (more["tokens"] - less["tokens"]) * 1e9)
        assert re.search(rf"OpenWebText +{engine} +38", run.stdout)


@pytest.mark.parametrize("flags, named", [("", "none"), ("--copies 2", "--copies")])
def test_wrong_flags_get_one_line(flags, named, tmp_path, monkeypatch, capsys):
    words = ["--text", "none", *flags.split(), "--tokenizer", str(tmp_path), "--output", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["benchmark_scale.py", *words])
    with pytest.raises(SystemExit) as stop, one_line_errors():
        load_script("examples/benchmark_scale.py").main()
    last = (str(stop.value) + "\n" + capsys.readouterr().err).strip().splitlines()
    assert stop.value.code and any(named in line for line in last) and not (tmp_path / "out.json").exists()
