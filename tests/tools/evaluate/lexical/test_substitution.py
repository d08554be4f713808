"""Measures at the targets of SWORDS, computed by hand."""

import math

import numpy as np
import pytest
import torch
from helpers import FAMILIES
from lexical_files import alone, swords_content, write_swords

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.core.vocabulary import whole_words
from tn_fairseq.synonyms.swords import Substitute, Target, read_swords
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.evaluate.lexical import substitution
from tn_fairseq.tools.evaluate.lexical.scoring import Place, replaced_token_logits
from tn_fairseq.tools.evaluate.lexical.substitution import (
    auc,
    find_questions,
    generalized_average_precision,
    in_the_form_of,
    log_mass,
    measure_substitutes,
)


def test_gap_auc_and_log_mass_by_hand():
    weights = np.array([0.0, 0.5, 0.2, 1.0])
    assert generalized_average_precision(weights, weights) == 1
    # in the order of the ranking, the weights are 0, 0.5, 1
    ranked = (0 + 0.5) / 2 + (0 + 0.5 + 1) / 3
    best = 1 + (1 + 0.5) / 2
    found = generalized_average_precision(np.array([-2.0, -1.0, -3.0]), np.array([0.5, 0.0, 1.0]))
    assert found == pytest.approx(ranked / best)
    # of the four pairs of a positive and a negative, two are in order and one is a tie
    assert auc(np.array([3.0, 1.0, 1.0, 2.0]), np.array([True, True, False, False])) == pytest.approx(2.5 / 4)
    assert log_mass(np.log([0.1, 0.3])) == pytest.approx(math.log(0.4))
    for undefined in (
        generalized_average_precision(np.array([1.0, 2.0]), np.zeros(2)),
        auc(np.array([1.0, 2.0]), np.array([True, True])),
        log_mass([]),
    ):
        assert math.isnan(undefined)


@pytest.mark.parametrize(
    ("word", "lemma", "part_of_speech", "substitute", "expected"),
    [
        ("elections", "election", "NOUN", "poll", ["polls"]),
        ("election", "election", "NOUN", "poll", ["poll"]),
        ("Barked", "bark", "VERB", "cry", ["cried", "cried"]),  # past tense and participle
        ("put", "put", "VERB", "lay", ["lay", "laid", "laid"]),
        ("zzz", "bark", "VERB", "cry", ["cry"]),  # not a form of its lemma
    ],
)
def test_substitutes_take_the_form_of_the_target(word, lemma, part_of_speech, substitute, expected):
    target = Target("t", word, 0, len(word), part_of_speech, lemma, ())
    assert in_the_form_of(target, substitute) == expected


SENTENCES = [
    ("The elections , it is .", "elections", {"poll": 9, "vote": 2, "tree": 0, "ballot": 9}),
    ("the total is due .", "total", {"sum": 6, "amount": 5, "whole": 0, "price": 0, "cat": 1}),
    ("the unknowable is due .", "unknowable", {"sum": 6}),
    ("cats is due .", "cats", {"tree": 0, "dog": 3}),
]


@pytest.fixture(scope="module")
def world(english, tmp_path_factory):
    """The dictionary, the tokenizer with its table, the words, and the questions of SENTENCES."""
    dictionary = load_dictionary(english / "dict.txt")
    tokenizer = load_tokenizer(english / "tokenizer")
    table, words = tokenizer.lookup_table(dictionary), whole_words(dictionary)
    content = swords_content(SENTENCES, {"elections": "election", "cats": "cat"})
    targets = read_swords(write_swords(tmp_path_factory.mktemp("swords") / "s", content))
    return dictionary, tokenizer, table, words, find_questions(targets, tokenizer, table, words)


def test_questions(world):
    dictionary, _, _, words, (elections, total, cats) = world
    assert [words[question.word] for question in (elections, total, cats)] == ["elections", "total", "cats"]
    assert [dictionary[token] for token in elections.tokens] == ["the", "elections", ",", "it", "is", "."]
    assert elections.position == 1
    # the target is a plural, and ballots is not one piece
    assert [[words[i] for i in ids] for ids in elections.spellings] == [["polls"], ["votes"], ["trees"]]
    assert elections.scores.tolist() == [0.9, 0.2, 0.0]
    assert [words[i] for i in elections.acceptable_lemmas] == ["poll"]
    assert [words[i] for i in total.acceptable_lemmas] == ["sum", "amount"]


def test_a_target_inside_a_token_or_of_several_is_left_out(world, tmp_path):
    content = swords_content([("the totals is due .", "total", {"sum": 9}), ("trees", "trees", {"sum": 9})])
    content["targets"]["t:1"] |= {"target": "tree"}
    assert find_questions(read_swords(write_swords(tmp_path / "s", content)), *world[1:4]) == []


