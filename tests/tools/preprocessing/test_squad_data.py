"""SQuAD as windows: their positions and those of answers, and what is written."""

import numpy as np
import pytest
from fairseq.data import indexed_dataset
from files import contents, refused, write
from preprocessed import sentences
from safetensors.numpy import load_file
from tokenizer_folders import REAL_DATA, bert_folder, every_kind, with_real_data

from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.formats.squad_json import SquadExample, read_squad
from tn_fairseq.tools.preprocessing.squad_data import answer_tokens, binarize_squad, windows

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


@pytest.fixture
def letters(tmp_path):
    return load_tokenizer(bert_folder(tmp_path / "letters", [*LETTERS.split(), "?", "##b"]))


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
        ((0, 3), [(4, 7), (0, 0), (0, 0)]),
        ((3, 3), [(7, 7), (4, 4), (0, 0)]),
        ((2, 4), [(0, 0), (0, 0), (0, 0)]),  # crosses an edge, too long for the overlap
    ],
)
def test_an_answer_is_only_in_windows_that_contain_all_of_it(answer, answers):
    assert [w.answer for w in windows(2, 10, answer, max_length=9, doc_stride=3)] == answers


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_every_token_is_in_a_window_and_has_one_with_most_context(stride):
    for context in (*range(14), 40):
        found = windows(3, context, None, max_length=10, doc_stride=stride)
        for token in range(context):
            among = [w for w in found if w.first <= token < w.end]
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
    splits, out = {"train": answered, "valid": valid}, tmp_path / "out"
    count = binarize_squad(splits, letters, out, max_length=10, doc_stride=3, max_question_length=3)["train"]
    rows = ["a b c </s> a b c d </s>", "a b c </s> d e f g </s>", "a b c </s> g h i j </s>", "a ? </s> a b c </s>"]
    assert sentences(out) == rows
    assert sentences(out, "valid") == [*rows, "q </s> a b ##b </s>"]
    train, valid_tensors = (load_file(out / f"{split}.safetensors") for split in splits)
    answers = [[8, 8], [5, 5], [0, 0], [5, 6]]
    expected = {"example": [0, 0, 0, 1], "context_start": [5, 5, 5, 4], "answer": answers}
    assert {name: tensor.tolist() for name, tensor in train.items()} == expected
    letter = [[2 * place, 2 * place + 1] for place in range(10)]
    expected = {
        "example": [0, 0, 0, 1, 2],
        "context_start": [5, 5, 5, 4, 3],
        "answer": [*answers, [0, 0]],
        "offsets": [*letter[:4], *letter[3:7], *letter[6:10], *letter[:3], [0, 1], [2, 3], [3, 4]],
        "is_max_context": [*[True] * 4, *[False, True, True, True] * 2, *[True] * 6],
    }
    assert {name: tensor.tolist() for name, tensor in valid_tensors.items()} == expected
    assert {name for name, tensor in valid_tensors.items() if tensor.dtype != np.int32} == {"is_max_context"}
    assert {str(tensor.dtype) for tensor in train.values()} == {"int32"}
    assert read_squad(out / "valid.json") == valid
    written = {f"{split}.{kind}" for split in splits for kind in ("bin", "idx", "safetensors")}
    written |= {"dict.txt", "lengths.json", "valid.json", *(f"tokenizer/{name}" for name in letters.files)}
    assert contents(out).keys() == written
    assert (count.questions, count.windows, count.questions_cut) == (2, 4, 1)
    assert (count.pieces, count.unknown) == (5 + 10 + 2 + 3, 0)


