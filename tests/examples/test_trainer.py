"""The guide to training with transformers: its commands and its Python, on a little text."""

import re
from pathlib import Path

import pytest
import torch
from files import refused
from guides import guide
from helpers import PLUGIN, commands_of, load_script

from tn_fairseq.__main__ import main
from tn_fairseq.huggingface.synonyms import SynonymTable
from tn_fairseq.huggingface.trainer import TrueNegativeTrainer
from tn_fairseq.tools.results.table import read_table

transformers = pytest.importorskip("transformers")
ROOT = PLUGIN.parent
PAGE = guide("transformers", "Train in a Trainer")
BINARIZE = "data binarize --train corpus/train.txt --valid corpus/valid.txt --tokenizer trained/plain"
BINARIZE += " --destdir data-bin"
BUILD = "synonyms build --dict data-bin/dict.txt --source wordnet --output wordnet.safetensors"
ANALYZE = "look analysis data-bin --model trained/plain trained/corrected --synonym-table wordnet.safetensors"
ANALYZE += " --output false-negatives --mask-seeds 1"


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "corpus").mkdir()
    for split in ("train", "valid"):
        lines = "the main road leads to the big city, and the primary school is near it.\n" * 40
        (tmp_path / "corpus" / f"{split}.txt").write_text(lines)
    return tmp_path / "corpus"


def test_the_example_compares_two_runs(corpus, monkeypatch, capsys):
    _, words = commands_of(PAGE)
    example = load_script("examples/trainer/train.py")
    monkeypatch.setattr("sys.argv", [*words[1:], "--updates", "2"])
    example.main()
    shown = capsys.readouterr().out
    assert "what plain masked LM punishes: the most likely synonyms" in shown
    for label in example.SHOWN.values():
        assert re.search(rf"^{re.escape(label)} +[\d.]+ +[\d.]+ +[+-][\d.]+$", shown, re.MULTILINE), label
    for name in example.OBJECTIVES:
        transformers.AutoModelForMaskedLM.from_pretrained(Path("trained") / name)

    for command in (BINARIZE, BUILD, ANALYZE):
        main(command.split())
    table, _ = read_table(Path("false-negatives/results.parquet"))
    assert list(table["arm"].unique())[:2] == ["trained/plain", "trained/corrected"]


def test_the_example_shows_the_most_likely_synonym_of_each_word(corpus, tmp_path):
    """A model that always predicts the synonym of one word."""
    example = load_script("examples/trainer/train.py")
    tokenizer = transformers.AutoTokenizer.from_pretrained("examples/small_model/model")
    model = transformers.AutoModelForMaskedLM.from_pretrained("examples/small_model/model")
    with torch.no_grad():
        model.get_output_embeddings().bias[tokenizer.convert_tokens_to_ids("primary")] = 100.0
    path = tmp_path / "list.txt"
    path.write_text("main, primary\n")
    trainer = TrueNegativeTrainer(
        model=model,
        args=transformers.TrainingArguments(str(tmp_path), use_cpu=True, report_to=[]),
        data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.9, seed=1),
        synonyms=SynonymTable.from_list(tokenizer, path, "groups"),
    )
    rows = [tokenizer("the main road leads to the city.")] * 8
    ((probability, context, gold, synonym),) = example.punished(
        trainer, rows, SynonymTable.from_list(tokenizer, path, "groups")
    )
    assert (round(probability, 3), gold, synonym) == (1, "main", "primary")
    assert context == "… the [main] road leads to the city. …"


def test_wrong_input_of_the_example_gets_one_line(tmp_path, monkeypatch):
    example = load_script("examples/trainer/train.py")
    train = tmp_path / "train.txt"

    def refusal(*flags):
        monkeypatch.setattr("sys.argv", ["x", "--corpus", str(tmp_path), "--output", str(tmp_path / "out"), *flags])
        return refused(example.main)

    assert str(train) in refusal()
    for content in (b"caf\xe9\n", b"the cat\n"):
        train.write_bytes(content)
        assert str(train) in refusal()
    (tmp_path / "model").mkdir()
    assert f"--model {tmp_path / 'model'}" in refusal("--model", str(tmp_path / "model"))


def test_the_python_of_the_guide_runs(corpus, capsys):
    training, distilling, reading = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names = {}
    for split in ("train", "valid"):
        Path(f"corpus.{split}.txt").write_text("the main road leads to the big city.\n\n" * 8)
    for code, trainer in ((training, "trainer"), (distilling, "student"), (reading, "student")):
        exec(re.sub(r"max_steps=\d+", "max_steps=1, use_cpu=True, report_to=[]", code), names)
        assert names[trainer].state.global_step == 1 and len(names[trainer].train_dataset) == 8
        if code == distilling:
            student, teacher = (float(line) for line in capsys.readouterr().out.splitlines()[-2:])
            assert student > teacher > 0
    loaded = transformers.AutoModelForMaskedLM.from_pretrained("student")
    assert loaded.config.num_hidden_layers == 2 and transformers.AutoTokenizer.from_pretrained("student").mask_token
