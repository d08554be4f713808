"""GLUE: the official files of each task and their quirks; fairseq's own task reads the output."""

import sys
import types

import numpy as np
import pytest
from fairseq import tasks
from fairseq.data import Dictionary, indexed_dataset
from tokenizer_folders import REAL_DATA, bert_folder, sentencepiece_folder, with_real_data

from tn_fairseq.configuration import training_config
from tn_fairseq.errors import InputError
from tn_fairseq.files import STAGING
from tn_fairseq.formats.glue import TASKS, Examples, examples_from_hub, read_examples, read_task
from tn_fairseq.preprocessing.glue_data import binarize_task, in_both_orders, truncate
from tn_fairseq.tokenizers import load_tokenizer

MNLI_COLUMNS = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
    "sentence1\tsentence2"
)
MNLI_ROW = "0\t31193\t31193n\tslate\t( a )\t( b )\t(ROOT a)\t(ROOT b)\t"
STSB_COLUMNS = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
STSB_ROW = "0\tmain-news\theadlines\t2015\t7\tnone\tnone\t"
# task, split, the file's text, its sentences and its labels
FILES = [
    ("CoLA", "train", "gj04\t1\t\tThe cat sat.\nks08\t0\t*\tSat cat the.\n", [["The cat sat.", "Sat cat the."]], "10"),
    ("CoLA", "test", "index\tsentence\n0\tThe cat sat.\n", [["The cat sat."]], None),
    ("SST-2", "valid", 'sentence\tlabel\na "cat \t0\n\t1\n', [['a "cat ', ""]], "01"),
    ("SST-2", "test", "index\tsentence\n0\tthe cat\n", [["the cat"]], None),
    (
        "MRPC",
        "train",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
        '1\t7\t8\t"The cat sat.\tHe said "sat".\r\n0\t9\t9\tA\tB"\r\n',
        [['"The cat sat.', "A"], ['He said "sat".', 'B"']],
        "10",
    ),
    ("MRPC", "test", "\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tA\t'B\n", [["A"], ["'B"]], None),
    (
        "STS-B",
        "valid",
        f"{STSB_COLUMNS}\tscore\n{STSB_ROW}A\tB\t3.800\n{STSB_ROW}C\tD\t0\n{STSB_ROW}E\tF\t4.199999999999999",
        [["A", "C", "E"], ["B", "D", "F"]],
        ["3.800", "0", "4.199999999999999"],
    ),
    ("STS-B", "test", f"{STSB_COLUMNS}\n{STSB_ROW}A\tB\n", [["A"], ["B"]], None),
    (
        "QQP",
        "train",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        '0\t1\t2\tIs "it?\tIt is?\t1\n1\t3\t4\tIs\u2028it?\tIt\ris?\t0\n',
        [['Is "it?', "Is\u2028it?"], ["It is?", "It\ris?"]],
        "10",
    ),
    ("QQP", "test", "id\tquestion1\tquestion2\n0\tIs it?\tIt is?\n", [["Is it?"], ["It is?"]], None),
    (
        "MNLI",
        "train",
        f"{MNLI_COLUMNS}\tlabel1\tgold_label\n{MNLI_ROW}A\tB\tneutral\tneutral\n",
        [["A"], ["B"]],
        ["neutral"],
    ),
    (
        "MNLI",
        "valid1",
        f"{MNLI_COLUMNS}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{MNLI_ROW}A\tB\tneutral\tneutral\tentailment\tentailment\tentailment\tentailment\n",
        [["A"], ["B"]],
        ["entailment"],
    ),
    ("MNLI", "test1", f"{MNLI_COLUMNS}\n{MNLI_ROW}A\tB\n", [["A"], ["B"]], None),
    (
        "QNLI",
        "train",
        "index\tquestion\tsentence\tlabel\n0\tWho sat?\tThe cat.\tentailment\n1\tWho?\tSat.\tnot_entailment\n",
        [["Who sat?", "Who?"], ["The cat.", "Sat."]],
        ["entailment", "not_entailment"],
    ),
    ("QNLI", "test", "index\tquestion\tsentence\n0\tWho sat?\tThe cat.\n", [["Who sat?"], ["The cat."]], None),
    ("RTE", "valid", "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentailment\n", [["A"], ["B"]], ["entailment"]),
    ("RTE", "test", "index\tsentence1\tsentence2\n0\tA\tB\n", [["A"], ["B"]], None),
]
SST2 = "sentence\tlabel\n"
RTE = "index\tsentence1\tsentence2\tlabel\n"


