"""Attacked questions as a file in SQuAD 1.1's format."""

import json

from files import refused, write

from tn_fairseq.tools.attacks.squad_file import Attacked, check_output, summary, write_attacked
from tn_fairseq.tools.formats.squad_json import SquadExample, read_squad

EXAMPLES = [
    SquadExample("1", "Who ran?", "The dog ran.", (("The dog", 0), ("dog", 4)), "Dogs"),
    SquadExample("2", "What did it do?", "The dog ran.", (("ran", 8),), "Dogs"),
    SquadExample("3", "Wer schläft?", "Die Katze schläft.", (), "Katzen"),
]


def test_what_is_written_can_be_read(tmp_path):
    questions = [Attacked(example, {"swaps": [[example.id, "x"]]}) for example in EXAMPLES]
    write_attacked(tmp_path / "attacked.json", questions, {"name": "test", "seed": 1})
    assert read_squad(tmp_path / "attacked.json") == EXAMPLES
    content = json.loads((tmp_path / "attacked.json").read_text(encoding="utf-8"))
    assert content["attack"] == {"name": "test", "seed": 1} and content["version"] == "1.1"
    swaps = [[p["qas"][0]["swaps"] for p in article["paragraphs"]] for article in content["data"]]
    assert swaps == [[[["1", "x"]], [["2", "x"]]], [[["3", "x"]]]]


def test_nothing_is_written_without_questions_or_with_a_misplaced_answer(tmp_path):
    misplaced = Attacked(SquadExample("1", "Who?", "The cats ran.", (("The dog", 0),)))
    for questions, message in (([], "no question"), ([misplaced], "'1': the answer 'The dog'")):
        assert message in refused(write_attacked, tmp_path / "attacked.json", questions, {})
    assert not list(tmp_path.iterdir())


def test_only_an_attacked_file_is_replaced_and_not_the_input(tmp_path):
    source, output = write(tmp_path / "dev.json", '{"attack": {}}'), tmp_path / "attacked.json"
    (tmp_path / "link.json").symlink_to(source)
    for given in (source, tmp_path / "link.json"):
        assert "is the input" in refused(check_output, source, given)
    check_output(source, output)
    for content in ("{}", "my notes", "[1]"):
        assert f"{output}: exists" in refused(check_output, source, write(output, content))
    check_output(source, write(output, '{"version": "1.1", "attack": {}, "data": []}'))


def test_the_summary_counts_every_question():
    assert summary(5, {"a": "no answers", "b": "nothing to do", "c": "no answers"}) == [
        "questions: 8, attacked: 5, left out: 3",
        "left out because no answers: 2",
        "left out because nothing to do: 1",
    ]
