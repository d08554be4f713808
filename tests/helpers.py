"""A toy language for the tests, with words, synonyms and a corpus, and functions that run fairseq."""

import gc
import importlib.util
import json
import logging
import multiprocessing
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from fairseq import tasks
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import Dictionary, indexed_dataset
from fork_server import VARIABLES, Served, start
from omegaconf import DictConfig, OmegaConf
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

import tn_fairseq
from tn_fairseq.core.configuration import training_config
from tn_fairseq.core.synonym_table import PADDING, save_synonym_table
from tn_fairseq.tools.preprocessing.text_files import ZSTD_MODULE

zstd = importlib.import_module(ZSTD_MODULE)

PROGRESS = "fairseq.logging.progress_bar"  # the logger of records
PLUGIN = Path(tn_fairseq.__file__).parent
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WORDS = [f"{kind}{number}" for kind in ("noun", "verb", "adjective") for number in range(40)]
FAMILIES = {
    "electra": "--task electra --arch electra_tiny --generator-embed-dim 64 --generator-ffn-embed-dim 256",
    "bert": "--task masked_lm --arch bert_tiny",
    "roberta": "--task masked_lm --arch roberta_base --encoder-layers 2 --encoder-embed-dim 32 "
    "--encoder-ffn-embed-dim 64 --encoder-attention-heads 2",
}
# without replaced token detection
MASKED_LM_ONLY = {"electra": ["--discriminator-loss-weight", 0], "bert": [], "roberta": []}
# every objective; mlm is an alias
CRITERIA = [name for name, kind in CRITERION_REGISTRY.items() if hasattr(kind, "kind") and name != "mlm"]
PAPER = ("electra", "mlm_hard_correction", "mlm_soft_reg", "mlm_sent_kl")
# the objectives that are not the paper's run only with ELECTRA, to save time
RUNS = [(family, name) for family in FAMILIES for name in CRITERIA if name in PAPER or family == "electra"]
# every objective and every family once, if their combination does not matter
FEWER_RUNS = [("bert", "electra"), ("roberta", "mlm_soft_reg")]
FEWER_RUNS += [("electra", name) for name in CRITERIA if name not in dict(map(reversed, FEWER_RUNS))]


# sentences of real words, some of which have synonyms
SUBJECTS = ("the main road", "a large house", "an old man", "every good student", "the primary function", "a big dog")
VERBS = ("begins in", "leads to", "goes to", "stays in", "comes from", "ends in")
OBJECTS = ("the city", "a small river", "the main street", "a great house", "the old town", "a little shop")


def commands_of(page: str) -> list[list[str]]:
    """The words of each command in the bash blocks of a page."""
    blocks = "".join(re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL))
    return [words for line in blocks.replace("\\\n", " ").splitlines() if (words := shlex.split(line, comments=True))]


def synonyms_of(word: str) -> list[str]:
    """Ten words at a time are synonyms of each other: noun0 to noun9, noun10 to noun19, and so on."""
    kind, number = word.rstrip("0123456789"), int(word.lstrip("abcdefghijklmnopqrstuvwxyz"))
    first = number // 10 * 10
    return [other for other in (f"{kind}{member}" for member in range(first, first + 10)) if other != word]


def random_sentences(count: int, seed: int) -> list[list[str]]:
    """Sentences whose words follow each other in a fixed order, so that there is something to learn."""
    rng = random.Random(seed)
    sentences = []
    for number in range(count):
        start = rng.randrange(len(WORDS))
        sentences.append([WORDS[(start + 7 * step) % len(WORDS)] for step in range(rng.randint(4, 12))])
        if number % 8 == 7:
            sentences.append([])
    return sentences


