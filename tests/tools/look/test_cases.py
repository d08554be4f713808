"""The cases that are kept and shown."""

import torch

from tn_fairseq.core.masked_prediction import MaskedPredictions
from tn_fairseq.core.synonym_table import PADDING
from tn_fairseq.tools.look.cases import CONTEXT, SAME_PAIR, CaseCollector, TeacherCollector, Wording, context
from tn_fairseq.tools.look.predictions import Judgment, Predictions

V = 10
FORMS = ["", "", "", " <unk>", " four", " five", " six", "ing", " eight", " nine"]
LABELS = ["<s>", "<pad>", "</s>", "<unk>", "four", "five", "six", "##ing", "eight", "nine"]
TABLE = torch.full((V, 2), PADDING, dtype=torch.int32)
TABLE[4, :2] = torch.tensor([5, 6])
TABLE[8, 0] = 9


def batch(golds, predictions, sequence_id=0, length=12, words=None):
    """One sequence of <s> and "six" tokens, with the gold words masked from position 3 on."""
    tokens = torch.full((1, length), 6)
    tokens[0, 0] = 0
    tokens[0, 3 : 3 + len(golds)] = torch.tensor(golds)
    masked = torch.zeros(1, length, dtype=torch.bool)
    masked[0, 3 : 3 + len(golds)] = True
    logits = torch.zeros(len(golds), V)
    words = torch.tensor(golds if words is None else words)
    predicted = MaskedPredictions(tokens, masked, torch.tensor(golds), words, torch.tensor(predictions), logits)
    return Predictions([sequence_id], predicted)


def collect(collector, golds, predictions, rows, sequence_id=0):
    predicted = torch.tensor(predictions)
    fired = (TABLE[torch.tensor(golds)] == predicted.unsqueeze(1)).any(dim=1)
    collector.add(batch(golds, predictions, sequence_id), torch.tensor(rows), fired)


def probabilities(**by_word):
    row = [0.0] * V
    for word, probability in by_word.items():
        row[LABELS.index(word)] = probability
    return row


def cases_of(collector):
    return collector.cases(Wording(FORMS, LABELS, "{}/{}".format, "{}|{}".format))


def test_a_correction_and_a_near_miss_with_their_probabilities_and_words():
    collector = CaseCollector("mine", TABLE, limit=5)
    rows = [probabilities(four=0.1, five=0.6, six=0.3), probabilities(four=0.8, nine=0.15, eight=0.05)]
    collect(collector, [4, 8], [5, 4], rows)
    correction, near_miss = cases_of(collector)
    assert correction.corrected and (correction.gold, correction.prediction) == ("four", "five")
    assert [(word, round(value, 3)) for word, value in correction.synonyms] == [("five", 0.6), ("six", 0.3)]
    assert round(correction.gold_probability, 3) == 0.1 and round(correction.prediction_probability, 3) == 0.6
    assert correction.inflection == "four|five"
    assert correction.part_of_speech == "four/five" and correction.table == "mine"
    assert correction.context == [(" six six", 0), (" four", 2), (" eight", 1), (" six six six six six six six", 0)]

    assert not near_miss.corrected and (near_miss.gold, near_miss.prediction) == ("eight", "four")
    assert near_miss.inflection == "eight|four"  # not the synonym, but the prediction
    assert near_miss.part_of_speech == "eight/nine" and round(near_miss.synonyms[0].probability, 3) == 0.15


def test_correct_predictions_words_without_synonyms_and_parts_of_words_are_not_cases():
    collector = CaseCollector("mine", TABLE, limit=5)
    collect(collector, [4, 9], [4, 5], [probabilities(four=0.9, five=0.1), probabilities(five=0.9)])
    # the gold token 8 is only a part of a word, so its most likely synonym is no near miss
    found = batch([8], [4], words=[LABELS.index("<pad>")])
    collector.add(found, torch.tensor([probabilities(four=0.8, nine=0.15)]), torch.tensor([False]))
    assert cases_of(collector) == []


