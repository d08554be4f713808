import pickle
import shutil

import numpy as np
import pytest
import torch
from fairseq.data import BaseWrapperDataset, ConcatDataset, PrependTokenDataset, TokenBlockDataset
from fairseq.data.shorten_dataset import TruncateDataset
from helpers import write_data_bin

from tn_fairseq.core.errors import InputError
from tn_fairseq.data.blocks import ContiguousBlocks, Text
from tn_fairseq.data.data_bin import count_symbols, load_sentences
from tn_fairseq.data.documents import DocumentStartsDataset


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    return load_sentences(write_data_bin(tmp_path_factory.mktemp("blocks")) / "train", "binarize")


def cut(sentences, dictionary, break_mode, longest=10):
    """Blocks as fairseq makes them, and ours."""
    blocks = TokenBlockDataset(
        sentences, sentences.sizes, longest - 1, dictionary.pad(), dictionary.eos(), break_mode=break_mode
    )
    ours = ContiguousBlocks(sentences, blocks.slice_indices, dictionary, longest)
    return PrependTokenDataset(TruncateDataset(blocks, longest - 1), dictionary.bos()), ours


@pytest.mark.parametrize("break_mode", ["none", "complete", "complete_doc"])
@pytest.mark.parametrize("files", [1, 2])
def test_blocks_are_those_of_fairseq(sentences, dictionary, break_mode, files):
    if files > 1:
        sentences = ConcatDataset([sentences] * files)
    theirs, ours = cut(sentences, dictionary, break_mode)
    assert len(ours) == len(theirs) > 100 and ours.sizes.tolist() == theirs.sizes.tolist()
    assert all(torch.equal(ours[index], theirs[index]) for index in range(len(ours)))
    indices = np.array([5, len(ours) - 1, 0, 17, 5])
    tokens, lengths = ours.rows(indices)
    assert tokens.shape == (5, lengths.max()) and tokens.dtype == np.int64
    for row, length, index in zip(tokens, lengths, indices):
        assert row[:length].tolist() == theirs[index].tolist() and (row[length:] == dictionary.pad()).all()


def test_documents_begin_with_the_first_symbol(sentences, dictionary):
    theirs, ours = cut(sentences, dictionary, "none", longest=100)
    documents = DocumentStartsDataset(ours, dictionary)
    assert documents.sizes is ours.sizes and len(documents) == len(ours)
    tokens, lengths = documents.rows(np.arange(len(documents)))
    changed = 0
    for index, (row, length) in enumerate(zip(tokens.tolist(), lengths)):
        expected = theirs[index].tolist()
        lone = [n for n in range(1, length) if expected[n - 1 : n + 1] == [dictionary.eos()] * 2]
        for position in lone:
            expected[position] = dictionary.bos()
        changed += len(lone)
        assert row[:length] == documents[index].tolist() == expected
    assert changed > 10


def test_a_pickled_text_holds_the_names_of_its_files(sentences):
    """Otherwise, loaders that are not forked would each have a copy."""
    pickled = pickle.dumps(Text(sentences))
    assert len(pickled) < 1000
    positions = np.array([[0, 5], [900, 7]])
    assert np.array_equal(pickle.loads(pickled).take(positions), Text(sentences).take(positions))


def test_all_files_of_a_text_are_checked_and_counted(dictionary, tmp_path):
    """fairseq reads train.bin and train1.bin, one after the other."""
    folder = write_data_bin(tmp_path)
    counts = count_symbols(folder / "train", dictionary)
    for kind in ("bin", "idx"):
        shutil.copy(folder / f"train.{kind}", folder / f"train1.{kind}")
    assert np.array_equal(count_symbols(folder / "train", dictionary), 2 * counts) and counts.sum() > 0
    with open(folder / "train1.bin", "r+b") as file:
        file.truncate(100)
    load_sentences(folder / "train", "binarize")
    with pytest.raises(
        InputError, match=r"train1\.bin does not have the [\d,]+ bytes of its \.idx; run tn-fairseq data"
    ):
        load_sentences(folder / "train", "binarize", combine=True)


def test_other_formats_are_refused(sentences):
    with pytest.raises(InputError, match="not of fairseq's format mmap; run .* binarize again"):
        Text(BaseWrapperDataset(sentences))
