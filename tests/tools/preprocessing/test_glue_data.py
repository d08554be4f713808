"""GLUE as rows: truncation, both orders, what fairseq's own task reads, and folders of another tokenizer."""

import numpy as np
import pytest
from fairseq import tasks
from files import contents, refused
from preprocessed import released_dictionary, sentences
from tokenizer_folders import bert_folder

from tn_fairseq.core.configuration import training_config
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.formats.glue_tsv import TASKS, Examples
from tn_fairseq.tools.preprocessing import glue_data
from tn_fairseq.tools.preprocessing.glue_data import binarize_task, truncate

ONE = Examples([["the cat"]], ["1"])


def test_truncation_shortens_the_longer_sentence_token_by_token():
    pairs = np.array([(first, second) for first in range(12) for second in range(12)])
    for room in (2, 7, 8, 30):
        expected = []
        for first, second in pairs.tolist():
            while first + second > room:
                if first > second:
                    first -= 1
                else:
                    second -= 1
            expected.append([first, second])
        assert np.stack(truncate(pairs.T, room), axis=1).tolist() == expected
    assert truncate([np.array([3, 4, 5])], 4)[0].tolist() == [3, 4, 4]


def test_rows_are_truncated_at_the_end_and_counted_in_any_batches(tmp_path, bert, monkeypatch):
    pairs = [["the cat sat on the mat", "the cat", "", "cat"], ["mat", "the cat sat on the dog", "the", "\u200b"]]
    labels = ["entailment", "not_entailment", "not_entailment", "entailment"]
    examples = {"train": Examples(pairs, labels), "valid": Examples([["dog"], ["cat"]], labels[:1])}
    counts = binarize_task(TASKS["RTE"], examples, bert, tmp_path / "out", max_length=8)
    folder, count = tmp_path / "out" / "RTE", counts["train"]
    assert sentences(folder / "input0") == ["the cat sat on </s>", "the cat </s>", "</s>", "cat </s>"]
    assert sentences(folder / "input1") == ["mat </s>", "the cat sat </s>", "the </s>", "</s>"]
    assert (count.examples, count.pieces, count.tokens) == (4, 12, 20)
    assert (count.truncated, count.empty, count.unknown) == (2, 2, 0)
    assert counts["valid"].unknown == 1
    monkeypatch.setattr(glue_data, "BATCH", 3)
    assert binarize_task(TASKS["RTE"], examples, bert, tmp_path / "parts", max_length=8) == counts
    assert contents(tmp_path / "parts") == contents(tmp_path / "out")


def sentence_prediction(folder, *flags):
    """fairseq's own task on a folder."""
    flags = ["--task", "sentence_prediction", "--init-token", 0, "--criterion", "sentence_prediction", *flags]
    return tasks.setup_task(training_config([folder, *flags, "--no-shuffle", "--arch", "bert_tiny"]).task)