def test_losses_are_counted_and_every_context_has_a_window(tmp_path, letters):
    lost = examples_of(["a", "d e f g h", "bb", "b"], context=LETTERS[:19] + " bb 😀", question="a")
    lost.append(example("😀", "😀 b", "Ж", "last"))
    lost.append(SquadExample("b", "a", "a bb", (("b", 3),)))  # inside bb, of which it is a token
    lost.append(SquadExample("c", "a", "a é ccc", (("c", 5),)))  # inside an unknown token
    lost.append(SquadExample("d", "b", "a b a", ((" b ", 1),)))  # white space is not part of an answer
    counts = binarize_squad({"valid": lost}, letters, tmp_path / "out", 8, 2, 1)["valid"]
    assert (counts.questions_cut, counts.answers_in_no_window, counts.answers_inside_tokens) == (0, 1, 1)
    assert (counts.pieces, counts.unknown) == (8 + 13 + 2 + 3 + 3 + 3, 1 + 2 + 1)
    # a context without tokens has a window, and the shortest has room for one token
    unlabeled = [example(None, context=" ", question="a"), example(None, context="b", question="", name="2")]
    splits = {"test": unlabeled, "valid": [example("a", LETTERS, LETTERS * 3)]}
    assert binarize_squad(splits, letters, tmp_path / "out", 68, 1, 64)["valid"].windows == 26
    assert sentences(tmp_path / "out", "test") == ["a </s> </s>", "</s> b </s>"]


@every_kind
def test_every_answer_is_in_the_text_of_its_tokens(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    counts = binarize_squad({"valid": examples_of(ANSWERS)}, tokenizer, tmp_path / "out", 512, 128)["valid"]
    assert (counts.windows, counts.answers_in_no_window) == (len(ANSWERS), 0)
    tensors = load_file(tmp_path / "out" / "valid.safetensors")
    offsets = tensors["offsets"].reshape(len(ANSWERS), -1, 2)
    dataset = indexed_dataset.make_dataset(str(tmp_path / "out" / "valid"), "mmap")
    for number, answer in enumerate(ANSWERS):
        start = int(tensors["context_start"][number])
        assert len(dataset[number]) - start == offsets.shape[1]
        first, last = tensors["answer"][number] - start
        assert answer.strip() in CONTEXT[offsets[number, first, 0] : offsets[number, last, 1]]
        inner = CONTEXT[offsets[number, first, 1] : offsets[number, last, 0]]
        assert len(inner) < len(answer.strip())  # no extra token at either end


@pytest.mark.parametrize(
    ("splits", "lengths", "message"),
    [
        ({}, (512, 0, 64), "--doc-stride 0: must be between 1 and 445"),
        ({}, (512, 446, 64), "--doc-stride 446: must be between 1 and 445"),
        ({}, (67, 1, 64), "--max-length 67"),
        ({}, (512, 128, 0), "--max-question-length 0"),
        ({"train": [example("Thé"), example(None, name="b")]}, (), "train: question 'b'"),
        ({"valid": []}, (), "valid: no questions"),
    ],
)
def test_what_is_refused(tmp_path, letters, splits, lengths, message):
    assert message in refused(binarize_squad, {"test": [example(None)], **splits}, letters, tmp_path / "out", *lengths)
    assert not (tmp_path / "out").exists()


def test_splits_of_an_earlier_run_are_deleted_but_not_other_data(tmp_path, letters):
    binarize_squad({split: [example("Thé")] for split in ("train", "valid", "test")}, letters, tmp_path / "out")
    write(tmp_path / "out" / "notes", "mine")
    binarize_squad({"train": [example("Thé")]}, letters, tmp_path / "out", 256)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"dict.txt", "lengths.json", "tokenizer", "train.bin", "train.idx", "train.safetensors", "notes"}
    before = dict.fromkeys(("dict.txt", "train.bin", "train.idx"), b"precious")
    for name, content in before.items():
        write(tmp_path / "other" / name, content)
    message = refused(binarize_squad, {"test": [example(None)]}, letters, tmp_path / "other")
    assert "other: contains other data" in message and contents(tmp_path / "other") == before


@with_real_data
@pytest.mark.parametrize("name", ["bert-uncased.vocab.txt", "encoder.json"])
def test_real_answers(tmp_path, name):
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / name)
    examples = read_squad(REAL_DATA / "squad" / "dev-v1.1.json")[::20]
    counts = binarize_squad({"valid": examples}, tokenizer, tmp_path / "out")["valid"]
    assert (counts.questions, counts.answers_in_no_window) == (529, 0)
    assert counts.answers_inside_tokens <= 0.02 * counts.questions and counts.windows >= 529
