"""Synonym tables and a judge compared with people, by hand."""

import numpy as np
import pytest
import torch

from tn_fairseq.models.loading import Loaded
from tn_fairseq.objectives.judge import judge_scores
from tn_fairseq.synonyms.acceptance import Crossings, TableQuality
from tn_fairseq.synonyms.swords import Substitute, Target
from tn_fairseq.tools.evaluate.lexical.substitution import Question
from tn_fairseq.tools.evaluate.lexical.tables import crossing_rows, quality_rows, score_synonyms, threshold_rows


def values_of(rows) -> dict[str, list[float]]:
    """The values of each arm."""
    found = {}
    for row in rows:
        found.setdefault(row["arm"], []).append(row["value"])
    return found


def test_a_threshold_keeps_equal_scores_and_counts_a_substitute_once():
    words = dict(enumerate(["elections", "poll", "polls", "vote", "call", "cry", "ballots"]))
    judged = {"poll": 0.9, "vote": 0.5, "call": 0.3, "cry": 0.0, "ballot": 0.9}  # ballot is not in the vocabulary
    substitutes = tuple(Substitute(*pair) for pair in judged.items())
    targets = [Target(name, "elections", 0, 9, "NOUN", "election", substitutes) for name in ("t:1", "t:2")]
    table = torch.full((7, 6), -1, dtype=torch.int32)
    table[0] = torch.arange(1, 7)
    scores = {("t:1", 1): 0.8, ("t:1", 2): 0.7, ("t:2", 1): 0.6, ("t:2", 3): 0.2, ("t:2", 4): 0.6, ("t:2", 5): 0.61}
    found = values_of(threshold_rows("t", scores, table, targets, words))
    assert list(found) == ["t, no judge", *(f"t, judge {threshold}" for threshold in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8))]
    # judged, acceptable, doubtful, rejected, held; the acceptable ones of one piece are poll and vote for each target
    assert found["t, no judge"] == pytest.approx([6, 400 / 6, 100 / 6, 100 / 6, 75])
    assert found["t, judge 0.6"] == [5, 60, 20, 20, 50]
    assert found["t, judge 0.7"] == [2, 100, 0, 0, 25]  # poll and polls
    none_left = values_of(threshold_rows("t", {("t:1", 6): 0.75}, table, targets, words))
    assert none_left["t, judge 0.7"] == [1, 100, 0, 0, 0]  # ballots, for ballot
    assert none_left["t, judge 0.8"] == [0, 0]  # judged and held; nothing else is defined


def test_an_empty_table_has_no_shares():
    assert values_of(quality_rows("t", TableQuality(3, 0, 0, 0, 0, 0, 4))) == {"t": [0, 0]}
    assert values_of(crossing_rows("t", Crossings(0, 0, 0, 0, 0))) == {"t": [0, 0]}
    assert values_of(crossing_rows("t", Crossings(2, 8, 1, 2, 0))) == {"t": [2, 8, 50, 25, 0]}


def test_each_judged_synonym_is_scored_in_its_own_sentence(build):
    task, model, _ = build("bert", "--max-positions", 32)
    dictionary = task.source_dictionary
    index = dictionary.index

    def question(number: int, words: list[str], place: int, **judged: float) -> Question:
        substitutes = tuple(Substitute(word, score) for word, score in judged.items())
        target = Target(f"t:{number}", " ".join(words), 0, 0, "NOUN", words[place], substitutes)
        return Question(target, np.array([index(word) for word in words]), place, [], np.empty(0), [])

    questions = [
        question(1, ["verb1", "noun1", "verb2", "verb3", "verb4"], 1, noun2=0.9, noun3=0.1, noun30=1.0),
        question(2, ["noun5", "verb7"], 0, noun6=0.4),
        question(3, ["noun7", "verb7"], 0, noun8=0.4),  # no row in the table
    ]
    table = torch.full((len(dictionary), 3), -1, dtype=torch.int32)
    table[index("noun1")] = torch.tensor([index("noun3"), index("noun9"), index("noun2")])
    table[index("noun5"), 0] = index("noun6")
    words = {number: dictionary[number] for number in range(4, len(dictionary) - 1)}
    found = score_synonyms(Loaded(model.eval(), task, None, None), questions, table, words)
    expected = [("t:1", index("noun3")), ("t:1", index("noun2")), ("t:2", index("noun6"))]
    assert list(found) == expected
    for (pair, score), (number, place) in zip(found.items(), [(0, 2), (0, 2), (1, 1)]):
        text = torch.tensor([[dictionary.bos(), *questions[number].tokens.tolist(), dictionary.eos()]])
        candidates = torch.arange(text.shape[1])[None] == place
        expected = judge_scores(model, {"src_tokens": text}, candidates, torch.tensor([pair[1]])).item()
        assert abs(score - expected) < 1e-5 and 0 < expected < 1
