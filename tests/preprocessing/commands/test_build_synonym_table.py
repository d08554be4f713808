import json
import math
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

import nltk
import pytest
import torch
from helpers import run_command
from lexical_files import swords_content, write_swords
from nltk.corpus.reader import CorpusReader

from tn_fairseq.dictionary import fingerprint, load_dictionary
from tn_fairseq.preprocessing.commands.build_synonym_table import main
from tn_fairseq.synonym_table import load_continuations, load_synonym_table, read_description
from tn_fairseq.synonyms.wordnet import ensure_wordnet

COMMAND = ["-m", "tn_fairseq.preprocessing", "build-synonym-table"]

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


@pytest.fixture
def model_dict(tmp_path):
    path = tmp_path / "model.dict.txt"
    path.write_text("primary 1\nstay 1\nmain 1\nhalt 1\nthe 1\n##s 1\n")
    return path


@pytest.fixture
def checkpoint(model_dict):
    """A model in which main is near primary, and halt near stay; only primary and stay are frequent."""
    dictionary = load_dictionary(model_dict)
    embeddings = torch.full((len(dictionary), 3), 99.0)
    for word, row in {"primary": (14, 1, 3), "stay": (14, -1, 3), "main": (4, 1, 3), "halt": (4, -1, 3)}.items():
        embeddings[dictionary.index(word)] = torch.tensor(row).float()
    digest = torch.tensor(list(bytes.fromhex(fingerprint(dictionary))), dtype=torch.uint8)
    model = {"embeddings.word_embeddings.weight": embeddings, "dictionary_fingerprint": digest}
    path = model_dict.parent / "checkpoint.pt"
    torch.save({"cfg": {"model": None}, "model": model, "optimizer_history": [{"num_updates": 7}]}, path)
    return path


@pytest.fixture
def french(tmp_path, monkeypatch):
    """A French dictionary, and a French lexicon in a folder of NLTK that only the owner can write."""
    reader = ensure_wordnet()
    folder = tmp_path / "nltk_data" / "corpora" / "omw-2.0" / "provider"
    folder.mkdir(parents=True)
    lines = "00117985-v\tfra:lemma\trester\n00117985-v\tfra:lemma\tdemeurer\n00117985-v\tfra:lemma\ton\n"
    lines += "02913152-n\tfra:lemma\tBâtiment\n02913152-n\tfra:lemma\tédifice\n02913152-n\tfra:lemma\tgros œuvre\n"
    (folder / "wn-data-fra.tab").write_text(lines, encoding="utf-8")
    (folder / "wn-data-fra.tab").chmod(0o644)
    for parent in (folder, *folder.parents[:3]):
        parent.chmod(0o755)
    languages = nltk.corpus.LazyCorpusLoader("omw-2.0", CorpusReader, r".*/wn-data-.*\.tab", encoding="utf8")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk_data")])
    monkeypatch.setattr(reader, "_omw_reader", languages)
    monkeypatch.setattr(reader, "omw_langs", set())
    monkeypatch.setattr(reader, "provenances", defaultdict(str, eng=""))
    monkeypatch.setattr(reader, "_lang_data", defaultdict(list))
    path = tmp_path / "french.dict.txt"
    pieces = ["▁rester", "▁demeurer", "▁on", "▁bâtiment", "▁Édifice", "▁Bâtiment", "▁the", "er"]
    path.write_text("".join(f"{piece} 1\n" for piece in pieces), encoding="utf-8")
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


def test_wordnet_rows_match_figure_3(dict_txt, capsys):
    table = rows(dict_txt, build(dict_txt, "--source", "wordnet"))
    assert table["primary"] == PRIMARY
    assert table["stay"] == STAY
    assert not any(word in synonyms for word, synonyms in table.items())
    never = {"##s", "##ed", "primary_winding", "on", "the", "in", "7", "."}
    assert not never & set(table) and not any(never & synonyms for synonyms in table.values())
    printed = capsys.readouterr().out
    assert "primary: chief, main, principal" in printed
    assert "62.51%" in printed and "the paper's" in printed


