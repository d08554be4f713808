"""GLUE: the official files of each task and their quirks, and the data sets on the Hub."""

import sys
from types import SimpleNamespace

import pytest
from files import refused, write
from preprocessed import offline, serve_hub
from tokenizer_folders import REAL_DATA, with_real_data

from tn_fairseq.tools.formats.glue_tsv import TASKS, Examples, choose_tasks, examples_from_hub, read_examples, read_task

MNLI_COLUMNS = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
    "sentence1\tsentence2"
)
MNLI_ROW = "0\t31193\t31193n\tslate\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tA\tB"
MNLI_LABELS = "label1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label"
TAB_LABELS = "\tneutral" * 2 + "\tentailment" * 4
STSB_COLUMNS = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
STSB_ROW = "0\tmain-news\theadlines\t2015\t7\tnone\tnone\t"
STSB_SCORES = f"{STSB_COLUMNS}\tscore\n{STSB_ROW}A\tB\t"
MRPC_COLUMNS = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
MRPC_ROWS = '1\t7\t8\t"The cat sat.\tHe said "sat".\r\n0\t9\t9\tA\tB"\r\n'
QQP_COLUMNS = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
QQP_ROWS = '0\t1\t2\tIs "it?\tIt is?\t1\n1\t3\t4\tIs\u2028it?\tIt\ris?\t0\n'
QNLI = "index\tquestion\tsentence\tlabel\n0\tWho sat?\tThe cat.\tentailment\n1\tWho?\tSat.\tnot_entailment\n"
SST2 = "sentence\tlabel\n"
RTE = "index\tsentence1\tsentence2\tlabel\n"
AB = [["A"], ["B"]]
# task, split, the file's text, its sentences and its labels
FILES = [
    ("CoLA", "train", "gj04\t1\t\tThe cat sat.\nks08\t0\t*\tSat cat the.\n", [["The cat sat.", "Sat cat the."]], "10"),
    ("CoLA", "test", "index\tsentence\n0\tThe cat sat.\n", [["The cat sat."]], None),
    ("SST-2", "valid", SST2 + 'a "cat \t0\n\t1\n', [['a "cat ', ""]], "01"),
    ("SST-2", "test", "index\tsentence\n0\tthe cat\n", [["the cat"]], None),
    (
        *("MRPC", "train", f"\ufeff{MRPC_COLUMNS}\r\n{MRPC_ROWS}"),
        *([['"The cat sat.', "A"], ['He said "sat".', 'B"']], "10"),
    ),
    ("MRPC", "test", f"\ufeff{MRPC_COLUMNS.replace('Quality', 'index')}\n0\t7\t8\tA\t'B\n", [["A"], ["'B"]], None),
    (
        *("STS-B", "valid", f"{STSB_SCORES}3.800\n{STSB_ROW}C\tD\t0\n{STSB_ROW}E\tF\t4.199999999999999"),
        *([["A", "C", "E"], ["B", "D", "F"]], ["3.800", "0", "4.199999999999999"]),
    ),
    ("STS-B", "test", f"{STSB_COLUMNS}\n{STSB_ROW}A\tB\n", AB, None),
    ("QQP", "train", QQP_COLUMNS + QQP_ROWS, [['Is "it?', "Is\u2028it?"], ["It is?", "It\ris?"]], "10"),
    ("QQP", "test", "id\tquestion1\tquestion2\n0\tIs it?\tIt is?\n", [["Is it?"], ["It is?"]], None),
    ("MNLI", "train", f"{MNLI_COLUMNS}\tlabel1\tgold_label\n{MNLI_ROW}\tneutral\tneutral\n", AB, ["neutral"]),
    ("MNLI", "valid1", f"{MNLI_COLUMNS}\t{MNLI_LABELS}\n{MNLI_ROW}{TAB_LABELS}\n", AB, ["entailment"]),
    ("MNLI", "test1", f"{MNLI_COLUMNS}\n{MNLI_ROW}\n", AB, None),
    ("QNLI", "train", QNLI, [["Who sat?", "Who?"], ["The cat.", "Sat."]], ["entailment", "not_entailment"]),
    ("QNLI", "test", "index\tquestion\tsentence\n0\tWho sat?\tThe cat.\n", [["Who sat?"], ["The cat."]], None),
    ("RTE", "valid", RTE + "0\tA\tB\tentailment\n", AB, ["entailment"]),
    ("RTE", "test", "index\tsentence1\tsentence2\n0\tA\tB\n", AB, None),
]


