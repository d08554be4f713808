"""A small study from the plan of the size tiny: trained, interrupted, extended, and refused."""

import errno
import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
import torch
from engine_checks import wait_until
from fairseq import options
from files import refused
from guides import guide
from helpers import OBJECTS, PLUGIN, SUBJECTS, VERBS, commands_of, run_command, start_command
from omegaconf import OmegaConf

from tn_fairseq.commands.study import main
from tn_fairseq.core.errors import InputError
from tn_fairseq.tools import launching
from tn_fairseq.tools.launching import Launcher
from tn_fairseq.tools.study import (
    figures,
    measures,
    paper_tables,
    progress,
    run_study,
    statements,
    study_page,
    study_plots,
    study_report,
)
from tn_fairseq.tools.study.plan import Arm, Measure, Plan, Run, Start, Step, read_plan, training_command
from tn_fairseq.tools.study.runner import LOCK, Runner

ROOT = PLUGIN.parent
FOLDER = ROOT / "examples" / "study"
PLANS = sorted(path.stem for path in (FOLDER / "plans").glob("*.yaml"))


def small_plan() -> dict:
    """The plan of the size tiny with two arms, two seeds and few updates, for made text."""
    plan = OmegaConf.to_container(OmegaConf.load(FOLDER / "plans" / "tiny.yaml"))
    plan["sources"] = {"pairs": "pairs.txt", "questions": "questions.json", "attacked": "attacked.json"}
    start = plan["starts"]["scratch"]
    assert start["prepare"].pop(0)["output"] == "corpus/valid.txt"
    start["prepare"][0]["command"] = start["prepare"][0]["command"].replace("8192", "140")
    start |= {"updates": 6, "save_every": 2, "log_every": 2, "seeds": [1, 2]}
    start["arms"].pop("soft_reg")
    start["measures"]["logs"] = {"levels": [0.1, 99], "window": 4}
    rates = "--synonym-table tables/wordnet.safetensors --mask-seeds 2 --max-sequences 8"
    start["measures"] |= {"rates": {"flags": rates}, "cost": {"updates": 5, "rounds": 1}}
    start["measures"]["lexical"] = {"flags": "--word-pairs sources/pairs"}
    one_run = {"arms": ["plain"], "seeds": [1]}
    data = "--train sources/questions --valid sources/questions --tokenizer tokenizer --dict data-bin/dict.txt"
    command = f"tn-fairseq data squad {data} --max-length 128 --doc-stride 32 --destdir squad-bin"
    flags = "--data squad-bin --seeds 1 --max-update 1 --keep-checkpoints -- --cpu"
    prepare = [{"output": "squad-bin/dict.txt", "command": command}]
    elsewhere = "data-bin --split train --synonym-table tables/wordnet.safetensors --mask-seeds 1 --max-sequences 8"
    start["measures"] |= {name: {**one_run, "flags": elsewhere} for name in ("elsewhere", "elsewhere_training_text")}
    start["measures"]["squad"] = {**one_run, "flags": flags, "prepare": prepare}
    flags = "--original sources/questions --attacked sources/attacked"
    start["measures"]["robustness"] = {**one_run, "flags": flags}
    return plan


def questions(*contexts: str) -> str:
    """A file of SQuAD with the question "where begins the road" on each context."""
    qa = {"question": "where begins the road", "answers": [{"text": "the city", "answer_start": 0}]}
    paragraphs = [
        {"context": f"the city {context}", "qas": [{**qa, "id": str(number)}]}
        for number, context in enumerate(contexts)
    ]
    return json.dumps({"data": [{"title": "a", "paragraphs": paragraphs}]})


def write(plan: dict, path: Path) -> Path:
    path.write_text(OmegaConf.to_yaml(OmegaConf.create(plan)))
    return path


def study(plan: Path, folder: Path, *flags: object):
    return run_command("tn-fairseq", "study", plan, "--output", folder, *flags)


def a_runner(folder: Path) -> Runner:
    return Runner(folder, Launcher(lock=-1), threads=1)


def commands(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "commands.jsonl").read_text().splitlines()]


def compared_rows(folder: Path) -> list[dict]:
    """The comparisons of a study without its timings."""
    rows = json.loads((folder / "study.json").read_text())["starts"]["scratch"]["comparisons"]
    return [row for row in rows if row["group"] != "cost"]


