"""From questions to statements with a gap."""

import pytest

from tn_fairseq.attacks.declarative import Token, spelled, statement, tokens
from tn_fairseq.attacks.tagging import tag


def of(question: str):
    return statement(tokens(question, tag(question)))


def with_gap(question: str) -> str:
    made = of(question)
    return spelled([*made.before, Token("___", ""), *made.after]).strip()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # objects, with the tense of do
        ("What city did Tesla move to in 1880?", "Tesla moved to ___ in 1880"),
        ("Who did Genghis Khan charge with finding the Shah?", "Genghis Khan charged ___ with finding the Shah"),
        ("What does AFC stand for?", "AFC stands for ___"),
        ("What do redistribution mechanisms lead to?", "redistribution mechanisms lead to ___"),
        ("What did Tesla want to become?", "Tesla wanted to become ___"),
        ("What did Tesla use to power his motor?", "Tesla used ___ to power his motor"),
        ("What company has Disney bought in 1995?", "Disney has bought ___ in 1995"),
        ("What can a teacher give to students?", "a teacher can give ___ to students"),
        ("How many tackles did Miller make in the game?", "Miller made ___ tackles in the game"),
        # the place of the gap is uncertain, or the thing is named
        ("What did Luther say the pope did?", "what Luther said the pope did was ___"),
        ("What did Tesla do in 1880?", "what Tesla did in 1880 was ___"),
        ("What type of engine did Watt build?", "the type of engine that Watt built was ___"),
        # subjects
        ("Who designed the garden in 1563?", "___ designed the garden in 1563"),
        ("Which NFL team won Super Bowl 50?", "___ won Super Bowl 50"),
        ("Who did not vote for the law?", "___ did not vote for the law"),
        ("How many people were killed in the riot?", "___ people were killed in the riot"),
        ("Whose theory became popular?", "___'s theory became popular"),
        ("What can cause a fire?", "___ can cause a fire"),
        # forms of be
        ("Who was the first president?", "the first president was ___"),
        ("What's the name of the river?", "the name of the river is ___"),
        ("What is the area called where plates meet?", "the area is called ___ where plates meet"),
        ("What was the engine used for in 1800?", "the engine was used for ___ in 1800"),
        ("What were teachers paid in the past?", "teachers were paid ___ in the past"),
        ("How many times was the king crowned?", "the king was crowned ___ times"),
        ("Where is the law no longer used?", "the law is no longer used ___"),
        ("How many rooms are there in the castle?", "there are ___ rooms in the castle"),
        ("What was Tesla studying in 1875?", "Tesla was studying ___ in 1875"),
        ("What year was Tesla born?", "Tesla was born in ___"),
        # adverbials
        ("When did Tesla move to Prague?", "Tesla moved to Prague ___"),
        ("When was the museum opened?", "the museum was opened ___"),
        ("Where is the aboral organ located?", "the aboral organ is located ___"),
        ("Why did the miners strike when the war began?", "the miners struck ___ when the war began"),
        ("How old was Tesla when he died?", "Tesla was ___ when he died"),
        ("How long did Project Apollo run?", "Project Apollo ran ___"),
        # a preposition or another phrase first
        ("In what year did Savery patent his pump?", "Savery patented his pump in ___"),
        ("To whom did Luther write a letter?", "Luther wrote a letter to ___"),
        ("In which country is Normandy located?", "Normandy is located in ___"),
        ("In 1990, who led the team?", "In 1990, ___ led the team"),
        ("Approximately how many items are in the castle?", "___ items are in the castle"),
        (
            "When a commission reached no decision, what happened?",
            "When a commission reached no decision, ___ happened",
        ),
        # the question word is in the place of the answer
        ("The bridge was built by whom in 1990?", "The bridge was built by ___ in 1990"),
        ("Elders are members of what group?", "Elders are members of ___"),
    ],
)
def test_statements(question, expected):
    assert with_gap(question) == expected


@pytest.mark.parametrize(
    ("question", "role", "asked", "is_subject"),
    [
        ("What city did Tesla move to?", "thing", "what city", False),
        ("Who designed the garden?", "thing", "who", True),
        ("What is the name of the river?", "thing", "what name", False),
        ("When was the museum opened?", "time", "when", False),
        ("Where is Warsaw?", "place", "where", False),
        ("How many people were killed?", "count", "how many", True),
        ("How much money did the city spend?", "amount", "how much", False),
        ("How long did Apollo run?", "duration", "how long", False),
        ("How old was Tesla?", "extent old", "how old", False),
        ("In which year was Tesla born?", "thing", "what year", False),
    ],
)
def test_what_is_asked_for(question, role, asked, is_subject):
    made = of(question)
    assert (made.role, made.asked, made.is_subject) == (role, asked, is_subject)


@pytest.mark.parametrize(
    "question",
    ["", "?", "What", "What?", "Who is?", "In what", "How many?", "Was it good?", "What is it like?", "Which of did?"],
)
def test_questions_without_a_statement(question):
    assert of(question) is None
