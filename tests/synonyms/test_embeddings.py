import hashlib
import math
from argparse import Namespace

import pytest
import torch
from files import refused
from helpers import FAMILIES

from tn_fairseq.core.dictionary import fingerprint, load_dictionary
from tn_fairseq.objectives.mlm_soft_reg import input_word_embeddings
from tn_fairseq.synonyms.embeddings import read_embeddings, remove_common_directions

OURS = "embeddings.word_embeddings.weight"
ROBERTA = "encoder.sentence_encoder.embed_tokens.weight"
OLD_ROBERTA = "decoder.sentence_encoder.embed_tokens.weight"

# Two words for each of four meanings: the first is frequent, the second rare.
MEANINGS = {
    ("big", "huge"): (1, 0),
    ("large", "vast"): (0.6, 0.8),
    ("small", "tiny"): (-1, 0),
    ("low", "wee"): (-0.6, -0.8),
}
WORDS = [word for pair in MEANINGS for word in pair]


@pytest.fixture
def dictionary(tmp_path):
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS))
    return load_dictionary(tmp_path / "dict.txt")


@pytest.fixture
def words(dictionary):
    return {dictionary.index(word): word for word in WORDS}


def embeddings_of(dictionary):
    """(frequency, meaning) of each word, far from the origin; other symbols are far away from them."""
    rows = torch.full((len(dictionary), 3), 1e6)
    for pair, meaning in MEANINGS.items():
        for word, frequency in zip(pair, (10, -10)):
            rows[dictionary.index(word)] = torch.tensor([frequency, *meaning]) + torch.tensor([30.0, 20.0, 10.0])
    return rows


def write(path, model, **more):
    torch.save({"cfg": {"model": None}, "model": model, "optimizer_history": [{"num_updates": 700}], **more}, path)
    return path


def checkpoint_of(path, dictionary, name=OURS, dtype=torch.float32):
    model = {name: embeddings_of(dictionary).to(dtype)}
    if name == OURS:
        digest = bytes.fromhex(fingerprint(dictionary))
        model["dictionary_fingerprint"] = torch.tensor(list(digest), dtype=torch.uint8)
    if name != OLD_ROBERTA:
        return write(path, model)
    args = Namespace(task="masked_lm", arch="roberta_base", criterion="masked_lm", data="data")
    history = [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {"best": None}, "num_updates": 700}]
    return write(path, model, cfg=None, args=args, optimizer_history=history, extra_state={"epoch": 1})


HALF = (OURS, torch.bfloat16, 0.1)  # all numbers are exact except those from 0.6 and 0.8


@pytest.mark.parametrize(
    ("name", "dtype", "error"), [(OURS, torch.float32, 1e-5), (OLD_ROBERTA, torch.float32, 1e-5), HALF]
)
def test_similarities_are_those_of_the_meanings_and_not_of_the_frequencies(
    tmp_path, dictionary, words, name, dtype, error
):
    vectors = read_embeddings(checkpoint_of(tmp_path / "a.pt", dictionary, name, dtype), dictionary, words)
    assert vectors.words == WORDS
    meanings = torch.tensor([meaning for pair, meaning in MEANINGS.items() for _ in pair])
    matrix = torch.from_numpy(vectors.matrix)
    torch.testing.assert_close(matrix @ matrix.T, meanings @ meanings.T, atol=error, rtol=0)


def test_the_mean_and_one_component_per_100_dimensions_are_removed():
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(500, 200, generator=generator) + 3
    embeddings[:, :3] *= torch.tensor([30.0, 20.0, 10.0])
    left = remove_common_directions(embeddings)
    torch.testing.assert_close(left.mean(dim=0), torch.zeros(200), atol=1e-4, rtol=0)
    spread = left.std(dim=0)
    assert spread[0] < 1 and spread[1] < 1 and spread[2] > 9  # two components are gone, the third is not
    assert torch.linalg.matrix_rank(left).item() == 198


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_are_those_that_the_model_looks_up(tmp_path, build, family):
    task, model, _ = build(family)
    dictionary = task.source_dictionary
    words = {index: dictionary[index] for index in range(dictionary.nspecial, len(dictionary) - 1)}
    path = write(tmp_path / "a.pt", model.state_dict())
    ids = torch.tensor(list(words))
    expected = remove_common_directions(input_word_embeddings(model)(ids).detach())
    matrix = torch.from_numpy(read_embeddings(path, dictionary, words).matrix)
    torch.testing.assert_close(matrix, expected / expected.norm(dim=1, keepdim=True), atol=1e-5, rtol=1e-4)


def test_the_version_names_file_updates_and_content(tmp_path, dictionary, words):
    for history, updates in (([300, 900], "900 updates, "), ([0], "")):
        numbers = [{"num_updates": number} for number in history]
        path = write(tmp_path / "a.pt", {OURS: embeddings_of(dictionary)}, optimizer_history=numbers)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        expected = f"a.pt, {updates}embeddings of dimension 3, sha256 {digest}"
        assert read_embeddings(path, dictionary, words).version == expected


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda rows: {ROBERTA: rows[:-1]}, "symbols; yours has"),
        (lambda rows: {"encoder.embed_tokens.weight": rows}, "no word embeddings"),
        (lambda rows: {OURS: rows.index_fill(0, torch.tensor([4]), math.nan)}, "not finite"),
        (lambda rows: {OURS: rows, "dictionary_fingerprint": torch.zeros(32, dtype=torch.uint8)}, "another dictionary"),
    ],
)
def test_other_models_are_refused(tmp_path, dictionary, words, model, reason):
    path = write(tmp_path / "a.pt", model(embeddings_of(dictionary)))
    message = refused(read_embeddings, path, dictionary, words)
    assert message.startswith(f"{path}: ") and reason in message


def test_a_vocabulary_without_words_is_refused(tmp_path, dictionary):
    path = checkpoint_of(tmp_path / "a.pt", dictionary)
    assert "no whole words" in refused(read_embeddings, path, dictionary, {})
