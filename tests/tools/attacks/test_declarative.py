"""From questions to statements with a gap."""

import pytest

from tn_fairseq.tools.attacks.declarative import Token, spelled, statement, tokens
from tn_fairseq.tools.attacks.tagging import tag


@pytest.mark.parametrize(
    ("question", "expected", "role", "asked"),
    [
        # objects, with the tense of do
        ("What does AFC stand for?", "what AFC stands for is ___", "thing", "what"),
        ("What did Luther say the pope did?", "what Luther said the pope did was ___", "thing", "what"),
        ("What have sympathetic jurors decided?", "what sympathetic jurors have decided is ___", "thing", "what"),
        ("Whom did Tesla see?", "the person that Tesla saw was ___", "thing", "whom"),
        ("What city did Tesla move to in 1880?", "the city that Tesla moved to in 1880 was ___", "thing", "what city"),
        ("What drugs can a doctor give?", "the drugs that a doctor can give are ___", "thing", "what drugs"),
        ("How many tackles did Miller make?", "the number of tackles that Miller made was ___", "number", "how"),
        ("How much oxygen does a fire use?", "the amount of oxygen that a fire uses is ___", "number", "how"),
        ("How much did the clubs pay?", "what the clubs paid was ___", "number", "how"),
        # subjects
        ("Who designed the garden in 1563?", "___ designed the garden in 1563", "thing", "who"),
        ("What can cause a fire?", "___ can cause a fire", "thing", "what"),
        ("Which NFL team won Super Bowl 50?", "the NFL team that won Super Bowl 50 was ___", "thing", "what team"),
        ("How many people were killed?", "the number of people that were killed was ___", "number", "how"),
        # forms of be
        ("Who was the first president?", "the first president was ___", "thing", "who"),
        ("What was the engine used for?", "what the engine was used for was ___", "thing", "what"),
        ("What year was Tesla born?", "the year that Tesla was born was ___", "thing", "what year"),
        # adverbials, and prepositions first
        ("When did Tesla move to Prague?", "Tesla moved to Prague ___", "time", "when"),
        ("When was the museum opened?", "the museum was opened ___", "time", "when"),
        ("Where is the oldest library?", "the oldest library is ___", "place", "where"),
        ("How was the king able to win?", "the king was able to win ___", "manner", "how"),
        ("Why did Rome fall?", "Rome fell ___", "reason", "why"),
        ("In what year did Savery patent his pump?", "Savery patented his pump in ___", "thing", "what year"),
        ("To whom did Luther write a letter?", "Luther wrote a letter to ___", "thing", "whom"),
    ],
)
def test_statements(question, expected, role, asked):
    made = statement(tokens(question, tag(question)))
    assert spelled([*made.before, Token("___", ""), *made.after]).strip() == expected
    assert (made.role, made.asked) == (role, asked)


@pytest.mark.parametrize(
    "question",
    ["", "?", "What", "Who is?", "In what", "How many?", "Was it good?", "How old was Tesla?", "Whose car did he see?"]
    + ["Who did not vote for the law?", "The bridge was built by whom?", "In 1990, who led the team?"],
)
def test_questions_without_a_statement(question):
    assert statement(tokens(question, tag(question))) is None