def test_the_target_itself_and_repeated_spellings_are_not_substitutes(world):
    _, tokenizer, table, words, _ = world
    substitutes = tuple(Substitute(*pair) for pair in (("total", 0.9), ("sum", 0.8), ("Sum", 0.0), ("price", 0.0)))
    target = Target("t", "the total is due .", 4, 9, "NOUN", "of no form", substitutes)
    (question,) = find_questions([target], tokenizer, table, words)
    assert [[words[i] for i in ids] for ids in question.spellings] == [["sum"], ["price"]]
    assert question.scores.tolist() == [0.8, 0.0] and [words[i] for i in question.acceptable_lemmas] == ["sum"]


@pytest.mark.parametrize(("length", "at_four"), [(20, range(11)), (7, range(2, 7)), (4, range(3, 5))])
def test_a_long_context_is_cut_around_the_target(world, length, at_four):
    for position in range(11):
        question = world[-1][0]._replace(tokens=np.arange(100, 111), position=position)
        place = question.place(length, bos=0, eos=2)
        assert place.tokens[place.position] == 100 + position == question.word
        assert len(place.tokens) == min(length, 13) and place.tokens[0] == 0 and place.tokens[-1] == 2
        assert np.diff(place.tokens[1:-1]).tolist() == [1] * (len(place.tokens) - 3)
        assert position != 4 or (place.tokens[1:-1] - 100).tolist() == list(at_four)


@pytest.mark.parametrize("most", [128, 12])
def test_a_context_is_cut_to_the_most_that_the_model_and_others_were_trained_for(
    models, world, tmp_path, most, monkeypatch
):
    monkeypatch.setattr(substitution, "MAX_CONTEXT", most)
    dictionary, tokenizer, table, words, _ = world
    text = "the dog barked . " * 12 + "the total is due . " + "it is noisy . " * 12
    targets = read_swords(write_swords(tmp_path / "s", swords_content([(text, "total", {"sum": 9})])))
    (question,) = find_questions(targets, tokenizer, table, words)
    found = measure_substitutes(models["bert"], [question], {}, words)
    place = question.place(min(most, 32), dictionary.bos(), dictionary.eos())  # the model is for 32 tokens
    assert len(place.tokens) == min(most, 32)
    log_probs = alone(models["bert"], place)
    expected = log_probs[question.spellings[0][0]] - log_probs[question.word]
    assert found["leniency", ""][0] == pytest.approx(expected.item(), abs=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_measures_by_hand(models, world, family):
    dictionary, _, _, words, questions = world
    ids = {word: index for index, word in words.items()}
    table = torch.full((len(dictionary), 3), -1, dtype=torch.int32)
    table[ids["total"]] = torch.tensor([ids[word] for word in ("sum", "cat", "price")])
    table[ids["elections"], :2] = torch.tensor([ids[word] for word in ("poll", "dog")])  # judged by its lemma
    found = measure_substitutes(models[family], questions, {"mine": table}, words)
    place = Place(np.concatenate([[dictionary.bos()], questions[1].tokens, [dictionary.eos()]]), 2)
    log_probs = alone(models[family], place)
    p = {word: log_probs[index].exp().item() for word, index in ids.items()}
    assert found["leniency", ""][1] == pytest.approx(math.log((p["sum"] + p["amount"]) / p["total"]), abs=1e-4)
    assert found["rejected", ""][1] == pytest.approx(math.log((p["whole"] + p["price"]) / p["total"]), abs=1e-4)
    names, scores = ["sum", "amount", "whole", "price", "cat"], np.array([0.6, 0.5, 0, 0, 0.1])
    gap = generalized_average_precision(np.array([p[name] for name in names]), scores)
    assert found["GAP", ""][1] == pytest.approx(100 * gap)
    assert found["row", "mine"][1] == pytest.approx(100 * (p["sum"] + p["cat"] + p["price"]), rel=1e-4)
    assert found["row acceptable", "mine"][1] == pytest.approx(100 * p["sum"], rel=1e-4)
    assert found["row rejected", "mine"][1] == pytest.approx(100 * p["price"], rel=1e-4)
    assert found["row acceptable", "mine"][0] > 0 == found["row rejected", "mine"][0]
    assert [values[2] for key, values in found.items() if key[1]] == [0, 0, 0]
    # no substitute of the plural is acceptable
    assert np.isnan(found["leniency", ""]).tolist() == np.isnan(found["lemmas", ""]).tolist() == [False, False, True]
    assert found["lemmas", ""][1] == pytest.approx(found["leniency", ""][1])
    assert found["lemmas", ""][0] != found["leniency", ""][0]
    assert ("RTD AUC", "") in found or family != "electra"
    if family == "electra":
        filled = [Place(np.where(np.arange(len(place.tokens)) == 2, ids[name], place.tokens), 2) for name in names[:4]]
        logits = replaced_token_logits(models[family], filled)
        in_order = (logits[:2, None] < logits[None, 2:]).mean()
        assert found["RTD AUC", ""][1] == pytest.approx(100 * in_order)
        assert np.isnan(found["RTD AUC", ""][2])
