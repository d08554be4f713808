"""Files that run code when they are unpickled get a one-line error in every place that accepts a file."""

import json
import os
import pickle
import shutil
import zlib
from collections.abc import Callable
from contextlib import chdir, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import FAMILIES, Bomb, prepare_training, write_sources
from tokenizers import pre_tokenizers

from tn_fairseq.__main__ import main

# the world is created once
pytestmark = pytest.mark.xdist_group("hostile files")
HARD_CORRECTION = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction"]
LETTERS = {letter: number for number, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}
ASCII = "a pickle in ASCII"


def objects(bomb: Bomb) -> np.ndarray:
    return np.array([bomb], dtype=object)


def parts(bomb: Bomb) -> dict:
    """A dictionary that looks like a checkpoint and like weights."""
    return {"cfg": bomb, "model": {"weight": torch.zeros(2)}, "weight": bomb}


# the formats of such a file: a function that writes it, and one that would run its code
CONTAINERS: dict[str, tuple[Callable, Callable]] = {
    "a bare pickle": (lambda bomb, file: pickle.dump(bomb, file), pickle.load),
    ASCII: (lambda bomb, file: pickle.dump(bomb, file, protocol=0), pickle.load),
    "torch's zip file": (
        lambda bomb, file: torch.save(parts(bomb), file),
        lambda file: torch.load(file, weights_only=False),
    ),
    "torch's older format": (
        lambda bomb, file: torch.save(parts(bomb), file, _use_new_zipfile_serialization=False),
        lambda file: torch.load(file, weights_only=False),
    ),
    ".npy": (lambda bomb, file: np.save(file, objects(bomb)), lambda file: np.load(file, allow_pickle=True)),
    ".npz": (
        lambda bomb, file: np.savez(file, words=objects(bomb)),
        lambda file: np.load(file, allow_pickle=True)["words"],
    ),
    "joblib, compressed": (
        lambda bomb, file: file.write(zlib.compress(pickle.dumps(bomb))),
        lambda file: pickle.loads(zlib.decompress(file.read())),
    ),
}


def write(path: Path, container: str, marker: Path) -> None:
    with open(path, "wb") as file:
        CONTAINERS[container][0](Bomb(marker), file)


def test_each_of_these_files_would_run_code(tmp_path):
    for number, container in enumerate(CONTAINERS):
        write(tmp_path / "file", container, tmp_path / f"marker{number}")
        with open(tmp_path / "file", "rb") as file:
            CONTAINERS[container][1](file)
        assert (tmp_path / f"marker{number}").exists(), container


def call(command: str) -> None:
    """Call a command, such as "look look analysis data-bin --output out", in this process."""
    main(command.split())


TABLE = "--synonym-table synonyms.safetensors"
BUILD = "synonyms build --dict data-bin/dict.txt --output"
BINARIZE = "data binarize --valid text --destdir"
TOKENIZE = "data binarize --train text --valid text --destdir out --tokenizer"
IMPORT = "exchange import --data data-bin --output out"
SCORE = "--seeds 1 --max-update 1 --output scores"


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """Good files of every kind."""
    folder = write_sources(tmp_path_factory.mktemp("world"))
    (folder / "numbers.txt").write_text("".join(f"{number} 1\n" for number in LETTERS.values()))
    (folder / "pairs").write_text("noun1 noun2 1\nnoun3 noun4 2\nnoun1 noun4 3\n")
    for name in ("gpt2", "bert", "run", "scores/model/SST-2/seed1"):
        (folder / name).mkdir(parents=True)
    (folder / "gpt2" / "encoder.json").write_text(json.dumps(LETTERS))
    shutil.copy(folder / "vocab.txt", folder / "bert")
    (folder / "scores" / "model" / "SST-2" / "seed1" / "result.json").write_text("{}")
    with chdir(folder):
        call(f"{BINARIZE} data-bin --train text --tokenizer vocab.txt")
        call(f"{BUILD} synonyms.safetensors --source vectors --vectors vectors")
        call("data glue --glue-dir glue --task all --tokenizer vocab.txt --destdir glue-bin")
        call("data squad --train squad.json --valid squad.json --tokenizer vocab.txt --destdir squad-bin")
        prepare_training("data-bin", ".", *HARD_CORRECTION, *TABLE.split(), "--max-update", 1)()
        call("exchange export checkpoint_last.pt --output huggingface")
    shutil.copytree(folder / "huggingface" / "discriminator", folder / "bin")
    (folder / "bin" / "model.safetensors").unlink()
    return folder


