"""The command as a user runs it: its files agree with each other, seeds and differences add up, and errors."""

from pathlib import Path
from shutil import copy

import pandas as pd
import pytest
from files import refused
from helpers import write_data_bin, write_table
from lexical_files import save_model, swords_content, write_blimp, write_swords

from tn_fairseq.commands.arguments import parse_options
from tn_fairseq.commands.evaluate_lexical import main
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.tools.evaluate.lexical.lexical import FILES, lexical_rows
from tn_fairseq.tools.evaluate.lexical.lexical_options import LexicalOptions
from tn_fairseq.tools.results import compare
from tn_fairseq.tools.results.measures import PEOPLE
from tn_fairseq.tools.results.table import read_table

SENTENCES = [
    ("The elections , it is .", "elections", {"poll": 9, "vote": 2, "tree": 0}),
    ("the total is due .", "total", {"sum": 6, "whole": 0, "price": 0, "cat": 1, "sum total": 9}),
    ("the unknowable is due .", "unknowable", {"sum": 6}),
    ("they shouted .", "shouted", {"cry": 9, "howl": 7, "bark": 0}),
]
PAIRS = {"cries": [("she cries .", "she cry ."), ("he barks .", "he bark .")], "dogs": [("the dogs .", "a dogs .")]}


@pytest.fixture(scope="module")
def world(english, tmp_path_factory) -> dict[str, Path]:
    """All data sets, a synonym table, and three seeds of BERT."""
    folder = tmp_path_factory.mktemp("world")
    content = swords_content(SENTENCES, {"elections": "election", "shouted": "shout"})
    rows = {"total": ["sum", "price"], "elections": ["polls", "election"]}
    (folder / "pairs.txt").write_text("dog\tcat\t7\ntotal\tsum\t9\ndog\tprice\t1\nbark\tunknowable\t1\nbark\thowl\t8\n")
    for seed in (1, 2, 3):
        save_model(folder / f"seed{seed}" / "model.pt", english, "bert", seed, updates=9)
    return {
        "data": english,
        "swords": write_swords(folder / "swords-v0_dev.json.gz", content),
        "synonym-table": write_table(folder / "mine.safetensors", load_dictionary(english / "dict.txt"), rows),
        "word-pairs": folder / "pairs.txt",
        "blimp": write_blimp(folder / "BLiMP.zip", PAIRS),
        "seeds": folder,
    }


@pytest.fixture
def run(world, tmp_path, monkeypatch, capsys):
    """Run the command with all data unless ``without``; return what it printed and its files."""
    monkeypatch.setattr(compare, "RESAMPLES", 40)

    def run(*words: object, without: tuple[str, ...] = (), **changed: object) -> tuple[str, Path]:
        options = {name: path for name, path in world.items() if name not in ("seeds", *without)}
        options |= {name.replace("_", "-"): value for name, value in changed.items()}
        options.setdefault("output", tmp_path / "report")
        flags = [word for name, value in options.items() for word in (f"--{name}", value)]
        main([str(word) for word in (*words, *flags)])
        return capsys.readouterr().out, Path(options["output"])

    return run


def rows_of(folder: Path) -> dict[tuple[str, ...], dict]:
    rows = pd.read_csv(folder / "comparisons.csv").fillna(dict.fromkeys(("start", "data", "part"), ""))
    return {tuple(row[key] for key in ("arm", "data", "measure", "part")): row for row in rows.to_dict("records")}


def values_of(folder: Path, arm: str) -> dict[str, float]:
    """The measures of a synonym table."""
    return {key[2]: row["value"] for key, row in rows_of(folder).items() if key[0] == arm}


