"""Lists of synonyms: the formats, what is counted and left out, wrong input, and tables from the command."""

import hashlib
import itertools
import json

import pytest
from files import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from tn_fairseq.commands.synonyms_build import main
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.core.synonym_table import load_synonym_table, read_description
from tn_fairseq.synonyms import lists
from tn_fairseq.synonyms.list_formats import FORMATS
from tn_fairseq.synonyms.lists import SynonymList
from tn_fairseq.synonyms.terms import is_other_relation

WORDS = ["big", "large", "huge", "Polish", "polish", "shine", "polls", "election", "elections", "small", "École"]
PAIRS = [("big", "large", 3.0), ("big", "huge", 2.0), ("polish", "shine", 1.5), ("large", "big", 1.0)]


def mythes(pairs):
    rows = [(word, [pair[1] for pair in group]) for word, group in itertools.groupby(pairs, key=lambda pair: pair[0])]
    return "UTF-8\n" + "".join(f"{word}|1\n(adj)|{'|'.join(row)}\n" for word, row in rows)


WRITERS = {
    "pairs": lambda pairs: "".join(f"{word}\t{other}\t{score}\n" for word, other, score in pairs),
    "groups": lambda pairs: "".join(f"{word} => {other}\n" for word, other, _ in pairs),
    "mythes": mythes,
    "json": lambda pairs: "".join(
        json.dumps({"word": word, "synonyms": [other], "score": score}) + "\n" for word, other, score in pairs
    ),
    "ppdb": lambda pairs: "".join(
        f"[JJ] ||| {word} ||| {other} ||| PPDB2.0Score={score} PPDB1.0Score=9 ||| 0-0 ||| Equivalence\n"
        for word, other, score in pairs
    ),
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="synonyms.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def build(tmp_path):
    """A function that runs the command, and returns the tensors' bytes, the rows in words and the description."""
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS), encoding="utf-8")
    dictionary, output = load_dictionary(tmp_path / "dict.txt"), tmp_path / "table.safetensors"

    def build(path, *options):
        flags = "--dict", tmp_path / "dict.txt", "--source", "list", "--synonyms", path, *options, "--output", output
        main(list(map(str, flags)))
        content, names = output.read_bytes(), dictionary.symbols
        rows = {
            names[index]: [names[other] for other in row if other != -1]
            for index, row in enumerate(load_synonym_table(output, dictionary).synonyms.tolist())
            if row[0] != -1
        }
        return content[8 + int.from_bytes(content[:8], "little") :], rows, read_description(output)

    return build


def synonyms(path, **options):
    return SynonymList(path, WORDS, **options).synonyms


@pytest.mark.parametrize("named", [False, True])
def test_all_formats_of_the_same_pairs_give_the_same_table(build, write, named):
    expected = {"big": ["large", "huge"], "polish": ["shine"], "large": ["big"], "Polish": []}
    found = {}
    for name, writer in WRITERS.items():
        path = write(writer(PAIRS))
        found[name], rows, description = build(path, *(["--format", name] if named else []))
        assert rows == {word: row for word, row in expected.items() if row}, name
        assert json.loads(description["options"])["format"] == name and description["source"] == "list"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines = path.read_bytes().count(b"\n")
        assert description["source_version"] == f"synonyms.txt, {lines} lines, sha256 {digest}"
    assert len(set(found.values())) == 1 and set(found) == set(FORMATS)


@pytest.mark.parametrize("name", WRITERS)
def test_symmetric_is_both_directions(build, write, name):
    both = [pair for word, other, score in PAIRS for pair in ((word, other, score), (other, word, score))]
    if name == "mythes":
        both.sort(key=lambda pair: pair[0])
    expected, rows, _ = build(write(WRITERS[name](both)))
    found, symmetric_rows, description = build(write(WRITERS[name](PAIRS)), "--symmetric")
    assert symmetric_rows == rows and found == expected and rows["shine"] == ["polish"]
    assert json.loads(description["options"])["symmetric"] is True


