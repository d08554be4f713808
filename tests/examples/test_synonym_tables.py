"""The comparison of synonym tables: its rows are those of synonyms build --swords."""

import csv
import re

import pytest
import torch
from helpers import load_script
from lexical_files import swords_content, write_swords

from tn_fairseq.commands.arguments import parse_options
from tn_fairseq.commands.synonyms_build import main as build_synonym_table
from tn_fairseq.core.dictionary import fingerprint, load_dictionary

synonym_tables = load_script("examples/synonym_tables.py")
VECTORS = {"elections": (1, 0), "polls": (0.9, 0.1), "election": (0.8, 0.1), "large": (0, 1), "small": (0.1, 0.9)}
VECTORS |= {"big": (0.2, 0.9), "huge": (-1, 0.5)}


@pytest.fixture
def inputs(tmp_path):
    """The options of the comparison, for a dictionary of seven words."""
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in VECTORS))
    (tmp_path / "vectors.txt").write_text("".join(f"{word} {x} {y}\n" for word, (x, y) in VECTORS.items()))
    dictionary = load_dictionary(tmp_path / "dict.txt")
    embeddings = torch.randn(len(dictionary), 8, generator=torch.Generator().manual_seed(1))
    digest = torch.tensor(list(bytes.fromhex(fingerprint(dictionary))), dtype=torch.uint8)
    model = {"embeddings.word_embeddings.weight": embeddings, "dictionary_fingerprint": digest}
    torch.save({"cfg": {"model": None}, "model": model}, tmp_path / "model.pt")
    (tmp_path / "synonyms.txt").write_text("large => big\nelections => polls, election\n")
    sentences = [("a large house", "large", {"big": 9, "huge": 3, "small": 0}), ("elections", "elections", {"poll": 7})]
    content = swords_content([*sentences, ("old elections", "elections", {"election": 9, "small": 0})])
    for target, part_of_speech in (("t:0", "ADJ"), ("t:1", "NOUN"), ("t:2", "NOUN")):
        content["targets"][target]["pos"] = part_of_speech
    write_swords(tmp_path / "swords.json", content)
    names = {"--dict": "dict.txt", "--vectors": "vectors.txt", "--path": "model.pt", "--synonyms": "synonyms.txt"}
    names["--swords"] = "swords.json"
    paths = [word for flag, name in names.items() for word in (flag, str(tmp_path / name))]
    return [*paths[:8], "--format", "groups", *paths[8:]]


FEW = (
    "wordnet",
    "vectors",
    "vectors --same-inflection",
    "model",
    "list",
    "wordnet vectors --combine union --filter model=0.2",
)


def test_every_row_is_what_the_command_prints(inputs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(synonym_tables, "TABLES", FEW)
    synonym_tables.main(inputs)
    head, *rows = csv.reader(capsys.readouterr().out.splitlines())
    cells = {row[0]: row[1:] for row in rows}
    assert tuple(head) == synonym_tables.COLUMNS and list(cells) == list(synonym_tables.TABLES)
    files = {"wordnet": [], "vectors": inputs[2:4], "vectors --same-inflection": inputs[2:4], "list": inputs[6:10]}
    for options, source in files.items():
        flags = inputs[:2] + source + inputs[-2:]
        build_synonym_table([*flags, "--source", *options.split(), "--output", str(tmp_path / "table.safetensors")])
        printed = capsys.readouterr().out
        shares = re.findall(r"(\d+\.\d+)% of [\d,]+ (?:judged|acceptable|pairs)", printed)
        acceptable, doubtful, rejected, held, crossing = (f"{float(share):.1f}%" for share in shares)
        assert cells[options][1] == crossing and cells[options][3:] == [acceptable, doubtful, rejected, held], options
    assert cells["vectors"][0] == "42"  # each of seven words has the others as neighbors
    assert cells["list"][:2] == ["3", "33.3%"]
    assert cells["vectors --same-inflection"][1] == "0.0%" != cells["vectors"][1]


def test_the_options_of_every_row_are_those_of_the_command():
    for options in synonym_tables.TABLES:
        files = ["--vectors", "v", "--path", "p", "--synonyms", "s", "--format", "groups"]
        used = [
            word
            for name, flag in (("vectors", 0), ("model", 2), ("list", 4))
            if name in options
            for word in files[flag : flag + (4 if name == "list" else 2)]
        ]
        words = ["--dict", "d", "--output", "o", "--source", *options.split(), *used]
        parse_options(synonym_tables.BuildOptions, "synonyms build", None, words)


def test_without_a_list_its_tables_are_left_out(inputs, monkeypatch, capsys):
    monkeypatch.setattr(synonym_tables, "TABLES", ("list", "vectors"))
    synonym_tables.main(inputs[:6] + inputs[10:])
    assert len(capsys.readouterr().out.splitlines()) == 2  # the heading and a row
