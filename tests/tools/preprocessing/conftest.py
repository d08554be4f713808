"""A tokenizer for the tests of what is written."""

import pytest
from tokenizer_folders import bert_folder

from tn_fairseq.tokenizers import load_tokenizer


@pytest.fixture
def bert(tmp_path):
    return load_tokenizer(bert_folder(tmp_path / "bert"))