@pytest.mark.parametrize(
    ("content", "format", "expected"),
    [
        ("big\tlarge\nhuge\tunknown\n", "pairs", {"big": ["large"], "huge": []}),
        ("\ufeffbig\tlarge\r\n\r\n# comment\r\n", "pairs", {"big": ["large"]}),
        (
            "big, large, 1\nbig, huge, 2e0\nbig,small\n",
            "pairs",
            {"big": ["huge", "large", "small"]},
        ),  # score, then order
        ("big\thuge\t-1\nbig\tsmall\t0\nbig\tlarge\t1\n", "pairs", {"big": ["large", "small", "huge"]}),  # no index
        ("big,large,1\nbig,huge,2\nbig,large,3\n", "pairs", {"big": ["large", "huge"]}),  # the best score counts
        ("score,Synonym,note,WORD\n2,large,x,big\n,huge,,big\n", "pairs", {"big": ["large", "huge"]}),
        ('word,synonym\n"big","large"\nbig,"huge, vast"\n', "pairs", {"big": ["large", "huge"]}),
        ("word\tsynonym\nbig\tlarge\n", "pairs", {"big": ["large"]}),
        ("BIG\tLarge\necole\tbig\nÉCOLE\tbig\n", "pairs", {"big": ["large"], "école": ["big"]}),
        ("big, large\n", "groups", {"big": ["big", "large"], "large": ["big", "large"]}),
        ("big\tlarge\thuge\tvast\n", "groups", {word: ["big", "large", "huge"] for word in ("big", "large", "huge")}),
        ("# a\nbig, so big => large, huge\nhuge => big\n", "groups", {"big": ["large", "huge"], "huge": ["big"]}),
        (r"big\, large, huge, small" + "\n", "groups", {word: ["huge", "small"] for word in ("huge", "small")}),
        (
            "UTF-8\nbig|2\n(adj)|large|vast and wide\n(adj)|huge (similar term)|small (antonym)\nécole|0\n",
            "mythes",
            {"big": ["large", "huge"]},
        ),
        ("ISO8859-1\nécole|1\n-|big|size (generic term)\n".encode("latin-1"), "mythes", {"école": ["big"]}),
        ("[X] ||| big ||| large ||| a=1 ||| 0-0\n", "ppdb", {"big": ["large"]}),
    ],
)
def test_each_format_is_recognized(write, content, format, expected):
    found = SynonymList(write(content), WORDS)
    assert (found.format, found.synonyms) == (format, expected)


