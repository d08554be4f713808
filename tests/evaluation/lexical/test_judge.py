"""A judge compared with people, by hand."""

import numpy as np
import torch

from tn_fairseq.evaluation.lexical.judge import Scored, score_synonyms, threshold_line
from tn_fairseq.evaluation.lexical.substitution import Question
from tn_fairseq.judge import judge_scores
from tn_fairseq.models.loading import Loaded
from tn_fairseq.synonyms.swords import Substitute, Target


def test_a_threshold_keeps_equal_scores_and_counts_a_substitute_once():
    poll, vote = Substitute("poll", 0.9), Substitute("vote", 0.5)
    scored = [
        Scored("t:1", poll, True, 0.8),
        Scored("t:1", poll, True, 0.7),  # polls
        Scored("t:2", poll, True, 0.6),
        Scored("t:2", vote, True, 0.2),
        Scored("t:2", Substitute("call", 0.3), True, 0.6),
        Scored("t:3", Substitute("cry", 0.0), True, 0.61),
    ]
    assert threshold_line(scored, None, 8) == ["  none", "6", "100.0", "66.7", "16.7", "16.7", "37.5"]
    assert threshold_line(scored, 0.6, 8) == ["  0.6", "5", "83.3", "60.0", "20.0", "20.0", "25.0"]
    lost = scored[2]._replace(one_piece=False)  # the table has polls, but poll is not in the dictionary
    assert threshold_line([lost], None, 8) == ["  none", "1", "100.0", "100.0", "0.0", "0.0", "0.0"]
    assert threshold_line(scored, 0.9, 0) == ["  0.9", "0", "0.0", "-", "-", "-", "-"]


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
    found = score_synonyms(Loaded(model.eval(), task, None), questions, table, words)
    pairs = [(one.target, one.substitute.text) for one in found]
    assert pairs == [("t:1", "noun3"), ("t:1", "noun2"), ("t:2", "noun6")] and all(one.one_piece for one in found)
    for one, (number, place) in zip(found, [(0, 2), (0, 2), (1, 1)]):
        tokens = [dictionary.bos(), *questions[number].tokens.tolist(), dictionary.eos()]
        text = torch.tensor([tokens])
        candidates = torch.arange(len(tokens))[None] == place
        prediction = torch.tensor([index(one.substitute.text)])
        expected = judge_scores(model, {"src_tokens": text}, candidates, prediction).item()
        assert abs(one.score - expected) < 1e-5 and 0 < expected < 1
