"""Whoever does not use fairseq does not need it: one process in which it cannot be imported."""

import sys

from helpers import run_command

BLOCK = """
import importlib.util, sys

BLOCKED = {"fairseq", "fairseq_cli", "hydra", "omegaconf"}


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in BLOCKED else find_spec(name, package)
sys.meta_path.insert(0, Blocker())
"""
# each part uses the files that the parts before it wrote to the current folder
MODULES = """
import pkgutil

import tn_fairseq
import tn_fairseq.synonyms

for module in pkgutil.iter_modules(tn_fairseq.synonyms.__path__):
    importlib.import_module(f"tn_fairseq.synonyms.{module.name}")
"""
TABLE_FOR_A_DICTIONARY = """
from pathlib import Path

from tn_fairseq.preprocessing.__main__ import main

Path("dict.txt").write_text("primary 1\\nmain 1\\nstay 1\\n", encoding="utf-8")
table = ["build-synonym-table", "--dict", "dict.txt"]
main([*table, "--source", "wordnet", "--output", "synonyms.safetensors"])
main([*table, "--table", "synonyms.safetensors", "--show", "primary"])
"""
TABLE_FOR_A_TOKENIZER = """
from tn_fairseq.huggingface import SynonymTable
from transformers import BertTokenizer

pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "primary", "main", "stay", "##ed"]
tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
SynonymTable.from_wordnet(tokenizer).save("tokenizer.safetensors")
table = SynonymTable.from_file(tokenizer, "tokenizer.safetensors")
assert table.synonyms.tolist() == [[-1]] * 5 + [[6], [5], [-1], [-1]]
"""
OTHER_COMMANDS = """
for command in "binarize", "glue":
    try:
        main([command])
    except SystemExit as stop:
        assert stop.code.startswith("error: fairseq is not installed, but this command needs it; "), stop.code
    else:
        raise AssertionError(command)
"""


def test_without_fairseq(tmp_path):
    (tmp_path / "script.py").write_text(
        BLOCK + MODULES + TABLE_FOR_A_DICTIONARY + TABLE_FOR_A_TOKENIZER + OTHER_COMMANDS, encoding="utf-8"
    )
    run = run_command(sys.executable, "script.py", cwd=tmp_path, fresh=True)
    assert run.code == 0, run.output
    assert run.stdout.endswith("primary: main\n")
