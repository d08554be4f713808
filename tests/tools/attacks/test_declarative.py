"""From questions to statements with a gap."""

import pytest

from tn_fairseq.tools.attacks.declarative import Statement, Token, spelled, statement, tokens
from tn_fairseq.tools.attacks.tagging import tag


def of(question: str) -> Statement | None:
    return statement(tokens(question, tag(question)))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # objects, with the tense of do
        ("What does AFC stand for?", "what AFC stands for is ___"),
        ("What do redistribution mechanisms lead to?", "what redistribution mechanisms lead to is ___"),
        ("What did Luther say the pope did?", "what Luther said the pope did was ___"),
        ("What did Luther not do in 1880?", "what Luther did not do in 1880 was ___"),
        ("What did the fish population tend to eat?", "what the fish population tended to eat was ___"),
        ("What did the Apollo crew return to Earth?", "what the Apollo crew returned to Earth was ___"),
        ("What have sympathetic jurors decided?", "what sympathetic jurors have decided is ___"),
        (
            "Who did Genghis Khan charge with finding it?",
            "the person that Genghis Khan charged with finding it was ___",
        ),
        ("What city did Tesla move to in 1880?", "the city that Tesla moved to in 1880 was ___"),
        ("What company has Disney bought in 1995?", "the company that Disney has bought in 1995 is ___"),
        ("What drugs can a doctor give?", "the drugs that a doctor can give are ___"),
        ("How many tackles did Miller make?", "the number of tackles that Miller made was ___"),
        (
            "How many seasons did the BBC produce Doctor Who?",
            "the number of seasons that the BBC produced Doctor Who was ___",
        ),
        ("How much oxygen does a fire use?", "the amount of oxygen that a fire uses is ___"),
        ("How much did the clubs pay?", "what the clubs paid was ___"),
        # subjects
        ("Who designed the garden in 1563?", "___ designed the garden in 1563"),
        ("Who did not vote for the law?", None),
        ("Who initially designed the garden?", "___ initially designed the garden"),
        ("What can cause a fire?", "___ can cause a fire"),
        ("Who had military control?", "___ had military control"),
        ("Which NFL team won Super Bowl 50?", "the NFL team that won Super Bowl 50 was ___"),
        ("Which NFL teams won the cup?", "the NFL teams that won the cup were ___"),
        ("Which king's engine later became popular?", "the king's engine that later became popular was ___"),
        ("How many people were killed in the riot?", "the number of people that were killed in the riot was ___"),
        # forms of be
        ("Who was the first president?", "the first president was ___"),
        ("What was the year when it is cold?", "the year was ___ when it is cold"),
        ("Which river is the longest?", "the river that is the longest is ___"),
        ("What is the area called where plates meet?", "what the area is called where plates meet is ___"),
        ("What was the engine used for in 1800?", "what the engine was used for in 1800 was ___"),
        ("What is the law that people complain about?", "the law that people complain about is ___"),
        ("What is inequality a reflection of?", "what inequality is a reflection of is ___"),
        ("What year was Tesla born?", "the year that Tesla was born was ___"),
        # adverbials
        ("When did Tesla move to Prague?", "Tesla moved to Prague ___"),
        ("When was the museum opened?", "the museum was opened ___"),
        ("Where is the law no longer used?", "the law is no longer used ___"),
        ("Where is the oldest library?", "the oldest library is ___"),
        ("How was the king able to win?", "the king was able to win ___"),
        ("Why did the miners strike when the war began?", "the miners struck ___ when the war began"),
        # a preposition or another phrase first
        ("In what year did Savery patent his pump?", "Savery patented his pump in ___"),
        ("To whom did Luther write a letter?", "Luther wrote a letter to ___"),
        ("In 1990, who led the team?", "In 1990, ___ led the team"),
        ("When a commission met, what happened?", "When a commission met, ___ happened"),
        # the question word is in the place of the answer
        ("The bridge was built by whom in 1990?", None),
        ("Elders are members of what group?", "Elders are members of ___"),
        ("The treaty caused what new problem in Rome?", "The treaty caused ___ in Rome"),
        ("His poem is the first kind of what type of protest?", None),
        ("The area has been inhabited for how many years?", None),
        ("The king that what he did was bad", None),
        ("It is said (in the text) what (it is)?", None),
        ('Who said "No"?', '___ said "No"'),
        *((question, None) for question in ("", "?", "What", "Who is?", "In what", "How many?", "Was it good?")),
        *((question, None) for question in ("Which of did?", "How old was Tesla?", "Whose car did he see?")),
    ],
)
def test_statements(question, expected):
    made = of(question)
    assert (made and spelled([*made.before, Token("___", ""), *made.after]).strip()) == expected


@pytest.mark.parametrize(
    ("question", "role", "asked"),
    [
        ("What city did Tesla move to?", "thing", "what city"),
        ("Whom did Tesla see?", "thing", "who"),
        ("What is the name of the river?", "thing", "what name"),
        ("When was the museum opened?", "time", "when"),
        ("Where is Warsaw?", "place", "where"),
        ("Why did Rome fall?", "reason", "why"),
        ("How did Rome fall?", "manner", "how"),
        ("How many people were killed?", "count", "how many"),
        ("How much money did the city spend?", "amount", "how much"),
        ("In which year was Tesla born?", "thing", "what year"),
    ],
)
def test_what_is_asked_for(question, role, asked):
    made = of(question)
    assert (made.role, made.asked) == (role, asked)
