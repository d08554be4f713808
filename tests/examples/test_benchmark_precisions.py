"""The comparison of precisions: it trains what is missing, and its table holds the losses in the logs."""

import json
import sys

import pytest
from files import refused, write
from helpers import load_script


@pytest.mark.usefixtures("served_programs")
def test_it_trains_the_missing_runs_and_compares_them(data_bin, synonym_table, tmp_path, monkeypatch, capsys):
    script = load_script("examples/benchmark_precisions.py")
    monkeypatch.setattr(script, "CRITERIA", ("electra",))
    for name, loss in (("1.float32", 4.0), ("2.float32", 5.0), ("2.bfloat16", 5.25)):
        record = f' | valid | {{"valid_num_updates": "3", "valid_loss": "{loss}"}}\n'
        (tmp_path / f"electra.{name}.log").write_text("other lines\n" + record)
    command = ["x", "--data", data_bin, "--synonym-table", synonym_table, "--output", tmp_path, "--seeds", 2]
    monkeypatch.setattr(sys, "argv", [*map(str, command), "--updates", "3", "--length", "16", "--batch-size", "2"])
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "checkpoints" / "checkpoint_last.pt", "of another run")
    script.main()
    result = json.loads((tmp_path / "precisions.json").read_text())["electra"]
    assert result["float32"] == [4.0, 5.0] and result["bfloat16"][1] == 5.25
    assert result["sd over seeds"] == pytest.approx(0.5**0.5)
    log = (tmp_path / "electra.1.bfloat16.log").read_text()
    assert f'"valid_loss": "{result["bfloat16"][0]:g}"' in log
    assert result["differences"] == [result["bfloat16"][0] - 4.0, 0.25]
    assert "+0.250" in capsys.readouterr().out
    (tmp_path / "precisions.json").unlink()
    script.main()  # from the logs only
    assert json.loads((tmp_path / "precisions.json").read_text())["electra"] == result
    monkeypatch.setattr(sys, "argv", [*map(str, command), "--updates", "4"])
    assert "--output" in refused(script.main)


def test_a_single_seed_has_no_spread(monkeypatch, capsys):
    script = load_script("examples/benchmark_precisions.py")
    monkeypatch.setattr(sys, "argv", ["x", "--data", "d", "--synonym-table", "t", "--output", "o", "--seeds", "1"])
    with pytest.raises(SystemExit):
        script.main()
    assert "--seeds must be at least 2" in capsys.readouterr().err
