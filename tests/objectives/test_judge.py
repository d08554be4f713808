"""The judge in context, compared with one sentence at a time."""

import pytest
import torch
from helpers import FAMILIES, first_batch

from tn_fairseq.objectives.judge import judge_scores


@pytest.mark.parametrize("family", FAMILIES)
def test_every_prediction_is_read_in_its_own_sentence(build, family):
    task, model, _ = build(family, "--sample-break-mode", "complete")
    model.eval()
    text = first_batch(task)["net_input"]["src_tokens"]
    lengths = text.ne(task.dictionary.pad()).sum(dim=1)
    assert lengths.min() < lengths.max()
    places = [(0, 2), (0, 5), (3, 1), (6, 3)]
    candidates = torch.zeros_like(text, dtype=torch.bool)
    candidates[tuple(zip(*places))] = True
    predictions = torch.tensor([task.dictionary.index(word) for word in ("noun7", "verb3", "adjective9", "noun30")])
    found = judge_scores(model, {"src_tokens": text}, candidates, predictions)
    for row in range(len(text)):
        of_row = [number for number, (other, _) in enumerate(places) if other == row]
        alone, replaced = (text[row : row + 1, : lengths[row]].clone() for _ in range(2))
        for number in of_row:
            replaced[0, places[number][1]] = predictions[number]
        with torch.no_grad():
            before, after = (
                model(tokens, features_only=True, encoder="discriminator")[0] for tokens in (alone, replaced)
            )
        for number in of_row:
            place = places[number][1]
            if family == "electra":
                expected = 1 - model.discriminator_head(after)[0, place].sigmoid()
            else:
                one, other = before[0, place], after[0, place]
                expected = (one @ other / (one.norm() * other.norm())).clamp(min=0)
            torch.testing.assert_close(found[number], expected, atol=1e-5, rtol=1e-4)
    assert not found.requires_grad and len(found) == 4


def test_an_encoder_accepts_the_gold_word_and_no_score_is_negative(build):
    task, model, _ = build("bert")
    text = first_batch(task)["net_input"]["src_tokens"]
    candidates = torch.zeros_like(text, dtype=torch.bool)
    candidates[:, 3] = True
    scores = judge_scores(model.eval(), {"src_tokens": text}, candidates, text[:, 3])
    torch.testing.assert_close(scores, torch.ones(len(text)))

    def opposite(src_tokens, **options):  # the hidden states of a word and of any other point in opposite directions
        return torch.where(src_tokens.eq(text), 1.0, -1.0).unsqueeze(-1), None

    noun, verb = (task.dictionary.index(word) for word in ("noun3", "verb3"))
    other = torch.where(text[:, 3].eq(noun), verb, noun)
    assert judge_scores(opposite, {"src_tokens": text}, candidates, other).eq(0).all()