def test_the_three_counts_are_printed_and_saved_in_order(dict_txt, capsys):
    dict_txt.write_text("primary 1\nmain 1\nxyzzyx 1\nalbedo 1\nneutron 1\n")
    output = build(dict_txt, "--source", "wordnet")
    # albedo has another lemma, but not in this dictionary; neutron has only itself; WordNet lacks xyzzyx.
    assert json.loads(read_description(output)["counts"]) == {
        "known to WordNet": 4,
        "with a lemma other than itself": 3,
        "with a synonym in the dictionary": 2,
    }
    printed = capsys.readouterr().out  # the dictionary has five pieces, four special symbols and <mask>
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
    assert "with a vector" in printed and "with a neighbor kept" in printed and "paper" not in printed


def test_a_model_gives_the_nearest_words_of_its_own_embeddings(model_dict, checkpoint, capsys):
    output = build(model_dict, "--source", "model", "--path", checkpoint)
    assert rows(model_dict, output) == {"primary": {"main"}, "main": {"primary"}, "stay": {"halt"}, "halt": {"stay"}}
    description = read_description(output)
    assert description["source"] == "model"
    assert description["source_version"].startswith("checkpoint.pt, 7 updates, embeddings of dimension 3, sha256 ")
    assert description["options"] == '{"top_k": 10, "min_similarity": 0.5}'
    assert json.loads(description["counts"]) == {"with an embedding": 4, "with a neighbor kept": 4}
    printed = capsys.readouterr().out
    assert "primary: main\n" in printed and "paper" not in printed


def test_the_minimum_similarity_and_number_of_a_models_neighbors_can_be_set(model_dict, checkpoint):
    without_minimum = build(model_dict, "--source", "model", "--path", checkpoint, "--min-similarity", "-2")
    assert rows(model_dict, without_minimum)["primary"] == {"main", "stay", "halt"}
    one = build(model_dict, "--source", "model", "--path", checkpoint, "--min-similarity", "-2", "--top-k", "1")
    assert rows(model_dict, one)["primary"] == {"main"}


def test_other_languages_come_from_the_multilingual_wordnet(french, capsys):
    output = build(french, "--source", "wordnet", "--lang", "fra")
    assert rows(french, output) == {  # the built-in stop words, such as "on", are English
        "▁rester": {"▁demeurer", "▁on"},
        "▁demeurer": {"▁rester", "▁on"},
        "▁on": {"▁rester", "▁demeurer"},
        "▁Édifice": {"▁Bâtiment"},
        "▁Bâtiment": {"▁Édifice"},
    }
    description = read_description(output)
    assert (description["source"], description["source_version"]) == ("wordnet", "WordNet 3.0 with omw-2.0 (fra)")
    assert description["options"] == '{"lang": "fra"}'
    assert list(json.loads(description["counts"]).values()) == [6, 6, 5]
    printed = capsys.readouterr().out
    assert "--stop-words FILE" in printed and "paper" not in printed
    main(["--dict", str(french), "--table", str(output), "--show", "the"])
    assert capsys.readouterr().out.endswith("the: (no synonym)\n")


INFLECTED = {
    "elections",
    "election",
    "polls",
    "poll",
    "went",
    "go",
    "moved",
    "move",
    "november",
    "april",
    "large",
    "small",
}


@pytest.fixture
def inflected(tmp_path):
    """A dictionary of inflected words, and vectors in which all words of a pair in INFLECTED are near each other."""
    path = tmp_path / "inflected.dict.txt"
    path.write_text("".join(f"{word} 1\n" for word in sorted(INFLECTED)))
    near = [("elections", "election", "polls", "poll"), ("went", "go", "moved", "move"), ("november", "april")]
    lines = [f"{word} {math.cos(angle)} {math.sin(angle)}\n" for angle, row in enumerate(near) for word in row]
    (tmp_path / "near.txt").write_text("".join(lines) + "large -1 0.1\nsmall -1 0\n")
    return path