def test_every_line_is_counted_once(write, build, capsys):
    lines = [
        *("big,large,3", "# comment", "", "big,very large,3", "big,take_on,9", "big,unknown,3", "big,large,0.5"),
        *("big,big,3", "unknown,much,1", "huge,small,1"),
    ]
    path = write("\n".join(["word,synonym,score", *lines]) + "\n")
    counts = {name: count for name, count in SynonymList(path, WORDS, min_score=1).counts.items() if count}
    assert counts == {
        "lines used": 2,
        "lines skipped: headings": 1,
        "lines skipped: blank or comments": 2,
        "lines skipped: below --min-score": 1,
        "lines skipped: several words": 2,
        "lines skipped: not in the dictionary": 2,
        "lines skipped: no other word": 1,
        "entries left out: several words": 2,
        "entries left out: not in the dictionary": 3,
    }
    assert sum(count for name, count in counts.items() if name.startswith("lines")) == len(lines) + 1
    rows = build(path, "--min-score", 1)[1]
    assert rows == {"big": ["large"], "huge": ["small"]}
    printed = capsys.readouterr().out
    assert f"{path}: read as pairs, columns separated by commas: 1 word, 2 synonym, 3 score\n  big: large" in printed
    assert all(f"{name:40}{count:11,}" in printed for name, count in counts.items())
    assert "in the list" in printed and "paper" not in printed


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("word,pos,synonym\nbig,adj,large|huge\nsmall,adj,big\n", {"big": ["large", "huge"], "small": ["big"]}),
        ("big\tlarge,huge\n", {"big": ["large", "huge"]}),
        ('big,"large,huge"\n', {"big": ["large", "huge"]}),
        ("\ufeffMot;Catégorie;Synonymes\r\nbig;adj;large / huge\r\n", {"big": ["large", "huge"]}),
        ("sep=;\nWort;Synonym;Gewicht\nbig;huge;0,8\nbig;large;0,9\n", {"big": ["large", "huge"]}),
        ("big\thuge\t80%\nbig\tlarge\t90%\n", {"big": ["large", "huge"]}),
        ("big;huge;1.234,5\nbig;large;1.235.000\n", {"big": ["large", "huge"]}),
        ('big\thuge\t"1,234.5"\nbig\tlarge\t1,235,000\n', {"big": ["large", "huge"]}),
        ("big\tpolls\tnoun\nhuge\tlarge\tadj\n", {"big": ["polls"], "huge": ["large"], "polls": [], "large": []}),
        ("big\tsmall\tantonym\nbig\tlarge\tsynonym\n", {"big": ["large"]}),
        ("id,term,synonyms,antonyms\n1,big,large;huge,small\n", {"big": ["large", "huge"]}),
        ("word,synonym1,synonym2\nbig,large,huge\n", {"big": ["large", "huge"]}),
        (",word,synonym\n0,big,large\n1,big,huge\n", {"big": ["large", "huge"]}),
        (",synonym1,kind,synonym2\n0,big,x,large\n1,big,x,huge\n", {"big": ["large", "huge"]}),  # the first is an index
        ("big: large, huge\n", {"big": ["large", "huge"]}),
        (" big - large, huge\n small - very big, big\n", {"big": ["large", "huge"], "small": ["big"]}),
        ("big -> large, huge\n", {"big": ["large", "huge"]}),
        ("big ==> large, huge\n", {"big": ["large", "huge"]}),
        ("big <=> large\n", {"big": ["big", "large"], "large": ["big", "large"]}),
        # more than a tenth of the lines have three words
        (
            "big;large;huge\nshine;polls\n",
            {word: ["big", "large", "huge"] for word in ("big", "large", "huge")}
            | {word: ["shine", "polls"] for word in ("shine", "polls")},
        ),
        ("word,synonym\n,\nbig,large\n,\n,\n", {"big": ["large"]}),
        ("id;hitza;sinonimoak\nsmall;big;large, huge\n", {"big": ["large", "huge"]}),
        ("    big   large, huge\n\tsmall\t\tbig, very big\n", {"big": ["large", "huge"], "small": ["big"]}),
        ("big large 0.1\nbig huge 0.2\n", {"big": ["huge", "large"]}),
        ('{"big": ["large", "huge"]}\n', {"big": ["large", "huge"]}),
        # "word", "similar" and "synonym" are words of this thesaurus
        (
            '{"big": ["large"], "similar": ["alike"], "word": ["term"], "huge": ["vast"]}',
            {"big": ["large"], "huge": []},
        ),
        ('{"similar": ["alike"], "big": ["large"]}', {"big": ["large"]}),
        ('{"words": ["big"], "synonyms": ["large"], "score": 3}', {"big": ["large"]}),
        (
            '[{"word": "big", "synonyms": ["huge"], "score": []}, {"word": "big", "synonyms": ["large"]}]',
            {"big": ["large"]},
        ),
        ('{"id": "small", "hitza": "big", "sinonimoak": ["large", "huge"], "new": true}', {"big": ["large", "huge"]}),
        (
            '{"big": {"0": {"pos": "adj", "synonyms": ["large"]}, "1": {"synonyms": ["huge"]}}}',
            {"big": ["large", "huge"]},
        ),
        (
            '{"big": [["large"], ["huge", "very large"]], "small": [["big"]]}',
            {"big": ["large", "huge"], "small": ["big"]},
        ),
        ('{"big": {"adjective": ["large"], "noun": ["huge"]}}', {"big": ["large", "huge"]}),
        ('{"adjective": {"big": ["large"], "huge": ["vast"]}}', {"big": ["large"], "huge": []}),
        ('{"big": {"noun": {"a": 1}}, "huge": ["large"]}', {"huge": ["large"]}),
        # rows of different lengths, of which the longer ones have no score
        ("word\tsynonyms\nbig\tlarge\tvast\thuge\nsmall\tbig\n", {"big": ["large", "huge"], "small": ["big"]}),
        # as LibreOffice's German thesaurus, whose first word is missing
        (
            "ISO8859-1\n|1\n-|x|y\nbig|1\n-|large|huge\nsmall|1\n-|huge\nhuge|1\n-|unknown\n",
            {"big": ["large", "huge"], "small": ["huge"], "huge": []},
        ),
        # without the first line, which is the encoding
        ("-|x|y\nbig|1\n-|large|huge\nsmall|1\n(adj)|huge\n", {"big": ["large", "huge"], "small": ["huge"]}),
        (
            '[\n["big", "large"]\n,\n["small", "polls"]\n]\n',
            {word: ["big", "large"] for word in ("big", "large")}
            | {word: ["small", "polls"] for word in ("small", "polls")},
        ),
        ('[\n {"lemma": "big", "synonyms": "large; huge", "antonyms": ["small"]}\n]\n', {"big": ["large", "huge"]}),
    ],
)
def test_columns_are_recognized_by_their_names_and_values(write, content, expected):
    found = synonyms(write(content))
    assert {word: row for word, row in found.items() if row} == {word: row for word, row in expected.items() if row}


