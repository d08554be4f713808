"""A small study from the plan of the size tiny: trained, interrupted, extended, joined and refused."""

import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from engine_checks import wait_until
from fairseq import options
from files import read_commands, refused
from fork_server import VARIABLES, served_folder
from guides import guide
from helpers import OBJECTS, PLUGIN, SUBJECTS, VERBS, commands_of, run_command, start_command
from omegaconf import OmegaConf

from tn_fairseq.commands.study import main
from tn_fairseq.tools import jobs
from tn_fairseq.tools.results.compare import KEY
from tn_fairseq.tools.results.report import COMPARISONS, TABLE
from tn_fairseq.tools.results.table import read_table, table_of, write_table
from tn_fairseq.tools.study import study, study_report, study_rows
from tn_fairseq.tools.study.plan import Logs, Plan, Run, Start, read_plan, runs_of, training_command

ROOT = PLUGIN.parent
FOLDER = ROOT / "examples" / "study"
RESULTS = FOLDER / "results"
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
    rates = "--synonym-table tables/wordnet.safetensors --mask-seeds 2 --max-sequences 8"
    one_run = {"arms": ["plain"], "seeds": [1]}
    elsewhere = "data-bin --split train --synonym-table tables/wordnet.safetensors --mask-seeds 1 --max-sequences 8"
    data = "--train sources/questions --valid sources/questions --tokenizer tokenizer --dict data-bin/dict.txt"
    squad = f"tn-fairseq data squad {data} --max-length 128 --doc-stride 32 --destdir squad-bin"
    flags = "--data squad-bin --seeds 1 --max-update 1 --keep-checkpoints -- --cpu"
    start["measures"] = {
        "logs": {"levels": [0.1, 99], "window": 4},
        "rates": {"flags": rates},
        "elsewhere": {**one_run, "flags": elsewhere},
        "elsewhere_training_text": {**one_run, "flags": elsewhere},
        "squad": {**one_run, "flags": flags, "prepare": [{"output": "squad-bin/dict.txt", "command": squad}]},
        "robustness": {**one_run, "flags": "--original sources/questions --attacked sources/attacked"},
        "lexical": {"flags": "--word-pairs sources/pairs"},
        "cost": {"updates": 2, "rounds": 1},
    }
    return plan


def questions(*contexts: str) -> str:
    """A file of SQuAD with the question "where begins the road" on each context."""
    qa = {"question": "where begins the road", "answers": [{"text": "the city", "answer_start": 0}]}
    paragraphs = [{"context": f"the city {one}", "qas": [{**qa, "id": str(n)}]} for n, one in enumerate(contexts)]
    return json.dumps({"data": [{"title": "a", "paragraphs": paragraphs}]})


def write(plan: dict, path: Path) -> Path:
    path.write_text(OmegaConf.to_yaml(OmegaConf.create(plan)))
    return path


def run_main(*words: object) -> None:
    main([str(word) for word in words])


def table_in(folder: Path) -> pd.DataFrame:
    """The rows of a study without its timings, in a fixed order."""
    table = read_table(folder / TABLE)[0]
    table = table[~table["measure"].isin(["hours", "tokens_per_second"])]
    return table.sort_values(list(table.columns)).reset_index(drop=True)


def compared(folder: Path) -> dict[tuple[str, str, str], dict]:
    """The comparisons by measure, part and arm."""
    found = pd.read_csv(folder / COMPARISONS).fillna({"part": "", "data": ""}).to_dict("records")
    return {(row["measure"], row["part"] or row["data"], row["arm"]): row for row in found}


