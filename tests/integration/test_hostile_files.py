"""Files that run code when they are unpickled get a one-line error in every place that accepts a file."""

import json
import pickle
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from helpers import FAMILIES, Bomb, prepare_training, write_sources
from tokenizers import pre_tokenizers

from tn_fairseq.analysis.__main__ import main as analysis
from tn_fairseq.evaluation.__main__ import main as evaluation
from tn_fairseq.huggingface.__main__ import main as huggingface

binarize, build_synonym_table, glue, squad, train_tokenizer = (
    import_module(f"tn_fairseq.preprocessing.commands.{name}").main
    for name in ("binarize", "build_synonym_table", "glue", "squad", "train_tokenizer")
)
# the world is created once
pytestmark = [pytest.mark.xdist_group("hostile files"), pytest.mark.usefixtures("keep_logging")]
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


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_of_these_files_would_run_code(container, tmp_path):
    write(tmp_path / "file", container, tmp_path / "marker")
    with open(tmp_path / "file", "rb") as file:
        CONTAINERS[container][1](file)
    assert (tmp_path / "marker").exists()


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """Good files of every kind."""
    folder = write_sources(tmp_path_factory.mktemp("world"))
    (folder / "numbers.txt").write_text("".join(f"{number} 1\n" for number in LETTERS.values()))

    (folder / "pairs").write_text("noun1 noun2 1\nnoun3 noun4 2\nnoun1 noun4 3\n")

    def run(main, *words):
        main([str(word) for word in words])

    tokenizer = "--tokenizer", folder / "vocab.txt", "--destdir"
    data, table = folder / "data-bin", folder / "synonyms.safetensors"
    run(binarize, "--train", folder / "text", "--valid", folder / "text", *tokenizer, data)
    source = "--source", "vectors", "--vectors", folder / "vectors", "--output", table
    run(build_synonym_table, "--dict", data / "dict.txt", *source)
    run(glue, "--glue-dir", folder / "glue", "--task", "all", *tokenizer, folder / "glue-bin")
    run(squad, "--train", folder / "squad.json", "--valid", folder / "squad.json", *tokenizer, folder / "squad-bin")
    prepare_training(data, folder, *HARD_CORRECTION, "--synonym-table", table, "--max-update", 1)()
    run(huggingface, "export", folder / "checkpoint_last.pt", "--output", folder / "huggingface")
    return folder


class Offer(NamedTuple):
    """The path for the file, and a function that reads it there."""

    path: Path
    read: Callable[[], None]


class Offers:
    """A command for every place that accepts a file, each with its own folder."""

    def __init__(self, world: Path, folder: Path):
        self.world, self.folder = world, folder
        self.data, self.dict = world / "data-bin", ("--dict", world / "data-bin" / "dict.txt")
        self.table = "--synonym-table", world / "synonyms.safetensors"
        self.checkpoint = world / "checkpoint_last.pt"
        self.output = folder / "output"

    def copy(self, name: str, inside: str) -> Path:
        """The path of a file in a copy of a good folder, to be overwritten."""
        shutil.copytree(self.world / name, self.folder / name)
        return self.folder / name / inside

    def command(self, path: Path, main: Callable, *words: object, output: str = "--output") -> Offer:
        words = [*words, *([output, self.output] if output else [])]
        return Offer(path, lambda: main([str(word) for word in words]))

    def training(self, path: Path, *flags: object, data: Path | None = None, save_dir: Path | None = None) -> Offer:
        flags = [*HARD_CORRECTION, *self.table, *flags]  # the last one of repeated flags wins
        return Offer(path, prepare_training(data or self.data, save_dir or self.output, *flags))

    def fine_tuning(self, path: Path, kind: str, checkpoint: Path, data: Path, output: Path | None = None) -> Offer:
        words = kind, checkpoint, "--data", data, "--seeds", "1", "--max-update", 1, "--output", output or self.output
        return self.command(path, evaluation, *words, output="")

    def lexical(self, path: Path, checkpoint: Path, *words: object) -> Offer:
        return self.command(path, evaluation, "lexical", checkpoint, "--data", self.data, *words)

    def tokenizer(self, path: Path, main: Callable = binarize, whole_folder: bool = False) -> Offer:
        source = self.world / ("squad.json" if main is squad else "text")
        words = "--train", source, "--valid", source, "--tokenizer", path.parent if whole_folder else path
        return self.command(path, main, *words, output="--destdir")

    def table_of(self, path: Path, *words: object) -> Offer:
        return self.command(path, build_synonym_table, *words)

    def imported(self, path: Path, *generator: object) -> Offer:
        folder = self.world / "huggingface" / "discriminator" if generator else path.parent
        return self.command(path, huggingface, "import", folder, *generator, "--data", self.data)

    def weights_bin(self) -> Offer:
        path = self.copy("huggingface", "discriminator/pytorch_model.bin")
        path.with_name("model.safetensors").unlink()
        return self.imported(path)

    def with_gpt2_encoder(self) -> Offer:
        (self.folder / "encoder.json").write_text(json.dumps(LETTERS))
        return self.tokenizer(self.folder / "vocab.bpe", whole_folder=True)

    def with_vocabulary(self) -> Offer:
        shutil.copy(self.world / "vocab.txt", self.folder)
        return self.tokenizer(self.folder / "tokenizer_config.json", whole_folder=True)

    def of_a_finished_run(self, name: str) -> Offer:
        folder = self.output / "model" / "SST-2" / "seed1"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text("{}")
        path = folder / name
        return self.fine_tuning(path, "glue", f"model={self.checkpoint}", self.world / "glue-bin")


