import json
import math
import re
from pathlib import Path

import pytest
import torch
from files import contents, refused
from lexical_files import swords_content, write_swords
from nltk_folders import without_languages, write_lexicon
from tokenizer_folders import REAL_DATA, SPECIAL, with_real_data

from tn_fairseq.commands.synonyms_build import main
from tn_fairseq.commands.synonyms_show import main as show
from tn_fairseq.core.dictionary import fingerprint, load_dictionary
from tn_fairseq.core.synonym_table import load_synonym_table, read_description

PRIMARY = {"main", "chief", "principal", "master", "elementary", "elemental", "basal"}
STAY = {"remain", "continue", "stop", "halt", "delay", "persist", "abide", "bide", "detain", "arrest", "check", "quell"}
NEVER = {"##s", "##ed", "primary_winding", "on", "the", "in", "7", "."}


def write_dict(path, pieces):
    path.write_text("".join(f"{piece} 1\n" for piece in pieces), encoding="utf-8")
    return path


@pytest.fixture
def dict_txt(tmp_path):
    return write_dict(tmp_path / "dict.txt", ["primary", "stay", *sorted(PRIMARY | STAY), *sorted(NEVER), "inch"])


@pytest.fixture
def vectors_txt(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("primary 1 0\nmain 1 0.1\nchief 1 0.5\nstay -1 0\nthe 1 0\n")
    return path


def build(dict_txt, *options):
    output = dict_txt.parent / "synonyms.safetensors"
    main(["--dict", str(dict_txt), *map(str, options), "--output", str(output)])
    return output


def rows(dict_txt, *options):
    """The table that the options build as words -> set of synonyms, empty rows left out, and its description."""
    dictionary = load_dictionary(dict_txt)
    output = build(dict_txt, *options)
    synonyms = {
        dictionary[index]: {dictionary[synonym] for synonym in row if synonym != -1}
        for index, row in enumerate(load_synonym_table(output, dictionary).synonyms.tolist())
    }
    description = read_description(output)
    description |= {name: json.loads(description[name]) for name in ("options", "counts")}
    return {word: found for word, found in synonyms.items() if found}, description


def test_wordnet_rows_match_figure_3(dict_txt, capsys):
    table, _ = rows(dict_txt, "--source", "wordnet")
    assert table["primary"] == PRIMARY and table["stay"] == STAY
    assert not any(word in synonyms for word, synonyms in table.items())
    assert not NEVER & set(table) and not any(NEVER & synonyms for synonyms in table.values())
    printed = capsys.readouterr().out
    assert "primary: chief, main, principal" in printed
    assert "62.51%" in printed and "the paper's" in printed


def test_the_three_counts_are_printed_and_saved_in_order(dict_txt, capsys):
    write_dict(dict_txt, ["primary", "main", "xyzzyx", "albedo", "neutron"])
    _, description = rows(dict_txt, "--source", "wordnet")
    # albedo has another lemma, but not in this dictionary; neutron has only itself; WordNet lacks xyzzyx.
    assert list(description["counts"].items()) == [
        ("known to WordNet", 4),
        ("with a lemma other than itself", 3),
        ("with a synonym in the dictionary", 2),
    ]
    printed = capsys.readouterr().out  # the dictionary has five pieces, four special symbols and <mask>
    found = re.findall(r"(\d+) +(\d+\.\d+%) of the dictionary", printed)
    assert found == [("4", "40.00%"), ("3", "30.00%"), ("2", "20.00%")]


def test_vectors_give_the_nearest_words_but_no_stop_words(dict_txt, vectors_txt, capsys):
    vectors_txt.write_bytes(vectors_txt.read_bytes() + b"\xff 1 0\n")
    near = ["--source", "vectors", "--vectors", vectors_txt, "--top-k", "2", "--min-similarity", "0.5"]
    table, description = rows(dict_txt, *near)
    assert table == {"primary": {"main", "chief"}, "main": {"primary", "chief"}, "chief": {"main", "primary"}}
    assert description["options"] == {"top_k": 2, "min_similarity": 0.5}
    assert description["source_version"].startswith("vectors.txt, 6 vectors of dimension 2")
    printed = capsys.readouterr().out
    assert "with a neighbor kept" in printed and "paper" not in printed
    assert f"{vectors_txt}: skipped 1 lines whose word is not UTF-8" in printed


def test_a_model_gives_the_nearest_words_of_its_own_embeddings(dict_txt, tmp_path):
    """A model in which main is near primary, and halt near stay; only primary and stay are frequent."""
    write_dict(dict_txt, ["primary", "stay", "main", "halt", "the", "##s"])
    dictionary = load_dictionary(dict_txt)
    embeddings = torch.full((len(dictionary), 3), 99.0)
    for word, row in {"primary": (14, 1, 3), "stay": (14, -1, 3), "main": (4, 1, 3), "halt": (4, -1, 3)}.items():
        embeddings[dictionary.index(word)] = torch.tensor(row).float()
    digest = torch.tensor(list(bytes.fromhex(fingerprint(dictionary))), dtype=torch.uint8)
    parameters = {"embeddings.word_embeddings.weight": embeddings, "dictionary_fingerprint": digest}
    state = {"cfg": {"model": None}, "model": parameters, "optimizer_history": [{"num_updates": 7}]}
    torch.save(state, tmp_path / "checkpoint.pt")
    model = ["--source", "model", "--path", tmp_path / "checkpoint.pt"]
    table, description = rows(dict_txt, *model)
    assert table == {"primary": {"main"}, "main": {"primary"}, "stay": {"halt"}, "halt": {"stay"}}
    assert description["options"] == {"top_k": 10, "min_similarity": 0.5}
    assert description["source_version"].startswith("checkpoint.pt, 7 updates, embeddings of dimension 3, sha256 ")
    assert description["counts"] == {"with an embedding": 4, "with a neighbor kept": 4}
    everything, _ = rows(dict_txt, *model, "--min-similarity", "-2")
    assert everything["primary"] == {"stay", "main", "halt"}
    assert rows(dict_txt, *model, "--min-similarity", "-2", "--filter", "model=0.5")[0] == table


def test_other_languages_come_from_the_multilingual_wordnet(tmp_path, monkeypatch, capsys):
    without_languages(tmp_path, monkeypatch)
    lines = "00117985-v\tfra:lemma\trester\n00117985-v\tfra:lemma\tdemeurer\n00117985-v\tfra:lemma\ton\n"
    lines += "02913152-n\tfra:lemma\tBâtiment\n02913152-n\tfra:lemma\tédifice\n02913152-n\tfra:lemma\tgros œuvre\n"
    write_lexicon(tmp_path, "fra", lines)
    pieces = ["▁rester", "▁demeurer", "▁on", "▁bâtiment", "▁Édifice", "▁Bâtiment", "▁the", "er"]
    french = write_dict(tmp_path / "french.dict.txt", pieces)
    table, description = rows(french, "--source", "wordnet", "--lang", "fra")
    assert table == {  # the built-in stop words, such as "on", are English
        "▁rester": {"▁demeurer", "▁on"},
        "▁demeurer": {"▁rester", "▁on"},
        "▁on": {"▁rester", "▁demeurer"},
        "▁Édifice": {"▁Bâtiment"},
        "▁Bâtiment": {"▁Édifice"},
    }
    assert description["source_version"] == "WordNet 3.0 with omw-2.0 (fra)"
    assert description["options"] == {"lang": "fra"}
    assert list(description["counts"].values()) == [6, 6, 5]
    assert "--stop-words FILE" in capsys.readouterr().out
    show([str(tmp_path / "synonyms.safetensors"), "the", "--dict", str(french)])
    assert capsys.readouterr().out.endswith("the: (no synonym)\n")

    stop_words = tmp_path / "french.txt"
    stop_words.write_text("ON\nme\n")
    table, description = rows(french, "--source", "wordnet", "--lang", "fra", "--stop-words", stop_words)
    assert table["▁rester"] == {"▁demeurer"} and "▁on" not in table
    assert description["options"] == {"lang": "fra", "stop_words": "french.txt"}
    assert "7, of them 1 stop words (left out)" in capsys.readouterr().out


def test_synonyms_in_the_same_inflection_and_without_contrasts(dict_txt, vectors_txt):
    near = [("elections", "election", "polls", "poll"), ("went", "go", "moved", "move"), ("november", "april")]
    lines = [f"{word} {math.cos(angle)} {math.sin(angle)}\n" for angle, words in enumerate(near) for word in words]
    vectors_txt.write_text("".join(lines) + "large -1 0.1\nsmall -1 0\n")
    write_dict(dict_txt, sorted([*sum(near, ()), "large", "small"]))
    found, description = rows(dict_txt, "--source", "wordnet", "--same-inflection")
    assert found["went"] == {"moved"} and found["moved"] == {"went"} and found["go"] == {"move"}
    assert "elections" not in found  # WordNet does not have polls among its synonyms
    assert description["options"] == {"same_inflection": "LemmInflect 0.2.3"}
    assert description["counts"]["with a synonym in the dictionary"] == len(found)
    vectors = ["--source", "vectors", "--vectors", vectors_txt, "--min-similarity", "0.9"]
    table, _ = rows(dict_txt, *vectors)
    assert table["elections"] == {"election", "polls", "poll"}
    assert table["november"] == {"april"} and table["large"] == {"small"}
    assert rows(dict_txt, *vectors, "--same-inflection")[0]["elections"] == {"polls"}
    without, description = rows(dict_txt, *vectors, "--no-contrasts")
    assert without == {word: row for word, row in table.items() if word not in ("november", "april", "large", "small")}
    assert description["options"]["no_contrasts"] == "WordNet 3.0"


def test_sources_are_combined_and_filtered(dict_txt, vectors_txt, capsys):
    vectors_txt.write_text("primary 1 0\nmain 1 0.1\nstay 1 0.5\nremain 1 0.45\nchief 0 1\nmaster 1 0.2\n")
    near = ["--vectors", vectors_txt, "--top-k", "100"]
    wordnet, vectors = (rows(dict_txt, "--source", *words)[0] for words in (["wordnet"], ["vectors", *near]))
    capsys.readouterr()
    expected = {word: wordnet.get(word, set()) | vectors.get(word, set()) for word in {*wordnet, *vectors}}
    table, description = rows(dict_txt, "--source", "wordnet", "vectors", "--combine", "union", *near)
    assert table == expected
    assert description["source"] == "union of wordnet, vectors"
    assert description["source_version"].startswith("WordNet 3.0; vectors.txt, 6 vectors")
    options = {"combine": "union", "wordnet": {}, "vectors": {"top_k": 100, "min_similarity": None}}
    assert description["options"] == options
    assert description["counts"] == {
        "known to WordNet": len(PRIMARY | STAY) + 3,  # primary, stay and inch
        "with a vector": 6,
        "with a synonym in the table": len(expected),
    }
    # mean ranks 0.5, 2 and 2; WordNet puts chief first
    assert "primary: main, chief, master, " in capsys.readouterr().out

    # a filter is an intersection with all neighbors above the floor
    both = ["--source", "wordnet", "vectors", "--combine", "intersection", *near, "--min-similarity", "0.2"]
    expected, _ = rows(dict_txt, *both)
    table, description = rows(dict_txt, "--source", "wordnet", *near[:2], "--filter", "vectors=0.2")
    assert table == expected != wordnet
    kept = description["options"]["filter"]["vectors"]
    assert kept["min_similarity"] == 0.2
    assert kept["version"].startswith("vectors.txt, 6 vectors of dimension 2, sha256 ")


def test_swords_measures_the_table(dict_txt, tmp_path, capsys):
    judged = {"main": 9, "chief": 2, "elementary": 0, "halt": 8}
    swords = write_swords(tmp_path / "swords.json.gz", swords_content([("Our primary aim", "primary", judged)]))
    build(dict_txt, "--source", "wordnet", "--same-inflection", "--swords", swords)
    printed = capsys.readouterr().out
    found = re.findall(r"^judged pairs: (\w+) +(\d) +(\S+) of 3 judged pairs$", printed, flags=re.MULTILINE)
    assert found == [(name, "1", "33.33%") for name in ("acceptable", "doubtful", "rejected")]
    assert re.search(r"^acceptable substitutes in the table +1 +50.00% of 2 acceptable substitutes$", printed, re.M)
    assert re.search(r"^rows across inflections +0 +0.00% of \d+ rows$", printed, re.M)


# flags, and the flag or file that the error must name
REFUSED = {
    "--encoder-json encoder.json --source wordnet": "--encoder-json",
    "--source model --path missing.pt": "missing.pt",
    "--source wordnet --stop-words missing.txt": "missing.txt",
    "--source vectors --vectors wrong.json": "wrong.json",
    "--source wordnet --swords wrong.json": "wrong.json",
    "--source list --synonyms missing.tsv --format tsv": "missing.tsv",
    "--source list --synonyms dict.txt --format groups --output dict.txt": "dict.txt: exists and is no synonym table",
    "": "--source",
    "--source vectors": "--vectors",
    "--source vectors --vectors v.txt --lang fra": "--lang",
    "--source wordnet --filter vectors=0.3": "--vectors",
    "--source wordnet --format tsv": "--format",
    "--source wordnet --min-score 0": "--min-score",
    "--source wordnet --symmetric": "--symmetric",
    "--source wordnet --synonyms x": "--synonyms",
    "--source list --synonyms x": "--format",
    "--source list --synonyms x --format groups --columns word=a": "--columns",
    "--source list --synonyms x --format groups --where a=b": "--where",
    "--source list --synonyms x --format csv --columns word": "--columns",
    "--source wordnet --top-k 5": "--top-k",
    "--source list --synonyms x --format tsv --min-similarity 0.5": "--min-similarity",
    "--source wordnet --lang fra --no-contrasts": "--no-contrasts",
}


@pytest.mark.parametrize("flags", [*REFUSED, "--source wordnet"])
def test_wrong_input_is_one_line_and_no_table_is_written(dict_txt, flags, monkeypatch):
    monkeypatch.chdir(dict_txt.parent)
    Path("wrong.json").write_text("{}")
    before = contents(dict_txt.parent)
    output = [] if flags == "--source wordnet" else ["--output", "x"]
    assert REFUSED.get(flags, "--output") in refused(main, ["--dict", "dict.txt", *output, *flags.split()])
    assert contents(dict_txt.parent) == before


@with_real_data
def test_coverage_of_berts_vocabulary(dict_txt, capsys):
    vocabulary = (REAL_DATA / "vocab" / "bert-uncased.vocab.txt").read_text(encoding="utf-8")
    write_dict(dict_txt, [piece for piece in vocabulary.split("\n") if piece not in ("", *SPECIAL)])
    table, description = rows(dict_txt, "--source", "wordnet")
    assert table["primary"] == PRIMARY
    known, with_another_lemma, with_synonym = description["counts"].values()
    assert 18_500 < known < 19_100 and 0 < with_synonym < with_another_lemma < known
    assert len(table) == with_synonym
    assert f"{known:,}" in capsys.readouterr().out


def test_the_table_says_which_of_gpt2s_numbers_continue_a_word(tmp_path, vectors_txt):
    pieces = {"Ġprimary": 1, "Ġmain": 2, "Ġstay": 3, "s": 4, ".": 5}
    (tmp_path / "encoder.json").write_text(json.dumps(pieces), encoding="utf-8")
    dict_txt = write_dict(tmp_path / "dict.txt", pieces.values())
    encoder = ["--encoder-json", tmp_path / "encoder.json"]
    table = build(dict_txt, *encoder, "--source", "vectors", "--vectors", vectors_txt)
    dictionary = load_dictionary(dict_txt)
    continuing = load_synonym_table(table, dictionary).continues_word.nonzero().flatten().tolist()
    assert [dictionary[index] for index in continuing] == ["4"]