@pytest.fixture(scope="module", autouse=True)
def commands_in_the_fork_server() -> Iterator[None]:
    """As conftest's served_programs, for all tests here and for their fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(served_folder() / "python"))
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        yield


def write_corpus(folder: Path) -> None:
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
    run_main(write(small_plan(), folder / "plan.yaml"), "--output", folder / "study")
    return folder


pytestmark = pytest.mark.xdist_group("study")


def test_a_study_from_start_to_report(finished):
    folder = finished / "study"
    commands = read_commands(folder)
    trained = [one["command"] for one in commands if "--save-dir runs" in one["command"]]
    assert len(trained) == 4 and all(one["exit_code"] == 0 for one in commands)
    assert trained[0].startswith('fairseq-train data-bin --user-dir "$(tn-fairseq user-dir)" --task electra')
    assert str(finished) not in "".join(trained)
    for run in (folder / "runs").glob("*/*/*"):
        assert {path.stem.split("_")[-1] for path in run.glob("*.pt")} == {"2", "4", "last"}
        state = torch.load(run / "checkpoint_last.pt", weights_only=False)
        assert state["last_optimizer_state"] is None and state["optimizer_history"][-1]["num_updates"] == 6

    found = compared(folder)
    hard, plain = (found["loss", "held-out text", arm] for arm in ("hard_wordnet", "plain"))
    assert (hard["seeds"], hard["pairs"]) == (2, 2)
    assert hard["difference_low"] <= hard["difference"] <= hard["difference_high"]
    assert hard["difference"] == pytest.approx(hard["value"] - plain["value"], abs=1e-5)
    assert np.isnan(plain["difference"])
    texts = {key: row["value"] for key, row in found.items() if key[0] == "other_accuracy"}
    assert set(texts) == {("other_accuracy", text, "plain") for text in ("other text", "training text")}
    assert len(set(texts.values())) == 1  # the same text under two names
    assert ("updates_to_reach", "0.1%", "plain") in found
    assert ("updates_to_reach", "99%", "plain") not in found  # no run got there
    assert not np.isnan(found["Spearman", "pairs", "hard_wordnet"]["items"])
    before, after, drop = (
        found[name, "attacked", "plain"]["value"] for name in ("original F1", "attacked F1", "F1 drop")
    )
    assert after == pytest.approx(before - drop) and ("F1", "squad", "hard_wordnet") not in found  # the plan says which
    assert found["update_time", "training text", "plain"]["value"] == 100

    table, about = read_table(folder / TABLE)
    assert about["plan"]["starts"]["scratch"]["updates"] == 6 and str(finished) not in json.dumps(about)
    assert (table["measure"] == "tokens_per_second").sum() == 2
    page = (folder / "index.html").read_text()
    assert "<p>In &lt;short&gt;.</p>" in page and "<h3>Why</h3>\n<p>Because.</p>\n" in page
    assert "4 of 4 runs are finished" in page and ">Failed<" not in page and page.count("<figure>") == 3
    assert (folder / "plan.yaml").read_text() == (finished / "plan.yaml").read_text()


def test_a_finished_study_runs_nothing_again(finished, capsys):
    before, rows_before = read_commands(finished / "study"), table_in(finished / "study")
    words = [finished / "plan.yaml", "--output", finished / "study"]
    run_main(*words)
    assert read_commands(finished / "study") == before
    pd.testing.assert_frame_equal(table_in(finished / "study"), rows_before)
    capsys.readouterr()
    run_main(*words, "--dry-run")
    assert capsys.readouterr().out.strip() == f"nothing is left to do in {finished / 'study'}"


def test_an_interrupted_run_gives_the_same_figures_and_a_new_arm_trains_by_itself(finished, tmp_path, capsys):
    folder = tmp_path / "study"
    shutil.copytree(finished / "study", folder, symlinks=True)
    shutil.rmtree(folder / "runs" / "scratch" / "plain" / "seed2")
    plan, start = small_plan(), small_plan()["starts"]["scratch"]
    start["measures"] = {name: start["measures"][name] for name in ("logs", "rates")}
    plan |= {"starts": {"scratch": start}, "sources": {}}
    words = [write(plan, tmp_path / "plan.yaml"), "--output", folder]
    run_main(*words, "--dry-run")
    left, comment = capsys.readouterr().out.splitlines()
    assert comment == "# then these measures of scratch: rates"
    flags = [str(PLUGIN) if word == "$(tn-fairseq user-dir)" else word for word in shlex.split(left)]
    half = run_command(*flags, "--max-update", "2", cwd=folder)  # as if it had been killed
    assert half.code == 0, half.output
    (folder / "runs" / "scratch" / "plain" / "seed2" / "train.log").write_text(half.output)

    broken = "--criterion mlm_soft_reg --synonym-table nowhere.safetensors"
    start["arms"]["broken"] = {"about": "<b>", "flags": broken, "seeds": [1]}
    start["arms"]["soft_reg"] = {"about": "soft", "flags": "--criterion mlm_soft_reg", "seeds": [1]}
    before = len(read_commands(folder))
    message = refused(main, [str(write(plan, words[0])), *map(str, words[1:])])
    assert "scratch/broken/seed1: failed with exit code 1: " in message and "nowhere.safetensors" in message
    new = [one["name"] for one in read_commands(folder)[before:]]
    assert sorted(new) == [f"scratch/{name}" for name in ("broken/seed1", "plain/seed2", "soft_reg/seed1")]
    assert 'num_updates": "4' in (folder / "runs" / "scratch" / "plain" / "seed2" / "train.log").read_text()

    known = [of[of["arm"].isin(["plain", "hard_wordnet"])] for of in (table_in(folder), table_in(finished / "study"))]
    measures = {*known[0]["measure"]}
    ours, theirs = (of[of["measure"].isin(measures)].reset_index(drop=True) for of in known)
    pd.testing.assert_frame_equal(ours, theirs)
    page = (folder / "index.html").read_text()
    assert ">Failed<" in page and "nowhere.safetensors" in page and "5 of 6 runs are finished" in page
    assert "&lt;b&gt;" in page and "broken: <b>" not in page

    start["train"] += " --weight-decay 0.1"
    message = refused(main, [str(write(plan, words[0])), *map(str, words[1:])])
    assert "scratch/plain/seed1" in message and "--weight-decay 0.1" in message


def test_runs_of_another_folder_are_reported_and_not_repeated(finished, tmp_path, capsys):
    plan, other = small_plan(), finished / "study"
    for name in plan["sources"].values():
        shutil.copy(finished / name, tmp_path)
    path, folder = tmp_path / "plan.yaml", tmp_path / "study"
    words = [path, "--output", folder]
    # all runs are there: the same report, and nothing is prepared or trained
    plan["starts"]["second"] = {**plan["starts"]["scratch"], "prepare": [], "measures": {}}
    write(plan, path)
    run_main(*words, "--no-training", "--earlier", other)
    pd.testing.assert_frame_equal(table_in(folder), table_in(other))
    hours = [
        of[of["measure"] == "hours"]["value"].sum() for of in (read_table(one / TABLE)[0] for one in (folder, other))
    ]
    assert hours[0] == pytest.approx(hours[1]) and hours[1] > 0 and not (folder / "data-bin").exists()
    ours, theirs = compared(folder), compared(other)
    assert {key: row["difference"] for key, row in ours.items()} == pytest.approx(
        {key: row["difference"] for key, row in theirs.items()}, nan_ok=True
    )
    assert "Planned, without a finished run: second." in (folder / "index.html").read_text()

    # two parts that include each other count once, also their hours
    parts = [tmp_path / "first", tmp_path / "second"]
    for part, seeds in zip(parts, ([1], [1, 2])):
        shutil.copytree(folder, part)
        table, about = read_table(part / TABLE)
        write_table(table[table["seed"].isin([0, *seeds])], part / TABLE, about)
    run_main(*words, "--no-training", "--earlier", parts[0], "--earlier", parts[1])
    pd.testing.assert_frame_equal(table_in(folder), table_in(other))
    assert read_table(folder / TABLE)[0].query("measure == 'hours'")["value"].sum() == pytest.approx(hours[0])

    # a new seed is left
    plan["starts"].pop("second")
    plan["starts"]["scratch"]["seeds"] = [1, 2, 7]
    capsys.readouterr()
    run_main(write(plan, path), *words[1:], "--dry-run", "--earlier", other)
    printed = capsys.readouterr().out
    assert re.findall(r"--save-dir (\S+)", printed) == [
        f"runs/scratch/{arm}/seed7" for arm in ("plain", "hard_wordnet")
    ]
    # an arm that the plan does not have is left out
    plan["starts"]["scratch"] |= {"seeds": [1, 2]}
    plan["starts"]["scratch"]["arms"].pop("hard_wordnet")
    run_main(write(plan, path), *words[1:], "--no-training", "--earlier", other)
    assert {arm for _, _, arm in compared(folder)} == {"plain"}

    def refusal(*earlier: Path) -> str:
        return refused(main, [*map(str, words), *(word for one in earlier for word in ("--earlier", str(one)))])

    for given in ([other, other], [folder]):
        assert "would count twice" in refusal(*given)
    assert str(tmp_path / "missing") in refusal(tmp_path / "missing")
    table, about = read_table(other / TABLE)
    for key, value in (
        ("updates", 7),
        ("measures.squad.prepare.0.command", "cp a b"),
        ("measures.rates.flags", "--mask-seeds 7"),
        ("prepare.0.command", "cp a b"),
        ("arms.plain.flags", "--criterion mlm_soft_reg"),
        ("arms.plain.user_dir", "sources/x"),
    ):
        changed = OmegaConf.create(about)
        OmegaConf.update(changed, f"plan.starts.scratch.{key}", value)
        write_table(table, parts[0] / TABLE, OmegaConf.to_container(changed))
        assert key.split(".")[0] in refusal(parts[0]) and "differs from that of the plan" in refusal(parts[0])
    # a start without runs may differ
    write_table(table_of([]), parts[0] / TABLE, OmegaConf.to_container(changed))
    run_main(*words, "--dry-run", "--earlier", parts[0])
    write_table(table, parts[0] / TABLE, {"plan": {"starts": {}}})
    assert "has none of the plan's starts" in refusal(parts[0])


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
    run_main(write(plan, tmp_path / "plan.yaml"), "--output", tmp_path / "study")
    found = compared(tmp_path / "study")
    part = "after 12 updates"
    assert [found["recovered_loss", part, arm]["value"] for arm in ("plain", "oracle")] == [0, 100]
    tied, free = (found["pair_cosine", "held-out text", arm]["value"] for arm in ("tying", "plain"))
    assert tied > free and ("recovered_loss", part, "tying") in found


def test_a_study_that_is_stopped_ends_its_commands_and_unlocks_its_folder(tmp_path, monkeypatch):
    plan = {"title": "t", "question": "q", "starts": {"s": small_plan()["starts"]["scratch"]}}
    plan["starts"]["s"]["measures"] = {}
    plan["starts"]["s"]["prepare"] = [{"output": "made", "command": f"sh -c {shlex.quote('touch begun; sleep 600')}"}]
    command = ["tn-fairseq", "study", write(plan, tmp_path / "plan.yaml"), "--output", tmp_path / "a"]
    with open(tmp_path / "output", "w+") as output:
        process = start_command(*command, stdout=output, stderr=output)
        wait_until((tmp_path / "a" / "begun").exists)
        monkeypatch.setattr(jobs, "PATIENCE", 0)
        assert "is still working there" in refused(main, [*map(str, command[2:])])
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 130
        output.seek(0)
        assert output.read().endswith("error: interrupted; run the same command again to resume\n")


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_give_commands_that_fairseq_accepts(name, capsys, tmp_path):
    run_main(name, "--output", tmp_path, "--dry-run")
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    training = [words for words in lines if words[0] == "fairseq-train"]
    plan = read_plan(FOLDER / "plans" / f"{name}.yaml", {})
    assert len(training) == sum(len(runs_of(*start)) for start in plan.starts.items())
    assert len({tuple(words) for words in training}) == len(training)
    folders = [Path(words[words.index("--save-dir") + 1]) for words in training]
    assert all(f"seed{words[words.index('--seed') + 1]}" == path.name for words, path in zip(training, folders))
    for words in {path.parent: words for words, path in zip(training, folders)}.values():  # seeds are alike
        flags = [str(PLUGIN) if word == "$(tn-fairseq user-dir)" else word for word in words[1:]]
        args = options.parse_args_and_arch(options.get_training_parser(), flags)
        assert args.max_update == int(args.total_num_update)


def test_our_results_are_what_the_command_writes(monkeypatch, tmp_path):
    monkeypatch.setattr(study_report.plot, "lines", lambda *_, **__: "<svg></svg>")  # because drawing takes a minute
    (tmp_path / "page").mkdir()
    shutil.copy(RESULTS / "discussion.txt", tmp_path / "page")
    run_main("cpu", "--output", tmp_path / "page", "--no-training", "--earlier", RESULTS)
    published, written = (pd.read_csv(folder / COMPARISONS) for folder in (RESULTS, tmp_path / "page"))
    pd.testing.assert_frame_equal(published, written, rtol=1e-6, atol=1e-6)
    texts = [(folder / "index.html").read_text() for folder in (RESULTS, tmp_path / "page")]
    places = [re.sub(r"<figure>.*?</figure>|<p>\d{4}-\d\d-\d\d.*?</p>", "", text, flags=re.DOTALL) for text in texts]
    assert places[0] == places[1]
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) < 4e6


def test_the_commands_of_the_page(capsys, tmp_path):
    places = {name: tmp_path / name for name in ("study", "study2", "page")} | {"examples/study/results": RESULTS}
    commands = [words[2:] for words in commands_of(guide("study")) if words[:2] == ["tn-fairseq", "study"]]
    for words in commands:
        if "study" not in words[words.index("--output") + 1 :]:
            run_main(*(places.get(word, word) for word in words if "sources" not in word), "--dry-run")
            assert capsys.readouterr().out
    (arms,) = re.findall(r"```yaml\n(.*?)```", guide("study"), flags=re.DOTALL)
    plan = FOLDER / "plans" / "tiny.yaml"
    (place,) = re.findall(r"`my_objectives: (\S+)`", guide("study"))
    text = plan.read_text().replace("    arms:\n", "    arms:\n" + arms)
    source = f"sources:\n  my_objectives: {plan.parent / place}\n"
    (tmp_path / "plan.yaml").write_text(text.replace("sources:\n", source))
    run_main(tmp_path / "plan.yaml", "--output", tmp_path / "other", "--dry-run")
    printed = capsys.readouterr().out
    for name in ("temperature", "penalty"):
        assert printed.count(f"--save-dir runs/scratch/{name}/seed") == 3
    assert printed.count("--user-dir sources/my_objectives") == 3


def test_an_arm_with_an_objective_of_the_users_plugin(finished, tmp_path):
    plan = OmegaConf.create(small_plan())
    start = plan.starts.scratch
    own = {"about": "a confidence penalty", "flags": "--criterion mlm_confidence_penalty"}
    start.arms, start.measures = {"own": own, "plain": start.arms.plain}, {}
    start.updates, start.seeds = 2, [1]
    path, folder = tmp_path / "plan.yaml", tmp_path / "study"
    start.arms.own.user_dir = "sources/some_objectives"
    for name, content, message in (
        ("some_objectives", None, "some_objectives"),
        ("other_name", "", "user_dir: its folder is other_name"),
        ("some_objectives", "import", "SyntaxError"),
    ):
        plan.sources.some_objectives = name
        if content is not None:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(content)
        found = refused(main, [str(write(plan, path)), "--output", str(folder)])
        assert found.startswith(f"error: {path}: starts.scratch.arms.own") and message in found
        assert not (folder / "runs").exists()

    for name in ("corpus", "tokenizer", "data-bin", "tables"):
        shutil.copytree(finished / "study" / name, folder / name)
    start.arms.own.user_dir = "sources/my_objectives"
    plan.sources.my_objectives = str(ROOT / "examples" / "own_objective" / "my_objectives")
    run = run_command("tn-fairseq", "study", write(plan, path), "--output", folder)
    assert run.code == 0, run.output
    used = {one["command"].split(" --task")[0] for one in read_commands(folder) if "--save-dir" in one["command"]}
    ours = '"$(tn-fairseq user-dir)"'
    assert used == {f"fairseq-train data-bin --user-dir {one}" for one in ("sources/my_objectives", ours)}
    assert {*table_in(folder)["arm"]} == {"plain", "own"}


# keys of a start, or of the plan, with wrong values, and what is named
WRONG = [
    ("arms.plain.flag", "x", "arms.plain.flag: unknown"),
    ("measures.glue", {}, "measures.glue.flags: is missing"),
    ("seeds", [1, "two"], "seeds.1"),
    ("seeds", [1, 1], "seeds"),
    ("arms.a/b", {"about": "x", "flags": "x"}, "a/b"),
    ("baseline", "base", "baseline: base"),
    ("measures.speed", {"flags": "d"}, "measures: speed"),
    ("measures.elsewhere_", {"flags": "d"}, "measures: elsewhere_"),
    ("measures.elsewhere_a/b", {"flags": "d"}, "measures: elsewhere_a/b"),
    ("measures.squad.flags", "--data squad-bin", "robustness: needs squad with the flag --keep-checkpoints"),
    ("measures.robustness.seeds", None, "robustness.seeds"),
    ("measures.glue", {"flags": "--data x", "seeds": [1, 7]}, "measures.glue.seeds"),
    ("measures.rates.arms", ["plain", "none"], "measures.rates.arms: none"),
    ("measures.rates.arms", ["hard_wordnet"], "measures.rates.arms: must include the baseline plain"),
    ("train", "--seed=3", "train: the study sets --seed"),
    ("train", "--lr '3", "train: No closing quotation"),
    ("prepare", [{"output": "x", "command": "cp 'a"}], "prepare.0.command: No closing quotation"),
    ("prepare", [{"output": "x", "command": f"cp {one} x"} for one in "ab"], ": two commands write x"),
    ("arms.plain.user_dir", "mine", "arms.plain.user_dir"),
    ("arms.plain.flags", "--criterion mlmm", "arms.plain, or what all arms share: --criterion mlmm"),
    ("train", "--arch bert_tiny --lrr 3", "--lrr"),
    ("sources.pairs", None, "sources.pairs: is missing"),
    ("sources.pairs", "nowhere", "sources.pairs: "),
]


@pytest.mark.parametrize("key, value, message", WRONG)
def test_wrong_plans_get_one_line_with_file_and_key(key, value, message, tmp_path):
    plan, start = OmegaConf.create(small_plan()), "" if key.startswith("sources") else "starts.scratch."
    OmegaConf.update(plan, start + key, value, merge=False)
    path = write(plan, tmp_path / "plan.yaml")
    error = refused(main, [str(path), "--output", str(tmp_path / "out")])
    assert error.startswith(f"error: {path}: {start.rstrip('.')}") and message in error
    assert not (tmp_path / "out" / "runs").exists()


def test_other_wrong_input(tmp_path):
    path, out = tmp_path / "plan.yaml", tmp_path / "out"
    for text, flags, named in (
        ("a: [1", (), str(path)),
        ("5", (), str(path)),
        (None, (), str(path)),
        ("", ("--start", "other"), "--start other"),
        ("", ("--source", "a=x", "--source", "a=y"), "--source names a source twice"),
        ("", ("--source", "data=x"), "sources: has no data"),
        ("", ("--no-training",), f"--output {out}"),
    ):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text) if text else write(small_plan(), path)
        assert named in refused(main, [str(path), "--output", str(out), *flags])
    assert "is not a folder" in refused(main, [str(path), "--output", str(path), "--dry-run"])
    (tmp_path / "index.html").write_text("mine")
    assert "index.html" in refused(main, [str(path), "--output", str(tmp_path)])


def test_only_the_sources_that_the_starts_use_are_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources = {"text": str(tmp_path), "textbook": str(tmp_path), "book": None}
    hints = {"book": "write one", "text/*.xz": "xz a.txt"}

    def link(command: str, flags: str = "true") -> None:
        start = start_of(prepare=[{"output": "a", "command": command}], measures={"lexical": {"flags": flags}})
        plan = Plan(title="t", question="q", sources=sources, hints=hints, starts={"s": start})
        study.link_sources(plan, Path("plan.yaml"), [start])

    link("cp sources/text sources/textbook")
    assert {path.name for path in Path("sources").iterdir()} == {"text", "textbook"}
    missing = refused(link, "cp sources/text sources/textbook sources/book/1.txt")
    assert "sources.book" in missing and missing.endswith("to get it: write one")
    # a file of a source is missing, which is only read if the output is missing, too
    unpack = f"sh -c 'xz -dc sources/text/b/a.txt.xz # {'long ' * 99}'"
    assert refused(link, unpack) == f"{tmp_path}/b/a.txt.xz: is missing; to get it: xz a.txt"
    for name in ("a+b.txt", "c d.txt"):
        Path(name).touch()
    link("true", "--swords sources/text/a+b.txt --x 'sources/text/c d.txt' sources/text/*")
    assert "swords.json.gz: is missing" in refused(link, "true", "--swords sources/textbook/swords.json.gz")
    Path("sources/text").unlink()
    Path("sources/text").mkdir()
    assert "sources/text: not a link" in refused(link, "cp sources/text x")


# Rows


def test_curves_by_hand():
    updates, values = np.array([10, 20, 30, 40]), np.array([1.0, 3, 5, 9])
    smoothed = [one.tolist() for one in study_rows.smoothed(updates, values, 20)]
    assert smoothed == [[20, 30, 40], [2, 4, 7]] and not len(study_rows.smoothed(updates, values, 50)[0])
    curve = study_rows.smoothed(updates, values, 20)
    assert [study_rows.updates_to_reach(level, *curve) for level in (5, 4, 1, 8)] == [
        pytest.approx(30 + 10 / 3),
        30,
        20,
        None,
    ]


def test_a_long_curve_is_thinned_to_means_and_keeps_its_end(monkeypatch):
    monkeypatch.setattr(study_rows, "MOST_POINTS", 3)
    long = np.array([[10, 1, 5], [20, 3, 4], [30, 5, 3], [40, 9, 2], [50, 10, 1.0014]])
    thin = study_rows.thinned(long, 40)
    assert thin.tolist() == [[10, 1, 5], [30, 4, 3.5], [50, 9.5, 1.501]] and study_rows.thinned(thin, 40) is thin
    assert len(study_rows.thinned(np.empty((0, 3)), 40)) == 0
    assert [study_rows.smoothed(one[:, 0], one[:, 1], 40)[1][-1] for one in (thin, long)] == [6.75, 6.75]
    assert study_rows.thinned(long, 30) is long  # two points of 10 updates each do not make a window of 30


def start_of(**settings: object) -> Start:
    arms = {arm: {"about": arm, "flags": ""} for arm in ("plain", "new", "oracle")}
    return Start(
        **{"about": "a", "data": "d", "train": "", "updates": 8, "save_every": 4, "seeds": [1, 2], "baseline": "plain"}
        | {"arms": arms}
        | settings
    )


def test_an_arm_whose_seeds_do_not_all_reach_a_level_has_no_mean():
    ends = {"plain": (21, 19), "new": (21, 25)}
    table = table_of(
        {"arm": arm, "seed": seed, "checkpoint": str(at), "measure": "curve_accuracy", "value": value}
        for arm, of_arm in ends.items()
        for seed, end in enumerate(of_arm)
        for at, value in ((10, 10), (20, 16), (30, end))
    )
    found = study_rows.training_rows(table, Logs(levels=[20, 15], window=10), ["plain", "new"])
    reached = found[found["measure"] == "updates_to_reach"]
    assert {*zip(reached["part"], reached["arm"])} == {("15%", "plain"), ("15%", "new"), ("20%", "new")}
    assert set(study_rows.training_rows(table, Logs(window=10), ["new"])["arm"]) == {"new"}


def test_what_an_arm_recovers_of_the_oracles_gain_by_hand():
    """Seed by seed: 2 and 1 of 4 points of accuracy, and no gain of 0.5 bits; seed 3 has no oracle."""
    accuracy = {"plain": {1: 30, 2: 31, 3: 30}, "new": {1: 32, 2: 32, 3: 33}, "oracle": {1: 34, 2: 35}}
    loss = {"plain": 5.5, "new": 5.5, "oracle": 5.0}
    table = table_of(
        {"arm": arm, "seed": seed, "checkpoint": "8", "measure": measure, "value": value}
        for arm, of_arm in accuracy.items()
        for seed, score in of_arm.items()
        for measure, value in (("merged_accuracy", score), ("merged_loss", loss[arm]))
    )
    found = study_rows.recovered_rows(table, "plain", "oracle")
    assert {*found["part"]} == {"after 8 updates"}
    by_arm = {key: of["value"].tolist() for key, of in found.groupby(["measure", "arm"])}
    assert by_arm["recovered_accuracy", "new"] == [50, 25] and by_arm["recovered_loss", "new"] == [0, 0]
    assert by_arm["recovered_accuracy", "plain"] == [0, 0] and by_arm["recovered_loss", "oracle"] == [100, 100]


def test_an_arm_can_have_updates_of_its_own():
    start = start_of(arms={"plain": {"about": "a", "flags": ""}, "longer": {"about": "b", "flags": "", "updates": 9}})
    words = training_command(start, Run("s", "longer", 1))
    assert words[words.index("--max-update") + 1] == words[words.index("--total-num-update") + 1] == "9"
    table = table_of(
        {"arm": arm, "seed": 1, "checkpoint": str(updates), "measure": "accuracy", "value": updates}
        for arm, updates in (("plain", 4), ("plain", 8), ("longer", 8), ("longer", 9))
    )
    found = study_rows.compare_start(table, "s", start, pd.DataFrame(columns=[*KEY, "arm"]))
    assert dict(zip(found["arm"], found["value"])) == {"plain": 8, "longer": 9}


def test_a_cost_is_compared_within_each_round():
    speeds = {("plain", 1): 100, ("new", 1): 50, ("plain", 2): 80, ("new", 2): 40}
    table = table_of(
        {"arm": arm, "seed": turn, "measure": "tokens_per_second", "value": speed}
        for (arm, turn), speed in speeds.items()
    )
    found = study_rows.cost_rows(table, "plain")
    assert found["value"].tolist() == [100, 200, 100, 200] and {*found["measure"]} == {"update_time"}


def test_the_papers_tables_have_our_rows(tmp_path):
    (tmp_path / "paper.csv").write_text(
        "table,row,column,value\nT,base,RTE,50.5\nT,base,EM under swap,7\nT,other,RTE,60\n"
    )
    plan = Plan(
        title="t",
        question="q",
        paper=str(tmp_path / "paper.csv"),
        starts={"s": start_of(arms={"plain": {"about": "a", "flags": "", "resembles": "base"}})},
    )
    values = [("glue", "RTE", "", 1, 50.0), ("glue", "RTE", "", 2, 52.0), ("squad", "attacked EM", "swap", 1, 9.0)]
    table = table_of(
        {"arm": "plain", "data": data, "measure": measure, "part": part, "seed": seed, "value": value}
        for data, measure, part, seed, value in values
    )
    compared = study_rows.compare_start(table, "s", plan.starts["s"], pd.DataFrame(columns=[*KEY, "arm"]))
    (found,) = study_report.paper_tables(plan, compared)
    assert found.header == ["", "RTE", "EM under swap"]
    # two seeds of 50 and 52: half an interval is 12.706 standard errors of 1
    assert found.rows == [["base", "50.5", "7"], ["other", "60", "-"], ["ours, s: plain", "51.00 ± 12.71", "9.00"]]


def test_the_tables_of_the_paper_are_complete():
    paper = pd.read_csv(FOLDER / "paper.csv")
    counts = paper[paper["column"] != "H100 hours"].groupby("table", sort=False).size().tolist()
    assert counts == [24, 12 * 9, 12, 24, 5 * 9]
    for (_, row), of_row in paper[paper["table"].str.startswith("Table 3")].groupby(["table", "row"]):
        values = of_row.set_index("column")["value"]
        tasks = values.drop(["average", "H100 hours"])
        assert tasks.mean() == pytest.approx(values["average"], abs=0.06), row


def test_a_discussion_has_an_opening_and_sections(tmp_path):
    path = tmp_path / "discussion.txt"
    assert study_report.read_discussion(path) == ([], [])
    path.write_text("One.\n\nTwo.\n# Why\nThree.\n")
    opening, sections = study_report.read_discussion(path)
    assert opening == ["One.", "Two."]
    assert [(one.title, one.paragraphs) for one in sections] == [("Discussion", ()), ("Why", ()), ("", ["Three."])]
    path.write_text("One.\n\nTwo.\n")
    assert study_report.read_discussion(path)[0] == ["One."]