# places where ASCII is valid text
TEXTS = [
    f"text2 {BINARIZE} out --train text2 --tokenizer vocab.txt",
    "text2 data train-tokenizer --input text2 --type wordpiece --vocab-size 60 --output out",
    f"stop.txt {BUILD} out --source vectors --vectors vectors --stop-words stop.txt",
]
# every place that accepts a file: its path, and a command that reads it, or flags of fairseq-train
PLACES = [
    *TEXTS,
    # checkpoints
    "a.pt data-bin --restore-file a.pt",
    "a.safetensors data-bin --finetune-from-model a.safetensors",
    "run/checkpoint_last.pt data-bin",
    f"a.pt look analysis data-bin --path a.pt {TABLE} --output out",
    f"a.pt evaluate glue a.pt --data glue-bin {SCORE}",
    "a.pt evaluate lexical a.pt --data data-bin --word-pairs pairs --output out",
    "a.pt exchange export a.pt --output out",
    f"a.pt {BUILD} out --source model --path a.pt",
    # synonym tables and their sources
    "a.safetensors data-bin --synonym-table a.safetensors",
    "a.safetensors synonyms show a.safetensors noun1 --dict data-bin/dict.txt",
    f"glove.txt {BUILD} out --source vectors --vectors glove.txt",
    f"list.txt {BUILD} out --source list --synonyms list.txt --format groups",
    f"dict.txt {BUILD} out --dict dict.txt --source vectors --vectors vectors",
    f"encoder.json {BUILD} out --dict numbers.txt --encoder-json encoder.json --source vectors --vectors vectors",
    # folders of save_pretrained
    f"huggingface/discriminator/model.safetensors {IMPORT} huggingface/discriminator",
    f"bin/pytorch_model.bin {IMPORT} bin",
    f"huggingface/generator/model.safetensors {IMPORT} huggingface/discriminator --generator huggingface/generator",
    f"huggingface/discriminator/config.json {IMPORT} huggingface/discriminator",
    f"huggingface/discriminator/tokenizer.json {IMPORT} huggingface/discriminator",
    # tokenizers, the last one of unknown kind
    *(f"{name} {TOKENIZE} {name}" for name in ("tokenizer.json", "vocab.txt", "a.model", "encoder.json", "a.pkl")),
    f"gpt2/vocab.bpe {TOKENIZE} gpt2",
    f"bert/tokenizer_config.json {TOKENIZE} bert",
    f"huggingface/generator/special_tokens_map.json {TOKENIZE} huggingface/generator",
    "data-bin/tokenizer/vocab.txt exchange export checkpoint_last.pt --data data-bin --output out",
    # labeled examples
    f"dict.txt {TOKENIZE} vocab.txt --dict dict.txt",
    "glue/SST-2/dev.tsv data glue --glue-dir glue --task all --tokenizer vocab.txt --destdir out",
    "a.json data squad --train squad.json --valid a.json --tokenizer vocab.txt --destdir out",
    "a.json evaluate squad-score a.json predictions.json",
    "a.json evaluate squad-score squad.json a.json",
    *(
        f"{name} evaluate lexical checkpoint_last.pt --data data-bin {option} {name} --output out"
        for option, name in (("--swords", "a.json.gz"), ("--word-pairs", "a.txt"), ("--blimp", "a.zip"))
    ),
    # binarized data, and an earlier run
    *(f"data-bin/{name} data-bin" for name in ("dict.txt", "train.idx", "train.bin", "valid.idx")),
    f"data-bin/valid.idx look analysis data-bin --path checkpoint_last.pt {TABLE} --output out",
    f"glue-bin/SST-2/input0/train.idx evaluate glue checkpoint_last.pt --data glue-bin {SCORE}",
    f"glue-bin/SST-2/label/valid.bin evaluate glue checkpoint_last.pt --data glue-bin {SCORE}",
    f"squad-bin/train.bin evaluate squad checkpoint_last.pt --data squad-bin {SCORE}",
    f"scores/model/SST-2/seed1/results.parquet.job.json evaluate glue model=checkpoint_last.pt --data glue-bin {SCORE}",
]


@pytest.mark.usefixtures("served_programs")
@pytest.mark.parametrize("place", PLACES)
def test_no_place_accepts_a_file_that_would_run_code(world, tmp_path, monkeypatch, place):
    folder, marker = tmp_path / "files", tmp_path / "marker"
    shutil.copytree(world, folder, copy_function=os.link)
    monkeypatch.chdir(folder)
    path, command = place.split(" ", 1)
    read = partial(call, command)
    if command.startswith("data-bin"):  # the last one of repeated flags wins
        data, *flags = command.split()
        read = prepare_training(data, "run", *HARD_CORRECTION, *TABLE.split(), *flags)
    for container in CONTAINERS:
        Path(path).unlink(missing_ok=True)
        write(Path(path), container, marker)
        if container == ASCII and place in TEXTS:
            with suppress(SystemExit):
                read()
        else:
            with pytest.raises(SystemExit) as stopped:
                read()
            message = stopped.value.code
            assert isinstance(message, str) and message.startswith("error: "), (container, message)
            assert "\n" not in message and path in message, (container, message)
        assert not marker.exists(), container