def test_all_measures_of_all_families(run, checkpoints):
    printed, folder = run(*(f"{family}={path}" for family, path in checkpoints.items()), "--baseline", "bert")
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert all(f"{folder / name}" in printed for name in FILES) and "<svg" in (folder / "index.html").read_text()
    rows = rows_of(folder)
    of_bert = {key[1:] for key in rows if key[0] == "bert"}
    swords = {("swords-v0_dev", name, "") for name in ("leniency", "rejected", "lemmas", "GAP")}
    swords |= {("swords-v0_dev", name, "mine") for name in ("row", "row acceptable", "row rejected")}
    words = {("pairs", "Spearman", ""), ("", "mean cosine", "")}
    blimp = {("BLiMP", "minimal pairs", ""), ("BLiMP", "minimal pairs by phenomenon", "binding")}
    blimp |= {("BLiMP", "minimal pairs by paradigm", name) for name in PAIRS}
    assert of_bert == {key[1:] for key in rows if key[0] == "roberta"} == swords | words | blimp
    assert {key[1:] for key in rows if key[0] == "electra"} == of_bert | {("swords-v0_dev", "RTD AUC", "")}
    items = {key[2:]: row["items"] for key, row in rows.items()}
    assert items["leniency", ""] == items["row", "mine"] == items["Spearman", ""] - 1 == items["minimal pairs", ""] == 3
    for key, row in rows.items():
        assert pd.isna(row["low"]) or row["low"] <= row["value"] <= row["high"], key
        other = rows.get(("bert", *key[1:]))
        assert pd.isna(row["difference"]) == (key[0] == "bert" or other is None), key
        if not pd.isna(row["difference"]):
            assert row["difference"] == pytest.approx(row["value"] - other["value"], rel=1e-6, abs=1e-5), key
    table, _ = read_table(folder / "results.parquet")
    people = table[table["arm"] == PEOPLE]
    assert people["value"].tolist() == [7, 9, 1, 8] and people["item"].tolist()[1] == "2 total sum"
    leniency = table[(table["arm"] == "bert") & (table["measure"] == "leniency")]
    assert leniency["item"].tolist() == ["0/t:0", "1/t:1", "3/t:3"] and set(leniency["checkpoint"]) == {"1"}
    assert leniency["value"].mean() == pytest.approx(rows["bert", "swords-v0_dev", "leniency", ""]["value"], rel=1e-6)
    for counts in ("3 of 4 targets", "10 of their 11", "4 of 5 pairs", "3 pairs of 2 paradigms"):
        assert counts in " ".join(printed.split())


def test_only_tables(run, checkpoints):
    printed, folder = run(without=("word-pairs", "blimp"))
    assert {path.name for path in folder.iterdir()} == set(FILES)
    # polls for elections is judged by its lemma; sum and price for total
    by_lemma = {"judged": 3, "acceptable": 200 / 3, "doubtful": 0, "rejected": 100 / 3, "held": 50}
    forms = {"rows": 2, "pairs": 4, "crossing": 50, "own word": 25, "other word": 0}
    expected = {f"table {name}": pytest.approx(value) for name, value in (by_lemma | forms).items()}
    assert values_of(folder, "mine") == expected
    by_spelling = {"judged": 2, "acceptable": 50, "doubtful": 0, "rejected": 50, "held": 25}
    assert values_of(folder, "mine by spelling") == {f"table {name}": value for name, value in by_spelling.items()}
    lines = [line.split() for line in printed.splitlines()]
    assert ["mine", "3", "66.67", "0.000", "33.33", "50.00", "2", "4", "50.00", "25.00", "0.000"] in lines
    # with a judge; the report replaces the earlier one, and nothing else
    (folder / "notes").write_text("mine")
    printed, folder = run(without=("word-pairs", "blimp"), judge=checkpoints["electra"])
    values = values_of(folder, "mine, no judge")
    assert values == {name: value for name, value in values_of(folder, "mine").items() if name in values}
    assert len(values) == 5 and "mine, judge 0.5" in printed
    assert {path.name for path in folder.iterdir()} == {*FILES, "notes"}


def test_the_rows_are_those_of_the_report(run, world, tmp_path):
    _, folder = run(f"bert={world['seeds'] / 'seed[23]' / 'model.pt'}")
    flags = [word for name, value in world.items() if name != "seeds" for word in (f"--{name}", value)]
    words = [f"bert={world['seeds'] / 'seed[23]' / 'model.pt'}", *flags, "--output", tmp_path / "none"]
    rows = lexical_rows(parse_options(LexicalOptions, "evaluate lexical", None, list(map(str, words))))
    table, _ = read_table(folder / "results.parquet")
    pd.testing.assert_frame_equal(rows, table[~table["arm"].str.startswith("mine")].reset_index(drop=True))
    assert not (tmp_path / "none").exists() and set(rows["seed"]) == {0, 1, 2}