@pytest.fixture
def bert(tmp_path):
    return load_tokenizer(bert_folder(tmp_path / "bert"))


def write(folder, task, split, text):
    path = folder / TASKS[task].splits[split]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def words(prefix, dictionary) -> list[str]:
    """The rows of a .bin and its .idx as text."""
    rows = indexed_dataset.make_dataset(str(prefix), "mmap")
    return [" ".join(dictionary[index] for index in row.tolist()) for row in rows]


def lengths(prefix) -> np.ndarray:
    """The numbers of tokens of a .bin's rows."""
    rows = indexed_dataset.make_dataset(str(prefix), "mmap")
    return rows.sizes.copy()  # the dataset's memory map is closed with it


def contents(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_tasks_and_the_metrics_that_the_paper_reports():
    assert list(TASKS) == ["CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE"]
    assert {name: task.metrics[0] for name, task in TASKS.items() if task.metrics[0] != "accuracy"} == {
        "CoLA": "matthews",
        "STS-B": "spearman",
    }
    assert {name for name, task in TASKS.items() if task.both_orders} == {"MRPC", "STS-B"}
    assert {name for name, task in TASKS.items() if task.epochs == 10} == {"STS-B", "RTE"}
    assert {task.epochs for task in TASKS.values()} == {3, 10}


@pytest.mark.parametrize(
    ("task", "split", "text", "sentences", "labels"), FILES, ids=[f"{task}-{split}" for task, split, *_ in FILES]
)
def test_official_files(tmp_path, task, split, text, sentences, labels):
    write(tmp_path, task, split, text)
    labels = None if labels is None else list(labels)
    assert read_examples(tmp_path, TASKS[task], split) == Examples(sentences, labels)


def test_line_ends_do_not_matter(tmp_path):
    for task, split, text, sentences, _ in FILES:
        write(tmp_path, task, split, text.replace("\r\n", "\n").removesuffix("\n").replace("\n", "\r\n"))
        assert read_examples(tmp_path, TASKS[task], split).sentences == sentences


def test_broken_rows_of_qqp_are_counted(tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    text = header + "0\t1\t2\tA\tB\t1\n1\t3\t4\tfirst half\nsecond half\tD\t0\n2\t5\t6\tE\tF\t0\n"
    write(tmp_path, "QQP", "train", text)
    assert read_examples(tmp_path, TASKS["QQP"], "train") == Examples([["A", "E"], ["B", "F"]], ["1", "0"], 2)
    path = write(tmp_path, "QQP", "test", "id\tquestion1\tquestion2\n0\tA\tB\n1\tC\n")
    with pytest.raises(InputError, match=f"{path}, line 3: 2 columns, not 3"):  # predictions would be shifted
        read_examples(tmp_path, TASKS["QQP"], "test")


@pytest.mark.parametrize(
    ("task", "text", "reason"),
    [
        ("SST-2", None, "train.tsv: No such file"),
        ("SST-2", b"", "train.tsv: empty"),
        ("SST-2", SST2, "train.tsv: contains no examples"),
        ("SST-2", "index\tsentence\n0\tthe cat\n", "train.tsv, line 1: no column 'label'"),
        ("SST-2", SST2 + "the cat\t1\nthe\n", "train.tsv, line 3: 1 columns, not 2"),
        ("SST-2", SST2 + "the\tcat\t1\n", "train.tsv, line 2: 3 columns, not 2"),
        ("SST-2", SST2 + "the cat\t1\nthe mat\t2\n", "train.tsv, line 3: the label must be one of 0, 1, not '2'"),
        ("SST-2", (SST2 + "caf\u00e9\t1\n").encode("latin-1"), "train.tsv, line 2: not UTF-8"),
        ("SST-2", b"\xef\xbb\xbf" + SST2.encode() + b"the\t1\n\xff\t1\n", "train.tsv, line 3: not UTF-8"),
        ("CoLA", "source\tlabel\tstar\tsentence\n", "train.tsv, line 1: the label must be one of 0, 1, not 'label'"),
        (
            "RTE",
            RTE + "0\tA\tB\tneutral\n",
            "line 2: the label must be one of entailment, not_entailment, not 'neutral'",
        ),
        *(
            (
                "STS-B",
                f"{STSB_COLUMNS}\tscore\n{STSB_ROW}A\tB\t{score}\n",
                f"line 2: the score must be a number from 0 to 5, not '{score}'",
            )
            for score in ("", "high", "-0.1", "5.001", "nan", "inf")
        ),
    ],
)
def test_invalid_files_are_reported_with_the_line(tmp_path, task, text, reason):
    if text is not None:
        write(tmp_path, task, "train", text)
    with pytest.raises(InputError) as error:
        read_examples(tmp_path, TASKS[task], "train")
    assert f"{tmp_path}/" in str(error.value) and reason in str(error.value)
    assert "\n" not in str(error.value)


def test_only_test_splits_may_be_missing(tmp_path):
    mnli = TASKS["MNLI"]
    for split in ("train", "valid", "valid1"):
        with pytest.raises(InputError, match=mnli.splits[split]):
            read_task(tmp_path, mnli)
        write(tmp_path, "MNLI", split, f"{MNLI_COLUMNS}\tgold_label\n{MNLI_ROW}A\tB\tneutral\n")
    assert list(read_task(tmp_path, mnli)) == ["train", "valid", "valid1"]
    write(tmp_path, "MNLI", "test1", f"{MNLI_COLUMNS}\n{MNLI_ROW}A\tB\n")
    assert list(read_task(tmp_path, mnli)) == ["train", "valid", "valid1", "test1"]


class FakeDataset(list):
    """The parts of a datasets.Dataset that we use: rows as dictionaries, and features."""

    def __init__(self, rows, names=None):
        super().__init__(rows)
        self.features = dict.fromkeys(rows[0], None)
        self.features["label"] = types.SimpleNamespace(names=names) if names else types.SimpleNamespace()


@pytest.fixture
def hub(monkeypatch):
    """Serve a dataset, or raise an error, instead of the Hub; returns the list of requests."""

    def serve(dataset):
        asked = []

        def load_dataset(path, name, split):
            asked.append((path, name, split))
            if isinstance(dataset, Exception):
                raise dataset
            return dataset

        monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
        return asked

    return serve


def test_labels_of_the_hub_are_mapped_by_name(hub):
    rows = [{"premise": "A", "hypothesis": "B", "label": label, "idx": 0} for label in (0, 1, 2)]
    asked = hub(FakeDataset(rows, ["entailment", "neutral", "contradiction"]))
    found = examples_from_hub(TASKS["MNLI"], "valid1")
    assert found == Examples([["A"] * 3, ["B"] * 3], ["entailment", "neutral", "contradiction"])
    assert asked == [("nyu-mll/glue", "mnli", "validation_mismatched")]


@pytest.mark.parametrize(
    ("task", "config", "columns", "names", "expected"),
    [
        ("CoLA", "cola", ["sentence"], ["unacceptable", "acceptable"], ["0", "1"]),
        ("SST-2", "sst2", ["sentence"], ["positive", "negative"], ["1", "0"]),
        ("MRPC", "mrpc", ["sentence1", "sentence2"], ["not_equivalent", "equivalent"], ["0", "1"]),
        ("QQP", "qqp", ["question1", "question2"], ["not_duplicate", "duplicate"], ["0", "1"]),
        ("QNLI", "qnli", ["question", "sentence"], ["entailment", "not_entailment"], ["entailment", "not_entailment"]),
        ("RTE", "rte", ["sentence1", "sentence2"], ["not_entailment", "entailment"], ["not_entailment", "entailment"]),
    ],
)
def test_each_task_of_the_hub(hub, task, config, columns, names, expected):
    rows = [dict.fromkeys(columns, f"text {label}") | {"label": label} for label in (0, 1)]
    asked = hub(FakeDataset(rows, names))
    found = examples_from_hub(TASKS[task], "train")
    assert found == Examples([["text 0", "text 1"]] * len(columns), expected)
    assert asked == [("nyu-mll/glue", config, "train")]


def test_scores_and_tests_of_the_hub(hub):
    asked = hub(FakeDataset([{"sentence1": "A", "sentence2": "B", "label": 3.5}]))
    assert examples_from_hub(TASKS["STS-B"], "valid") == Examples([["A"], ["B"]], ["3.5"])
    hub(FakeDataset([{"sentence": "A", "label": -1}], ["unacceptable", "acceptable"]))
    assert examples_from_hub(TASKS["CoLA"], "test") == Examples([["A"]], None)
    assert asked == [("nyu-mll/glue", "stsb", "validation")]


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (
            FakeDataset([{"sentence": "A", "label": -1}], ["unacceptable", "acceptable"]),
            "example 0: the label must be one of 0, 1, not '-1'",
        ),
        (FakeDataset([{"sentence": "A", "label": 0}], ["acceptable", "bad"]), "the labels are .'acceptable', 'bad'"),
        (FakeDataset([{"text": "A", "label": 0}], ["unacceptable", "acceptable"]), "no column 'sentence'"),
        (ConnectionError("offline\nmore"), "cola, train: offline; try again, or use local files"),
    ],
)
def test_invalid_data_of_the_hub_is_refused(hub, dataset, reason):
    hub(dataset)
    with pytest.raises(InputError, match=f"nyu-mll/glue, .*{reason}"):
        examples_from_hub(TASKS["CoLA"], "train")