def write_corpus(folder: Path) -> None:
    """Write the text that a study trains on."""
    text = [f"{subject} {verb} {thing}" for subject in SUBJECTS for verb in VERBS for thing in OBJECTS]
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("\n".join(text * 4) + "\n")
    (folder / "valid.txt").write_text("\n".join(text[::3]) + "\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with a finished study, its plan and its text."""
    folder = tmp_path_factory.mktemp("study")
    write_corpus(folder / "study" / "corpus")
    (folder / "pairs.txt").write_text("main\tgreat\t9\nlarge\tbig\t8\nhouse\tdog\t1\n")
    (folder / "questions.json").write_text(questions("begins the main road", "is where the road begins"))
    (folder / "attacked.json").write_text(questions("begins the primary road", "is where the road starts"))
    (folder / "study" / "discussion.txt").write_text("In <short>.\n\n# Why\n\nBecause.\n")
    run = study(write(small_plan(), folder / "plan.yaml"), folder / "study")
    assert run.code == 0, run.output
    return folder


def copy_sources(folder: Path, to: Path) -> None:
    for name in ("pairs.txt", "questions.json", "attacked.json"):
        shutil.copy(folder / name, to)


@pytest.mark.xdist_group("study")
def test_a_study_from_start_to_report(finished):
    folder = finished / "study"
    trained = [one["command"] for one in commands(folder) if "--save-dir" in one["command"]]
    assert len(trained) == 4 and all(one["exit_code"] == 0 for one in commands(folder))
    assert trained[0].startswith('fairseq-train data-bin --user-dir "$(tn-fairseq user-dir)" --task electra')
    for run in (folder / "runs").glob("*/*/*"):
        assert {path.stem.split("_")[-1] for path in run.glob("*.pt")} == {"2", "4", "last"}
        state = torch.load(run / "checkpoint_last.pt", weights_only=False)
        assert state["last_optimizer_state"] is None and state["optimizer_history"][-1]["num_updates"] == 6

    rows = {(row["measure"], row["arm"]): row for row in compared_rows(folder)}
    held_out = rows["loss", "hard_wordnet"]
    assert (held_out["seeds"], held_out["pairs"]) == (2, 2)
    assert held_out["low"] <= held_out["difference"] <= held_out["high"]
    plain = rows["loss", "plain"]
    assert held_out["difference"] == pytest.approx(held_out["value"] - plain["value"], abs=1e-6)  # with 7 digits
    assert "difference" not in plain and "detectable" not in plain
    elsewhere = [row for row in compared_rows(folder) if row["group"] == "masked language modeling on other text"]
    assert [(row["measure"], row["arm"], row["seeds"]) for row in elsewhere] == [
        ("accuracy on other text", "plain", 1),
        ("loss on other text", "plain", 1),
        ("accuracy on training text", "plain", 1),
        ("loss on training text", "plain", 1),
    ]
    assert elsewhere[0]["value"] == elsewhere[2]["value"]
    assert ("updates to reach an accuracy of 0.1%", "plain") in rows
    assert ("updates to reach an accuracy of 99%", "plain") not in rows  # no run got there
    assert rows["pairs: similarity of words (Spearman)", "hard_wordnet"]["interval"] == "items and seeds"
    F1, attacked, drop = (
        rows[f"SQuAD F1{more}", "plain"]["value"] for more in ("", " under attacked", " under attacked, drop")
    )
    assert attacked == pytest.approx(F1 - drop) and ("SQuAD F1", "hard_wordnet") not in rows  # the plan says which
    assert json.loads((folder / "study.json").read_text())["starts"]["scratch"]["tokens_per_second"].keys() == {
        "plain",
        "hard_wordnet",
    }

    page, summary = ((folder / name).read_text() for name in ("index.html", "summary.md"))
    assert "<p>In &lt;short&gt;.</p>" in page and "<h2>Discussion</h2>\n<h3>Why</h3>\n<p>Because.</p>\n" in page
    assert "\n\nIn <short>.\n\n" in summary and "\n\n## Discussion\n\n### Why\n\nBecause.\n\n" in summary
    assert "viewport" in page and "default-src 'none'" in page
    assert not re.search(r'(src|href)="(?!data:)', page) and "<script" not in page
    assert page.count("<figure>") == page.count("data:image/svg+xml") >= 5
    assert "4 of 4 runs are finished" in page and "4 of 4 runs are finished" in summary
    assert "Failed runs" not in page and "The tables of the paper, next to ours" in page
    for picture in re.findall(r"\]\((plots/[^)]+)\)", summary):
        assert "<svg" in (folder / picture).read_text()
    assert (folder / "plan.yaml").read_text() == (finished / "plan.yaml").read_text()


@pytest.mark.xdist_group("study")
def test_a_finished_study_runs_no_command_again(finished):
    before = commands(finished / "study")
    run = study(finished / "plan.yaml", finished / "study")
    assert run.code == 0 and commands(finished / "study") == before
    dry = study(finished / "plan.yaml", finished / "study", "--dry-run")
    assert dry.stdout.strip() == f"nothing is left to do in {finished / 'study'}"


@pytest.mark.xdist_group("study")
def test_runs_of_another_machine_are_reported_and_not_repeated(finished, tmp_path, capsys):
    copy_sources(finished, tmp_path)
    plan, other = small_plan(), finished / "study" / "study.json"
    path, folder = tmp_path / "plan.yaml", tmp_path / "study"
    words = [str(path), "--output", str(folder)]

    def figures_with(*more: object) -> dict:
        main([str(write(plan, path)), *words[1:], *map(str, more)])
        return json.loads((folder / "study.json").read_text())

    # all runs are there: the same report, and nothing is prepared or trained
    plan["starts"]["second"] = {**plan["starts"]["scratch"], "prepare": [], "measures": {}}
    theirs, ours = json.loads(other.read_text()), figures_with("--no-training", "--earlier", other)
    assert ours["starts"]["scratch"] == theirs["starts"]["scratch"] and not (folder / "data-bin").exists()
    assert ours["other_hours"] == theirs["other_hours"] > 0
    summary = (folder / "summary.md").read_text()
    assert "4 of 4 runs are finished" in summary and "0 of 4 runs" not in summary
    assert "Planned, without a finished run: second." in summary
    assert "Planned, without a finished run: second." in (folder / "index.html").read_text()
    assert (folder / "plots" / "scratch.accuracy.svg").exists()

    # a new seed is left, and two parts of a study give the figures of the complete one
    plan["starts"].pop("second")
    plan["starts"]["scratch"]["seeds"] = [1, 2, 7]
    capsys.readouterr()
    main([str(write(plan, path)), *words[1:], "--dry-run", "--earlier", str(other)])
    trained = [line for line in capsys.readouterr().out.splitlines() if line.startswith("fairseq-train")]
    assert [re.search(r"runs/\S+", line)[0] for line in trained] == [
        "runs/scratch/plain/seed7",
        "runs/scratch/hard_wordnet/seed7",
    ]
    logs = plan["starts"]["scratch"]["measures"]["logs"]
    logs["arms"] = ["plain"]
    only_plain = figures_with("--no-training", "--earlier", other)["starts"]["scratch"]
    assert {curve["arm"] for curve in only_plain["curves"]} == {"plain"}
    in_training = [row["arm"] for row in only_plain["comparisons"] if "during training" in row["group"]]
    assert set(in_training) == {"plain"} and len(only_plain["comparisons"]) > len(in_training)
    del logs["arms"]
    plan["starts"]["scratch"]["seeds"] = [1, 2]
    complete = theirs["starts"]["scratch"]["comparisons"]
    for key, values in (("seed", (1, 2)), ("arm", ("hard_wordnet", "plain"))):
        parts = []
        for value in values:
            part = json.loads(other.read_text())
            part["machine"]["processor"] += "; a GPU"
            of_part = part["starts"]["scratch"]
            for name in ("runs", "curves", "rates", *(["comparisons"] if key == "arm" else [])):
                of_part[name] = [row for row in of_part[name] if row[key] == value]
            for row in of_part["comparisons"]:
                if row["interval"] == "seeds" and key == "seed":
                    row["values"] = {seed: score for seed, score in row["values"].items() if seed == str(value)}
            parts += ["--earlier", tmp_path / f"part{value}.json"]
            parts[-1].write_text(json.dumps(part))
        joined = figures_with(*parts)
        assert joined["starts"]["scratch"]["comparisons"] == complete
        assert joined["machine"]["processor"] == theirs["machine"]["processor"] + "; a GPU"

    def refusal(path: Path) -> str:
        return refused(main, [*words, "--earlier", str(path)])

    for same in (["--earlier", str(other)] * 2, ["--earlier", str(folder / "study.json")]):
        assert "would count twice; give the study.json of another folder, once" in refused(main, [*words, *same])

    assert refusal(tmp_path / "missing.json").startswith(f"error: {tmp_path / 'missing.json'}: ")
    (tmp_path / "empty.json").write_text('{"starts": {"scratch": {}}}')
    assert "empty.json: is not the study.json of a study; give" in refusal(tmp_path / "empty.json")
    incomplete = json.loads((folder / "study.json").read_text())
    del incomplete["starts"]["scratch"]["elsewhere"]
    (tmp_path / "incomplete.json").write_text(json.dumps(incomplete))
    assert "incomplete.json: is not the study.json of a study" in refusal(tmp_path / "incomplete.json")
    for key, value in (
        ("updates", 7),
        ("measures.squad.prepare.0.command", "cp a b"),
        ("measures.rates.flags", "--mask-seeds 7"),
        ("prepare.0.command", "cp a b"),
        ("arms.plain.flags", "--criterion mlm_soft_reg"),
    ):
        changed = OmegaConf.create(theirs["plan"]["starts"]["scratch"])
        OmegaConf.update(changed, key, value)
        changed = {**theirs["plan"], "starts": {"scratch": OmegaConf.to_container(changed)}}
        (tmp_path / "changed.json").write_text(json.dumps({**theirs, "plan": changed}))
        place = key.removesuffix(".flags") if key.startswith("arms") else key.removesuffix(".0.command")
        assert f"changed.json: starts.scratch.{place}: differs from" in refusal(tmp_path / "changed.json")
    # a measure of which the other study has no figures may differ
    (other_plan := tmp_path / "glue.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(plan)))
    with_glue = read_plan(other_plan, {})
    with_glue.starts["scratch"].measures["glue"] = Measure(flags="--data a")
    measures = {**theirs["plan"]["starts"]["scratch"]["measures"], "glue": {"flags": "--data b", "prepare": []}}
    started = {**theirs["plan"]["starts"]["scratch"], "measures": measures}
    changed = {**theirs, "plan": {**theirs["plan"], "starts": {"scratch": started}}}
    (tmp_path / "glue.json").write_text(json.dumps(changed))
    figures.read_earlier(tmp_path / "glue.json", with_glue)
    row = {**changed["starts"]["scratch"]["comparisons"][0], "group": "fine-tuning", "measure": "RTE"}
    changed["starts"]["scratch"]["comparisons"].append(row)
    (tmp_path / "glue.json").write_text(json.dumps(changed))
    message = refused(figures.read_earlier, tmp_path / "glue.json", with_glue)
    assert "starts.scratch.measures.glue.flags: differs" in message
    changed["starts"]["scratch"]["comparisons"].pop()
    # an arm that the plan does not have is left out
    plan["starts"]["scratch"]["arms"].pop("hard_wordnet")
    rows = figures_with("--no-training", "--earlier", other)["starts"]["scratch"]["comparisons"]
    assert rows and {row["arm"] for row in rows} == {"plain"}

    # a start without runs may differ
    started = json.loads((tmp_path / "changed.json").read_text())
    started["starts"]["scratch"]["runs"] = [{**run, "state": "started"} for run in started["starts"]["scratch"]["runs"]]
    (tmp_path / "started.json").write_text(json.dumps(started))
    figures_with("--no-training", "--earlier", tmp_path / "started.json")
    theirs["plan"]["starts"] = {}
    (tmp_path / "other.json").write_text(json.dumps(theirs))
    assert "other.json: has none of the plan's starts scratch" in refusal(tmp_path / "other.json")


@pytest.mark.slow
def test_a_study_of_text_with_exact_synonyms(tmp_path):
    """The report says what each arm recovers of the oracle's gain, and how similar the embeddings of synonyms are."""
    plan = small_plan()
    plan["sources"] = {"twins": str(FOLDER / "twins.py")}
    start = plan["starts"]["scratch"]
    command = "python sources/twins --data data-bin --destdir twins --share 0.5 --min-count 1"
    start["prepare"][2:] = [{"output": "twins/twins.json", "command": command}]
    start["train"] = start["train"].replace("tables/wordnet", "twins/synonyms")
    start |= {"data": "twins", "oracle": "oracle", "updates": 12, "save_every": 12}
    criteria = {"plain": "mlm", "oracle": "mlm_merged_synonyms", "tying": "mlm_synonym_tying"}
    start["arms"] = {arm: {"about": arm, "flags": f"--criterion {criterion}"} for arm, criterion in criteria.items()}
    start["measures"] = {"rates": {"flags": "--synonym-table twins/synonyms.safetensors --mask-seeds 1"}}
    write_corpus(tmp_path / "study" / "corpus")
    run = study(write(plan, tmp_path / "plan.yaml"), tmp_path / "study")
    assert run.code == 0, run.output
    assert re.search(r"^runs left: 6; an unknown time with 2 at a time$", run.stdout, flags=re.MULTILINE)
    rows = {(row["measure"], row["arm"]): row["values"] for row in compared_rows(tmp_path / "study")}
    recovered = "of the loss if synonyms are right, after 12 updates"
    assert rows[recovered, "plain"] == {"1": 0, "2": 0} and rows[recovered, "oracle"] == {"1": 100, "2": 100}
    assert rows[recovered, "tying"].keys() == {"1", "2"}
    cosines = (rows["mean cosine of a word and its synonym", arm] for arm in ("tying", "plain"))
    assert all(tied > free for tied, free in zip(*(cosine.values() for cosine in cosines)))
    assert "| scratch: tying | 2 |" in (tmp_path / "study" / "summary.md").read_text()


def test_only_the_sources_that_the_starts_use_are_needed(tmp_path):
    start = Start(prepare=[Step("a", "cp sources/text sources/textbook")])
    both = Plan(sources={"text": str(tmp_path), "textbook": str(tmp_path), "book": None}, starts={"s": start})
    run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])
    assert {path.name for path in (tmp_path / "sources").iterdir()} == {"text", "textbook"}
    start.prepare[0].command += " sources/book/1.txt"
    both.hints = {"book": "write one", "text/*.xz": "xz a.txt"}
    with pytest.raises(
        ValueError, match="plan.yaml: sources.book: is missing; give --source book=PATH; to get it: wri"
    ):
        run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])

    # a file of a source is missing, which is only read if the output is missing, too
    start.prepare[0].command = f"sh -c 'xz -dc sources/text/b/a.txt.xz # {'long ' * 99}'"
    with pytest.raises(ValueError, match=f"^{tmp_path}/b/a.txt.xz: is missing; to get it: xz a.txt$"):
        run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])
    (tmp_path / "a").touch()
    run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])
    for name in ("a+b.txt", "c d.txt"):
        (tmp_path / name).touch()
    start.measures["lexical"] = Measure(flags="--swords sources/text/a+b.txt --x 'sources/text/c d.txt' sources/text/*")
    run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])
    start.measures["lexical"] = Measure(flags="--swords sources/textbook/swords.json.gz")
    with pytest.raises(ValueError, match="swords.json.gz: is missing$"):
        run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])
    both.sources, start.measures = {"text": str(tmp_path), "book": None}, {}
    start.prepare = [Step("a", "cp sources/text sources/book-list sources/book.txt")]
    (tmp_path / "sources" / "text").unlink()
    (tmp_path / "sources" / "text").mkdir()
    with pytest.raises(ValueError, match="sources/text: not a link, as in a folder that was copied; delete it"):
        run_study.link_sources(both, Path("plan.yaml"), tmp_path, [start])


