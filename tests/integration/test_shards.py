"""Text split into shards: fairseq-train reads one per epoch, and resumes exactly in the middle of the second."""

import re

import pytest
from helpers import FAMILIES, WORDS, fairseq_train, random_sentences, run_command, write_data_bin
from interruption import assert_same_end
from tokenizer_folders import bert_folder

from tn_fairseq.core.errors import InputError
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
    flags += [f"--tokenizer={folder / 'tokenizer'}", f"--destdir={folder / 'bin'}", "--shards", 2]
    run = run_command("tn-fairseq", "data", "binarize", *flags)
    assert run.code == 0 and "wrote 2 shards of " in run.stdout, run.output
    return run.stdout.splitlines()[-1]


def read_from(run) -> list[str]:
    """The shards that a run trained on, in order."""
    assert run.code == 0, run.output
    return re.findall(r"train: [\d,]+ sequences .* from \S+/(\w+)/train, ", run.output, flags=re.MULTILINE)


def updates_by_epoch(run) -> dict[int, list[int]]:
    updates: dict[int, list[int]] = {}
    for record in run.records("train_inner"):
        updates.setdefault(int(record["epoch"]), []).append(int(record["num_updates"]))
    return updates


def test_training_goes_from_shard_to_shard_and_resumes_inside_the_second(shards, tmp_path):
    def train(name: str, updates: int):
        return fairseq_train(shards, tmp_path / name, *FLAGS, "--max-update", updates, "--total-num-update", 100)

    whole = train("whole", 22)
    epochs = updates_by_epoch(whole)
    assert read_from(whole) == ["shard0", "shard1", "shard0"] and sorted(epochs) == [1, 2, 3]
    inside = epochs[2][len(epochs[2]) // 2]
    assert read_from(train("parts", inside)) == ["shard0", "shard1"]
    rest = train("parts", 22)
    assert read_from(rest) == ["shard1", "shard0"]
    assert updates_by_epoch(rest)[2][0] == inside + 1

    assert_same_end(tmp_path / "whole", tmp_path / "parts")
    logged = {record["num_updates"]: record["loss"] for record in whole.records("train_inner")}
    assert {record["num_updates"]: record["loss"] for record in rest.records("train_inner")}.items() <= logged.items()


def test_missing_shards_and_shards_of_another_dictionary_are_refused(shards, tmp_path):
    """At the start, not when the epoch of the shard starts."""
    first = shards.split(":")[0]
    foreign = write_data_bin(tmp_path / "foreign", WORDS[::-1])
    for other, message in (
        (f"{first}/none", f"there is no {first}/none/train.idx; "),
        (foreign, f"{foreign}/dict.txt: not the dictionary of {first}; "),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            ElectraTask.load_dict(ElectraTaskConfig(data=f"{first}:{other}", train_subset="train"))
    with pytest.raises(InputError, match=f"there is no {re.escape(first)}/mine.idx; "):
        ElectraTask.load_dict(ElectraTaskConfig(data=f"{first}:{first}", train_subset="mine"))
