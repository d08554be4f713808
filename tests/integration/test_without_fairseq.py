"""Whoever does not use fairseq does not need it: one process in which it cannot be imported."""

import sys

import pytest
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

from tn_fairseq.__main__ import main

Path("dict.txt").write_text("primary 1\\nmain 1\\nstay 1\\n", encoding="utf-8")
main("synonyms build --dict dict.txt --source wordnet --output synonyms.safetensors".split())
main("synonyms show synonyms.safetensors primary --dict dict.txt".split())
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
Path("vocab.txt").write_text("".join(f"{piece}\\n" for piece in pieces), encoding="utf-8")
for command in "binarize --train dict.txt --valid dict.txt", "glue --glue-dir . --task CoLA":
    try:
        main(f"data {command} --tokenizer vocab.txt --destdir data-bin".split())
    except SystemExit as stop:
        assert stop.code.startswith("error: fairseq is not installed, but this command needs it; "), stop.code
    else:
        raise AssertionError(command)
"""
TRAINER = """
from tn_fairseq.huggingface import TrueNegativeTrainer
from transformers import BertConfig, BertForMaskedLM, DataCollatorForLanguageModeling, TrainingArguments

sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 8, "intermediate_size": 8}
trainer = TrueNegativeTrainer(
    model=BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **sizes)),
    args=TrainingArguments("trained", max_steps=2, use_cpu=True, report_to=[], save_strategy="no"),
    train_dataset=[tokenizer("stay primary main main stayed")] * 8,
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.5),
    objective="mlm_hard_correction",
    synonyms=table,
)
trainer.train()
assert trainer.state.global_step == 2

from tn_fairseq.huggingface import keep_layers

assert keep_layers(trainer.model, [0]).config.num_hidden_layers == 1
"""


@pytest.mark.slow
def test_without_fairseq(tmp_path):
    (tmp_path / "script.py").write_text(
        BLOCK + MODULES + TABLE_FOR_A_DICTIONARY + TABLE_FOR_A_TOKENIZER + TRAINER + OTHER_COMMANDS, encoding="utf-8"
    )
    run = run_command(sys.executable, "script.py", cwd=tmp_path, fresh=True)
    assert run.code == 0, run.output
    assert "\nprimary: main\n" in run.stdout