def test_synonyms_in_the_same_inflection(inflected, capsys):
    by_default = rows(inflected, build(inflected, "--source", "wordnet"))
    assert by_default["elections"] == {"election"} and by_default["went"] == {"go", "move"}
    same = build(inflected, "--source", "wordnet", "--same-inflection")
    found = rows(inflected, same)
    assert found["went"] == {"moved"} and found["moved"] == {"went"} and found["go"] == {"move"}
    assert "elections" not in found  # WordNet does not have polls among its synonyms
    description = read_description(same)
    assert description["options"] == '{"same_inflection": "LemmInflect 0.2.3"}'
    assert json.loads(description["counts"])["with a synonym in the dictionary"] == len(found)

    near = ["--source", "vectors", "--vectors", inflected.parent / "near.txt", "--min-similarity", "0.9"]
    assert rows(inflected, build(inflected, *near))["elections"] == {"election", "polls", "poll"}
    assert rows(inflected, build(inflected, *near, "--same-inflection"))["elections"] == {"polls"}


def test_contrasts_are_dropped(inflected):
    near = ["--source", "vectors", "--vectors", inflected.parent / "near.txt", "--min-similarity", "0.9"]
    table = rows(inflected, build(inflected, *near))
    assert table["november"] == {"april"} and table["large"] == {"small"}
    output = build(inflected, *near, "--no-contrasts")
    without = {word: row for word, row in table.items() if word not in ("november", "april", "large", "small")}
    assert rows(inflected, output) == without
    assert json.loads(read_description(output)["options"])["no_contrasts"] == "WordNet 3.0"


@pytest.fixture
def sources(dict_txt, vectors_txt):
    """Options for WordNet and vectors, and their tables."""
    vectors_txt.write_text("primary 1 0\nmain 1 0.1\nstay 1 0.5\nremain 1 0.45\nchief 0 1\nmaster 1 0.2\n")
    near = ["--vectors", vectors_txt, "--top-k", "100"]
    wordnet = rows(dict_txt, build(dict_txt, "--source", "wordnet"))
    vectors = rows(dict_txt, build(dict_txt, "--source", "vectors", *near))
    return near, wordnet, vectors


def test_the_union_has_the_synonyms_of_both_sources(dict_txt, sources, capsys):
    near, wordnet, vectors = sources
    output = build(dict_txt, "--source", "wordnet", "vectors", "--combine", "union", *near)
    expected = {word: wordnet.get(word, set()) | vectors.get(word, set()) for word in {*wordnet, *vectors}}
    assert rows(dict_txt, output) == expected
    description = read_description(output)
    assert description["source"] == "union of wordnet, vectors"
    assert description["source_version"].startswith("WordNet 3.0; vectors.txt, 6 vectors")
    options = {"combine": "union", "wordnet": {}, "vectors": {"top_k": 100, "min_similarity": None}}
    assert json.loads(description["options"]) == options
    assert json.loads(description["counts"]) == {
        "known to WordNet": len(PRIMARY | STAY) + 3,  # primary, stay and inch
        "with a vector": 6,
        "with a synonym in the table": len(expected),
    }
    printed = capsys.readouterr().out
    assert "primary: main, chief, master, " in printed  # mean ranks 0.5, 2 and 2; WordNet puts chief first
    assert "the paper's" not in printed.split("with a vector")[-1]


def test_the_intersection_has_what_both_sources_have(dict_txt, sources):
    near, wordnet, vectors = sources
    output = build(dict_txt, "--source", "wordnet", "vectors", "--combine", "intersection", *near)
    expected = {word: wordnet[word] & vectors[word] for word in {*wordnet} & {*vectors}}
    assert rows(dict_txt, output) == {word: row for word, row in expected.items() if row}


@pytest.mark.parametrize("floor", ["-2", "0.2", "0.98"])
def test_a_filter_is_an_intersection_with_all_neighbors_above_the_floor(dict_txt, sources, floor):
    near, wordnet, _ = sources
    both = build(
        dict_txt, "--source", "wordnet", "vectors", "--combine", "intersection", *near, "--min-similarity", floor
    )
    expected = rows(dict_txt, both)
    output = build(dict_txt, "--source", "wordnet", *near[:2], "--filter", f"vectors={floor}")
    assert rows(dict_txt, output) == expected != wordnet
    kept = json.loads(read_description(output)["options"])["filter"]
    assert kept["vectors"]["min_similarity"] == float(floor)
    assert kept["vectors"]["version"].startswith("vectors.txt, 6 vectors of dimension 2, sha256 ")


