"""SQuAD: the format of its files, the positions of windows and answers, and what is written."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fairseq.data import Dictionary, indexed_dataset
from safetensors.numpy import load_file
from tokenizer_folders import (
    REAL_DATA,
    bert_folder,
    gpt2_folder,
    sentencepiece_folder,
    with_real_data,
)

from tn_fairseq.errors import InputError
from tn_fairseq.files import STAGING
from tn_fairseq.formats.squad import SquadExample, examples_from_hub, read_squad, squad_json
from tn_fairseq.preprocessing import squad_data as squad
from tn_fairseq.preprocessing.squad_data import answer_tokens, binarize_squad, windows
from tn_fairseq.tokenizers import load_tokenizer

KINDS = {"wordpiece": bert_folder, "gpt2": gpt2_folder, "sentencepiece": sentencepiece_folder}
CONTEXT = "Thé  cats sat\non the mat, e\u0301 oﬀ 汉字 😀Ж! The cafe\u0301."
# all of it, both ends, inside a token, next to a ligature, with spaces around it, single characters
ANSWERS = [CONTEXT, "Thé", ".", "at", " oﬀ ", "sat\non", "汉", "字", "😀", "e\u0301 o", "The cafe"]
# 26 words of one token each: a b c ... z
LETTERS = " ".join("abcdefghijklmnopqrstuvwxyz")


def example(answer: str | None, context: str = CONTEXT, question: str = "the cat?", name: str = "1") -> SquadExample:
    answers = () if answer is None else ((answer, context.index(answer)),)
    return SquadExample(name, question, context, answers)


def examples_of(answers: list[str | None], **options) -> list[SquadExample]:
    return [example(answer, name=str(number), **options) for number, answer in enumerate(answers)]


def write(path: Path, content: object) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def content(**question) -> dict:
    """A file of two paragraphs with a question each; arguments change keys of the second question, None deletes one."""
    first = {"id": "1", "question": "the cat?", "answers": [{"text": "cat", "answer_start": 4}]}
    second = {"id": "2", "question": "the mat?", "answers": [{"text": "the", "answer_start": 0}], **question}
    second = {key: value for key, value in second.items() if value is not None}
    paragraphs = [{"context": "the cat sat", "qas": [first]}, {"context": "the mat, the cat", "qas": [second]}]
    return {"version": "1.1", "data": [{"title": "Cats", "paragraphs": paragraphs}]}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(folder: Path, split: str) -> list[list[str]]:
    """The stored rows as symbols."""
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dataset = indexed_dataset.make_dataset(str(folder / split), "mmap")
    return [[dictionary[index] for index in dataset[i].tolist()] for i in range(len(dataset))]


def refused(function, *args, **options) -> str:
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def letters(tmp_path):
    return load_tokenizer(bert_folder(tmp_path / "letters", [*LETTERS.split(), "?", "##b"]))


@pytest.fixture(params=KINDS)
def tokenizer(request, tmp_path):
    return load_tokenizer(KINDS[request.param](tmp_path / "tokenizer"))


def test_reading(tmp_path):
    assert read_squad(write(tmp_path / "a.json", content(extra=1, is_impossible=False))) == [
        SquadExample("1", "the cat?", "the cat sat", (("cat", 4),), "Cats"),
        SquadExample("2", "the mat?", "the mat, the cat", (("the", 0),), "Cats"),
    ]
    bom = b"\xef\xbb\xbf" + json.dumps(content()).encode()
    assert read_squad(write(tmp_path / "bom.json", bom)) == read_squad(write(tmp_path / "b.json", content()))


def test_each_question_has_the_title_of_its_article(tmp_path):
    one, two = content()["data"][0], content()["data"][0]
    del two["title"]
    for paragraph in two["paragraphs"]:
        for question in paragraph["qas"]:
            question["id"] += "b"
    path = write(tmp_path / "a.json", {"data": [one, two]})
    assert [example.title for example in read_squad(path)] == ["Cats", "Cats", "", ""]


@pytest.mark.parametrize("answers", [None, []])
def test_answers_may_be_missing(tmp_path, answers):
    assert [len(e.answers) for e in read_squad(write(tmp_path / "a.json", content(answers=answers)))] == [1, 0]


@pytest.mark.parametrize(("start", "found"), [(0, 0), (9, 9), (1, 0), (5, 9), (99, 9), (-3, 0)])
def test_an_answer_is_moved_to_the_nearest_match(tmp_path, caplog, start, found):
    path = write(tmp_path / "a.json", content(answers=[{"text": "the", "answer_start": start}]))
    assert read_squad(path)[1].answers == (("the", found),)
    assert len(caplog.messages) == (start != found)


def test_moved_answers_are_counted_in_one_warning(tmp_path, caplog):
    read_squad(
        write(tmp_path / "a.json", content(answers=[{"text": "the", "answer_start": start} for start in (1, 2)]))
    )
    (message,) = caplog.messages
    assert "a.json: 2 answers do not start at answer_start" in message


def test_occurrences_may_overlap(tmp_path):
    aaa = {"id": "1", "question": "a", "answers": [{"text": "aa", "answer_start": 7}]}
    data = {"data": [{"paragraphs": [{"context": "aaa b", "qas": [aaa]}]}]}
    assert read_squad(write(tmp_path / "a.json", data))[0].answers == (("aa", 1),)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (b"\xff{}", "a.json, line 1: not UTF-8 (byte 0)"),
        (b'{"data":\n ?', "a.json, line 2: not valid JSON"),
        ([], "a.json: data: must be a list"),
        ({"data": {}}, "data: must be a list"),
        ({"data": []}, "a.json: contains no questions"),
        ({"data": [{}]}, "data[0].paragraphs: must be a list"),
        ({"data": [{"paragraphs": []}, {"paragraphs": [1]}]}, "data[1].paragraphs[0].context: must be a string"),
        ({"data": [{"paragraphs": [{"context": "a"}]}]}, "data[0].paragraphs[0].qas: must be a list"),
        (
            {"data": [{"paragraphs": [{"context": "a", "qas": [1]}]}]},
            "data[0].paragraphs[0].qas[0].id: must be a string",
        ),
        (content(id=None), "data[0].paragraphs[1].qas[0].id: must be a string"),
        (content(id=2), "id: must be a string"),
        (content(id="1"), "data[0].paragraphs[1].qas[0].id: '1' is already data[0].paragraphs[0].qas[0].id"),
        (content(question=None), "data[0].paragraphs[1].qas[0].question: must be a string"),
        (content(question="\ud83d"), "question: half a surrogate pair at 0"),
        (content(is_impossible=True, answers=[]), "qas[0].is_impossible: SQuAD 2.0 is not supported"),
        (content(answers={}), "answers: must be a list"),
        (content(answers=["the"]), "answers[0].text: must be a string"),
        (
            content(answers=[{"text": "the"}]),
            "data[0].paragraphs[1].qas[0].answers[0].answer_start: must be an integer",
        ),
        (content(answers=[{"text": "the", "answer_start": True}]), "answer_start: must be an integer;"),
        (content(answers=[{"text": " ", "answer_start": 3}]), "answers[0]: blank"),
        (content(answers=[{"text": "a\ndog", "answer_start": 0}]), r"answers[0]: 'a\ndog' is not in the context"),
    ],
)
def test_files_that_are_refused(tmp_path, wrong, message):
    assert message in refused(read_squad, write(tmp_path / "a.json", wrong))


def test_a_missing_file(tmp_path):
    assert "no.json: No such file" in refused(read_squad, tmp_path / "no.json")


def test_examples_from_the_hub(monkeypatch):
    row = {"id": "1", "title": "Cats", "context": "the cat", "question": "who?"}
    asked = []

    def load_dataset(name, split):
        asked.append((name, split))
        return [row | {"answers": {"text": ["cat", "the"], "answer_start": [4, 1]}}]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert examples_from_hub("train") == [SquadExample("1", "who?", "the cat", (("cat", 4), ("the", 0)))]
    assert asked == [("rajpurkar/squad", "train")]


def test_an_unreachable_hub(monkeypatch):
    def load_dataset(name, split):
        raise ConnectionError("Couldn't reach the Hub\nmore")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert "Couldn't reach the Hub; use local files" in refused(examples_from_hub, "train")
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'tn_fairseq[hub]'" in refused(examples_from_hub, "train")


def test_windows_by_hand():
    # after <s>, 2 question tokens and </s>, 4 of 10 tokens fit before the last </s>
    found = windows(2, 10, (4, 5), max_length=9, doc_stride=3)
    assert [(w.first, w.end, w.context_start) for w in found] == [(0, 4, 4), (3, 7, 4), (6, 10, 4)]
    assert [w.answer for w in found] == [(0, 0), (5, 6), (0, 0)]
    # tokens 3 and 6 are at an edge of both their windows: the first window gets them
    assert [w.is_max_context.tolist() for w in found] == [[True] * 4, [False, *[True] * 3], [False, *[True] * 3]]
    found = windows(0, 7, None, max_length=7, doc_stride=2)
    assert [(w.first, w.end, w.answer) for w in found] == [(0, 4, (0, 0)), (2, 6, (0, 0)), (4, 7, (0, 0))]
    masks = [[True, True, True, False], [False, True, True, False], [False, True, True]]
    assert [w.is_max_context.tolist() for w in found] == masks


def test_a_longer_window_counts_for_more_context():
    # token 175 has 24 and 25 tokens on its shorter side in windows of 200 and 60: 24 + 2 is more than 25 + 0.6
    long, short = windows(0, 210, None, max_length=203, doc_stride=150)
    assert np.flatnonzero(~long.is_max_context)[0] == 176
    assert np.flatnonzero(short.is_max_context)[0] + short.first == 176
    # but not if it does not contain the token
    long, short = windows(0, 201, None, max_length=203, doc_stride=199)
    assert (long.is_max_context.all(), short.is_max_context.tolist()) == (True, [False, True])


@pytest.mark.parametrize(
    ("answer", "answers"),
    [
        ((0, 0), [(4, 4), (0, 0), (0, 0)]),
        ((0, 3), [(4, 7), (0, 0), (0, 0)]),
        ((3, 3), [(7, 7), (4, 4), (0, 0)]),
        ((2, 4), [(0, 0), (0, 0), (0, 0)]),  # crosses an edge, too long for the overlap
        ((6, 9), [(0, 0), (0, 0), (4, 7)]),
        ((9, 9), [(0, 0), (0, 0), (7, 7)]),
        ((1, 8), [(0, 0), (0, 0), (0, 0)]),
    ],
)
def test_an_answer_is_only_in_windows_that_contain_all_of_it(answer, answers):
    assert [w.answer for w in windows(2, 10, answer, max_length=9, doc_stride=3)] == answers


@pytest.mark.parametrize("question", [0, 3])
@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("context", [*range(14), 40])
def test_every_token_is_in_a_window_and_has_one_with_most_context(question, stride, context):
    found = windows(question, context, None, max_length=question + 7, doc_stride=stride)
    seen = {token: [w for w in found if w.first <= token < w.end] for token in range(context)}
    assert all(seen.values())
    assert [w.first for w in found] == [stride * number for number in range(len(found))]
    assert [w.end for w in found][-1] == context
    assert all(w.end - w.first == 4 for w in found[:-1]) and found[-1].end - found[-1].first <= 4
    for token, among in seen.items():
        (best,) = [w for w in among if w.is_max_context[token - w.first]]
        score = [min(token - w.first, w.end - 1 - token) + 0.01 * (w.end - w.first) for w in among]
        assert among.index(best) == score.index(max(score))


@pytest.mark.parametrize("stride", [1, 3, 6])
def test_windows_match_the_tokenizers_library(letters, stride):
    question, backend = "a b c", letters.backend
    for length in range(1, 27):
        context = LETTERS[: 2 * length - 1]
        found = windows(3, length, None, max_length=12, doc_stride=stride)
        backend.enable_truncation(12, stride=6 - stride, strategy="only_second")
        encoding = backend.encode(question, context)
        backend.no_truncation()
        theirs = [part.tokens for part in (encoding, *encoding.overflowing)]
        ours = [["[CLS]", "a", "b", "c", "[SEP]", *LETTERS.split()[w.first : w.end][:length], "[SEP]"] for w in found]
        assert ours == theirs


@pytest.mark.parametrize(
    ("text", "start", "tokens"),
    [
        ("the", 0, (0, 0)),
        ("the cats", 0, (0, 2)),
        ("at", 5, (1, 1)),
        ("s s", 7, (2, 3)),
        (" cats ", 3, (1, 2)),
        ("the cats sat", 0, (0, 3)),
        ("\x07", 13, None),
        ("sat \x07", 9, (3, 3)),
        ("\x07 on", 13, (5, 5)),
    ],
)
def test_tokens_of_an_answer(text, start, tokens):
    offsets = np.array([(0, 3), (4, 7), (7, 8), (9, 12), (15, 15), (15, 17)])  # the cat ##s sat, an empty one, on
    assert answer_tokens(offsets, text, start) == tokens


def test_what_is_written(tmp_path, letters):
    answered = [
        example("d", LETTERS[:19], "a b c z z", "x"),  # 10 tokens of context, 3 kept of the question
        example("b c", LETTERS[:5], "a?", "y"),
    ]
    valid = [*answered, example(None, "a bb", "q", "z")]
    splits = {"train": answered, "valid": valid}
    counts = binarize_squad(splits, letters, tmp_path / "out", max_length=10, doc_stride=3, max_question_length=3)
    first = [
        "a b c </s> a b c d </s>".split(),
        "a b c </s> d e f g </s>".split(),
        "a b c </s> g h i j </s>".split(),
        "a ? </s> a b c </s>".split(),
    ]
    assert rows(tmp_path / "out", "train") == first
    assert rows(tmp_path / "out", "valid") == [*first, "q </s> a b ##b </s>".split()]
    train, valid_tensors = (load_file(tmp_path / "out" / f"{split}.safetensors") for split in ("train", "valid"))
    assert {name: tensor.tolist() for name, tensor in train.items()} == {
        "example": [0, 0, 0, 1],
        "context_start": [5, 5, 5, 4],
        "answer": [[8, 8], [5, 5], [0, 0], [5, 6]],
    }
    assert valid_tensors["answer"].tolist() == [*train["answer"].tolist(), [0, 0]]
    assert valid_tensors["example"].tolist() == [0, 0, 0, 1, 2]
    letter = [[2 * place, 2 * place + 1] for place in range(10)]
    assert valid_tensors["offsets"].tolist() == [
        *[*letter[:4], *letter[3:7], *letter[6:10]],
        *letter[:3],
        *[[0, 1], [2, 3], [3, 4]],
    ]
    assert valid_tensors["is_max_context"].tolist() == [*[True] * 4, *[False, True, True, True] * 2, *[True] * 6]
    assert {str(tensor.dtype) for tensor in train.values()} == {"int32"}
    assert {name: str(tensor.dtype) for name, tensor in valid_tensors.items()} == {
        **dict.fromkeys(("example", "context_start", "answer", "offsets"), "int32"),
        "is_max_context": "bool",
    }
    assert read_squad(tmp_path / "out" / "valid.json") == valid
    written = {f"{split}.{kind}" for split in splits for kind in ("bin", "idx", "safetensors")}
    expected = {"dict.txt", "lengths.json", "valid.json", *written, *(f"tokenizer/{name}" for name in letters.files)}
    assert contents(tmp_path / "out").keys() == expected
    count = counts["train"]
    assert (count.questions, count.windows, count.questions_cut) == (2, 4, 1)
    assert (count.pieces, count.unknown) == (5 + 10 + 2 + 3, 0)


def test_losses_are_counted(tmp_path, letters):
    answers = ["a", "d e f g h", "bb", "b"]
    lost = [example(answer, LETTERS[:19] + " bb 😀", "a", str(n)) for n, answer in enumerate(answers)]
    lost.append(example("😀", "😀 b", "Ж", "last"))
    lost.append(SquadExample("b", "a", "a bb", (("b", 3),)))  # inside bb, of which it is a token
    lost.append(SquadExample("c", "a", "a é ccc", (("c", 5),)))  # inside an unknown token
    lost.append(SquadExample("d", "b", "a b a", ((" b ", 1),)))  # white space is not part of an answer
    counts = binarize_squad({"valid": lost}, letters, tmp_path / "out", 8, 2, 1)["valid"]
    assert (counts.questions_cut, counts.answers_in_no_window, counts.answers_inside_tokens) == (0, 1, 1)
    assert (counts.pieces, counts.unknown) == (8 + 13 + 2 + 3 + 3 + 3, 1 + 2 + 1)


def test_every_answer_is_in_the_text_of_its_tokens(tmp_path, tokenizer):
    examples = examples_of(ANSWERS)
    counts = binarize_squad({"train": examples, "valid": examples}, tokenizer, tmp_path / "out", 512, 128)["valid"]
    assert (counts.windows, counts.answers_in_no_window) == (len(ANSWERS), 0)
    tensors = load_file(tmp_path / "out" / "valid.safetensors")
    offsets = tensors["offsets"].reshape(len(ANSWERS), -1, 2)
    dataset = indexed_dataset.make_dataset(str(tmp_path / "out" / "valid"), "mmap")
    for number, answer in enumerate(ANSWERS):
        start = int(tensors["context_start"][number])
        assert len(dataset[number]) - start == offsets.shape[1]
        first, last = tensors["answer"][number] - start
        text = CONTEXT[offsets[number, first, 0] : offsets[number, last, 1]]
        assert answer.strip() in text
        inner = CONTEXT[offsets[number, first, 1] : offsets[number, last, 0]]
        assert len(inner) < len(answer.strip())  # no extra token at either end


def test_the_tokens_of_an_answer_in_several_windows_are_the_same(tmp_path, letters):
    examples = examples_of(list("abcmxyz"), context=LETTERS)
    binarize_squad({"valid": examples}, letters, tmp_path / "out", 14, 3, 4)
    tensors = load_file(tmp_path / "out" / "valid.safetensors")
    found = rows(tmp_path / "out", "valid")
    symbols = {}
    for row, number, (first, last) in zip(found, tensors["example"].tolist(), tensors["answer"].tolist()):
        if first:
            assert first == last
            symbols.setdefault(examples[number].answers[0][0], set()).add(row[first - 1])  # rows lack <s>
    assert symbols == {letter: {letter} for letter in "abcmxyz"}


def test_a_context_is_encoded_once(tmp_path, letters, monkeypatch):
    encoded = []
    encode = letters.encode_with_offsets
    monkeypatch.setattr(letters, "encode_with_offsets", lambda text: encoded.append(text) or encode(text))
    binarize_squad({"valid": examples_of(["a", "b", "c"], context=LETTERS, question="q")}, letters, tmp_path / "out")
    assert sorted(encoded) == sorted([LETTERS, "q", "q", "q"])


def test_a_context_without_tokens_has_a_window(tmp_path, letters):
    unlabeled = [example(None, context=" ", question="a"), example(None, context="b", question="", name="2")]
    binarize_squad({"test": unlabeled}, letters, tmp_path / "out")
    assert rows(tmp_path / "out", "test") == [["a", "</s>", "</s>"], ["</s>", "b", "</s>"]]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((512, 0, 64), "--doc-stride 0: must be between 1 and 445"),
        ((512, 446, 64), "--doc-stride 446: must be between 1 and 445"),
        ((67, 1, 64), "--max-length 67 has no room for a question of 64 tokens"),
        ((512, 128, 0), "--max-question-length 0: must be positive"),
    ],
)
def test_inconsistent_lengths_are_refused(tmp_path, letters, lengths, message):
    assert message in refused(binarize_squad, {"valid": [example("Thé")]}, letters, tmp_path / "out", *lengths)
    assert not (tmp_path / "out").exists()
    binarize_squad({"valid": [example("Thé")]}, letters, tmp_path / "out", 68, 1, 64)


def test_splits_that_are_refused(tmp_path, letters):
    unlabeled = [example("Thé"), example(None, name="second")]
    assert "train: question 'second' has no answer" in refused(binarize_squad, {"train": unlabeled}, letters, tmp_path)
    assert "valid: no questions" in refused(binarize_squad, {"valid": []}, letters, tmp_path)
    file = write(tmp_path / "file", b"")
    assert "--destdir" in refused(binarize_squad, {"valid": unlabeled}, letters, file / "out")


def test_a_released_dictionary_keeps_its_order(tmp_path, letters):
    released = tmp_path / "released.txt"
    released.write_text("".join(f"{symbol} 1\n" for symbol in reversed(letters.symbols.values())))
    binarize_squad({"valid": [example("Thé")]}, letters, tmp_path / "plain")
    binarize_squad({"valid": [example("Thé")]}, letters, tmp_path / "out", dict_path=released)
    assert (tmp_path / "out" / "dict.txt").read_text() == released.read_text()
    assert rows(tmp_path / "out", "valid") == rows(tmp_path / "plain", "valid")
    assert contents(tmp_path / "out")["valid.bin"] != contents(tmp_path / "plain")["valid.bin"]


def test_a_failed_run_does_not_change_earlier_output(tmp_path, letters, monkeypatch):
    binarize_squad({"train": [example("Thé")]}, letters, tmp_path / "out")
    before = contents(tmp_path / "out")
    monkeypatch.setattr(squad, "squad_json", lambda examples: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        binarize_squad({"train": [example("cats")], "valid": [example("Thé")]}, letters, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_a_run_killed_while_files_are_moved_leaves_no_dictionary(tmp_path, letters, monkeypatch):
    binarize_squad({"train": [example("Thé")]}, letters, tmp_path / "out")
    moved = []

    def replace_once(source, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(os.rename(source, target))

    monkeypatch.setattr(os, "replace", replace_once)
    with pytest.raises(KeyboardInterrupt):
        binarize_squad({"train": [example("Thé")]}, letters, tmp_path / "out")
    assert not (tmp_path / "out" / "dict.txt").exists()


def test_splits_of_an_earlier_run_are_deleted(tmp_path, letters):
    every = {split: [example("Thé")] for split in ("train", "valid", "test")}
    binarize_squad(every, letters, tmp_path / "out")
    (tmp_path / "out" / STAGING).mkdir()
    write(tmp_path / "out" / STAGING / "test.bin", b"half")
    write(tmp_path / "out" / "notes", b"mine")
    binarize_squad({"train": [example("Thé")]}, letters, tmp_path / "out", 256)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"dict.txt", "lengths.json", "tokenizer", "train.bin", "train.idx", "train.safetensors", "notes"}


def test_the_json_is_in_squads_format(tmp_path):
    examples = examples_of(["Thé", None, "cats"]) + [example("a", LETTERS, name="4")]
    data = squad_json(examples)
    assert [len(paragraph["qas"]) for paragraph in data["data"][0]["paragraphs"]] == [3, 1]
    assert data["version"] == "1.1"
    assert read_squad(write(tmp_path / "a.json", data)) == examples


@with_real_data
@pytest.mark.parametrize("name", ["bert-uncased.vocab.txt", "encoder.json"])
def test_real_answers(tmp_path, name):
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / name)
    examples = read_squad(REAL_DATA / "squad" / "dev-v1.1.json")[::20]
    counts = binarize_squad({"valid": examples}, tokenizer, tmp_path / "out")["valid"]
    assert (counts.questions, counts.answers_in_no_window) == (529, 0)
    assert counts.answers_inside_tokens <= 0.02 * counts.questions
    assert counts.windows >= 529
    tensors = load_file(tmp_path / "out" / "valid.safetensors")
    dataset = indexed_dataset.make_dataset(str(tmp_path / "out" / "valid"), "mmap")
    assert (dataset.sizes - tensors["context_start"]).sum() == len(tensors["offsets"])
    ends = np.cumsum(dataset.sizes - tensors["context_start"])
    exact = 0
    for end, size, number, start, (first, last) in zip(
        ends, dataset.sizes, tensors["example"], tensors["context_start"], tensors["answer"]
    ):
        if first:
            offsets = tensors["offsets"][end - (size - start) : end]
            example, (answer, _) = examples[number], examples[number].answers[0]
            text = example.context[offsets[first - start, 0] : offsets[last - start, 1]]
            assert answer.strip() in text
            exact += text == answer.strip()
    assert exact >= 0.98 * (tensors["answer"][:, 0] > 0).sum()