def batch_of(task, split):
    """The targets of a split, if it has any, and the model's inputs as text without padding."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    batch = dataset.collater([dataset[index] for index in range(len(dataset))])
    rows = [row[row != task.dictionary.pad()] for row in batch["net_input"]["src_tokens"]]
    targets = batch["target"].flatten().tolist() if "target" in batch else None
    return targets, [" ".join(task.dictionary[index] for index in row) for row in rows]


def test_fairseq_reads_pairs(tmp_path, bert):
    labels = ["entailment", "contradiction", "neutral"]
    examples = Examples([["the cat", "", "on the mat"], ["sat", "the cat sat", "on"]], labels)
    splits = {"train": examples, "valid1": examples, "test": Examples(examples.sentences, None)}
    binarize_task(TASKS["MNLI"], splits, bert, tmp_path)
    assert not list((tmp_path / "MNLI" / "label").glob("test*"))
    task = sentence_prediction(tmp_path / "MNLI", "--num-classes", 3)
    expected = ["<s> the cat </s> sat </s>", "<s> </s> the cat sat </s>", "<s> on the mat </s> on </s>"]
    for split, targets in (("train", [1, 0, 2]), ("valid1", [1, 0, 2]), ("test", None)):
        assert batch_of(task, split) == (targets, expected)
    assert task.dictionary[len(task.dictionary) - 1] == "<mask>"


def test_fairseq_reads_single_sentences_also_without_labels(tmp_path, bert):
    examples = Examples([["the cat", "on the mat"]], ["1", "0"])
    binarize_task(TASKS["CoLA"], {"train": examples}, bert, tmp_path)
    task = sentence_prediction(tmp_path / "CoLA", "--num-classes", 2)
    assert batch_of(task, "train") == ([1, 0], ["<s> the cat </s>", "<s> on the mat </s>"])
    binarize_task(TASKS["CoLA"], {"valid": Examples(examples.sentences, None)}, bert, tmp_path)
    task = sentence_prediction(tmp_path / "CoLA", "--num-classes", 2)  # needs label/dict.txt
    assert batch_of(task, "valid")[0] is None
    assert (tmp_path / "CoLA" / "label" / "dict.txt").read_text() == "0 1\n1 1\n"


def test_fairseq_reads_scores_in_both_orders(tmp_path, bert):
    examples = Examples([["the cat", "on"], ["sat", "the mat"]], ["3.800", "0"])
    counts = binarize_task(TASKS["STS-B"], {"train": examples, "valid": examples}, bert, tmp_path)
    assert (counts["train"].examples, counts["valid"].examples) == (4, 2)
    task = sentence_prediction(tmp_path / "STS-B", "--num-classes", 1, "--regression-target")
    targets, inputs = batch_of(task, "train")
    assert targets == pytest.approx([0.76, 0, 0.76, 0])  # divided by 5
    pairs = ["<s> the cat </s> sat </s>", "<s> on </s> the mat </s>"]
    assert inputs == [*pairs, "<s> sat </s> the cat </s>", "<s> the mat </s> on </s>"]
    assert batch_of(task, "valid")[1] == pairs


@pytest.mark.parametrize(("task", "shortest"), [("SST-2", 3), ("RTE", 5)])
def test_a_length_without_room_is_refused(tmp_path, bert, task, shortest):
    columns, out = len(TASKS[task].sentences), tmp_path / "out"
    splits = {"train": Examples([["the cat"]] * columns, TASKS[task].labels[:1])}
    message = refused(binarize_task, TASKS[task], splits, bert, out, max_length=shortest - 1)
    assert message.startswith(f"--max-length {shortest - 1}: ")
    binarize_task(TASKS[task], splits, bert, out, max_length=shortest)
    for number in range(columns):
        assert [len(row.split()) for row in sentences(out / task / f"input{number}")] == [2]


def test_an_earlier_folder_is_replaced_completely_unless_it_is_of_another_tokenizer(tmp_path, bert):
    out = tmp_path / "out"
    for splits in ({"train": ONE, "test": ONE}, {"train": ONE}):
        binarize_task(TASKS["SST-2"], splits, bert, out)
    before = contents(out)
    names = {"dict.txt", "train.bin", "train.idx"}
    assert {path.parent.name for path in out.glob("*/*")} == {"SST-2", "tokenizer"}
    assert {path.name for path in (out / "SST-2" / "input0").iterdir()} == names
    assert contents(out / "tokenizer") == bert.files
    cased = load_tokenizer(bert_folder(tmp_path / "cased", do_lower_case=False))
    released = released_dictionary(tmp_path / "released.txt", bert)
    for tokenizer, dict_path in ((cased, None), (bert, released)):
        message = refused(binarize_task, TASKS["CoLA"], {"train": ONE}, tokenizer, out, 128, dict_path)
        assert "was made with another tokenizer or --dict" in message
    assert contents(out) == before