def test_the_time_that_is_left(tmp_path):
    """Three runs of 6 minutes, one of which is finished, and one at a quarter; two at a time."""
    start = Start(updates=100, hours=0.5, measures={"rates": Measure(flags="f")})
    start.arms = {"a": Arm(), "longer": Arm(updates=200)}
    study = Plan(starts={"s": start})
    runs = [Run("s", "a", seed) for seed in (1, 2, 3)]
    hours_left = progress.hours_left
    assert hours_left(study, runs, tmp_path, 2, {}) == 0.75  # as the plan says
    assert hours_left(study, runs, tmp_path, 1, {"s": [0.2, 0.4]}) == pytest.approx(0.9)  # as elsewhere
    start.hours = None
    assert hours_left(study, runs, tmp_path, 1, {}) is None
    for run, updates in zip(runs, (100, 25)):
        (tmp_path / run.folder).mkdir(parents=True)
        record = json.dumps({"num_updates": str(updates), "wall": str(3 * updates)})
        (tmp_path / run.folder / "train.log").write_text(f"x | INFO | train_inner | {record}\n")
    (tmp_path / runs[0].folder / "run.json").write_text('{"state": "finished"}')
    record = {"command": "c", "log": "logs/measures/s/rates/a/seed1.log", "seconds": 60}
    (tmp_path / "commands.jsonl").write_text(json.dumps(record) + "\n")
    assert hours_left(study, runs, tmp_path, 2, {"s": [9.0]}) == pytest.approx(0.1 * (0.75 + 1) / 2)
    assert hours_left(study, [runs[0], Run("s", "longer", 1)], tmp_path, 1, {}) == pytest.approx(0.2)
    assert [progress.clock(hours) for hours in (0.1, 2.51, 0.001, None)] == [
        "about 6 min",
        "about 2 h 31 min",
        "less than a minute",
        "an unknown time",
    ]
    (tmp_path / "commands.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record)[:20])
    with pytest.raises(ValueError, match="commands.jsonl, line 2: is not a complete record; delete this line"):
        hours_left(study, runs, tmp_path, 2, {})


@pytest.mark.xdist_group("study")
def test_an_interrupted_run_gives_the_same_figures_and_a_new_arm_trains_by_itself(finished, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(finished / "study", folder, symlinks=True)
    copy_sources(finished, tmp_path)
    shutil.rmtree(folder / "runs" / "scratch" / "plain" / "seed2")
    shutil.rmtree(folder / "measures" / "scratch" / "rates" / "plain" / "seed2")
    plan = small_plan()
    path = write(plan, tmp_path / "plan.yaml")
    left, measures_left = study(path, folder, "--dry-run").stdout.splitlines()
    assert measures_left == "# then these measures of scratch: rates"
    assert not study(path, folder, "--dry-run", "--no-training").stdout.startswith("fairseq-train")
    words = [str(PLUGIN) if word == "$(tn-fairseq user-dir)" else word for word in shlex.split(left)]
    half = run_command(*words, "--max-update", "2", cwd=folder)  # as if it had been killed
    assert half.code == 0, half.output
    (folder / "runs" / "scratch" / "plain" / "seed2" / "train.log").write_text(half.output)

    arms = plan["starts"]["scratch"]["arms"]
    arms["soft_reg"] = {"about": "soft", "flags": "--criterion mlm_soft_reg", "seeds": [1]}
    arms["broken"] = {"about": "<b>", "flags": "--criterion mlm_soft_reg --soft-reg-weight -1", "seeds": [1]}
    before = len(commands(folder))
    run = study(write(plan, path), folder)
    assert "scratch/broken/seed1 failed with exit code 1: error: --soft-reg-weight must be non-negative" in run.error()
    new = [one["command"] for one in commands(folder)[before:]]
    trained = {name for name in ("plain/seed2", "soft_reg/seed1", "broken/seed1") for one in new if name in one}
    assert trained == {"plain/seed2", "soft_reg/seed1", "broken/seed1"}
    assert sum("--save-dir" in one for one in new) == 3
    assert 'num_updates": "4' in (folder / "runs" / "scratch" / "plain" / "seed2" / "train.log").read_text()

    known = {"plain", "hard_wordnet"}
    again = [row for row in compared_rows(folder) if row["arm"] in known and row["interval"] == "seeds"]
    assert [row["values"] for row in again] == [
        row["values"] for row in compared_rows(finished / "study") if row.get("values")
    ]
    page = (folder / "index.html").read_text()
    assert "Failed runs" in page and "--soft-reg-weight must be non-negative" in page
    assert "5 of 6 runs are finished, and 1 failed" in page and "&lt;b&gt;" in page and "<b>;" not in page

    plan["starts"]["scratch"]["train"] += " --weight-decay 0.1"
    refused = study(write(plan, path), folder)
    assert "runs/scratch/plain/seed1: was trained with another command; give another --output" in refused.error()


def test_a_study_that_is_stopped_ends_its_commands_and_unlocks_its_folder(tmp_path, monkeypatch):
    plan = small_plan()
    plan["sources"], plan["starts"]["scratch"]["measures"] = {}, {}
    plan["starts"]["scratch"]["prepare"].insert(0, {"output": "never", "command": "sleep 300"})
    command = ["tn-fairseq", "study", write(plan, tmp_path / "plan.yaml"), "--output", tmp_path / "a"]
    with open(tmp_path / "output", "w+") as output:
        process = start_command(*command, stdout=output, stderr=output)
        wait_until((tmp_path / "a" / "logs").exists)
        monkeypatch.setattr(launching, "PATIENCE", 0)
        error = refused(main, [*map(str, command[2:])])
        assert f"{tmp_path / 'a'}: another study, or a run that it started, is still working there; wait for" in error
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 130
        output.seek(0)
        assert output.read().endswith("error: interrupted; run the same command again to resume\n")
    with launching.launching(tmp_path / "a" / LOCK, "it is still locked"):
        pass


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_give_commands_that_fairseq_accepts(name, capsys, tmp_path):
    main([name, "--output", str(tmp_path), "--dry-run"])
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    training = [words for words in lines if words[0] == "fairseq-train"]
    plan = OmegaConf.load(FOLDER / "plans" / f"{name}.yaml")
    seeds = [len(arm.get("seeds", start.seeds)) for start in plan.starts.values() for arm in start.arms.values()]
    assert len(training) == sum(seeds)
    assert len({tuple(words) for words in training}) == len(training)
    folders = [Path(words[words.index("--save-dir") + 1]) for words in training]
    assert all(f"seed{words[words.index('--seed') + 1]}" == path.name for words, path in zip(training, folders))
    for words in {
        path.parent: words for words, path in zip(training, folders)
    }.values():  # all seeds of an arm are alike
        flags = [str(PLUGIN) if word == "$(tn-fairseq user-dir)" else word for word in words[1:]]
        args = options.parse_args_and_arch(options.get_training_parser(), flags)
        assert args.max_update == int(args.total_num_update)
        assert (args.criterion in ("mlm", "electra")) == any(
            f"/{arm}/" in args.save_dir for arm in ("plain", "plain_longer", "released", "teacher_itself")
        )


def studies_of_the_page() -> list[list[str]]:
    """The words of each command ``tn-fairseq study`` in the guide."""
    lines = commands_of(guide("study"))
    return [words[2:] for words in lines if words[:2] == ["tn-fairseq", "study"]]


def test_our_results_are_what_the_command_writes_and_small(monkeypatch, tmp_path):
    monkeypatch.setattr(study_report, "draw_start", lambda *_: {})  # because it takes a minute
    _, words = studies_of_the_page()[:2]
    results, page = FOLDER / "results", tmp_path / "page"
    page.mkdir()
    shutil.copy(results / "discussion.txt", page)
    places = {"page": str(page), "examples/study/results": str(results / "study.json")}
    main([places.get(word, word) for word in words])
    texts = [(folder / "summary.md").read_text() for folder in (results, page)]
    plots = re.findall(r"\]\((plots/.*?)\)", texts[0])
    assert len(plots) > 5 and {path.name for path in (results / "plots").iterdir()} == {Path(one).name for one in plots}
    # without the plots, and the date and machine of the last run
    published, written = ([line for line in text.splitlines()[5:] if line and "](plots/" not in line] for text in texts)
    assert written == published
    starts = len(json.loads((results / "study.json").read_text())["starts"])
    assert sum(path.stat().st_size for path in results.rglob("*") if path.is_file()) < 125_000 * starts


def test_the_commands_of_the_page(capsys, tmp_path):
    tiny, _, continued, elsewhere = studies_of_the_page()  # the second one is above
    earlier = json.loads((FOLDER / "results" / "study.json").read_text())
    earlier["starts"]["scratch"]["runs"] = []  # the starts before it are finished
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    elsewhere[elsewhere.index("--earlier") + 1] = str(tmp_path / "earlier.json")
    places = {"study": str(tmp_path), "study2": str(tmp_path / "2")}
    for words, start in ((tiny, "scratch"), (continued, "continued"), (elsewhere, "scratch")):
        main([places.get(word, word) for word in words] + ["--dry-run"])
        found = capsys.readouterr().out
        assert f"--save-dir runs/{start}/" in found
        assert ("--save-dir runs/continued/plain/" in found) == (start == "continued")
    (arms,) = re.findall(r"```yaml\n(.*?)```", guide("study"), flags=re.DOTALL)
    plan = FOLDER / "plans" / "tiny.yaml"
    (place,) = re.findall(r"`my_objectives: (\S+)`", guide("study"))
    text = plan.read_text().replace("    arms:\n", "    arms:\n" + arms)
    (tmp_path / "plan.yaml").write_text(
        text.replace("sources:\n", f"sources:\n  my_objectives: {plan.parent / place}\n")
    )
    main([str(tmp_path / "plan.yaml"), "--output", str(tmp_path), "--dry-run"])
    printed = capsys.readouterr().out
    for name in ("temperature", "penalty"):
        assert printed.count(f"--save-dir runs/scratch/{name}/seed") == 3
    assert printed.count("--user-dir sources/my_objectives") == 3


@pytest.mark.xdist_group("study")
def test_an_arm_with_an_objective_of_the_users_plugin(finished, tmp_path):
    plan = OmegaConf.create(small_plan())
    start = plan.starts.scratch
    own = {"about": "a confidence penalty", "flags": "--criterion mlm_confidence_penalty"}
    rates = "--synonym-table tables/wordnet.safetensors --mask-seeds 1 --max-sequences 8"
    start.arms, start.measures = {"own": own, "plain": start.arms.plain}, {"rates": {"flags": rates}}
    start.updates, start.seeds = 2, [1]
    path, folder = tmp_path / "plan.yaml", tmp_path / "study"

    def error() -> str:
        message = refused(main, [str(write(plan, path)), "--output", str(folder)])
        assert message.startswith(f"error: {path}: starts.scratch.arms.own, or what all arms share: ")
        assert not folder.exists()
        return message

    start.arms.own.user_dir = "sources/some_objectives"
    for name, content, message in (
        ("some_objectives", None, "some_objectives: cannot be imported (FileNotFoundError: "),
        ("other_name", "", "user_dir: its folder is other_name, so the source must also have this name"),
        ("some_objectives", "import", "some_objectives: cannot be imported (SyntaxError: "),
    ):
        plan.sources.some_objectives = name
        if content is not None:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(content)
        assert message in error()

    for name in ("corpus", "tokenizer", "data-bin", "tables"):
        shutil.copytree(finished / "study" / name, folder / name)
    start.arms.own.user_dir = "sources/my_objectives"
    plan.sources.my_objectives = str(ROOT / "examples" / "own_objective" / "my_objectives")
    run = study(write(plan, path), folder)
    assert run.code == 0, run.output
    used = {command["command"].split(" --task")[0] for command in commands(folder) if "fairseq-train" in str(command)}
    ours = '"$(tn-fairseq user-dir)"'
    assert used == {f"fairseq-train data-bin --user-dir {one}" for one in ("sources/my_objectives", ours)}
    assert {row["arm"] for row in compared_rows(folder)} == {"plain", "own"}
    assert str(PLUGIN) not in (folder / "study.json").read_text()
    # the runs of another plugin are not those of this plan
    start.arms.own.user_dir, plan.sources.another = "sources/another", "another"
    with pytest.raises(InputError, match=r"starts.scratch.arms.own: differs from that of the plan"):
        figures.read_earlier(folder / "study.json", read_plan(write(plan, path), {}))


# keys of a start, or of the plan, with wrong values, and what is said about them
WRONG = [
    ("arms.plain.flag", "x", "arms.plain.flag: unknown; did you mean flags?"),
    ("xyz", "x", "xyz: unknown; the settings are about, data, train, updates"),
    ("seeds", "1,2", "seeds: must be a list, such as [1, 2]"),
    ("arms.other.about", "x", "arms.other.flags: "),
    ("arms.a/b", {"about": "x", "flags": "x"}, "arms.a/b: must consist of letters"),
    ("seeds", [1, "two"], "seeds[1]: Value 'two' "),
    ("seeds", [1, 1], "seeds: must be different numbers, such as [1, 2, 3], not [1, 1]"),
    ("baseline", "base", "baseline: base is not one of the arms plain, hard_wordnet"),
    ("measures.speed", {}, "measures.speed: not a measure; the measures are logs, rates"),
    ("measures.elsewhere_", {"flags": "d"}, "measures.elsewhere_: not a measure; the measures are logs, rates"),
    ("measures.elsewhere_a/b", {"flags": "d"}, "measures.elsewhere_a/b: must consist of letters, digits"),
    ("measures.glue", {}, "measures.glue.flags: is missing"),
    ("measures.logs.flags", "--mask-seeds 3", "measures.logs.flags: has no effect on logs, only on rates, elsewhere, "),
    ("measures.logs.seeds", [1], "measures.logs.seeds: has no effect on logs, only on rates, "),
    ("measures.rates.window", 50, "measures.rates.window: has no effect on rates, only on logs; delete it"),
    ("measures.squad.flags", "--data squad-bin", "measures.squad.flags: must have --keep-checkpoints, because robust"),
    (
        "measures.glue",
        {"flags": "--data x", "seeds": [1, 7]},
        "measures.glue.seeds: must be among those of the",
    ),
    ("measures.robustness.seeds", None, "measures.robustness.seeds: must be among those of squad, 1"),
    ("measures.rates.arms", ["plain", "none"], "measures.rates.arms: none is not one of the arms"),
    ("measures.rates.arms", ["hard_wordnet"], "measures.rates.arms: must include plain"),
    ("prepare", [{"output": "x", "command": ""}], "prepare[0].command: is empty; give the command that writes x"),
    ("train", "--seed=3", "train: the study sets --seed itself; remove it"),
    ("train", "--user-dir a", "train: the study sets --user-dir itself; give an arm a user_dir instead"),
    ("train", "--lr '3", 'train: No closing quotation in "--lr \'3"'),
    ("arms.plain.user_dir", "mine", "arms.plain.user_dir: must be sources/NAME, with a NAME of the plan's sources"),
    ("updates", 0, "updates: must be positive, not 0"),
    ("margins", {"loss": 0}, "margins.loss: must be positive, not 0"),
    (
        "arms.plain.flags",
        "--criterion mlmm",
        "arms.plain, or what all arms share: --criterion mlmm: unknown; did you mean",
    ),
    (
        "train",
        "--arch bert_tiny --lrr 3",
        "arms.plain, or what all arms share: unrecognized arguments: --lrr 3 ",
    ),
    ("sources.pairs", None, "sources.pairs: is missing; give --source pairs=PATH"),
    ("sources.pairs", "nowhere", "sources.pairs: "),
]


@pytest.mark.parametrize("key, value, message", WRONG)
def test_wrong_plans_get_one_line_with_file_and_key(key, value, message, tmp_path):
    plan, start = OmegaConf.create(small_plan()), "" if key.startswith("sources") else "starts.scratch."
    OmegaConf.update(plan, start + key, value, merge=False)
    path = write(plan, tmp_path / "plan.yaml")
    error = refused(main, [str(path), "--output", str(tmp_path / "out")])
    assert error.startswith(f"error: {path}: {start}{message}")
    assert not (tmp_path / "out" / "runs").exists()


def test_other_wrong_input(tmp_path):
    path = tmp_path / "plan.yaml"
    for text, flags, message in (
        ("a: [1", (), f"error: {path}: not valid YAML (while parsing a flow sequence"),
        ("5", (), f"error: {path}: has no settings such as title"),
        (None, (), f"error: {path}: No such file or directory; give a plan: tiny, cpu"),
        ("", ("--start", "other"), "error: --start other: not in "),
        ("", ("--source", "a=x", "--source", "a=y"), "error: --source names a source twice; give each once"),
        (
            "",
            ("--source", "data=x"),
            f"error: {path}: sources: has no data, only pairs, questions, attacked; check --source",
        ),
    ):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text) if text else write(small_plan(), path)
        assert message in refused(main, [str(path), "--output", str(tmp_path / "out"), *flags])
    assert f"--output {path}: is not a folder" in refused(main, [str(path), "--output", str(path), "--dry-run"])
    write(small_plan(), path)
    nothing = refused(main, [str(path), "--output", str(tmp_path / "out"), "--no-training"])
    assert f"--output {tmp_path / 'out'}: has no finished run of {path}" in nothing
    (tmp_path / "index.html").write_text("mine")
    replaced = refused(main, [str(path), "--output", str(tmp_path)])
    assert replaced == f"error: {tmp_path / 'index.html'}: would be replaced; give another --output, or move it"


def test_a_run_that_cannot_be_written_is_reported_and_the_others_go_on(monkeypatch, tmp_path):
    error = InputError("a.pt: No space left on device")

    def full(*args: object) -> None:
        raise error

    monkeypatch.setattr(run_study, "train", full)
    run, runner = Run("s", "plain", 1), a_runner(tmp_path)
    found = run_study.train_and_measure(Start(), run, runner, training=True)
    assert found == (["s/plain/seed1: a.pt: No space left on device"], False)
    error = OSError(errno.ENOSPC, "No space left on device")
    found = run_study.train_and_measure(Start(), run, runner, training=True)
    assert found == (["s/plain/seed1: [Errno 28] No space left on device"], False)


def test_times_are_measured_again_with_other_settings(tmp_path):
    """Without a fairseq-train that works, a new measurement fails."""
    runner = a_runner(tmp_path)
    runner.run = lambda words, log: 1
    start = Start(data="d", train="", updates=3, arms={"plain": Arm(flags="")})
    folder = tmp_path / "measures" / "s" / "cost"
    folder.mkdir(parents=True)
    (folder / "cost.json").write_text(json.dumps({"updates": 20, "rounds": 3, "tokens_per_second": {"plain": [1]}}))
    runs = [Run("s", "plain", 1)]
    assert measures._cost("s", start, Measure(), runs, runner) is None
    assert "cost of s/plain failed" in measures._cost("s", start, Measure(rounds=2), runs, runner)


def test_an_arm_whose_seeds_do_not_all_reach_a_level_has_no_mean():
    start = Start(baseline="plain", updates=30, measures={"logs": Measure(levels=[20, 15], window=10)})
    ends = {"plain": (21, 19), "new": (21, 25)}
    curves = {
        Run("s", arm, seed): {"updates": [10, 20, 30], "accuracy": [10, 16, end], "loss": [3, 2, 1]}
        for arm, of_arm in ends.items()
        for seed, end in enumerate(of_arm)
    }
    rows = figures.compare_all(figures.Figures({}, curves, [], [], [], [], [], {}), start)
    reached = {(row["measure"].split()[-1], row["arm"]): row["difference"] for row in rows if "reach" in row["measure"]}
    assert reached == {("15%", "plain"): None, ("15%", "new"): 0, ("20%", "new"): None}


def test_robustness_is_measured_after_squad_and_only_if_that_is_there(tmp_path):
    runner, run = a_runner(tmp_path), Run("s", "plain", 1)
    settings = {name: Measure(flags="--data d") for name in ("robustness", "squad")}
    start = Start(updates=1, seeds=[1], arms={"plain": Arm(flags="")}, measures=settings)
    for code, expected in ((1, ["squad"]), (0, ["squad", "robustness"])):
        ran = []

        def fake(words, log, code=code, ran=ran):
            ran.append(words[2])
            if not code:
                folder = tmp_path / measures.place_of_run(run, words[2])
                folder.mkdir(parents=True)
                (folder / measures.RESULTS[words[2]]).touch()
            return code

        runner.run = fake
        assert len(measures.measure_run(start, run, runner)) == code and ran == expected


def test_a_run_that_is_trained_again_is_measured_again(monkeypatch, tmp_path):
    runner, run = a_runner(tmp_path), Run("s", "plain", 1)
    start = Start(data="d", train="", updates=3, arms={"plain": Arm(flags="")})
    old = [tmp_path / "measures" / "s" / name for name in ("rates/plain/seed1/x", "lexical/command.txt")]
    kept = tmp_path / "measures" / "s" / "rates" / "plain" / "seed2"
    for path in (*old, kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    runner.run = lambda words, log: 0
    ended = "s/plain/seed1 failed: it ended after 0 of 3 updates (see "
    assert run_study.train(start, run, runner, training=True).startswith(ended)
    assert not measures.is_finished(tmp_path, run)
    (tmp_path / run.folder / "run.json").unlink()
    old[0].parent.mkdir(parents=True, exist_ok=True)
    old[0].touch()
    runner.run = lambda words, log: 1
    assert run_study.train(start, run, runner, training=True) and kept.exists() and not any(map(Path.exists, old))
    old[0].parent.mkdir(parents=True)
    old[0].touch()
    assert run_study.train(start, run, runner, training=True) and old[0].exists()  # resumed
    assert measures.result_of(tmp_path, old[0].parent.relative_to(tmp_path), "rates") is None


def test_a_log_without_accuracy_has_no_curve(tmp_path):
    """fairseq's own masked_lm."""
    (tmp_path / "log").write_text('INFO | train_inner | {"loss": "3", "num_updates": "10"}\n')
    assert figures.read_curve(tmp_path / "log") == {"updates": [], "accuracy": [], "loss": []}


def test_curves_by_hand():
    curve = {"updates": [10, 20, 30, 40], "accuracy": [1, 3, 5, 9], "loss": [4, 3, 2, 1]}
    smoothed, reach = figures.smoothed, figures.updates_to_reach
    assert smoothed(curve, 20) == ([20, 30, 40], [2, 4, 7])
    assert smoothed(curve, 20, "loss") == ([20, 30, 40], [3.5, 2.5, 1.5])
    assert smoothed(curve, 50) == ([], [])
    assert reach(5, *smoothed(curve, 20)) == pytest.approx(30 + 10 / 3)
    assert reach(4, *smoothed(curve, 20)) == 30
    assert reach(1, *smoothed(curve, 20)) == 20
    assert reach(8, *smoothed(curve, 20)) is None


def test_a_long_curve_is_thinned_to_means_and_keeps_its_end(monkeypatch):
    monkeypatch.setattr(figures, "MOST_POINTS", 3)
    short = {"updates": [10, 20, 30], "accuracy": [1, 2, 3], "loss": [3, 2, 1]}
    assert figures.thinned(short, 20) is short

    long = {"updates": [10, 20, 30, 40, 50], "accuracy": [1, 3, 5, 9, 10], "loss": [5, 4, 3, 2, 1.0014]}
    thin = {"updates": [10, 30, 50], "accuracy": [1, 4, 9.5], "loss": [5, 3.5, 1.501]}
    assert figures.thinned(long, 40) == thin and figures.thinned(thin, 40) is thin
    assert figures.thinned({"updates": [], "accuracy": [], "loss": []}, 40)["updates"] == []
    assert figures.smoothed(thin, 40)[1][-1] == 6.75 == figures.smoothed(long, 40)[1][-1]
    # two points of 10 updates each do not make a window of 30
    assert figures.thinned(long, 30) == long


@pytest.mark.parametrize("count", [500, 1000, 9990])
def test_the_last_updates_are_as_many_as_the_figure_says(count):
    updates = [10 * number for number in range(1, count + 1)]
    last = [100.0 * (at > updates[-1] - 100) for at in updates]
    curve = figures.thinned({"updates": updates, "accuracy": last, "loss": last}, 100)
    of_end, _, _, reached = figures.curve_figures(curve, Measure(window=100, levels=[50]))
    assert of_end[0][1] == "accuracy of the last 100 updates" and of_end[1] == 100
    assert reached[1] == pytest.approx(updates[-1] - 50, abs=50)


def test_a_curve_with_regular_updates_is_written_with_their_distance():
    regular = {"arm": "plain", "seed": 1, "updates": [10, 20, 30], "accuracy": [1, 2, 3], "loss": [3, 2, 1]}
    other = regular | {"updates": [10, 20, 40]}
    results = {"starts": {"start": {"rates": [], "elsewhere": [], "comparisons": [], "curves": [regular, other]}}}
    written = figures.compact(results)["starts"]["start"]["curves"]
    assert written == [{"every": 10} | {key: regular[key] for key in ("arm", "seed", "accuracy", "loss")}, other]
    assert [figures._complete_curve(curve) for curve in written] == [regular, other]


def test_curves_are_compared_at_the_updates_that_all_have():
    assert study_plots.average([([10, 20, 30], [1, 2, 3]), ([20, 30, 40], [4, 7, 9])]) == ([20, 30], [3, 5])
    curves = [("plain", 1, [10, 20, 40]), ("new", 1, [20, 30, 40]), ("new", 2, [20, 30, 40])]
    of_start = {
        "curves": [
            {
                "arm": arm,
                "seed": seed,
                "updates": updates,
                "accuracy": [update / 10 + (arm == "new") for update in updates],
            }
            for arm, seed, updates in curves
        ]
    }
    start = Start(baseline="plain", log_every=1, measures={"logs": Measure(window=1)})
    assert study_plots.paired_curves(start, of_start) == {"new": ([20, 40], [1, 1])}


def test_data_of_a_preparation_that_was_killed_is_not_used(tmp_path, monkeypatch):
    step = Step("made", "sh -c 'echo part > made; sleep 0.1; echo rest >> made'")

    def killed(*words: object) -> int:
        (tmp_path / "made").write_text("part\n")
        raise launching.Stopped

    with launching.launching(tmp_path / LOCK, "locked", tmp_path) as launcher:
        runner = Runner(tmp_path, launcher, threads=1)
        with monkeypatch.context() as patched, pytest.raises(launching.Stopped):
            patched.setattr(runner, "run", killed)
            runner.prepare("start", [step])
        runner.prepare("start", [step])
    assert (tmp_path / "made").read_text() == "part\nrest\n"
    assert not list((tmp_path / "logs").glob("*.unfinished"))


def test_data_that_another_command_prepared_is_refused(tmp_path):
    step = Step("made", "touch made")
    with launching.launching(tmp_path / LOCK, "locked", tmp_path) as launcher:
        runner = Runner(tmp_path, launcher, threads=1)
        runner.prepare("start", [step])
        runner.prepare("start", [step])
        assert len((tmp_path / "commands.jsonl").read_text().splitlines()) == 1
        with pytest.raises(InputError, match="made: was made by another command than that of the plan now; give anoth"):
            runner.prepare("start", [Step("made", "touch made other")])
        with pytest.raises(InputError, match="^nosuchcommand: No such file or directory; check the command"):
            runner.prepare("start", [Step("out", "nosuchcommand --x")])
        for _ in range(2):  # the output of a command that failed is not used the next time
            with pytest.raises(InputError, match="^start: half could not be prepared: no output"):
                runner.prepare("start", [Step("half", "sh -c 'touch half; exit 1'")])


def test_comparisons_use_the_seeds_of_both_arms():
    values = {"plain": {1: 10.0, 2: 20.0, 3: 99.0}, "new": {1: 12.0, 2: 24.0}, "one": {2: 21.0}, "none": {7: 1.0}}
    rows = {row["arm"]: row for row in figures.compared(("group", "m", "%", 1), values, "plain")}
    assert (rows["new"]["pairs"], rows["new"]["difference"], rows["new"]["value"]) == (2, 3, 18)
    # differences of 2 and 4: half the interval is 12.706 standard errors of 1
    assert (rows["new"]["low"], rows["new"]["high"]) == pytest.approx((3 - 12.706, 3 + 12.706), abs=1e-3)
    assert (rows["one"]["difference"], rows["one"]["low"], rows["one"]["detectable"]) == (1, None, None)
    assert rows["none"]["difference"] is None and rows["plain"]["difference"] is None
    values = {"plain": {1: 0.0, 2: 0.0}, "new": {1: 0.0, 2: 0.0}}  # without a spread there is no interval
    (_, row) = figures.compared(("group", "m", "%", 1), values, "plain")
    assert (row["difference"], row["low"], row["high"], row["detectable"]) == (0, None, None, None)


def test_differences_are_corrected_within_a_group_and_compared_with_a_margin():
    key, plain = ("group", "accuracy", "%", 1), {seed: 10.0 + seed for seed in (1, 2, 3)}
    shifts = {"far": [5.0, 5.1, 4.9], "near": [0.1, -0.1, 0.05], "noisy": [4.0, -4.0, 1.0]}
    values = {"plain": plain}
    values |= {arm: {seed: plain[seed] + shift for seed, shift in zip(plain, of)} for arm, of in shifts.items()}
    rows = figures.compared(key, values, "plain", 0.5)
    figures.correct(rows)
    found = {row["arm"]: row for row in rows}
    assert found["plain"]["p"] is None and found["plain"]["equivalent"] is None
    assert found["far"]["holm"] == pytest.approx(3 * found["far"]["p"]) and found["far"]["p"] < 0.001
    assert {arm: found[arm]["equivalent"] for arm in shifts} == {"far": False, "near": True, "noisy": False}
    significant, excluded = statements.corrected({"comparisons": rows})
    assert "1 of 3 differences are significant: far on accuracy." in significant
    assert excluded.startswith(
        "accuracy: a difference larger than 0.5 is excluded for near; tested: far, near, noisy ("
    )
    again = [{**row, "measure": "loss", "holm": None} for row in rows if row["equivalent"] is not None]
    assert statements.corrected({"comparisons": rows + again})[1:] == [excluded.replace("accuracy", "accuracy; loss")]
    start = Start(margins={"acuracy": 0.5, "accuracy": 0.5})
    unused = statements.unused_margins(start, {"comparisons": rows})
    assert unused == ["No difference was tested against the margin of acuracy."]
    rows = figures.compared(key, values, "plain")
    assert all(row["equivalent"] is None for row in rows)


def test_findings_name_the_measures_with_a_clear_difference():
    plain = {1: 10.0, 2: 20.0, 3: 30.0}
    shifts = {"accuracy": (5.0, 5.1, 4.9), "loss": (5.0, 5.1, 4.9), "loss on other text": (4.0, -4.0, 1.0)}
    start, rows = Start(baseline="plain", arms={name: Arm(about=f"is {name}") for name in ("plain", "new")}), []
    for measure, shift in shifts.items():
        values = {"plain": plain, "new": {seed: plain[seed] + more for seed, more in zip(plain, shift)}}
        rows += figures.compared(("group", measure, "", 1 if measure == "accuracy" else -1), values, "plain")
    (line,) = statements.findings(start, {"comparisons": rows})
    assert line == "new (is new): better on accuracy; worse on loss; no clear difference on 1 of 3 measures."


def test_small_shares_have_more_decimals():
    values = (("%", 31.0123), ("%", 0.23456), ("%", 0.0071831), ("bits", 7.9421), ("updates", 328.4), ("", 0))
    shown = [statements.number({"unit": unit, "value": value}, "value") for unit, value in values]
    assert shown == ["31.01", "0.235", "0.00718", "7.942", "328", "0.000"]


def test_a_clear_difference_is_not_shown_as_zero():
    row = {"unit": "bits", "value": 4.7, "difference": -0.00008, "low": -0.00015, "high": -0.00001}
    assert statements.short(row) == "**\u22120.0001 ± 0.0001**"
    assert statements.short(row | {"high": 0.00001}) == "+0.000 ± 0.000"


def test_clear_differences_are_bold_and_their_color_says_if_they_are_better():
    """Also in measures in which less is better; a mean of a single pair is never clear."""
    arms = {
        "plain": {1: 10.0, 2: 20.0},
        "clear_one": {1: 13.0, 2: 23.1},
        "other": {1: 9.0, 2: 22.0},
        "single": {1: 8.0},
    }
    start = read_plan(FOLDER / "plans" / "tiny.yaml", {}).starts["scratch"]
    start.arms = dict.fromkeys(arms, start.arms["plain"])
    for better, color in ((1, "better"), (-1, "worse")):
        rows = figures.compared((figures.HELD_OUT, "score", "%", better), arms, "plain")
        text = "".join(study_page.overview(start, {"comparisons": rows}))
        assert "<th>clear_<wbr>one</th>" in text and "<td>score (%)</td><td>15.00</td>" in text
        assert f'<td class="{color}"><b>+3.05</b></td><td>+0.50</td><td>\u22122.00</td></tr>' in text
        assert study_page.measure_table("score", rows).count("<b>") == 1


def test_scores_of_fine_tuning_are_averaged_by_run(tmp_path):
    folder = tmp_path / "measures" / "s" / "glue" / "a.b" / "seed3"
    folder.mkdir(parents=True)
    scores = (("RTE", "accuracy", 55.0), ("CoLA", "matthews", 10.0), ("CoLA, RTE", "average", 32.5))
    rows = [
        {"name": "a.b.seed3", "data": data, "measure": measure, "seeds": 2, "value": value}
        for data, measure, value in scores
    ]
    (folder / "glue.json").write_text(json.dumps({"comparisons": rows}))
    assert figures.fine_tuned(tmp_path, Run("s", "a.b", 3)) == []  # its command failed
    (folder / "command.txt").touch()
    found = figures.fine_tuned(tmp_path, Run("s", "a.b", 3))
    assert {key[1]: score for key, score in found} == {"RTE": 55, "CoLA": 10, "average": 32.5}
    assert figures.fine_tuned(tmp_path, Run("s", "a.b", 4)) == []


def test_the_papers_tables_have_our_rows():
    """Two seeds of 50 and 52: 51 with half an interval of 12.706 standard errors of 1."""
    arms = {
        "base": Arm(about="a", flags="", resembles="ELECTRA-small"),
        "new": Arm(about="b", flags="", resembles="ELECTRA-small HC"),
        "other": Arm(about="c", flags=""),
    }
    study = Plan(starts={"s": Start(about="s", updates=40, baseline="base", arms=arms)})
    rows = []
    for measure in ("RTE", "average", "SQuAD EM", "SQuAD EM under swap", "SQuAD EM under swap, drop"):
        values = {"base": {1: 50.0, 2: 52.0}, "new": {1: 61.0}, "other": {1: 9.0}}
        rows += figures.compared((figures.FINE_TUNING, measure, "%", 1), values, "base")
    rows = [row for row in rows if "under" not in row["measure"] or row["arm"] == "base"]
    rows += figures.compared((figures.FINE_TUNING, "SQuAD F1 under swap", "%", 1), {"base": {1: 7.0}}, "base")
    rows += figures.compared((figures.FINE_TUNING, "SQuAD F1 under swap, drop", "%", 1), {"base": {1: 8.0}}, "base")
    rates = [{"arm": "base", "seed": 1, "updates": 10, "sequence_rate": 6.0, "prediction_rate": 1.5}]
    two, three, four, five, six = paper_tables.paper_tables(
        study, {"starts": {"s": {"comparisons": rows, "rates": rates}}}
    )
    assert two.rows[5] == ["BERT-base", "100%", "7.07", "1.41", "4.7"]
    assert two.rows[12:] == [["ours, s: base", "25%", "6.00", "1.50", ""]]
    assert three.rows[0][:2] == ["BERT-base", "61.1"] and len(three.rows) == 12 + 2
    assert three.rows[12:] == [
        ["ours, s: base", *7 * ["-"], "51.0 ± 12.7", "51.0 ± 12.7", ""],
        ["ours, s: new", *7 * ["-"], "61.0", "61.0", ""],
    ]
    assert four.rows[6:] == [["ours, s: base", "51.0 ± 12.7", "-", ""], ["ours, s: new", "61.0", "-", ""]]
    assert five.rows[6:] == [["ours, s: base", "swap", "51.0 ± 12.7", "51.0 ± 12.7", "7.0", "8.0", ""]]
    assert [row[0] for row in six.rows[5:]] == ["ours, s: base", "ours, s: new"]
    for table in (two, three, four, five, six):
        assert {len(row) for row in table.rows} == {len(table.header)}
    assert paper_tables.repeat("ELECTRA-small SR, sentence") == "1.4"  # twice 0.7


def test_one_table_has_the_most_important_measures_of_all_starts():
    arm = Arm(about="a", flags="")
    starts = {
        name: Start(about=name, updates=4, baseline="plain", arms={"plain": arm, "new": arm, "left": arm})
        for name in ("one", "two")
    }
    results = {}
    starts["two"].oracle = "left"
    for name in starts:
        rows = []
        for column, at, gain in (("accuracy", 30.0, 1), ("merged_accuracy", 40.0, 2)):
            values = {"plain": {1: at, 2: at}, "new": {1: at + gain, 2: at + gain + 0.2}}
            rows += figures.compared(figures.RATES[column], values, "plain")
        runs = [{"arm": arm, "state": "finished"} for arm in ("plain", "new") for _ in (1, 2)]
        results[name] = {"comparisons": rows, "runs": runs}
        scores = [((figures.FINE_TUNING, task, "%", 1), 50.0) for task in ("SST-2", "CoLA", "average")]
        for key, value in scores if name == "one" else []:
            rows += figures.compared(key, {"plain": {1: value}}, "plain")
    assert (
        paper_tables.glance({"starts": results})
        == paper_tables.GLANCE + " GLUE is the average of some of its tasks (one: CoLA, SST-2)."
    )
    header, rows = paper_tables.at_a_glance(Plan(starts=starts), {"starts": results})
    assert header == ["start: arm", "seeds", "accuracy (%)", "GLUE"]
    assert rows == [
        ["one: plain", "2", "30.00", "50.00"],
        ["one: new", "2", "+1.10 ± 1.27", "-"],
        ["two: plain", "2", "40.00", "-"],
        ["two: new", "2", "**+2.10 ± 1.27**", "-"],
    ]
    assert study_page.cells("td", ["**+1.00 ± 0.10**", "<"]) == "<td><b>+1.00 ± 0.10</b></td><td>&lt;</td>"


def test_what_an_arm_recovers_of_the_oracles_gain_by_hand():
    """Seed by seed: 2 and 1 of 4 points of accuracy, and no gain of 0.5 bits; seed 3 has no oracle."""
    accuracy = {"plain": {1: 30, 2: 31, 3: 30}, "mine": {1: 32, 2: 32, 3: 33}, "oracle": {1: 34, 2: 35}}
    loss = {"plain": 5.5, "mine": 5.5, "oracle": 5.0}
    rates = [
        {"arm": arm, "seed": seed, "updates": 8, "merged_accuracy": value, "merged_loss": loss[arm]}
        for arm, of_arm in accuracy.items()
        for seed, value in of_arm.items()
    ]
    start = Start(baseline="plain", oracle="oracle")
    of_accuracy, of_loss = figures.recovered(rates, start).values()
    assert of_accuracy == {"plain": {1: 0, 2: 0}, "mine": {1: 50, 2: 25}, "oracle": {1: 100, 2: 100}}
    assert of_loss == {"plain": {1: 0, 2: 0}, "mine": {1: 0, 2: 0}, "oracle": {1: 100, 2: 100}}
    start.oracle = None
    assert figures.recovered(rates, start) == {}


def test_an_arm_can_have_updates_of_its_own():
    arms = {name: Arm(about=name, flags="--criterion mlm") for name in ("plain", "longer")}
    arms["longer"].updates = 9
    start = Start(baseline="plain", data="d", train="", updates=6, save_every=3, seeds=[1], arms=arms)
    for arm, updates in (("plain", "6"), ("longer", "9")):
        words = training_command(start, Run("s", arm, 1))
        assert words[words.index("--max-update") + 1] == words[words.index("--total-num-update") + 1] == updates
    rows = [
        {"arm": arm, "seed": 1, "updates": updates, **dict.fromkeys(figures.RATES), "accuracy": updates}
        for arm, updates in (("plain", 3), ("plain", 6), ("longer", 6), ("longer", 9))
    ]
    found = figures.Figures({}, {}, rows, [], [], [], [], {})
    compared = {row["arm"]: row["value"] for row in figures.compare_all(found, start)}
    assert compared == {"plain": 6, "longer": 9}
    assert statements.lengths(start) == "6 updates each (longer: 9)"


def test_labels_that_are_close_to_each_other_are_one():
    labels = study_plots.labels({"far": 0.1, "one": 0.5, "two": 0.6, "three": 0.7, "alone": 2.0})
    assert labels == [("far", 0.1), ("one, two, three", 0.7), ("alone", 2.0)]


def test_the_gain_of_an_arm_is_drawn_against_the_dose(tmp_path):
    starts, results = {}, {}
    texts = {"much": 6, "little": 1, "again": 3, "large": 4, "English": 0.5}
    for name, dose in texts.items():
        oracle = None if name == "English" else "oracle"
        values = {"merged_accuracy": 30, "merged_loss": 5, "prediction_rate": dose}
        rows = []
        for column, plain in values.items():
            measured = {"plain": {1: plain, 2: plain}, "oracle": {1: plain + dose, 2: plain + dose + 1}}
            rows += figures.compared(figures.RATES[column], measured, "plain")
        train = f"--arch bert_{'large' if name == 'large' else 'tiny'} --finetune-from-model {name}.pt"
        data = "little" if name == "again" else name
        starts[name] = Start(baseline="plain", oracle=oracle, data=data, train=train, updates=8)
        results[name] = {"comparisons": rows}
    study = Plan(starts=starts)
    points, apart = study_plots.doses(study, {"starts": results}, "merged_accuracy")
    assert [(dose, difference) for dose, difference, _, _ in points["oracle"]] == [(1, 1.5), (6, 6.5)]
    assert [(dose, difference) for dose, difference, _, _ in apart["oracle"]] == [(3, 3.5), (4, 4.5)]
    assert study_plots.draw_doses(study, {"starts": results}, tmp_path).keys() == {"doses"}
    drawn = (tmp_path / "plots" / "doses.svg").read_text()
    assert "English" in drawn and "oracle" in drawn and "much" not in drawn
