"""argparse's messages in one line."""

import argparse

import pytest

from tn_fairseq.core.flags import explain


@pytest.mark.parametrize("quote", ["", "'"])
def test_every_python_names_the_choices(quote):
    """Since 3.12.8, without quotes."""
    for wrong, advice in (("bert_tinny", "did you mean bert_tiny?"), ("xyz", "give one of bert_tiny, bert_base")):
        choices = f"{quote}bert_tiny{quote}, {quote}bert_base{quote}"
        message = f"argument --arch/-a: invalid choice: '{wrong}' (choose from {choices})"
        assert explain(argparse.ArgumentParser(), message, "") == f"--arch {wrong}: unknown; {advice}"


def test_similar_flags_or_other_advice():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mask-prob")
    for wrong, advice in (("x --mask_prob=0.1", "did you mean --mask-prob?"), ("x y", "none")):
        message = f"unrecognized arguments: {wrong}"
        assert explain(parser, message, "none") == f"{message}; {advice}"
    assert explain(parser, "anything else", "none") == "anything else"
