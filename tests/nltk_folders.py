"""Folders of NLTK: an empty one that replaces all others, and lexicons of the Open Multilingual WordNet."""

from collections import defaultdict
from pathlib import Path

import nltk
import pytest
from nltk.corpus.reader import CorpusReader
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from tn_fairseq.synonyms.wordnet import ensure_wordnet


def make_folder(folder: Path, above: Path) -> Path:
    """Make a folder below ``above`` that only its owner can write, because NLTK reads no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for made in (folder, *folder.parents):
        if made.is_relative_to(above):
            made.chmod(0o755)
    return folder


def without_languages(root: Path, monkeypatch: pytest.MonkeyPatch) -> WordNetCorpusReader:
    """WordNet, for which NLTK has no lemmas of other languages and searches only the folder ``root``."""
    reader = ensure_wordnet()
    languages = nltk.corpus.LazyCorpusLoader("omw-2.0", CorpusReader, r".*/wn-data-.*\.tab", encoding="utf8")
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    monkeypatch.setattr(reader, "_omw_reader", languages)
    monkeypatch.setattr(reader, "omw_langs", set())
    monkeypatch.setattr(reader, "provenances", defaultdict(str, eng=""))
    monkeypatch.setattr(reader, "_lang_data", defaultdict(list))
    return reader


def write_lexicon(root: Path, language: str, content: str, encoding: str = "utf-8") -> None:
    """Write the lemmas of a language: lines of offset and part of speech in WordNet 3.0, type, lemma."""
    path = make_folder(root / "corpora" / "omw-2.0" / "provider", root) / f"wn-data-{language}.tab"
    path.write_text(content, encoding=encoding)
    path.chmod(0o644)
