import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tn_fairseq.dictionary import load_dictionary
from tn_fairseq.synonyms.table import load_synonym_table, read_description

SCRIPT = Path(__file__).parents[2] / "preprocess" / "build_synonym_table.py"
sys.path.insert(0, str(SCRIPT.parent))

from build_synonym_table import main  # noqa: E402

PRIMARY = {"main", "chief", "principal", "master", "elementary", "elemental", "basal"}
STAY = {"remain", "continue", "stop", "halt", "delay", "persist", "abide", "bide", "detain", "arrest", "check", "quell"}
PIECES = [
    "primary",
    "stay",
    *sorted(PRIMARY | STAY),
    "##s",
    "##ed",
    "primary_winding",
    "on",
    "the",
    "in",
    "inch",
    "7",
    ".",
]


@pytest.fixture
def dict_txt(tmp_path):
    path = tmp_path / "dict.txt"
    path.write_text("".join(f"{piece} 1\n" for piece in PIECES), encoding="utf-8")
    return path


@pytest.fixture
def vectors_txt(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("primary 1 0\nmain 1 0.1\nchief 1 0.5\nstay -1 0\nthe 1 0\n")
    return path


def build(dict_txt, *options):
    output = dict_txt.parent / "synonyms.safetensors"
    main(["--dict", str(dict_txt), *map(str, options), "--output", str(output)])
    return output


def rows(dict_txt, output):
    """The table as words -> set of synonyms, empty rows left out."""
    dictionary = load_dictionary(dict_txt)
    table = load_synonym_table(output, dictionary)
    synonyms = {
        dictionary[index]: {dictionary[synonym] for synonym in row if synonym != -1}
        for index, row in enumerate(table.tolist())
    }
    return {word: found for word, found in synonyms.items() if found}


def test_wordnet_rows_hold_what_figure_3_shows(dict_txt, capsys):
    table = rows(dict_txt, build(dict_txt, "--source", "wordnet"))
    assert table["primary"] == PRIMARY
    assert table["stay"] == STAY
    assert not any(word in synonyms for word, synonyms in table.items())
    never = {"##s", "##ed", "primary_winding", "on", "the", "in", "7", "."}
    assert not never & set(table) and not any(never & synonyms for synonyms in table.values())
    printed = capsys.readouterr().out
    assert "primary: chief, main, principal" in printed
    assert "62.51%" in printed and "the paper's" in printed


def test_the_three_counts_are_printed_and_kept_in_order(dict_txt, capsys):
    dict_txt.write_text("primary 1\nmain 1\nxyzzyx 1\nalbedo 1\nneutron 1\n")
    output = build(dict_txt, "--source", "wordnet")
    # albedo has two lemmas, neither of the others here; neutron has only itself; WordNet lacks xyzzyx.
    assert json.loads(read_description(output)["counts"]) == {
        "known to WordNet": 4,
        "with a lemma other than itself": 3,
        "with a synonym in the dictionary": 2,
    }
    printed = capsys.readouterr().out  # the dictionary: five pieces, four special symbols and <mask>
    assert re.findall(r"(\d+) +(\d+\.\d+%) of the dictionary", printed) == [
        ("4", "40.00%"),
        ("3", "30.00%"),
        ("2", "20.00%"),
    ]


def test_a_cased_dictionary_keeps_the_casing_of_the_key(dict_txt):
    dict_txt.write_text(
        "▁primary 1\n▁main 1\n▁Primary 1\n▁Chief 1\n▁MAIN 1\n▁PRIMARY 1\n▁ 1\nmain 1\n", encoding="utf-8"
    )
    table = rows(dict_txt, build(dict_txt, "--source", "wordnet"))
    assert table["▁primary"] == {"▁main"}
    assert table["▁Primary"] == {"▁Chief"}
    assert table["▁PRIMARY"] == {"▁MAIN"}


def test_vectors_give_the_nearest_words_but_no_stop_words(dict_txt, vectors_txt, capsys):
    output = build(dict_txt, "--source", "vectors", "--vectors", vectors_txt, "--top-k", "2", "--min-similarity", "0.5")
    assert rows(dict_txt, output) == {
        "primary": {"main", "chief"},
        "main": {"primary", "chief"},
        "chief": {"main", "primary"},
    }
    description = read_description(output)
    assert description["options"] == '{"top_k": 2, "min_similarity": 0.5}'
    assert description["source_version"].startswith("vectors.txt, 5 vectors of dimension 2")
    printed = capsys.readouterr().out
    assert "with a vector" in printed and "with a neighbour kept" in printed and "paper" not in printed


def test_show_prints_a_row_of_an_existing_table(dict_txt, vectors_txt, capsys):
    output = build(dict_txt, "--source", "vectors", "--vectors", vectors_txt)
    capsys.readouterr()
    main(["--dict", str(dict_txt), "--table", str(output), "--show", "primary", "halt", "the"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[-3:] == ["primary: main, chief, stay", "halt: (no synonym)", "the: (a stop word)"]
    assert any(line.startswith("dictionary_fingerprint") for line in printed)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--source", "vectors", "--vectors", "missing.txt", "--output", "x"], "missing.txt"),
        (["--encoder-json", "encoder.json", "--source", "wordnet", "--output", "x"], "--encoder-json"),
        (["--table", "missing.safetensors", "--show", "primary"], "missing.safetensors"),
    ],
)
def test_wrong_input_is_one_line(dict_txt, arguments, reason):
    with pytest.raises(SystemExit) as raised:
        main(["--dict", str(dict_txt), *arguments])
    message = str(raised.value.code)
    assert message.startswith("error: ") and reason in message and "\n" not in message


def test_showing_a_word_that_is_none_is_one_line(dict_txt, vectors_txt):
    output = build(dict_txt, "--source", "vectors", "--vectors", vectors_txt)
    with pytest.raises(SystemExit, match="'##s' is not a whole word"):
        main(["--dict", str(dict_txt), "--table", str(output), "--show", "##s"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--source", "wordnet"],
        ["--show", "primary"],
        ["--source", "vectors", "--output", "x"],
        ["--source", "vectors", "--vectors", "v.txt", "--top-k", "0", "--output", "x"],
    ],
)
def test_missing_options_are_usage_errors(dict_txt, arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["--dict", str(dict_txt), *arguments])
    assert raised.value.code == 2 and "--" in capsys.readouterr().err


def test_the_command_fails_without_a_traceback_and_leaves_no_file(dict_txt, vectors_txt):
    vectors_txt.write_text("primary 1 0\nmain 1\n")
    output = dict_txt.parent / "synonyms.safetensors"
    finished = subprocess.run(
        [
            sys.executable,
            SCRIPT,
            "--dict",
            dict_txt,
            "--source",
            "vectors",
            "--vectors",
            vectors_txt,
            "--output",
            output,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=dict_txt.parent,
    )
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1].startswith(f"error: {vectors_txt}, line 2: 1 numbers, not 2")
    assert "Traceback" not in finished.stderr and not output.exists()


@pytest.mark.skipif("TN_FAIRSEQ_DATA" not in os.environ, reason="TN_FAIRSEQ_DATA names no folder of real data")
def test_coverage_of_berts_vocabulary(tmp_path, capsys):
    pieces = (
        Path(os.environ["TN_FAIRSEQ_DATA"], "vocab", "bert-uncased.vocab.txt").read_text(encoding="utf-8").split("\n")
    )
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ""}
    dict_txt = tmp_path / "dict.txt"
    dict_txt.write_text("".join(f"{piece} 1\n" for piece in pieces if piece not in special), encoding="utf-8")
    table = rows(dict_txt, build(dict_txt, "--source", "wordnet"))
    assert table["primary"] == PRIMARY
    counts = json.loads(read_description(dict_txt.parent / "synonyms.safetensors")["counts"])
    known, with_another_lemma, with_synonym = counts.values()
    assert 18_500 < known < 19_100 and 0 < with_synonym < with_another_lemma < known
    assert len(table) == with_synonym
    assert f"{known:,}" in capsys.readouterr().out
