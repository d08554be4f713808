"""The reader of SWORDS: what it returns, and its errors."""

import gzip
import json

import pytest
from files import refused, write
from lexical_files import swords_content, write_swords
from tokenizer_folders import REAL_DATA, with_real_data

from tn_fairseq.synonyms.swords import read_swords, verdict

SENTENCES = [
    ("We saw dogs.\n\tTheir bark, and a dog, woke us.", "bark", {"howl": 5, "cry": 3, "tree": 0, "high cry": 10}),
    ("The total is due.", "total", {"sum": 9}),
]


@pytest.mark.parametrize("name", ["swords.json.gz", "swords.json"])
def test_targets_are_where_the_file_says_with_their_judgments_in_its_order(tmp_path, name):
    content = swords_content([*SENTENCES, ("No and no.", "no", {"nay": 1})])
    content["targets"]["t:2"]["offset"] = 7
    bark, total, no = read_swords(write_swords(tmp_path / name, content))
    assert (bark.context, bark.word, bark.start, bark.end) == (SENTENCES[0][0], "bark", 20, 24)
    assert bark.substitutes == (("howl", 0.5), ("cry", 0.3), ("tree", 0.0), ("high cry", 1.0))
    assert (total.id, total.part_of_speech, total.lemma, total.substitutes) == ("t:1", "NOUN", "total", (("sum", 0.9),))
    assert (no.word, no.start) == ("no", 7)


def test_a_target_and_its_lemma_are_not_substitutes_of_it(tmp_path):
    sentence = ("They Barked.", "Barked", {"bark": 9, "barked": 9, "barking": 9, "cry": 1})
    (target,) = read_swords(write_swords(tmp_path / "s", swords_content([sentence], {"Barked": "bark"})))
    assert [substitute.text for substitute in target.substitutes] == ["barking", "cry"]


def test_unsure_judges_do_not_count(tmp_path):
    content = swords_content([("The total is due.", "total", {"sum": 0, "all": 0})])
    content["substitute_labels"]["s:0-sum"] = ["TRUE", "UNSURE", "FALSE", "UNSURE"]
    content["substitute_labels"]["s:0-all"] = ["UNSURE"]
    (target,) = read_swords(write_swords(tmp_path / "s", content))
    assert target.substitutes == (("sum", 0.5),)


def test_verdicts():
    expected = {1: "acceptable", 0.5: "acceptable", 0.49: "doubtful", 0.1: "doubtful", 0.09: "rejected", 0: "rejected"}
    assert {score: verdict(score) for score in expected} == expected


COMPRESSED = gzip.compress(json.dumps(swords_content(SENTENCES)).encode(), mtime=0)


def put(table, key, field, value):
    def change(content):
        content[table][key][field] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda content: content.pop("targets"), "targets"),
        (put("targets", "t:0", "offset", 21), "targets['t:0'].offset"),
        (put("targets", "t:0", "offset", -27), "targets['t:0'].offset"),
        (put("targets", "t:0", "target", ""), "targets['t:0'].offset"),
        (put("targets", "t:0", "context_id", "c:9"), "contexts['c:9'].context"),
        (put("substitutes", "s:0-cry", "target_id", "t:9"), "substitutes['s:0-cry'].target_id"),
        (put("substitute_labels", "s:0-cry", slice(0, 1), ["MAYBE"]), "labels['s:0-cry']: 'MAYBE'"),
        (lambda content: content["substitutes"].clear(), "no judged substitutes"),
        (COMPRESSED[:-20], "damaged"),
        (COMPRESSED[:40] + b"\x00" + COMPRESSED[41:], "damaged"),
        (b"tiger\tcat\t7.35\n", "not valid JSON"),
    ],
)
def test_invalid_content_gets_one_line(change, expected, tmp_path):
    content = swords_content(SENTENCES)
    if not isinstance(change, bytes):
        change(content)
    path = write(tmp_path / "swords.json", change if isinstance(change, bytes) else content)
    message = refused(read_swords, path)
    assert message.startswith(str(path)) and expected in message


@with_real_data
def test_the_real_file():
    targets = read_swords(REAL_DATA / "lexical" / "swords-v1.1_dev.json.gz")
    # 20 of the file's 22,978 substitutes are the lemma of their target
    assert (len(targets), sum(len(target.substitutes) for target in targets)) == (370, 22958)
    assert (targets[0].word, targets[0].substitutes[0].text) == ("total", "all")
