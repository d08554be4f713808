"""The reader of word pairs, and the collapse of embeddings."""

import os
from pathlib import Path

import pytest
import torch
from files import refused

from tn_fairseq.core.vocabulary import word_finder
from tn_fairseq.tools.evaluate.lexical.word_pairs import mean_cosine, one_piece_pairs, read_word_pairs

SIMLEX = "word1\tword2\tPOS\tSimLex999\tconc(w1)\tSD(SimLex)\nold\tnew\tA\t1.58\t2.72\t0.41\n\nhard\tsoft\tA\t2\t3\t1\n"


@pytest.mark.parametrize(
    "text",
    [
        "old\tnew\t1.58\nhard\tsoft\t2\n",
        "\ufeffold\tnew\t1.58\r\n\r\nhard\tsoft\t2.0",
        "old new 1.58\nhard  soft 2",
        SIMLEX,
        "word1\tword2\tconc(w1)\tSimLex999\nold\tnew\t2.7\t1.58\nhard\tsoft\t3\t2\n",
    ],
)
def test_published_formats(text, tmp_path):
    (tmp_path / "pairs.txt").write_bytes(text.encode())
    assert read_word_pairs(tmp_path / "pairs.txt") == [("old", "new", 1.58), ("hard", "soft", 2.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"old\tnew\t1.5\nhard\tsoft\n", "line 2: "),
        (b"old\tnew\tmuch\n", "line 1: "),
        (b"old\tnew\tnan\n", "line 1: "),
        (b"hot dog bun 3\n", "line 1: "),
        (b"old new 3\nhard soft 4 5\n", "line 2: "),
        (b"old;new;1\n", "line 1: "),
        (b"old\tnew\tV\t1.58\tNONE\n", "line 1: "),  # SimVerb
        (b"1\told\tnew\t3.5\n", "line 1: "),
        (b"a\tb\tSimLex999\nold\tnew\t1\n", "line 2: "),
        (SIMLEX.replace("\t2\t3\t1", "").encode(), "line 4: "),
        (b"old\tnew\t1\n\xff", "line 2: not UTF-8"),
        (b"old\tnew\t1\n", "1 word pairs"),
    ],
)
def test_other_formats_get_one_line(text, expected, tmp_path):
    (tmp_path / "pairs.txt").write_bytes(text)
    message = refused(read_word_pairs, tmp_path / "pairs.txt")
    assert f"{tmp_path / 'pairs.txt'}" in message and expected in message


def test_pairs_of_the_same_word_or_of_several_pieces_are_left_out(tmp_path):
    (tmp_path / "p").write_text("old\tnew\t1\nOld\told\t9\nold\tancient\t8\nnew\tOLD\t2\n")
    ids, pairs = one_piece_pairs(read_word_pairs(tmp_path / "p"), word_finder({7: "old", 9: "new"}))
    assert ids.tolist() == [[7, 9], [9, 7]] and [pair.similarity for pair in pairs] == [1, 2]
    ids, pairs = one_piece_pairs(read_word_pairs(tmp_path / "p"), word_finder({}))
    assert ids.shape == (0, 2) and pairs == []


def test_the_mean_cosine_is_that_of_all_pairs_of_different_rows():
    rows = torch.randn(20, 5, generator=torch.manual_seed(1)) + 0.5
    cosines = torch.nn.functional.cosine_similarity(rows[:, None], rows[None], dim=-1)
    expected = cosines[~torch.eye(20, dtype=torch.bool)].mean().item()
    assert mean_cosine(rows) == pytest.approx(expected, abs=1e-6)
    assert mean_cosine(torch.arange(1, 9.0)[:, None] * rows[:1]) == pytest.approx(1)


@pytest.mark.skipif("TN_FAIRSEQ_DATA" not in os.environ, reason="needs the real data")
@pytest.mark.parametrize(("name", "pairs"), [("EN-SIMLEX-999", 999), ("EN-WS-353-SIM", 203), ("EN-MEN-TR-3k", 3000)])
def test_the_real_files(name, pairs):
    assert len(read_word_pairs(Path(os.environ["TN_FAIRSEQ_DATA"]) / "lexical" / f"{name}.txt")) == pairs