def test_the_most_confident_cases_are_kept_with_few_per_pair():
    collector = CaseCollector("mine", TABLE, limit=SAME_PAIR + 1)
    for number in range(200):
        share = (number * 37 % 200) / 200
        collect(collector, [4], [5], [probabilities(five=share)], sequence_id=number)
    collect(collector, [8], [9], [probabilities(nine=0.001)], sequence_id=999)
    cases = cases_of(collector)
    assert [case.prediction for case in cases] == ["five"] * SAME_PAIR + ["nine"]
    best = [round(case.prediction_probability, 3) for case in cases[:SAME_PAIR]]
    assert best == [0.995, 0.99, 0.985, 0.98, 0.975]
    # a position masked several times is one case, with the highest confidence
    collector = CaseCollector("mine", TABLE, limit=5)
    for share in (0.2, 0.7, 0.4):
        collect(collector, [4], [5], [probabilities(five=share)])
    (case,) = cases_of(collector)
    assert round(case.prediction_probability, 3) == 0.7


def judged(golds, predictions, of_golds, of_predictions, collector, words=None, sequence_id=0):
    """Add a batch for which the teacher gives these probabilities, and the model 0.25 to all gold words."""
    rows = torch.full((len(golds), V), 0.25)
    rows[torch.arange(len(golds)), torch.tensor(predictions)] = 0.5
    judgment = Judgment(torch.tensor(of_golds).log(), torch.tensor(of_predictions).log())
    collector.add(batch(golds, predictions, sequence_id, words=words), judgment, rows)


def teacher_collector(limit=5):
    is_word = torch.tensor([form.startswith(" ") and label != "<unk>" for form, label in zip(FORMS, LABELS)])
    return TeacherCollector("good.pt", {"mine": TABLE, "empty": torch.full_like(TABLE, PADDING)}, is_word, limit)


def test_a_teachers_cases_are_as_likely_as_the_gold_word_or_likely():
    collector = teacher_collector()
    #            as likely, likely, neither, right
    judged([4, 8, 8, 9], [5, 4, 5, 9], [0.01, 0.6, 0.3, 0.9], [0.02, 0.2, 0.05, 0.9], collector)
    likely, as_likely = cases_of(collector)
    assert (likely.gold, likely.prediction, likely.synonym_in) == ("eight", "four", [])
    assert (as_likely.gold, as_likely.prediction, as_likely.synonym_in) == ("four", "five", ["mine"])
    assert round(likely.teacher_gold_probability, 3) == 0.6 and round(likely.teacher_prediction_probability, 3) == 0.2
    assert (likely.gold_probability, likely.prediction_probability) == (0.25, 0.5)
    assert likely.teacher == "good.pt" and likely.part_of_speech == "eight/four" and likely.inflection == "eight|four"
    assert [text for text, kind in likely.context if kind == 2] == [" eight"]


def test_a_teachers_cases_are_whole_words_and_the_most_likely_ones():
    """The first gold token is only a part of a word; then the gold token, the prediction, and nothing is a piece."""
    words = [LABELS.index("<pad>"), 7, 8, 9]
    collector = teacher_collector(limit=2)
    judged([4, 7, 8, 9], [5, 5, 7, 8], [0.1] * 4, [0.8] * 4, collector, words)
    assert [(case.gold, case.prediction) for case in cases_of(collector)] == [("nine", "eight")]
    judged([4, 8, 4], [5, 4, 6], [0.0001] * 3, [0.3, 0.9, 0.4], collector, sequence_id=1)
    assert [case.prediction for case in cases_of(collector)] == ["four", "eight"]


def test_the_context_marks_masked_tokens_joins_pieces_and_shows_where_it_is_cut():
    tokens = [0, 4, 5, 7, 6, 2, 8, 2, 1, 1]
    masked = [False, False, True, False, False, False, False, False, False, False]
    assert context(tokens, masked, 3, FORMS) == [(" four", 0), (" five", 1), ("ing", 2), (" six eight", 0)]

    long = [0] + [6] * (3 * CONTEXT) + [2]
    segments = context(long, [False] * len(long), CONTEXT + 10, FORMS)
    assert segments[0][0] == "…" + " six" * CONTEXT and segments[1] == (" six", 2)
    assert segments[2][0] == " six" * CONTEXT + " …"
    # words are not cut: seven is "ing"
    parts = [0, *[6, 7, 7] * CONTEXT, 2]
    for place in (CONTEXT + 10, CONTEXT + 11, CONTEXT + 12):
        shown = "".join(text for text, _ in context(parts, [False] * len(parts), place, FORMS))
        assert shown.startswith("… sixinging six") and shown.endswith(" sixinging …")
    # only the end of the sequence is cut
    segments = context(long, [False] * len(long), len(long) - 2 - CONTEXT, FORMS)
    assert not segments[-1][0].endswith("…")
