import json
import re
import sys

import pytest
from files import write
from helpers import PLUGIN, load_script, run_command

SCRIPT = PLUGIN.parent / "examples" / "benchmark.py"
# with forks, which have imported torch and transformers, and smaller matrices
FORKING = """
import sys
sys.path.insert(0, "{}")
import benchmark, transformers.models.electra.modeling_electra
benchmark.START, benchmark.MATRIX_SIZES, benchmark.VOCABULARY_SIZE = "fork", {{"cpu": 64}}, 1000
benchmark.BATCH_ROWS, benchmark.BATCH_TOKENS = 2, 10_000
benchmark.main()
"""


@pytest.mark.slow
def test_it_measures_everything_at_a_tiny_size(tmp_path, monkeypatch):
    """The test asserts no speed, because that depends on the machine."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")  # tests/models/test_compile.py compiles, which takes a minute
    (tmp_path / "forking.py").write_text(FORKING.format(SCRIPT.parent))
    write(tmp_path / "checkpoints" / "checkpoint_last.pt", "of another run")
    tiny = ["--arch", "electra_tiny", "--batch-size", 8, "--length", 16, "--threads", 1, "--precisions", "bfloat16"]
    run = run_command(
        *[sys.executable, tmp_path / "forking.py", "--output", tmp_path / "tiny", *tiny],
        *["--rounds", 1, "--seconds", 0.01, "--updates", 15],
        cwd=tmp_path,
    )
    assert run.code == 0, run.output
    results = json.loads((tmp_path / "tiny.json").read_text())
    assert "--arch electra_tiny" in results["command"] and results["machine"]["torch"]
    subjects = ["transformers", "transformers, memory kept", "tn_fairseq", "tn_fairseq, compiled", "fairseq-train"]
    measured = results["bfloat16"]["against the peer"]
    assert list(measured) == subjects
    for name in subjects:
        assert re.search(rf"^{name} +[\d,]+ +[\d,]+ to [\d,]+", run.stdout, flags=re.MULTILINE), run.stdout
        speed = measured[name]["tokens/s"]
        assert 0 < speed["least"] <= speed["median"] <= speed["most"] and measured[name]["peak bytes"] > 1e8
    # only masked positions are scored, so there are fewer products than in the peer
    assert 0 < measured["tn_fairseq"]["GFLOP a token"] < measured["transformers"]["GFLOP a token"]
    criteria = results["bfloat16"]["criteria"]
    assert criteria["ratio"]["electra"] == 1 and criteria["ratio"]["mlm_sent_kl"] > 0
    assert criteria["sentence KL by count"] > 1
    teachers = results["bfloat16"]["teachers"]
    assert list(teachers["ratio"]) == [
        "mlm",
        "draws of a teacher",
        "a teacher of the same size",
        "a teacher of twice the size",
    ]
    assert teachers["ratio"]["mlm"] == teachers["memory ratio"]["mlm"] == 1
    assert all(times[name] > 0 for times in teachers["seconds a step"] for name in teachers["ratio"])
    ways = results["threads"]
    assert list(ways)[0] == "1 run on all threads" and list(ways)[-1] == "2 runs on half of the threads each"
    assert all(len(speeds) == 1 and speeds[0] > 0 for way in ways.values() for speeds in way.values())
    assert list(results["batches"]) == ["segments 128", "none 128", "segments 512", "none 512"]
    for row in results["batches"].values():
        theirs, ours = (max(row["tokens/s"][subject]) for subject in ("transformers", "tn_fairseq"))
        assert row["ratio of the best"] == ours / theirs > 0


@pytest.mark.parametrize("flags", [["--arch", "bert_tiny"], ["--updates", "9"], ["--output", "{}/file/name"]])
def test_wrong_options_are_refused_before_anything_is_measured(tmp_path, monkeypatch, capsys, flags):
    benchmark = load_script("examples/benchmark.py")
    (tmp_path / "file").touch()
    words = ["--output", str(tmp_path / "x"), *(flag.format(tmp_path) for flag in flags)]
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *words])
    with pytest.raises(SystemExit, match="2"):
        benchmark.main()
    assert words[-1].removesuffix("/name") in capsys.readouterr().err


def test_both_sides_mask_as_many_of_the_same_tokens(tmp_path):
    pytest.importorskip("transformers")
    benchmark = load_script("examples/benchmark.py")
    benchmark.VOCABULARY_SIZE, benchmark.BATCH_TOKENS = 200, 20_000
    benchmark.write_vocabulary(tmp_path)
    benchmark.write_sentences(tmp_path, benchmark.BATCH_TOKENS)
    _, task = benchmark.set_up(tmp_path, "electra_tiny", 64, "electra", ["--sample-break-mode", "segments"])
    task.load_dataset("train")
    dataset = task.dataset("train")
    lists, collator = benchmark.peer_data(dataset)
    indices = list(range(len(dataset)))
    ours, theirs = dataset.collater(indices), collator([lists[index] for index in indices])
    our_tokens, our_masks = ours["net_input"]["src_tokens"], ours["target"] != 1
    their_tokens, their_masks = theirs["input_ids"], theirs["labels"] != -100
    alike = ~our_masks & ~their_masks
    assert (our_tokens[alike] == their_tokens[alike]).all()
    assert our_masks.sum() == pytest.approx(their_masks.sum(), rel=0.1)