def test_a_comma_before_three_digits_is_not_guessed(write):
    found = SynonymList(write("big;huge;0,812\nbig;vast;0,7\nbig;large;1,000\n"), WORDS)
    assert found.synonyms["big"] == ["huge"]
    assert any("can mean 1.000 or 1000; write one of them" in note for note in found.notes)
    path = write("word;synonym;score\nbig;huge;1,000\nbig;large;2,000\n")
    assert "line 2: the score '1,000' can mean 1.000 or 1000" in refused(SynonymList, path, WORDS)


def test_mythes_without_its_first_line_can_be_named(write):
    path = write("big|1\n-|large|huge\n")
    assert synonyms(path, format="mythes") == synonyms(path) == {"big": ["large", "huge"]}


def test_most_lines_decide_and_the_others_are_counted_with_an_example(write):
    found = SynonymList(write("big\tlarge\nnothing\nbig\thuge\nsmall\tbig\n"), WORDS)
    assert found.counts["lines skipped: not understood"] == 1
    assert "line 2: no second column: 'nothing'" in found.notes[-1] and found.notes[-1].startswith("warning: 25% of")
    assert found.notes[:3] == [
        "read as pairs, columns separated by tabs: 1 word, 2 synonym",
        "  big: large, huge",
        "  small: big",
    ]


def test_what_is_not_text_in_json_is_counted(write):
    content = {"big": ["large", 5, None], "huge": {"noun": ["great", {"word": "vast"}]}, "small": {"little": 0}}
    empty = {"odd": {}, "tiny": [""], "wee": {"noun": []}}
    listed = SynonymList(write(json.dumps(content | empty)), ["large", "big", "huge", "great", "small", "little"])
    assert listed.synonyms == {"big": ["large"], "huge": ["great"], "small": ["little"]}
    assert (listed.counts["lines used"], listed.counts["lines skipped: not understood"]) == (3, 3)
    assert listed.counts["entries left out: not text"] == 3 and listed.examples["entries left out: not text"] == "5"
    assert "line 1: no synonyms: '{\"odd\": {}}'" in listed.notes[-1]


def test_large_groups_are_named(write):
    group = ", ".join(["big", "large", *(f"other{number}" for number in range(19))])
    notes = SynonymList(write(f"{group}\n{group}\nbig, huge\n"), WORDS).notes
    assert any(note.startswith("warning: most groups have more than 20 words") for note in notes)
    notes = SynonymList(write(f"{group}\nbig, large\nbig, huge\n"), WORDS).notes
    assert not any("warning" in note for note in notes)