def write_split(folder, task: str, split: str, text: str | bytes):
    return write(folder / TASKS[task].splits[split], text)


def test_the_tasks_and_the_metrics_that_the_paper_reports():
    assert list(TASKS) == ["CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE"]
    others = {name: task.metrics[0] for name, task in TASKS.items() if task.metrics[0] != "accuracy"}
    assert others == {"CoLA": "matthews", "STS-B": "spearman"}
    assert {name for name, task in TASKS.items() if task.both_orders} == {"MRPC", "STS-B"}
    assert {name for name, task in TASKS.items() if task.epochs == 10} == {"STS-B", "RTE"}
    assert {task.epochs for task in TASKS.values()} == {3, 10}


def test_tasks_are_chosen_in_the_order_given_or_all_in_the_papers_order():
    def chosen(*names: str) -> list[str]:
        return [task.name for task in choose_tasks(names, {"RTE", "CoLA", "SST-2"}, "data", "create it")]

    assert chosen("all") == chosen("RTE", "all") == ["CoLA", "SST-2", "RTE"]
    assert chosen("RTE", "CoLA", "RTE") == ["RTE", "CoLA"]
    assert "data: has no QQP" in refused(chosen, "CoLA", "QQP")
    assert "--tasks WNLI" in refused(chosen, "WNLI")
    assert "data: contains none of CoLA, SST-2," in refused(choose_tasks, ["all"], (), "data", "create it")


@pytest.mark.parametrize(("task", "split", "text", "sentences", "labels"), FILES)
def test_official_files(tmp_path, task, split, text, sentences, labels):
    expected = Examples(sentences, None if labels is None else list(labels))
    for lines in (text, text.replace("\r\n", "\n").removesuffix("\n").replace("\n", "\r\n"), text + "\n\r\n\n"):
        write_split(tmp_path, task, split, lines)
        assert read_examples(tmp_path, TASKS[task], split) == expected


def test_broken_rows_of_qqp_are_counted(tmp_path):
    text = QQP_COLUMNS + "0\t1\t2\tA\tB\t1\n1\t3\t4\tfirst half\nsecond half\tD\t0\n2\t5\t6\tE\tF\t0\n"
    write_split(tmp_path, "QQP", "train", text)
    assert read_examples(tmp_path, TASKS["QQP"], "train") == Examples([["A", "E"], ["B", "F"]], ["1", "0"], 2)
    path = write_split(tmp_path, "QQP", "test", "id\tquestion1\tquestion2\n0\tA\tB\n1\tC\n")
    # predictions would be shifted
    assert f"{path}, line 3: 2 columns, not 3" in refused(read_examples, tmp_path, TASKS["QQP"], "test")


@pytest.mark.parametrize(
    ("task", "text", "reason"),
    [
        ("SST-2", b"", "train.tsv: empty"),
        ("SST-2", SST2, "train.tsv: contains no examples"),
        ("SST-2", "index\tsentence\n0\tthe cat\n", "train.tsv, line 1: no column 'label'"),
        ("SST-2", SST2 + "the cat\t1\nthe\n", "train.tsv, line 3: 1 columns, not 2"),
        ("SST-2", SST2 + "the cat\t1\nthe mat\t2\n", "train.tsv, line 3: the label must be one of 0, 1, not '2'"),
        ("SST-2", b"\xef\xbb\xbf" + SST2.encode() + b"the\t1\n\xff\t1\n", "train.tsv, line 3: not UTF-8"),
        ("CoLA", "source\tlabel\tstar\tsentence\n", "train.tsv, line 1: the label must be one of 0, 1, not 'label'"),
        *(
            ("STS-B", f"{STSB_SCORES}{score}\n", f"line 2: the score must be a number from 0 to 5, not '{score}'")
            for score in ("high", "-0.1", "5.001", "nan")
        ),
    ],
)
def test_invalid_files_are_reported_with_the_line(tmp_path, task, text, reason):
    write_split(tmp_path, task, "train", text)
    message = refused(read_examples, tmp_path, TASKS[task], "train")
    assert f"{tmp_path}/" in message and reason in message