def test_the_hub_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'tn_fairseq\[hub\]'"):
        examples_from_hub(TASKS["CoLA"], "train")


def test_both_orders():
    examples = Examples([["a", "b"], ["x", "y"]], ["1", "0"], broken_rows=3)
    expected = Examples([["a", "b", "x", "y"], ["x", "y", "a", "b"]], ["1", "0", "1", "0"], broken_rows=3)
    assert in_both_orders(examples) == expected


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
            expected.append((first, second))
        assert np.stack(truncate(pairs.T, room), axis=1).tolist() == [list(pair) for pair in expected]
    assert truncate([np.array([3, 4, 5])], 4)[0].tolist() == [3, 4, 4]


def test_rows_are_truncated_at_the_end_and_counted(tmp_path, bert):
    rte = TASKS["RTE"]
    sentences = [["the cat sat on the mat", "the cat", "", "cat"], ["mat", "the cat sat on the mat", "the", "\u200b"]]
    labels = ["entailment", "not_entailment", "not_entailment", "entailment"]
    counts = binarize_task(rte, {"train": Examples(sentences, labels)}, bert, tmp_path / "out", max_length=8)["train"]
    folder = tmp_path / "out" / "RTE"
    dictionary = Dictionary.load(str(folder / "input0" / "dict.txt"))
    assert words(folder / "input0" / "train", dictionary) == ["the cat sat on </s>", "the cat </s>", "</s>", "cat </s>"]
    assert words(folder / "input1" / "train", dictionary) == ["mat </s>", "the cat sat </s>", "the </s>", "</s>"]
    assert (counts.examples, counts.pieces, counts.tokens) == (4, 12, 20)
    assert (counts.truncated, counts.empty, counts.unknown) == (2, 2, 0)