def test_a_model_filters_too(model_dict, checkpoint):
    everything = ["--source", "model", "--path", checkpoint, "--min-similarity", "-2"]
    filtered = rows(model_dict, build(model_dict, *everything, "--filter", "model=0.5"))
    assert filtered == rows(model_dict, build(model_dict, "--source", "model", "--path", checkpoint))


def test_swords_measures_the_table(dict_txt, tmp_path, capsys):
    judged = {"main": 9, "chief": 2, "elementary": 0, "halt": 8}
    swords = write_swords(tmp_path / "swords.json.gz", swords_content([("Our primary aim", "primary", judged)]))
    build(dict_txt, "--source", "wordnet", "--swords", swords)
    printed = capsys.readouterr().out
    assert re.findall(r"^judged pairs: (\w+) +(\d) +(\S+) of 3 judged pairs$", printed, flags=re.MULTILINE) == [
        ("acceptable", "1", "33.33%"),
        ("doubtful", "1", "33.33%"),
        ("rejected", "1", "33.33%"),
    ]
    assert re.search(r"^acceptable substitutes in the table +1 +50.00% of 2 acceptable substitutes$", printed, re.M)
    pairs = re.search(r"^pairs across inflections +(\d+) +\S+ of (\d+) pairs$", printed, re.M)
    assert 0 <= int(pairs[1]) < int(pairs[2])
    build(dict_txt, "--source", "wordnet", "--same-inflection", "--swords", swords)
    assert re.search(r"^rows across inflections +0 +0.00% of \d+ rows$", capsys.readouterr().out, re.M)


def test_a_wrong_swords_file_is_one_line_and_no_table_is_written(dict_txt, tmp_path):
    (tmp_path / "swords.json").write_text("{}")
    with pytest.raises(SystemExit, match="swords.json: contexts: must be an object"):
        build(dict_txt, "--source", "wordnet", "--swords", tmp_path / "swords.json")
    assert not (tmp_path / "synonyms.safetensors").exists()


def test_stop_words_can_be_given(french, capsys):
    (french.parent / "french.txt").write_text("ON\nme\n")
    output = build(french, "--source", "wordnet", "--lang", "fra", "--stop-words", french.parent / "french.txt")
    table = rows(french, output)
    assert table["▁rester"] == {"▁demeurer"} and "▁on" not in table
    assert read_description(output)["options"] == '{"lang": "fra", "stop_words": "french.txt"}'
    assert "7, of them 1 stop words (left out)" in capsys.readouterr().out


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
        (["--source", "model", "--path", "missing.pt", "--output", "x"], "missing.pt"),
        (["--source", "model", "--path", __file__, "--output", "x"], "not a checkpoint"),
        (
            ["--source", "wordnet", "--stop-words", "missing.txt", "--output", "x"],
            "give a text file with one word per line with --stop-words",
        ),
    ],
)
def test_wrong_input_is_one_line(dict_txt, arguments, reason):
    with pytest.raises(SystemExit) as raised:
        main(["--dict", str(dict_txt), *map(str, arguments)])
    message = str(raised.value.code)
    assert message.startswith("error: ") and reason in message and "\n" not in message


def test_a_model_of_another_dictionary_is_one_line(model_dict, checkpoint):
    model_dict.write_text("stay 1\nprimary 1\nmain 1\nhalt 1\nthe 1\n##s 1\n")
    with pytest.raises(SystemExit, match="checkpoint.pt: the model of another dictionary"):
        build(model_dict, "--source", "model", "--path", checkpoint)
    assert not (model_dict.parent / "synonyms.safetensors").exists()


def test_stop_words_that_are_not_utf8_are_one_line(dict_txt, tmp_path):
    (tmp_path / "stop.txt").write_bytes("à\n".encode("latin-1"))
    with pytest.raises(SystemExit, match="stop.txt, line 1: not UTF-8"):
        build(dict_txt, "--source", "wordnet", "--stop-words", tmp_path / "stop.txt")


