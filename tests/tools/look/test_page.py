"""The page of cases: the contents of its file, and what a browser shows."""

import html
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from helpers import BROWSER

from tn_fairseq.tools.look.case_page import Case, Synonym, TeacherCase, case_page, cases_json

HOSTILE = "</script><img src=x onerror=\"document.title='hacked'\"><!--<script>"
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
CHECKPOINT = "checkpoints/checkpoint9.pt"
RATES = ("sequence_rate", "prediction_rate", "masked_rate", "accuracy")
HARNESS = Path(__file__).with_name("page_in_frames.html")  # opens the pages, and describes what it sees


def case(gold="primary", prediction="main", probability=0.4, synonyms=None, **fields) -> Case:
    """A case, corrected by default."""
    context = [("… an adaptive", 0), (" immune", 1), (" system whose", 0), (f" {gold}", 2), (" function is", 0)]
    defaults = {
        "table": "wordnet",
        "context": context,
        "gold": gold,
        "gold_probability": 0.25,
        "prediction": prediction,
        "prediction_probability": probability,
        "part_of_speech": "adjective",
        "inflection": "same form",
        "synonyms": [Synonym("chief", 0.00004), Synonym(prediction, probability)] if synonyms is None else synonyms,
        "corrected": True,
    }
    return Case(**(defaults | fields))


def near_miss(gold="small", probability=0.2, **fields) -> Case:
    synonyms = [Synonym("tiny", probability / 4), Synonym("little", probability)]
    return case(gold, "old", 0.5, synonyms, corrected=False, **fields)


def teacher_case(gold="century", prediction="decade", probability=0.3, synonym_in=(), **fields) -> TeacherCase:
    defaults = {
        "teacher": "good.pt",
        "context": [("in the 18th", 0), (f" {gold}", 2), (" of", 0)],
        "gold": gold,
        "gold_probability": 0.1,
        "prediction": prediction,
        "prediction_probability": 0.6,
        "part_of_speech": "noun",
        "inflection": "same form",
        "synonym_in": list(synonym_in),
        "teacher_gold_probability": 0.2,
        "teacher_prediction_probability": probability,
    }
    return TeacherCase(**(defaults | fields))


def rates(table="wordnet", seeds=2, checkpoint=CHECKPOINT) -> dict:
    row = {"checkpoint": checkpoint, "updates": 12500, "table": table, "mask_seeds": seeds}
    row |= {"masked": 2000, "mismatches": 1500, "corrected": 21, "loss": 4.1436}
    for rate in RATES:
        low, high = (1.25, 1.55) if seeds > 1 else (None, None)
        row |= {rate: 1.4, f"{rate}_low": low, f"{rate}_high": high}
    return row


def judged(row: dict) -> dict:
    """The row with the rates of a teacher."""
    of_teacher = {"teacher_as_likely_rate": 56.25, "teacher_likely_rate": 29}
    return row | of_teacher | {f"{rate}{end}": None for rate in of_teacher for end in ("_low", "_high")}


def page(cases, of_all=None, curves=(), teacher=None, checkpoint=CHECKPOINT) -> str:
    return case_page(checkpoint, 12500, "valid", cases, of_all or [rates()], curves, teacher)