def test_unknown_pieces_are_counted(tmp_path, bert):
    examples = Examples([["the dog", "cat"]], ["1", "0"])
    assert binarize_task(TASKS["SST-2"], {"train": examples}, bert, tmp_path / "out")["train"].unknown == 1


def test_output_does_not_depend_on_the_batch_size(tmp_path, monkeypatch):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path / "tokenizer"))
    lines = ["The cat sat.", "", "on the mat", "It's 汉字!", "a  b"]
    splits = {"train": Examples([lines, lines[::-1]], ["0", "1", "1", "0", "1"])}
    counts = binarize_task(TASKS["MRPC"], splits, tokenizer, tmp_path / "whole", max_length=9)
    monkeypatch.setattr("tn_fairseq.preprocessing.glue_data.BATCH", 2)
    assert binarize_task(TASKS["MRPC"], splits, tokenizer, tmp_path / "parts", max_length=9) == counts
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def sentence_prediction(folder, *flags):
    """fairseq's own task on a folder."""
    flags = ["--task", "sentence_prediction", "--init-token", 0, "--criterion", "sentence_prediction", *flags]
    return tasks.setup_task(training_config([folder, *flags, "--no-shuffle", "--arch", "bert_tiny"]).task)


def batch_of(task, split):
    """All examples of a split as one batch, and the model's inputs as text without padding."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    batch = dataset.collater([dataset[index] for index in range(len(dataset))])
    rows = [row[row != task.dictionary.pad()] for row in batch["net_input"]["src_tokens"]]
    return batch, [" ".join(task.dictionary[index] for index in row) for row in rows]


def test_fairseq_reads_pairs(tmp_path, bert):
    labels = ["entailment", "contradiction", "neutral"]
    examples = Examples([["the cat", "", "on the mat"], ["sat", "the cat sat", "on"]], labels)
    splits = {"train": examples, "valid1": examples, "test": Examples(examples.sentences, None)}
    binarize_task(TASKS["MNLI"], splits, bert, tmp_path)
    assert not list((tmp_path / "MNLI" / "label").glob("test*"))
    task = sentence_prediction(tmp_path / "MNLI", "--num-classes", 3)
    expected = ["<s> the cat </s> sat </s>", "<s> </s> the cat sat </s>", "<s> on the mat </s> on </s>"]
    for split in splits:
        batch, inputs = batch_of(task, split)
        assert inputs == expected
        if split == "test":
            assert "target" not in batch
        else:
            assert batch["target"].tolist() == [[1], [0], [2]]
    assert task.dictionary[len(task.dictionary) - 1] == "<mask>"


def test_fairseq_reads_single_sentences(tmp_path, bert):
    examples = Examples([["the cat", "on the mat"]], ["1", "0"])
    binarize_task(TASKS["CoLA"], {"train": examples}, bert, tmp_path)
    task = sentence_prediction(tmp_path / "CoLA", "--num-classes", 2)
    batch, inputs = batch_of(task, "train")
    assert inputs == ["<s> the cat </s>", "<s> on the mat </s>"]
    assert batch["target"].tolist() == [[1], [0]]
    assert (tmp_path / "CoLA" / "label" / "dict.txt").read_text() == "0 1\n1 1\n"


def test_fairseq_reads_scores_in_both_orders(tmp_path, bert):
    examples = Examples([["the cat", "on"], ["sat", "the mat"]], ["3.800", "0"])
    counts = binarize_task(TASKS["STS-B"], {"train": examples, "valid": examples}, bert, tmp_path)
    assert (counts["train"].examples, counts["valid"].examples) == (4, 2)
    task = sentence_prediction(tmp_path / "STS-B", "--num-classes", 1, "--regression-target")
    batch, inputs = batch_of(task, "train")
    assert batch["target"].flatten().tolist() == pytest.approx([0.76, 0, 0.76, 0])  # divided by 5
    pairs = ["<s> the cat </s> sat </s>", "<s> on </s> the mat </s>"]
    assert inputs == [*pairs, "<s> sat </s> the cat </s>", "<s> the mat </s> on </s>"]
    assert batch_of(task, "valid")[1] == pairs


def test_a_released_dictionary_is_kept(tmp_path, bert):
    symbols = [*reversed(bert.symbols.values()), "madeupword0000"]
    released = tmp_path / "released.txt"
    released.write_text("".join(f"{symbol} {count}\n" for count, symbol in enumerate(symbols)))
    examples = Examples([["the cat"]], ["1"])
    binarize_task(TASKS["SST-2"], {"train": examples}, bert, tmp_path / "out", dict_path=released)
    folder = tmp_path / "out" / "SST-2" / "input0"
    assert (folder / "dict.txt").read_bytes() == released.read_bytes()
    assert words(folder / "train", Dictionary.load(str(released))) == ["the cat </s>"]


def test_a_length_without_room_is_refused(tmp_path, bert):
    for task, shortest in (("SST-2", 3), ("RTE", 5)):
        examples = Examples([["the cat"]] * len(TASKS[task].sentences), TASKS[task].labels[:1])
        with pytest.raises(
            InputError, match=f"--max-length {shortest - 1}: too short for {task}; must be at least {shortest}"
        ):
            binarize_task(TASKS[task], {"train": examples}, bert, tmp_path / "out", max_length=shortest - 1)
        binarize_task(TASKS[task], {"train": examples}, bert, tmp_path / "out", max_length=shortest)
        for name in ("input0", "input1")[: len(TASKS[task].sentences)]:
            assert lengths(tmp_path / "out" / task / name / "train").tolist() == [2]


def test_an_earlier_folder_is_replaced_completely(tmp_path, bert):
    examples = Examples([["the cat"]], ["1"])
    binarize_task(TASKS["SST-2"], {"train": examples, "test": examples}, bert, tmp_path / "out")
    binarize_task(TASKS["SST-2"], {"train": examples}, bert, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["SST-2", "tokenizer"]
    assert sorted(path.name for path in (tmp_path / "out" / "SST-2" / "input0").iterdir()) == [
        "dict.txt",
        "train.bin",
        "train.idx",
    ]
    assert contents(tmp_path / "out" / "tokenizer") == bert.files


def test_a_failure_does_not_change_earlier_output(tmp_path, bert, monkeypatch):
    examples = Examples([["the cat"]], ["1"])
    binarize_task(TASKS["SST-2"], {"train": examples}, bert, tmp_path / "out")
    before = contents(tmp_path / "out")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tn_fairseq.preprocessing.glue_data._write_labels", full)
    for task in ("SST-2", "CoLA"):
        with pytest.raises(InputError, match="No space left on device; make room there, or give another --destdir"):
            binarize_task(TASKS[task], {"train": Examples([["on the mat"]], ["0"])}, bert, tmp_path / "out")
    assert contents(tmp_path / "out") == before
    assert not (tmp_path / "out" / STAGING).exists()


def test_a_folder_of_another_tokenizer_is_refused(tmp_path, bert):
    examples = Examples([["the cat"]], ["1"])
    binarize_task(TASKS["SST-2"], {"train": examples}, bert, tmp_path / "out")
    before = contents(tmp_path / "out")
    cased = load_tokenizer(bert_folder(tmp_path / "cased", do_lower_case=False))
    released = tmp_path / "released.txt"
    released.write_text("".join(f"{symbol} 1\n" for symbol in reversed(bert.symbols.values())))
    for tokenizer, dict_path in ((cased, None), (bert, released)):
        with pytest.raises(InputError, match="was made with another tokenizer or --dict"):
            binarize_task(TASKS["CoLA"], {"train": examples}, tokenizer, tmp_path / "out", dict_path=dict_path)
    assert contents(tmp_path / "out") == before


@with_real_data
@pytest.mark.parametrize(
    ("task", "train", "valid"),
    [
        ("CoLA", 8_551, 1_043),
        ("SST-2", 67_349, 872),
        ("MRPC", 7_336, 408),
        ("STS-B", 11_498, 1_500),
        ("RTE", 2_490, 277),
    ],
)
def test_official_numbers_of_examples(tmp_path, task, train, valid):
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "bert-uncased.vocab.txt")
    counts = binarize_task(TASKS[task], read_task(REAL_DATA / "glue" / task, TASKS[task]), tokenizer, tmp_path)
    assert {split: count.examples for split, count in counts.items()} == {"train": train, "valid": valid}
    for split, count in counts.items():
        inputs = [f"input{number}" for number in range(len(TASKS[task].sentences))]
        stored = sum(lengths(tmp_path / task / name / split) for name in inputs)
        assert stored.max() <= 127 and (stored == 127).sum() >= count.truncated
        assert count.tokens == stored.sum() and count.unknown < 1e-4 * count.tokens
