"""Fixtures for the tests of WordNet: NLTK on a machine without WordNet and without a network."""

import urllib.error
import urllib.request

import nltk
import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.synonyms.wordnet import ensure_wordnet


@pytest.fixture(scope="session")
def reader():
    return ensure_wordnet()


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.fixture
def without_wordnet(monkeypatch, tmp_path, no_network):
    """NLTK searches only an empty folder of the test, and there is no network."""
    root = tmp_path / "nltk_data"
    tmp_path.chmod(0o755)
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    monkeypatch.setattr(nltk.corpus, "wordnet", nltk.corpus.LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    return root