def test_a_dry_run_writes_nothing(build, write, tmp_path, capsys):
    path = write("big;large\n")
    main(["--dict", str(tmp_path / "dict.txt"), "--source", "list", "--synonyms", str(path), "--dry-run"])
    printed = capsys.readouterr().out
    assert "read as pairs, columns separated by semicolons: 1 word, 2 synonym\n  big: large" in printed
    assert "without effect" not in printed
    flags = ["--source", "list", "--synonyms", str(path), "--dry-run", "--top-k", "3", "--output", "table.safetensors"]
    main(["--dict", str(tmp_path / "dict.txt"), *flags])
    assert capsys.readouterr().out.endswith("without effect on reading: --top-k, --output\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dict.txt", "synonyms.txt"]


MYTHES = """TIS620-2533
big|2
(adj)|large (rare)|(rare) huge|small (antonym)
(adj)|shine*|polls (pojęcie nadrzędne)
huge|1
small|1
(antonym)|big
polish|1
-|shine
"""


def test_remarks_of_mythes_are_removed_and_a_malformed_entry_is_counted(write):
    content = MYTHES.replace("pojęcie nadrzędne", "generic term").encode("tis-620")
    found = SynonymList(write(content), WORDS)
    assert {word: row for word, row in found.synonyms.items() if row} == {
        "big": ["large", "huge", "shine"],
        "polish": ["shine"],
    }
    assert found.examples["lines skipped: not understood"] == "line 6: 1 meanings of 'huge' are missing: 'small|1'"
    assert found.counts["entries left out: other relations"] == 2
    polish = SynonymList(write(MYTHES.replace("TIS620-2533", "ISO8859-2").encode("iso8859-2")), WORDS)
    assert polish.synonyms == found.synonyms


def test_antonyms_and_generic_terms_are_counted(write):
    found = SynonymList(write("UTF-8\nbig|2\n(adj)|small (antonym)\n(adj)|large|shine (generic term)\n"), WORDS)
    assert found.synonyms == {"big": ["large"]}
    assert found.counts["entries left out: other relations"] == 2
    assert found.counts["lines skipped: other relations"] == 1


def test_a_definition_is_not_a_relation_whatever_its_words(write):
    """As in LibreOffice's Italian thesaurus, and a remark of the German one."""
    labels = (
        "(agg. Che genera avversione)",
        "(s.f. Contrasto, difficoltà)",
        "(agg. Generoso)",
        "(agg. Generico)",
    )
    rows = "".join(f"{word}|1\n{label}|shine\n" for word, label in zip(WORDS, labels))
    found = SynonymList(write(f"UTF-8\n{rows}polls|1\n-|election (über Generationen)\n"), WORDS)
    assert found.synonyms == {**{word: ["shine"] for word in ("big", "large", "huge", "polish")}, "polls": ["election"]}


@pytest.mark.parametrize(
    "label",
    ["generic term", "more general term", "generico", "generisch", "término genérico", "generalizes", "contrastive"]
    + ["antonym of the first sense", "the opposite of this word", "noun, antonym of the above term", "is contrasted"],
)
def test_labels_of_other_relations(label):
    assert is_other_relation(label)


def test_names_of_parts_of_speech_are_also_words_in_json(write):
    words = {"conjunction": {"n": ["link"]}, "verb": {"n": ["word"], "v": ["do"]}, "big": {"adj": ["large"]}}
    listed = ["conjunction", "link", "verb", "word", "do", "big", "large", "n", "v"]
    expected = {"conjunction": ["link"], "verb": ["word", "do"], "big": ["large"]}
    assert SynonymList(write(json.dumps(words)), listed).synonyms == expected
    by_part = {"verb": {"do": ["make"]}, "noun": {"link": ["word"]}}
    found = SynonymList(write(json.dumps(by_part)), [*listed, "make"]).synonyms
    assert found == {"do": ["make"], "link": ["word"]}


HEADING = "text\tcurie\tname\tpredicate\ttype\tcontributor\n"