def save_random_model(path: Path, cfg: DictConfig, seed: int, **more: object) -> Path:
    """Save a new model as fairseq-train does, with large random parameters."""
    torch.manual_seed(seed)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    content = {"args": None, "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({**content, "model": model.state_dict(), **more}, path)
    return path


def write_split(folder: Path, split: str, dictionary: Dictionary, sentences: list[list[str]]) -> None:
    """Write one split as fairseq-preprocess does; an empty sentence ends a document."""
    builder = indexed_dataset.make_builder(str(folder / f"{split}.bin"), "mmap", vocab_size=len(dictionary))
    for words in sentences:
        builder.add_item(dictionary.encode_line(" ".join(words), add_if_not_exist=False))
    builder.finalize(str(folder / f"{split}.idx"))


def write_data_bin(folder: Path, words: list[str] = WORDS, sentences: int = 400) -> Path:
    """Write dict.txt, train and valid in the toy language."""
    folder.mkdir(exist_ok=True)
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words))
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    write_split(folder, "train", dictionary, random_sentences(sentences, seed=1))
    write_split(folder, "valid", dictionary, random_sentences(40, seed=2))
    return folder


def write_squad(path: Path, rows: Iterable[tuple[str, str, str]]) -> Path:
    """Write SQuAD 1.1 with a paragraph for each context, question and answer; the ids are q0, q1, and so on."""
    paragraphs = []
    for number, (context, question, answer) in enumerate(rows):
        answers = [{"text": answer, "answer_start": context.index(answer)}]
        paragraphs.append({"context": context, "qas": [{"id": f"q{number}", "question": question, "answers": answers}]})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    return path


def write_tsv(path: Path, rows: Iterable[Iterable[object]]) -> Path:
    """Write a file of GLUE."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


def write_sources(folder: Path) -> Path:
    """Write a user's input files: a vocabulary, text, vectors, GLUE, and SQuAD with predictions."""
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    sentences = [" ".join(words) for words in random_sentences(60, seed=1) if words]
    (folder / "text").write_text("\n".join(sentences) + "\n")
    (folder / "vectors").write_text("".join(f"{word} {n % 7 - 2.5} {n % 5}\n" for n, word in enumerate(WORDS)))
    rows = [("sentence", "label"), *((sentence, n % 2) for n, sentence in enumerate(sentences[:16]))]
    for split in ("train", "dev"):
        write_tsv(folder / "glue" / "SST-2" / f"{split}.tsv", rows)
    write_squad(folder / "squad.json", [(sentences[0], "noun1?", sentences[0].split()[0])])
    (folder / "predictions.json").write_text('{"q0": "noun1"}')
    return folder


def write_table(path: Path, dictionary: Dictionary, rows: dict[str, list[str]]) -> Path:
    """Write a synonym table with the given rows; all other words have no synonyms."""
    columns = max(map(len, rows.values()), default=1)
    table = torch.full((len(dictionary), columns), PADDING, dtype=torch.int32)
    for word, synonyms in rows.items():
        ids = [dictionary.index(synonym) for synonym in synonyms]
        table[dictionary.index(word), : len(ids)] = torch.tensor(ids, dtype=torch.int32)
    save_synonym_table(path, table, dictionary, {"source": "test"})
    return path


def write_programs(folder: Path, **programs: str) -> Path:
    """Write bash scripts, which run by their names if the folder is in the PATH; an underscore becomes a dash."""
    folder.mkdir(exist_ok=True)
    for name, program in programs.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/bash\n{program}\n")
        path.chmod(0o755)
    return folder


def first_batch(task, size: int = 8) -> dict:
    """The first batch of the training split."""
    task.load_dataset("train")
    dataset = task.dataset("train")
    return dataset.collater([dataset[index] for index in range(size)])


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


class Run:
    """The result of a command."""

    def __init__(self, process: subprocess.CompletedProcess, served: bool = False):
        self.served = served  # whether the fork server ran it
        self.code = process.returncode
        self.stdout, self.stderr = process.stdout, process.stderr
        self.output = self.stdout + self.stderr

    def records(self, name: str) -> list[dict]:
        """The JSON records of one kind of fairseq's log lines: train_inner, train or valid."""
        marker = f" | {name} | {{"
        lines = (line for line in self.output.splitlines() if marker in line)
        return [json.loads("{" + line.split(marker, 1)[1]) for line in lines]

    def error(self) -> str:
        """The one-line error of a refused command; fails if there is no such line or anything after it."""
        assert self.code != 0, self.output
        assert "Traceback" not in self.output, self.output
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1 and self.stderr.rstrip().endswith(lines[0]), self.output
        return lines[0]


