import json
import sys
from types import SimpleNamespace

import pytest
import torch
from files import refused
from helpers import PLUGIN, load_script

MAIN = "electra_small 512x128 bfloat16"
SCRIPT = PLUGIN.parent / "examples" / "benchmark_gpu.py"


@pytest.fixture
def benchmark(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(SCRIPT.parent)
    script = load_script("examples/benchmark_gpu.py")
    for name, module in (("benchmark_gpu", script), ("benchmark", script.benchmark)):
        monkeypatch.setitem(sys.modules, name, module)  # its process imports what it gets by these names
    return script


def run(benchmark, monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["benchmark_gpu.py", *map(str, options)])
    benchmark.main()


def keep(benchmark, monkeypatch, *titles):
    """Keep only some of the steps."""
    plan = benchmark.plan
    monkeypatch.setattr(benchmark, "plan", lambda dry: [step for step in plan(dry) if step.title in titles])


@pytest.mark.slow
def test_the_first_steps_work_at_a_tiny_size(benchmark, monkeypatch, tmp_path, capsys):
    """The test asserts no speed, because that depends on the machine."""
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    profile, repeat = f"profile {MAIN}", "repeated and resumed float32"
    keep(benchmark, monkeypatch, "check", MAIN, profile, repeat)
    run(benchmark, monkeypatch, "--output", tmp_path / "gpu", "--dry-run", "--minutes", 30)
    steps = json.loads((tmp_path / "gpu" / "results.json").read_text())["steps"]
    assert len(steps) == 4 and not [(title, found) for title, found in steps.items() if "error" in found]
    pair = steps[MAIN]
    assert pair["ratio"] == pair["ours"]["tokens/s"] / pair["peer"]["tokens/s"] > 0
    assert pair["ours"]["FLOP a token"] > 0 and 0 <= pair["ours"]["share of the time without a batch"] < 1
    assert steps[profile]["tokens/s"] > 0 and "longest" in steps[profile]
    assert list((tmp_path / "gpu").glob("trace-*.json.gz"))
    assert steps[repeat]["repeated exactly"] and steps[repeat]["resumed exactly"]
    assert f"{MAIN}, ours" in capsys.readouterr().out


def test_without_a_gpu_it_says_so(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "--dry-run" in refused(run, benchmark, monkeypatch, "--output", tmp_path / "gpu")
    assert not (tmp_path / "gpu").exists()
    with pytest.raises(SystemExit):
        run(benchmark, monkeypatch, "--output", tmp_path / "gpu", "--minutes", 0)


class FakeProcess:
    """Answers for the process that uses the GPU."""

    answers: dict = {}

    def __init__(self, *_, **__):
        self.process, self.connection = SimpleNamespace(kill=lambda: None), self

    def ask(self, *_):
        pass

    def send(self, method, kind, options):
        self.answer = self.answers.get(kind, {"error": "RuntimeError: no"})

    def poll(self, seconds):
        return self.answer != "hangs"

    def recv(self):
        if self.answer == "dies":
            raise EOFError
        return self.answer


def test_a_step_that_fails_hangs_or_dies_takes_one_line(benchmark, monkeypatch, tmp_path, capsys):
    FakeProcess.answers = {"check": {"tokens/s": 1000.0}, "matrix": "hangs", "repeat": "dies"}
    monkeypatch.setattr(benchmark, "Subject", FakeProcess)
    titles = ("check", f"profile {MAIN}", "repeated and resumed float16", "matrix products float32")
    keep(benchmark, monkeypatch, *titles)
    run(benchmark, monkeypatch, "--output", tmp_path, "--dry-run", "--minutes", 30)
    lines = capsys.readouterr().out.splitlines()
    assert "check: 1,000 tokens/s" in lines and "matrix products float32: failed: took too long" in lines
    assert f"profile {MAIN}: failed: RuntimeError: no" in lines
    assert "repeated and resumed float16: failed: the process died" in lines
    assert list(json.loads((tmp_path / "results.json").read_text())["steps"]) == list(titles)


def test_a_failed_check_ends_it_and_the_same_command_continues(benchmark, monkeypatch, tmp_path, capsys):
    FakeProcess.answers = {"matrix": {"FLOP/s": 1e12}, "peer": {"tokens/s": 1.0}}
    monkeypatch.setattr(benchmark, "Subject", FakeProcess)
    run(benchmark, monkeypatch, "--output", tmp_path, "--dry-run", "--minutes", 30)
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["steps"]) == ["check"]
    keep(benchmark, monkeypatch, "matrix products float16", "compiled peer")
    run(benchmark, monkeypatch, "--output", tmp_path, "--dry-run", "--minutes", 0.5)
    assert "left out, because the time is over: compiled peer" in capsys.readouterr().out
    run(benchmark, monkeypatch, "--output", tmp_path, "--dry-run")
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["steps"] == {"matrix products float16": {"FLOP/s": 1e12}, "compiled peer": {"tokens/s": 1.0}}
    for content, named in ((json.dumps({**results, "dry run": False}), "--output"), ('{"machine"', "results.json")):
        (tmp_path / "results.json").write_text(content)
        assert named in refused(run, benchmark, monkeypatch, "--output", tmp_path, "--dry-run")


def test_a_trace_is_summarized(benchmark):
    kernels = [("a", 0, 10), ("b", 5, 10), ("a", 30, 10)]  # 25 of 40 microseconds
    events = [{"cat": "kernel", "name": name, "ts": start, "dur": spent} for name, start, spent in kernels]
    found = benchmark.summarize_trace([{"cat": "gpu_user_annotation", "name": "c", "ts": 0, "dur": 99}, *events])
    assert found["share of the time in which the GPU works"] == 25 / 40 and found["kernels an update"] == 3 / 5
    assert [(one["kernel"], one["share"]) for one in found["longest"]] == [("a", 20 / 25), ("b", 10 / 25)]


def test_a_batch_that_does_not_fit_is_halved(benchmark):
    measurements, tried = object.__new__(benchmark.Measurements), []

    def train(arch, rows, length, precision):
        tried.append(rows)
        if rows > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return {"rows": rows}

    assert measurements.fitting(train, "bert_base", 8, 16, "float32") == {"rows": 2} and tried == [8, 4, 2]