def test_columns_of_an_ontology(write):
    rows = [("big", "x:1", "large", "exact"), ("huge", "x:2", "large", "broad"), ("small", "x:3", "polish", "exact")]
    lines = [f"{word}\t{curie}\t{name}\toio:has{kind.title()}Synonym\t\tw:1" for word, curie, name, kind in rows]
    path = write(HEADING + "\n".join(lines) + "\n")
    assert SynonymList(path, WORDS).synonyms == {"big": ["large"], "huge": ["large"], "small": ["polish"]}
    rows = [f"big\tx:{number}\tlarge\tv:{number}\tpolish\ty:2" for number in range(4)]
    message = refused(SynonymList, write("\n".join(rows)), WORDS)
    assert "a table of 6 columns, of which 1, 3, 5 have words; add a first line such as word,synonym,date" in message
    padded = write("big,large,huge,,,\n" * 3 + "polish,shine,,,,\n")  # as spreadsheets write groups
    assert SynonymList(padded, WORDS).synonyms["polish"] == ["polish", "shine"]


@pytest.mark.parametrize("limit", [1, 3])
def test_dropping_duplicates_early_changes_nothing(write, monkeypatch, limit):
    path = write("".join(f"{word}\t{other}\t{n % 5}\n" for n in range(3) for word in WORDS for other in WORDS))
    expected = synonyms(path, symmetric=True)
    monkeypatch.setattr(lists, "_PAIRS", limit)
    assert synonyms(path, symmetric=True) == expected and len(expected["big"]) == len(WORDS) - 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from([-4, -2, 0, 2, 4]))))