def run_command(*command: object, cwd: Path | None = None, fresh: bool = False) -> Run:
    """Run a command of this environment as a user would, on one thread; forked from a server unless ``fresh``."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = start_command(*command, cwd=cwd, stdout=stdout, stderr=stderr, fresh=fresh)
        code = process.wait()
        for file in (stdout, stderr):
            file.seek(0)
        result = subprocess.CompletedProcess(command, code, stdout.read(), stderr.read())
        return Run(result, served=isinstance(process, Served))


def start_command(*command: object, **options) -> subprocess.Popen | Served:
    """Start a command of this environment as a user would, on one thread; with ``fork_server.start``'s options."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **VARIABLES, "PATH": path}
    return start([str(word) for word in command], env=environment, **options)


def training_flags(data: object, save_dir: Path) -> list[object]:
    """The flags that all test runs share."""
    return [
        *[data, "--user-dir", PLUGIN, "--save-dir", save_dir, "--cpu"],
        *["--optimizer", "electra_adamw", "--lr", 1e-3, "--lr-scheduler", "polynomial_decay", "--warmup-updates", 2],
        *["--total-num-update", 20, "--max-update", 6, "--batch-size", 8, "--tokens-per-sample", 32, "--clip-norm", 1],
        *["--log-format", "json", "--log-interval", 1, "--no-epoch-checkpoints"],
    ]


def prepare_training(data: object, save_dir: object, *flags: object) -> Callable[[], None]:
    """Parse fairseq-train's flags and return a function that trains in this process, without loader processes, because
    forks of this process, which is large, are slow.
    """
    words = training_flags(data, save_dir)
    words[1:5] = [f"--save-dir={save_dir}"]
    cfg = training_config([*words, "--distributed-world-size", 1, "--num-workers", 0, *flags])
    from fairseq_cli.train import main  # sets up logging, unless pytest did

    def run() -> None:
        try:
            main(cfg)
        finally:
            end_loaders()

    return run


def train_here(data: object, save_dir: object, *flags: object) -> dict[str, list[dict]]:
    """Train in this process; returns the records that are logged of each kind: train_inner, train and valid."""
    run, logger, handler = prepare_training(data, save_dir, *flags), logging.getLogger(PROGRESS), logging.Handler()
    found: dict[str, list[dict]] = {}
    handler.emit = lambda record: found.setdefault(record.name, []).append(json.loads(record.getMessage()))
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        run()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    return found


def refused_training(data: object, save_dir: object, *flags: object) -> str:
    """The one-line error of a training that is refused in this process."""
    with pytest.raises(SystemExit, match="^error: [^\n]+$") as caught:
        prepare_training(data, save_dir, *flags)()
    return str(caught.value)


def end_loaders() -> None:
    """End the loader processes of epochs that were not finished.

    Later, the garbage collector would wait for each of them for five seconds. They cannot be killed: torch hangs if one
    of them holds the lock of an event then.
    """
    if multiprocessing.active_children():
        for iterator in [thing for thing in gc.get_objects() if type(thing) is _MultiProcessingDataLoaderIter]:
            iterator._shutdown_workers()


def load_script(path: str) -> ModuleType:
    """Load a script of the repository as a module, by its path in the repository.

    It can import its neighbors. They are loaded for this script only, because neighbors of other scripts have the same
    names (report.py).
    """
    script = PLUGIN.parent / path
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    neighbors = {neighbor.stem for neighbor in script.parent.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in neighbors & set(sys.modules)}
    sys.path.insert(0, str(script.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(script.parent))
        for name in neighbors:
            sys.modules.pop(name, None)
        sys.modules.update(others)
    return module