def test_unknown_words_are_reported_in_one_line_after_the_rows_of_known_words(dict_txt, vectors_txt, capsys):
    output = build(dict_txt, "--source", "vectors", "--vectors", vectors_txt)
    capsys.readouterr()
    with pytest.raises(SystemExit) as raised:
        main(["--dict", str(dict_txt), "--table", str(output), "--show", "##s", "primary", "zzz", "halt"])
    assert raised.value.code == f"error: --show: '##s', 'zzz' are not whole words in {dict_txt}"
    assert capsys.readouterr().out.splitlines()[-2:] == ["primary: main, chief, stay", "halt: (no synonym)"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--source", "wordnet"],
        ["--show", "primary"],
        ["--source", "vectors", "--output", "x"],
        ["--source", "vectors", "--vectors", "v.txt", "--top-k", "0", "--output", "x"],
        ["--source", "model", "--output", "x"],
        ["--source", "wordnet", "--path", "checkpoint.pt", "--output", "x"],
        ["--source", "vectors", "--vectors", "v.txt", "--lang", "fra", "--output", "x"],
        ["--source", "wordnet", "vectors", "--vectors", "v.txt", "--output", "x"],
        ["--source", "wordnet", "--combine", "union", "--output", "x"],
        ["--source", "wordnet", "wordnet", "--combine", "union", "--output", "x"],
        ["--source", "wordnet", "--filter", "vectors=0.3", "--output", "x"],
        ["--source", "wordnet", "--filter", "model=0.3", "--vectors", "v.txt", "--output", "x"],
        ["--source", "wordnet", "--filter", "wordnet=0.3", "--output", "x"],
        ["--source", "wordnet", "--filter", "vectors=nan", "--vectors", "v.txt", "--output", "x"],
        ["--source", "wordnet", "--filter", "vectors", "--vectors", "v.txt", "--output", "x"],
        ["--source", "wordnet", "--filter", "vectors=1.1", "--vectors", "v.txt", "--output", "x"],
        ["--source", "vectors", "--vectors", "v.txt", "--min-similarity", "1.1", "--output", "x"],
        ["--source", "vectors", "--vectors", "v.txt", "--min-similarity", "nan", "--output", "x"],
        ["--source", "wordnet", "--lang", "fra", "--same-inflection", "--output", "x"],
        ["--source", "wordnet", "--lang", "fra", "--no-contrasts", "--output", "x"],
    ],
)
def test_missing_options_are_usage_errors(dict_txt, arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["--dict", str(dict_txt), *arguments])
    assert raised.value.code == 2 and "--" in capsys.readouterr().err


def test_the_command_fails_without_a_traceback_and_leaves_no_file(dict_txt, vectors_txt):
    vectors_txt.write_text("primary 1 0\nmain 1\n")
    output = dict_txt.parent / "synonyms.safetensors"
    flags = ["--dict", dict_txt, "--source", "vectors", "--vectors", vectors_txt, "--output", output]
    error = run_command(sys.executable, *COMMAND, *flags).error()
    assert error.startswith(f"error: {vectors_txt}, line 2: 1 numbers, not 2") and not output.exists()


@pytest.mark.skipif("TN_FAIRSEQ_DATA" not in os.environ, reason="TN_FAIRSEQ_DATA does not name a folder of real data")
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


def test_the_table_says_which_of_gpt2s_numbers_continue_a_word(tmp_path, vectors_txt):
    pieces = {"Ġprimary": 1, "Ġmain": 2, "Ġstay": 3, "s": 4, ".": 5}
    (tmp_path / "encoder.json").write_text(json.dumps(pieces), encoding="utf-8")
    (tmp_path / "dict.txt").write_text("".join(f"{number} 1\n" for number in pieces.values()))
    words = ["--dict", tmp_path / "dict.txt", "--encoder-json", tmp_path / "encoder.json", "--source", "vectors"]
    main([str(word) for word in (*words, "--vectors", vectors_txt, "--output", tmp_path / "t.safetensors")])
    dictionary = load_dictionary(tmp_path / "dict.txt")
    continuing = load_continuations(tmp_path / "t.safetensors", dictionary).nonzero().flatten().tolist()
    assert [dictionary[index] for index in continuing] == ["4"]