VECTORS = ("--source", "vectors", "--vectors")
TEXT = {"text to binarize", "text to train a tokenizer on", "stop words"}  # places where ASCII is valid text
OFFERS: dict[str, Callable[[Offers], Offer]] = {
    # checkpoints
    "--restore-file": lambda o: o.training(p := o.folder / "a.pt", "--restore-file", p),
    "--finetune-from-model": lambda o: o.training(p := o.folder / "a.safetensors", "--finetune-from-model", p),
    "the last checkpoint": lambda o: o.training(o.folder / "checkpoint_last.pt", save_dir=o.folder),
    "analysis --path": lambda o: o.command(p := o.folder / "a.pt", analysis, o.data, "--path", p, *o.table),
    "evaluation glue": lambda o: o.fine_tuning(p := o.folder / "a.pt", "glue", p, o.world / "glue-bin"),
    "export": lambda o: o.command(p := o.folder / "a.pt", huggingface, "export", p),
    "--source model": lambda o: o.table_of(p := o.folder / "a.pt", *o.dict, "--source", "model", "--path", p),
    # synonym tables and their sources
    "--synonym-table": lambda o: o.training(p := o.folder / "a.safetensors", "--synonym-table", p),
    "--table": lambda o: o.table_of(p := o.folder / "a.safetensors", *o.dict, "--table", p, "--show", "noun1"),
    "--vectors": lambda o: o.table_of(p := o.folder / "glove.txt", *o.dict, *VECTORS, p),
    "--synonyms": lambda o: o.table_of(p := o.folder / "list.txt", *o.dict, "--source", "list", "--synonyms", p),
    "stop words": lambda o: o.table_of(
        p := o.folder / "stop.txt", *o.dict, *VECTORS, o.world / "vectors", "--stop-words", p
    ),
    "build_synonym_table --dict": lambda o: o.table_of(
        p := o.folder / "dict.txt", "--dict", p, *VECTORS, o.world / "vectors"
    ),
    "build_synonym_table --encoder-json": lambda o: o.table_of(
        p := o.folder / "encoder.json",
        *("--dict", o.world / "numbers.txt", "--encoder-json", p),
        *(*VECTORS, o.world / "vectors"),
    ),
    # folders of save_pretrained
    "model.safetensors": lambda o: o.imported(o.copy("huggingface", "discriminator/model.safetensors")),
    "pytorch_model.bin": lambda o: o.weights_bin(),
    "--generator": lambda o: o.imported(
        p := o.copy("huggingface", "generator/model.safetensors"), "--generator", p.parent
    ),
    "config.json": lambda o: o.imported(o.copy("huggingface", "discriminator/config.json")),
    "the tokenizer next to weights": lambda o: o.imported(o.copy("huggingface", "discriminator/tokenizer.json")),
    # tokenizers
    "tokenizer.json": lambda o: o.tokenizer(o.folder / "tokenizer.json"),
    "vocab.txt": lambda o: o.tokenizer(o.folder / "vocab.txt"),
    "SentencePiece": lambda o: o.tokenizer(o.folder / "a.model"),
    "encoder.json": lambda o: o.tokenizer(o.folder / "encoder.json"),
    "vocab.bpe": lambda o: o.with_gpt2_encoder(),
    "tokenizer_config.json": lambda o: o.with_vocabulary(),
    "special_tokens_map.json": lambda o: o.tokenizer(
        o.copy("huggingface", "generator/special_tokens_map.json"), whole_folder=True
    ),
    "a tokenizer of unknown kind": lambda o: o.tokenizer(o.folder / "tokenizer.pkl"),
    "export --data, its tokenizer": lambda o: o.command(
        p := o.copy("data-bin", "tokenizer/vocab.txt"), huggingface, "export", o.checkpoint, "--data", p.parents[1]
    ),
    # text and labeled examples
    "text to binarize": lambda o: o.command(
        p := o.folder / "text",
        binarize,
        *("--train", p, "--valid", o.world / "text", "--tokenizer", o.world / "vocab.txt"),
        output="--destdir",
    ),
    "binarize --dict": lambda o: o.command(
        p := o.folder / "dict.txt",
        binarize,
        *("--train", o.world / "text", "--valid", o.world / "text"),
        *("--tokenizer", o.world / "vocab.txt", "--dict", p),
        output="--destdir",
    ),
    "text to train a tokenizer on": lambda o: o.command(
        p := o.folder / "text", train_tokenizer, "--input", p, "--type", "wordpiece", "--vocab-size", 60
    ),
    "GLUE": lambda o: o.command(
        p := o.copy("glue", "SST-2/dev.tsv"),
        glue,
        *("--glue-dir", p.parents[1], "--task", "all", "--tokenizer", o.world / "vocab.txt"),
        output="--destdir",
    ),
    "SQuAD": lambda o: o.command(
        p := o.folder / "squad.json",
        squad,
        *("--train", o.world / "squad.json", "--valid", p, "--tokenizer", o.world / "vocab.txt"),
        output="--destdir",
    ),
    "squad-score, the data": lambda o: o.command(
        p := o.folder / "a.json", evaluation, "squad-score", p, o.world / "predictions.json", output=""
    ),
    "squad-score, the predictions": lambda o: o.command(
        p := o.folder / "a.json", evaluation, "squad-score", o.world / "squad.json", p, output=""
    ),
    "lexical, a checkpoint": lambda o: o.lexical(p := o.folder / "a.pt", p, "--word-pairs", o.world / "pairs"),
    "--swords": lambda o: o.lexical(p := o.folder / "a.json.gz", o.checkpoint, "--swords", p),
    "--word-pairs": lambda o: o.lexical(p := o.folder / "a.txt", o.checkpoint, "--word-pairs", p),
    "--blimp": lambda o: o.lexical(p := o.folder / "a.zip", o.checkpoint, "--blimp", p),
    # binarized data
    "dict.txt": lambda o: o.training(p := o.copy("data-bin", "dict.txt"), data=p.parent),
    "train.idx": lambda o: o.training(p := o.copy("data-bin", "train.idx"), data=p.parent),
    "train.bin": lambda o: o.training(p := o.copy("data-bin", "train.bin"), data=p.parent),
    "valid.idx": lambda o: o.training(p := o.copy("data-bin", "valid.idx"), data=p.parent),
    "analysis, valid.idx": lambda o: o.command(
        p := o.copy("data-bin", "valid.idx"), analysis, p.parent, "--path", o.checkpoint, *o.table
    ),
    "evaluation glue, train.idx": lambda o: o.fine_tuning(
        p := o.copy("glue-bin", "SST-2/input0/train.idx"), "glue", o.checkpoint, p.parents[2]
    ),
    "evaluation glue, valid.bin": lambda o: o.fine_tuning(
        p := o.copy("glue-bin", "SST-2/label/valid.bin"), "glue", o.checkpoint, p.parents[2]
    ),
    "evaluation squad, train.bin": lambda o: o.fine_tuning(
        p := o.copy("squad-bin", "train.bin"), "squad", o.checkpoint, p.parent
    ),
    "an earlier run's settings": lambda o: o.of_a_finished_run("settings.json"),
}


@pytest.mark.parametrize("place", OFFERS)
def test_no_place_accepts_a_file_that_would_run_code(world, tmp_path, place):
    marker = tmp_path / "marker"
    folder = tmp_path / "files"
    folder.mkdir()
    path, read = OFFERS[place](Offers(world, folder))
    for container in CONTAINERS:
        write(path, container, marker)
        if container == ASCII and place in TEXT:
            with suppress(SystemExit):
                read()
        else:
            with pytest.raises(SystemExit) as stopped:
                read()
            message = stopped.value.code
            assert isinstance(message, str) and message.startswith("error: "), (container, message)
            assert "\n" not in message and str(path) in message, (container, message)
        assert not marker.exists(), container