def test_only_test_splits_may_be_missing(tmp_path):
    mnli = TASKS["MNLI"]
    for split in ("train", "valid", "valid1"):
        assert mnli.splits[split] in refused(read_task, tmp_path, mnli)
        write_split(tmp_path, "MNLI", split, f"{MNLI_COLUMNS}\tgold_label\n{MNLI_ROW}\tneutral\n")
    write_split(tmp_path, "MNLI", "test1", f"{MNLI_COLUMNS}\n{MNLI_ROW}\n")
    assert list(read_task(tmp_path, mnli)) == ["train", "valid", "valid1", "test1"]


@with_real_data
@pytest.mark.parametrize(
    ("task", "train", "valid"),
    [
        *(("CoLA", 8_551, 1_043), ("SST-2", 67_349, 872), ("MRPC", 3_668, 408)),
        *(("STS-B", 5_749, 1_500), ("RTE", 2_490, 277)),
    ],
)
def test_official_numbers_of_examples(task, train, valid):
    splits = read_task(REAL_DATA / "glue" / task, TASKS[task])
    numbers = {split: len(column) for split, examples in splits.items() for column in examples.sentences}
    assert (numbers["train"], numbers["valid"]) == (train, valid)


class FakeDataset(list):
    """The parts of a datasets.Dataset that we use: rows as dictionaries, and features."""

    def __init__(self, columns, labels, names=None):
        super().__init__({**dict.fromkeys(columns, f"text {label}"), "label": label} for label in labels)
        self.features = dict.fromkeys(columns) | {"label": SimpleNamespace(**({"names": names} if names else {}))}


@pytest.mark.parametrize(
    ("task", "asked", "columns", "names", "labels"),
    [
        ("CoLA", "cola train", "sentence", "unacceptable acceptable", "0 1"),
        ("SST-2", "sst2 train", "sentence", "positive negative", "1 0"),
        ("MRPC", "mrpc train", "sentence1 sentence2", "not_equivalent equivalent", "0 1"),
        ("QQP", "qqp train", "question1 question2", "not_duplicate duplicate", "0 1"),
        ("QNLI", "qnli train", "question sentence", "entailment not_entailment", "entailment not_entailment"),
        ("RTE", "rte train", "sentence1 sentence2", "not_entailment entailment", "not_entailment entailment"),
        (
            *("MNLI", "mnli validation_mismatched", "premise hypothesis"),
            *("entailment neutral contradiction", "entailment neutral contradiction"),
        ),
    ],
)
def test_labels_of_the_hub_are_mapped_by_name(monkeypatch, task, asked, columns, names, labels):
    numbers, columns = range(len(labels.split())), columns.split()
    answer = FakeDataset(columns, numbers, names.split())
    requests = serve_hub(monkeypatch, lambda *_: answer)
    split = "train" if asked.endswith("train") else "valid1"
    texts = [[f"text {number}" for number in numbers]] * len(columns)
    assert examples_from_hub(TASKS[task], split) == Examples(texts, labels.split())
    assert requests == [("nyu-mll/glue", *asked.split())]


def test_scores_and_tests_of_the_hub(monkeypatch):
    asked = serve_hub(monkeypatch, lambda *_: FakeDataset(["sentence1", "sentence2"], [3.5]))
    assert examples_from_hub(TASKS["STS-B"], "valid") == Examples([["text 3.5"]] * 2, ["3.5"])
    assert asked == [("nyu-mll/glue", "stsb", "validation")]
    serve_hub(monkeypatch, lambda *_: FakeDataset(["sentence"], [-1], ["unacceptable", "acceptable"]))
    assert examples_from_hub(TASKS["CoLA"], "test") == Examples([["text -1"]], None)
    assert "cola, train, example 0: the label must be one of 0, 1, not '-1'" in refused(
        examples_from_hub, TASKS["CoLA"], "train"
    )


def test_the_hub_without_valid_data_or_its_library(monkeypatch):
    for answer, reason in (
        (lambda *_: FakeDataset(["sentence"], [0], ["acceptable", "bad"]), "the labels are ['acceptable', 'bad']"),
        (lambda *_: FakeDataset(["text"], [0], ["unacceptable", "acceptable"]), "no column 'sentence'"),
        (offline, "cola, train: Couldn't reach the Hub"),
    ):
        serve_hub(monkeypatch, answer)
        message = refused(examples_from_hub, TASKS["CoLA"], "train")
        assert message.startswith("nyu-mll/glue, ") and reason in message
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'tn_fairseq[hub]'" in refused(examples_from_hub, TASKS["CoLA"], "train")