def test_seeds_are_averaged(run, world, tmp_path):
    without = ("synonym-table", "blimp")
    seeds = [world["seeds"] / f"seed{seed}" / "model.pt" for seed in (1, 2, 3)]
    _, alone = run(*seeds, without=without, output=tmp_path / "alone")
    pattern = world["seeds"] / "seed[23]" / "model.pt"
    printed, folder = run(f"one={seeds[0]}", f"two={pattern}", "--baseline", "one", without=without)
    alone, rows = rows_of(alone), rows_of(folder)
    assert {key[0] for key in alone} == {"seed1-model", "seed2-model", "seed3-model"}
    for key in {key[1:] for key in rows}:
        one, two, three = (alone[f"seed{seed}-model", *key]["value"] for seed in (1, 2, 3))
        assert rows["one", *key]["value"] == pytest.approx(one) and pd.isna(rows["one", *key]["sd"])
        assert rows["two", *key]["value"] == pytest.approx((two + three) / 2)
        assert rows["two", *key]["sd"] == pytest.approx(abs(two - three) / 2**0.5, rel=1e-4)
        assert rows["two", *key]["difference"] == pytest.approx((two + three) / 2 - one, rel=1e-6, abs=1e-5)
        assert rows["two", *key]["seeds"] == 2
    assert "RTD AUC" not in printed


def test_invalid_input_gets_one_line_and_writes_nothing(run, world, checkpoints, tmp_path):
    bert = checkpoints["bert"]

    def refusal(*words: object, **options: object) -> str:
        message = refused(run, *words, **options)
        assert not (tmp_path / "report").exists()
        return message

    others = write_data_bin(tmp_path / "others")
    foreign = save_model(tmp_path / "foreign.pt", others, "bert")
    table = write_table(tmp_path / "t.safetensors", load_dictionary(others / "dict.txt"), {})
    # nothing to measure
    without = ("synonym-table", "word-pairs", "blimp", "swords")
    assert "give --synonym-table or CHECKPOINT.pt" in refusal(without=without)
    assert "--synonym-table has no effect without --swords" in refusal(bert, without=("swords",))
    assert "--judge has no effect without --synonym-table" in refusal(bert, judge=bert, without=("synonym-table",))
    assert "give --swords, --word-pairs or --blimp" in refusal(bert, without=without)
    assert "--word-pairs has no effect without CHECKPOINT.pt" in refusal()
    assert "--blimp-pairs has no effect without --blimp" in refusal(bert, "--blimp-pairs", 5, without=("blimp",))
    # data
    swords = write_swords(tmp_path / "n.json", swords_content([("the unknowable is due .", "unknowable", {"sum": 6})]))
    for words, without in (([bert], ()), ([], ("word-pairs", "blimp"))):
        assert "none of its targets is one piece" in refusal(*words, swords=swords, without=without)
    pairs = tmp_path / "other" / "pairs.txt"
    pairs.parent.mkdir()
    for text, named in (
        ("unknowable\tcat\t1\ndog\tcat\t1\n", "1 of 2 pairs are two one-piece words"),
        ("dog\tdog\t1\ncat\tcat\t2\n", "0 of 2 pairs"),
        ("dog\tcat\t3\ntotal\tsum\t3\n", "all with the similarity 3"),
    ):
        pairs.write_text(text)
        message = refusal(bert, word_pairs=pairs)
        assert str(pairs) in message and named in message
    twice = ["--word-pairs", world["word-pairs"], pairs]
    assert "two files are named pairs" in refusal(bert, *twice, without=("word-pairs",))
    assert "two files are named pairs" in refusal(bert, blimp=tmp_path / "pairs.zip")
    long = write_blimp(tmp_path / "long.zip", {"x": [("dog " * 31, "cat " * 3)]})
    assert "bert.pt: a sentence of 33 tokens is longer than the 32" in refusal(bert, blimp=long)
    assert "others/tokenizer" in refusal(foreign, data=others, without=("synonym-table",))
    # tables and checkpoints
    assert "the table of another dictionary" in refusal(bert, synonym_table=table)
    assert "the model of another dictionary" in refusal(foreign)
    assert "the model of another dictionary" in refusal(bert, judge=foreign)
    empty = write_table(tmp_path / "e.safetensors", load_dictionary(world["data"] / "dict.txt"), {"dog": ["cat"]})
    assert "people have judged no synonym of e" in refusal(bert, judge=bert, synonym_table=empty)
    assert "two checkpoints are named a" in refusal(f"a={bert}", f"a={bert}")
    assert "--baseline z" in refusal(f"a={bert}", "--baseline", "z")
    save_model(tmp_path / "newer" / "model.pt", world["data"], "bert", 4, updates=8)
    copy(world["seeds"] / "seed1" / "model.pt", tmp_path / "newer" / "other.pt")
    assert "a: checkpoints of 8 and 9 updates are not seeds" in refusal(f"a={tmp_path / 'newer' / '*.pt'}")
    (tmp_path / "file").write_text("in the way")
    assert "--output" in refusal(bert, output=tmp_path / "file")
