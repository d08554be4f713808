import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import run_command
from nltk.corpus.reader.wordnet import Synset

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "quickstart"))

from wordnet_corpus import LINES_PER_DOCUMENT, clean, clean_definition, documents, line_of, main, sentence

from tn_fairseq.synonyms.wordnet import ensure_wordnet

SCRIPT = Path(__file__).parents[2] / "examples" / "quickstart" / "wordnet_corpus.py"


@pytest.fixture(scope="module")
def reader():
    yield ensure_wordnet()
    ensure_wordnet()._synset_offset_cache.clear()  # verbs


def lines_of(text):
    return [line for line in text.splitlines() if line]


@pytest.mark.slow  # reads all of WordNet
def test_the_corpus(tmp_path):
    # a process, because its 450 MB of synsets would stay in this one
    assert run_command(sys.executable, str(SCRIPT), "--output-dir", tmp_path).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.txt", "valid.txt"]  # no temporary file is left
    train, valid = texts = [(tmp_path / f"{split}.txt").read_text(encoding="utf-8") for split in ("train", "valid")]
    lines = list(chain(*map(lines_of, texts)))
    # a line for each synset, and about two million words
    assert len(lines) == 117_659 and 1_800_000 < sum(len(line.split()) for line in lines) < 2_000_000
    for text in texts:  # documents are blocks between blank lines
        assert text.endswith((".\n", "!\n"))
        sizes = [len(document.splitlines()) for document in text.split("\n\n")]
        assert min(sizes) >= 1 and max(sizes) <= LINES_PER_DOCUMENT
    # two percent of the documents are held out
    counts = [text.count("\n\n") + 1 for text in texts]
    assert counts[1] / sum(counts) == pytest.approx(0.02, abs=0.001)
    long_lines = {line for line in lines_of(valid) if len(line) > 60}
    assert long_lines and not long_lines.intersection(lines_of(train))
    for noise in ("_", "`", "--", "  ", ";;", "; ;"):
        assert not [line for line in lines if noise in line], noise


def test_every_synset_is_placed_once_despite_cycles_whatever_order_nltk_gives_hypernyms_in(reader, monkeypatch):
    verbs = list(reader.all_synsets("v"))
    before = list(documents(verbs))
    placed = list(chain(*before))
    assert len(placed) == len(verbs) and set(placed) == set(verbs)
    hypernyms = Synset.hypernyms
    monkeypatch.setattr(Synset, "hypernyms", lambda synset: hypernyms(synset)[::-1])
    assert list(documents(verbs)) == before


def test_lines_introduce_the_definition_with_all_words(reader):
    assert line_of(reader.synset("sofa.n.01")) == (
        "Sofa, couch or lounge is an upholstered seat for more than one person."
    )
    assert line_of(reader.synset("recycle.v.02")) == (
        "To recycle, reprocess or reuse is to use again after processing. We must recycle the cardboard boxes."
    )
    assert line_of(reader.synset("certain.s.02")).startswith("Certain or sure means reliable in operation or effect.")


@pytest.mark.parametrize(
    ("definition", "cleaned"),
    [
        ("(Roman Catholic Church) (obsolete) a rite", "a rite"),
        ("real existence; --Charles Hopkinson", "real existence"),
        ('characterized by errors; ; the wrong side of the road"', "characterized by errors"),
        ("utter `hems' and `haws'; indicated hesitation", 'utter "hems" and "haws"; indicated hesitation'),
        ("most_recently", "most recently"),
    ],
)
def test_definitions_are_cleaned(definition, cleaned):
    assert clean_definition(definition) == cleaned


def test_examples_become_sentences():
    assert sentence("a foxy scheme") == "A foxy scheme."
    assert sentence('he said "no."') == 'He said "no."'
    assert clean("`Don't trespass,' he shouted--twice") == '"Don\'t trespass," he shouted - twice'
    assert clean("a heart...triumphed") == "a heart ... triumphed"
    assert clean(";") == ""


def test_a_share_of_the_training_text_has_the_same_held_out_text(reader, monkeypatch, tmp_path):
    adverbs = SimpleNamespace(all_synsets=lambda: reader.all_synsets("r"))
    monkeypatch.setattr("wordnet_corpus.ensure_wordnet", lambda: adverbs)
    texts = []
    for flags in ([], ["--share", "4"]):
        main(["--output-dir", str(tmp_path), *flags])
        texts.append({split: (tmp_path / f"{split}.txt").read_text() for split in ("train", "valid")})
    complete, part = texts
    assert part["valid"] == complete["valid"]
    assert part["train"] == "\n\n".join(complete["train"].split("\n\n")[::4]).rstrip("\n") + "\n"
