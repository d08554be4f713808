"""Text split into shards: fairseq-train reads one per epoch, and resumes exactly in the middle of the second."""

import io
import re
from contextlib import redirect_stdout

import pytest
from files import refused
from helpers import FAMILIES, WORDS, random_sentences, train_here, write_data_bin
from interruption import assert_same_end
from tokenizer_folders import bert_folder

from tn_fairseq.__main__ import main
from tn_fairseq.tasks.electra import ElectraTask, ElectraTaskConfig

FLAGS = [*FAMILIES["electra"].split(), "--criterion", "electra"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> str:
    """Two shards, as the argument for fairseq-train that binarize prints."""
    folder = tmp_path_factory.mktemp("shards")
    text = "\n".join(" ".join(words) for words in random_sentences(400, seed=1))
    (folder / "train.txt").write_text(text)
    (folder / "valid.txt").write_text(text[:2000])
    bert_folder(folder / "tokenizer", WORDS)
    flags = [f"--{name}={folder / name}.txt" for name in ("train", "valid")]
    flags += [f"--tokenizer={folder / 'tokenizer'}", f"--destdir={folder / 'bin'}", "--shards", "2"]
    with redirect_stdout(io.StringIO()) as printed:
        main(["data", "binarize", *flags])
    assert "wrote 2 shards of " in printed.getvalue()
    return printed.getvalue().splitlines()[-1]


def test_training_goes_from_shard_to_shard_and_resumes_inside_the_second(shards, tmp_path, caplog):
    caplog.set_level("INFO")

    def train(name: str, updates: int) -> tuple[list[str], list[tuple]]:
        """The shards that were read, in order, and the epoch, update and loss of each record."""
        caplog.clear()
        words = ["--max-update", updates, "--total-num-update", 100]
        records = train_here(shards, tmp_path / name, *FLAGS, *words)["train_inner"]
        read = re.findall(r"train: [\d,]+ sequences .* from \S+/(\w+)/train, ", caplog.text)
        return read, [(int(one["epoch"]), int(one["num_updates"]), one["loss"]) for one in records]

    read, logged = train("whole", 22)
    assert read == ["shard0", "shard1", "shard0"] and {epoch for epoch, *_ in logged} == {1, 2, 3}
    of_second = [update for epoch, update, _ in logged if epoch == 2]
    inside = of_second[len(of_second) // 2]
    assert train("parts", inside)[0] == ["shard0", "shard1"]
    assert train("parts", 22) == (["shard1", "shard0"], logged[inside:])
    assert_same_end(tmp_path / "whole", tmp_path / "parts")


def test_missing_shards_and_shards_of_another_dictionary_are_refused(shards, tmp_path):
    """At the start, not when the epoch of the shard starts."""
    first = shards.split(":")[0]
    foreign = write_data_bin(tmp_path / "foreign", WORDS[::-1])
    for other, subset, named in (
        (f"{first}/none", "train", f"{first}/none/train.idx"),
        (foreign, "train", f"{foreign}/dict.txt"),
        (first, "mine", f"{first}/mine.idx"),
    ):
        assert named in refused(ElectraTask.load_dict, ElectraTaskConfig(data=f"{first}:{other}", train_subset=subset))