def data_of(text: str) -> dict:
    """The data that the page's script reads: the text up to the end of the element for an HTML parser."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script', text, re.DOTALL)[1])


def test_cases_are_embedded_unchanged_and_sorted_by_confidence():
    """The confidence is the probability of the predicted synonym, or else of the most likely one; ties keep order."""
    synonyms = [Synonym("q\u2028\u2029\u0000\r\n\\\"'", 0.125), Synonym("main", 0.4)]
    whole = case(gold=HOSTILE, table="a & b", synonyms=synonyms)
    less_likely = case("c", probability=0.1, synonyms=[Synonym("chief", 0.3), Synonym("main", 0.1)])
    cases = [near_miss("a", 0.2), whole, less_likely, near_miss("d", 0.4)]
    cases.append(case("none", synonyms=[], corrected=False))
    data = data_of(page(cases))
    # JSON has lists instead of tuples
    assert data["cases"] == json.loads(json.dumps([cases[number] for number in (1, 3, 0, 2, 4)]))
    assert data["rates"] == [rates()]
    assert (data["checkpoint"], data["updates"], data["split"]) == (CHECKPOINT, 12500, "valid")


def test_the_data_holds_a_teachers_cases_most_likely_first():
    cases = [teacher_case("a", probability=0.2), case("b", probability=0.3), teacher_case("c", probability=0.4)]
    data = data_of(page(cases, teacher="good.pt"))
    assert data["teacher"] == "good.pt" and "teacher" not in data_of(page(cases[1:2]))
    assert [fields[2] for fields in data["cases"]] == ["c", "b", "a"]
    sentence = [["in the 18th", 0], [" c", 2], [" of", 0]]
    expected = ["good.pt", sentence, "c", 0.1, "decade", 0.6, "noun", "same form", []]
    assert data["cases"][0] == [*expected, 2, 0.2, 0.4]
    read = json.loads(cases_json(cases))
    assert list(read[0]) == list(TeacherCase._fields) and list(read[1]) == list(Case._fields)


def test_no_text_can_end_the_data_or_break_the_file():
    text = page([case(gold=f"{HOSTILE}\u2028\ud800{{{{policy}}}}")], checkpoint=HOSTILE)
    assert text.count("<img") == text.count("<!--") == 0
    assert len(re.findall("</script", text)) == 2  # the ends of the data and of the script
    assert "\u2028" not in text
    assert "{{policy}}" in data_of(text)["cases"][0][2] and text.count("default-src") == 1
    text.encode("utf-8")


def test_the_policy_allows_only_the_pages_own_style_and_script():
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page([]))[1]
    digest = "'sha256-[A-Za-z0-9+/]{43}='"
    assert re.fullmatch(
        f"default-src 'none'; style-src {digest}; script-src {digest}; base-uri 'none'; form-action 'none'", policy
    )
    assert "src=" not in page([]) and "href=" not in page([]) and "url(" not in page([])


# ---- in a browser: all pages are opened at once, each in a frame as narrow as a phone; a fragment may follow the name

WORDS = [
    case("primary", "main", 0.38712, part_of_speech="adjective"),
    case(
        "stay",
        "remain",
        0.64,
        part_of_speech="verb",
        synonyms=[Synonym(f"s{n}", n / 1000) for n in range(20)] + [Synonym("remain", 0.64), Synonym("abide", 0.0)],
    ),
    case("stays", "keeps", 0.9996, part_of_speech="verb", table="vectors"),
    case("ground", "domain", 0.0042, part_of_speech="noun", table="vectors", inflection="other word"),
    case(HOSTILE, LONG, 0.002, part_of_speech="noun", table=HOSTILE, context=[(" " + HOSTILE, 1), (" " + LONG, 2)]),
    near_miss("stay", 0.15, part_of_speech="verb"),
    near_miss("big", 0.35, inflection="own word"),
]
PAGES = {
    "words": (WORDS, [rates("wordnet"), rates("vectors"), rates(LONG)]),
    "near": ([near_miss("small", 0.1), near_miss("big", 0.3)], [rates(seeds=1), rates("x", seeds=1)]),
    "many": (
        [case(f"word{number:03}", probability=number / 1000) for number in range(120)],
        [rates(checkpoint="runs/plain/last.pt"), rates(checkpoint="runs/corrected/last.pt")],
        [
            {"name": "plain", "points": [(20, 5.5), (40, 4.75), (60, 4.5)]},
            {"name": HOSTILE, "points": [(20, 5.25), (40, 4.6)]},
        ],
    ),
    "empty": ([],),
    "teacher": (
        [
            case("primary", "main"),
            teacher_case("century", "decade", 0.3),
            teacher_case("stay", "remain", 0.9, ["wordnet", "vectors"], part_of_speech="verb"),
        ],
        [judged(rates(seeds=1)), judged(rates(checkpoint="checkpoints/a.pt"))],
        (),
        HOSTILE,
    ),
    "arabic": ([case("جميلة", "رائعة", context=[("كانت المدينة", 0), (" جميلة", 2), (" جدا", 0)])],),
}
FRAMES = {
    "default": "words.html",
    "by word": "words.html#word=STAY&show=all",
    "by beginning": "words.html#word=main",
    "by synonym": "words.html#word=abi",
    "by several": "words.html#word=stay&table=wordnet&pos=verb&show=near",
    "by table": "words.html#table=vectors",
    "by inflection": "words.html#inflection=own+word&show=all",
    "by hostile table": f"words.html#table={quote(HOSTILE)}",
    "invalid": "words.html#table=none&pos=pronoun&show=some&word=%E0%A4%A&word",
    "no match": "words.html#word=zzz",
    "near": "near.html",
    "near, corrected asked": "near.html#show=corrected",
    "many": "many.html",
    "empty": "empty.html#word=stay",
    "teacher": "teacher.html#show=teacher",
    "teacher, by table": "teacher.html#show=teacher&table=vectors",
    "teacher, all": "teacher.html#show=all",
    "right to left": "arabic.html",
    "no script": "words.html",
    "typed": "words.html",
    "cleared": "words.html#word=stay&show=all",
    "changed": "words.html#word=stay",
    "policy": "words.html",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    """What the browser shows in each frame."""
    if BROWSER is None:
        pytest.skip("no chromium")
    folder = tmp_path_factory.mktemp("pages")
    for name, contents in PAGES.items():
        (folder / f"{name}.html").write_text(page(*contents), encoding="utf-8")
    frames = [
        f'<iframe name="{name}" src="{html.escape(address)}" style="width: 360px; height: 640px; border: 0"'
        f"{' sandbox=allow-same-origin' if name == 'no script' else ''}></iframe>"
        for name, address in FRAMES.items()
    ]
    (folder / "tests.html").write_text(HARNESS.read_text().replace("FRAMES", "\n".join(frames)), encoding="utf-8")
    flags = (
        "--headless --no-sandbox --disable-gpu --allow-file-access-from-files --virtual-time-budget=20000 --dump-dom"
    )
    command = [BROWSER, *flags.split(), f"--user-data-dir={folder / 'profile'}", (folder / "tests.html").as_uri()]
    # no pipes, which processes that outlive the browser would keep open
    with open(folder / "dom.html", "wb") as output:
        subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, check=True)
    dom = (folder / "dom.html").read_text(encoding="utf-8")
    found = json.loads(html.unescape(re.search('<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))
    assert "error" not in found, found["error"]
    return found


def golds(frame: dict) -> list[str]:
    return [one["gold"] for one in frame["cases"]]


def test_corrected_cases_are_shown_by_default(seen):
    frame = seen["default"]
    assert golds(frame) == ["stays", "stay", "primary", "ground", HOSTILE]
    assert frame["filters"] == {"word": "", "table": "", "pos": "", "inflection": "", "show": "corrected"}
    assert not frame["visible"]["clear"] and not frame["visible"]["more"] and not frame["visible"]["none-corrected"]
    assert "checkpoints/checkpoint9.pt after 12,500 updates" in frame["text"]


def test_a_case_shows_the_words_in_their_sentence_and_their_probabilities(seen):
    primary = seen["default"]["cases"][2]
    assert primary["sentence"] == "… an adaptive immune system whose [gold: primary→ predicted: main] function is"
    assert primary["masked"] == ["immune"]
    assert primary["tags"] == ["corrected", "adjective", "wordnet"]
    assert (primary["gold"], primary["prediction"]) == ("primary", "main")
    assert primary["percents"] == ["25.0%", "38.7%"]
    assert primary["synonyms"] == primary["predicted"] + ["chief"] == ["main", "chief"]  # most likely first
    assert primary["synonymPercents"] == ["38.7%", "< 0.01%"]
    assert primary["likeliest"] == primary["hits"] == []
    assert [one["percents"][1] for one in seen["default"]["cases"][::3]] == ["> 99.9%", "0.42%"]


def test_the_arrow_points_from_gold_to_prediction_in_a_text_from_right_to_left(seen):
    (arabic,) = seen["right to left"]["cases"]
    gold, arrow, prediction = arabic["places"]
    assert gold < arrow < prediction
    assert arabic["direction"] == "rtl"


def test_a_teachers_case_shows_the_probabilities_of_both_models(seen):
    frame = seen["teacher"]
    stay, century = frame["cases"]
    assert stay["tags"] == ["likely to the teacher", "verb", "a synonym in wordnet", "a synonym in vectors"]
    assert century["tags"] == ["likely to the teacher", "noun", "no synonym"]
    assert century["sentence"] == "in the 18th [gold: century→ predicted: decade] of"
    assert (century["gold"], century["prediction"], century["synonyms"]) == ("century", "decade", [])
    assert century["percents"] == ["10.0%", "20.0%", "60.0%", "30.0%"]
    assert golds(seen["teacher, by table"]) == ["stay"]
    assert golds(seen["teacher, all"]) == ["stay", "primary", "century"]


def test_a_teacher_is_named_and_has_rates_only_if_there_is_one(seen):
    frame = seen["teacher"]
    assert HOSTILE in frame["text"]
    assert [row[1] for row in frame["rates"][-2:]] == ["56.25%", "29.00%"]
    assert [row[-1] for row in frame["checkpoints"]][1:] == ["29.00%", "29.00%"]
    assert frame["visible"]["of-teacher"] and not seen["default"]["visible"]["of-teacher"]
    assert "teacher" not in seen["default"]["text"] and len(seen["default"]["rates"]) == 4


@pytest.mark.parametrize(
    "name, expected",
    [
        ("by word", ["stays", "stay", "stay"]),
        ("by beginning", ["primary"]),  # not remain, not domain
        ("by synonym", ["stay"]),
        ("by several", ["stay"]),
        ("by table", ["stays", "ground"]),
        ("by inflection", ["big"]),
        ("by hostile table", [HOSTILE]),
        ("no match", []),
    ],
)
def test_the_fragment_filters(seen, name, expected):
    frame = seen[name]
    assert golds(frame) == expected
    assert frame["count"].startswith(str(len(expected)) if expected else "No cases")
    assert frame["visible"]["clear"] and frame["visible"]["browser"]


def test_the_filters_match_the_fragment_or_the_defaults_if_it_is_invalid(seen):
    expected = {"word": "stay", "table": "wordnet", "pos": "verb", "inflection": "", "show": "near"}
    assert seen["by several"]["filters"] == expected
    assert seen["by inflection"]["filters"] == seen["default"]["filters"] | {"inflection": "own word", "show": "all"}
    assert [one["tags"][0] for one in seen["by word"]["cases"]] == ["corrected", "corrected", "near miss"]
    assert seen["invalid"]["filters"] | {"word": ""} == seen["default"]["filters"]
    assert seen["near, corrected asked"]["filters"] == seen["near"]["filters"]


def test_near_misses_are_the_default_if_nothing_is_corrected(seen):
    frame = seen["near"]
    assert frame["filters"]["show"] == "near" and frame["disabled"] == ["corrected"]
    assert frame["visible"]["none-corrected"] and not frame["visible"]["clear"]
    big, small = frame["cases"]
    assert (big["gold"], big["prediction"], big["tags"][0]) == ("big", "old", "near miss")
    assert big["predicted"] == [] and big["likeliest"] == ["little"] and big["synonyms"] == ["little", "tiny"]
    assert small["gold"] == "small"


def test_tables_and_inflections_are_marked_and_have_filters_if_there_are_several(seen):
    assert seen["default"]["tables"] == ["", "vectors", "wordnet", HOSTILE]
    for name in ("table", "inflection"):
        assert seen["default"]["visible"][name] and not seen["near"]["visible"][name]
    (big,), (_, ground) = seen["by inflection"]["cases"], seen["by table"]["cases"]
    assert big["tags"] == ["near miss", "adjective", "another form of the gold word", "wordnet"]
    assert ground["tags"] == ["corrected", "noun", "another word in another form", "vectors"]


def test_many_cases_are_shown_fifty_at_a_time(seen):
    names = [f"word{number:03}" for number in reversed(range(120))]
    assert golds(seen["many"]) == names[:50]
    assert re.findall(r"\d+", seen["many"]["count"]) == ["120", "50"]
    assert golds(seen["many, more"]) == names[:100]
    assert seen["many, more"]["focused"] == "Case 51: gold word069, prediction main"
    assert golds(seen["many, all"]) == names
    assert seen["many"]["visible"]["more"] and not seen["many, all"]["visible"]["more"]


def test_long_rows_of_synonyms_are_folded(seen):
    before, after = seen["by word"]["cases"][1], seen["unfolded"]["cases"][1]
    assert before["synonyms"] == ["remain", *(f"s{number}" for number in range(19, 8, -1))]
    assert seen["fold"] == ["Show 10 less probable ones", "false"]
    assert after["synonyms"][:12] == before["synonyms"] and len(after["synonyms"]) == 22
    assert seen["folded"]["cases"][1] == before
    # a synonym that matches the search is not folded
    found = seen["by synonym"]["cases"][0]
    assert found["hits"] == ["abide"] == found["synonyms"][12:]


def test_the_url_follows_the_filters_and_the_filters_follow_the_url(seen):
    assert golds(seen["typed"]) == ["stay"] and seen["typed"]["hash"] == "#word=Sta&show=near"
    assert seen["cleared"]["hash"] == "" and golds(seen["cleared"]) == golds(seen["default"])
    assert seen["cleared"]["focused"] == "word"
    assert golds(seen["changed"]) == ["ground", HOSTILE] and seen["changed"]["filters"]["word"] == ""


def test_the_header_shows_rates_and_several_checkpoints_and_curves(seen):
    cell = "1.400%\n1.250 to 1.550\n21 of 1,500"
    assert seen["default"]["rates"][0][1:] == [cell, cell, cell]
    cells = ["1.400%\n21 of 1,500", "1.400%\n21 of 2,000", "1.400%", "1.40%\n500 of 2,000"]
    near, many = seen["near"], seen["many"]
    assert [row[1] for row in near["rates"]] == cells
    assert many["checkpoints"][1:] == [
        [f"{name}/last.pt", "12,500", "4.144", "1.40%", "1.400%", "1.40%"] for name in ("plain", "corrected")
    ]
    # the numbers at the axes are round
    names = ["plain5.50 to 4.50 bits", f"{HOSTILE}5.25 to 4.60 bits"]
    assert many["losses"] == [*names, "4.5", "5.0", "5.5", "0 updates", "50"] and many["curves"] == [3, 2]
    assert near["checkpoints"] == near["losses"] == []


def test_without_cases_or_javascript_there_is_a_message_and_no_controls(seen):
    frame = seen["empty"]
    assert frame["visible"]["nothing"] and not frame["visible"]["browser"] and frame["visible"]["rates"]
    assert "requires JavaScript" in seen["no script"]["text"] and "requires JavaScript" not in seen["default"]["text"]


def test_text_that_looks_like_html_is_shown_as_text_and_nothing_is_loaded(seen):
    hostile = seen["default"]["cases"][4]
    assert hostile["gold"] == HOSTILE and hostile["masked"] == [HOSTILE] and hostile["tags"][2] == HOSTILE
    assert hostile["prediction"] == LONG and LONG in hostile["sentence"]
    assert seen["default"]["images"] == 0
    assert all(seen[name]["requests"] == 0 for name in FRAMES if name != "policy")
    assert sorted(seen["violations"]) == ["img-src", "script-src-elem"]
    assert {seen[name]["title"] for name in ("default", "policy")} == {"False negatives of checkpoint9.pt"}


def test_nothing_is_wider_than_a_phone(seen):
    for name in FRAMES:
        assert 300 < seen[name]["scrollWidth"] == seen[name]["width"] <= 360, name
        assert seen[name]["tooWide"] == [], name