def test_rows_are_by_score_and_then_in_the_order_of_the_file(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("list") / "pairs.tsv"  # without numbers that count the lines
    path.write_text("".join(f"{word}\t{other}\t{score}\n" for word, other, score in pairs), encoding="utf-8")
    best = {}
    for word, other, score in pairs:
        if word.lower() != other.lower():
            row = best.setdefault(word.lower(), {})
            row[other.lower()] = max(score, row.get(other.lower(), score))
    if not best:
        return
    found = {word: [other.lower() for other in row] for word, row in synonyms(path).items() if row}
    assert found == {word: sorted(row, key=lambda other: -row[other]) for word, row in best.items()}


def test_top_k_counts_the_synonyms_that_fit_the_casing_of_the_word(build, write):
    path = write("Polish\tbig\t9\nPolish\tshine\t8\nPolish\tÉcole\t7\npolish\tlarge\t1\n")
    assert build(path)[1] == {"polish": ["big", "shine", "large"], "Polish": ["École"]}
    _, rows, description = build(path, "--top-k", 1)
    assert rows == {"polish": ["big"], "Polish": ["École"]}
    assert json.loads(description["options"]) == {"format": "pairs", "symmetric": False, "top_k": 1, "min_score": None}


def test_filters_and_other_sources_combine_with_a_list(build, write):
    path = write("elections,polls\nelections,election\nbig,small\nbig,large\n")
    kept = build(path, "--same-inflection", "--no-contrasts")[1]
    assert kept == {"elections": ["polls"], "polls": ["elections"], "big": ["large"], "large": ["big"]}
    near = "--vectors", write("big 1 0\nlarge 1 0.1\nsmall 0 1\nhuge 1 0.2\n", "vectors.txt")
    assert build(path, *near, "--filter", "vectors=0.9")[1] == {"big": ["large"], "large": ["big"]}
    sources = "--source", "list", "vectors", *near
    _, rows, description = build(path, *sources, "--combine", "intersection")
    assert rows == {"big": ["large", "small"], "large": ["big"], "small": ["big"]}
    assert json.loads(description["counts"])["in the list"] == 6
    assert build(path, *sources, "--combine", "union")[1]["big"] == ["large", "small", "huge"]


def test_scores_in_json_that_are_missing_or_not_finite(write):
    records = [{"word": "big", "synonyms": ["large"], "score": None}, {"word": "huge", "synonyms": ["big"], "score": 2}]
    listed = SynonymList(write(json.dumps(records)), ["large", "big", "huge"])
    assert listed.synonyms == {"big": ["large"], "huge": ["big"]}
    listed = SynonymList(write('{"big": {"large": NaN, "huge": 0.9}}'), ["large", "big", "huge"], min_score=0.5)
    assert listed.synonyms == {"big": ["huge"]} and listed.counts["lines skipped: not understood"] == 1


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("big\nlarge\n", {}, "line 1: no second column"),
        ("big\tlarge\nbig\t\nhuge\t \nhuge\t\n", {}, "line 2: no second column: 'big\\t'; 3 lines were not"),
        ("UTF-8\nbig|2\n(adj)\n(adj)\n", {}, "line 3: no synonym after a | in a meaning of 'big': '(adj)'; 2 lines"),
        ("big\tJ\tlarge huge vast wide\nhuge\tN\tbig large vast wide\n", {}, "column 3 has many words without a comma"),
        (
            json.dumps([{"word": word, "options": ["large", "huge"]} for word in WORDS], indent=1),
            {},
            """, a record without a name for synonyms, such as synonyms: '{"word": "large",""",
        ),
        ("UTF-9\nbig|1\n(adj)|large\n", {}, "line 1: 'UTF-9' is not an encoding"),
        ("hex\nbig|1\n(adj)|large\n", {}, "line 1: 'hex' is not an encoding"),
        ("[X] ||| big ||| large ||| PPDB2.0Score=x y=1\n", {}, "line 1: the score 'x' is not a number"),
        ("big\t1\tlarge\t2\nhuge\t5\tbig\t1\nhuge\t2\tlarge\t7\n", {}, "columns 2 and 4 are all numbers"),
        (
            "PK\x03\x04",
            {},
            "this is a ZIP archive or an Excel file; save it as text in UTF-8, such as CSV, for --synonyms",
        ),
        (b"\x1f\x8b", {}, "this is compressed with gzip; decompress it, for --synonyms"),
        ("\x01\0big\tlarge\n", {}, "this is not text, but binary data; give a list in text to --synonyms"),
        ("<synonyms>\n", {}, "this is XML"),
        ('{"big": ["large"\n', {"format": "json"}, "line 1: not valid JSON"),
        ("big, large\n", {"min_score": 0}, "line 1: no score"),
        ("big, large, 1\nlarge, big\nsmall, big, 1\nbig, large, 3\n", {"min_score": 0}, "line 2: no score"),
        ("sep=;\n", {}, "line 1: no synonyms, only the line that names the separator"),
        ("[" * 100_000 + "\n", {"format": "json"}, "line 1: not valid JSON (maximum recursion depth exceeded"),
        (b"big\tlarge\n\xe9cole\tbig\n", {}, "line 2: not UTF-8"),
        (b"ASCII\nbig|1\n(adj)|large\n\xe9cole|0\n", {}, "line 4: not ASCII"),
        ("", {}, "the file is empty"),
        ("\n# comment\n", {}, "the file is empty"),
        ("unknown\tbig\n", {}, "no synonyms for the dictionary (1 lines skipped: not in the dictionary"),
        (",".join(WORDS), {"limit": 10}, "a group of 11 words"),
        ("\n" + ",".join(WORDS) + "\n" + ",".join(WORDS), {"limit": 10}, "line 2: a group of 11 words"),
        ("big, large\n", {"format": "mythes"}, "line 1: 'big, large' is not an encoding"),
        ("big, large\n", {"format": "ppdb"}, "line 1: 1 columns"),
        (mythes(PAIRS), {"format": "pairs"}, "line 1: looks like mythes, not pairs"),
        (WRITERS["ppdb"](PAIRS), {"format": "mythes"}, "line 1: looks like ppdb, not mythes"),
    ],
)
def test_wrong_input_is_one_line_with_its_place(write, monkeypatch, content, options, reason):
    monkeypatch.setattr(lists, "_LARGEST_GROUP", options.pop("limit", 1000))
    path = write(content)
    message = refused(synonyms, path, **options)
    assert message.startswith(str(path)) and reason in message and "--synonyms" in message


def test_nothing_is_written_for_wrong_input(build, write, tmp_path):
    path = write("big\nlarge\n")
    assert "synonyms.txt, line 1: no second column" in refused(build, path)
    assert "missing.tsv: No such file" in refused(build, tmp_path / "missing.tsv")
    assert "Is a directory" in refused(build, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dict.txt", "synonyms.txt"]
