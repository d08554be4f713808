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
from tn_fairseq.synonyms.lists import SynonymList
from tn_fairseq.synonyms.table_options import FORMATS

WORDS = ["big", "large", "huge", "Polish", "polish", "shine", "polls", "election", "elections", "small", "École"]
PAIRS = [("big", "large", 3.0), ("big", "huge", 2.0), ("polish", "shine", 1.5), ("large", "big", 1.0)]


def by_word(pairs):
    groups = itertools.groupby(pairs, key=lambda pair: pair[0])
    return [(word, [other for _, other, _ in group]) for word, group in groups]


def table(pairs, separator):
    return "".join(separator.join(map(str, row)) + "\n" for row in [("word", "synonym", "score"), *pairs])


WRITERS = {
    "tsv": lambda pairs: table(pairs, "\t"),
    "csv": lambda pairs: table(pairs, ","),
    "groups": lambda pairs: "".join(f"{word} => {other}\n" for word, other, _ in pairs),
    "mythes": lambda pairs: "".join(
        ["UTF-8\n", *(f"{word}|1\n(adj)|{'|'.join(row)}\n" for word, row in by_word(pairs))]
    ),
    "ppdb": lambda pairs: "".join(
        f"[JJ] ||| {word} ||| {other} ||| PPDB2.0Score={score} PPDB1.0Score=9 ||| 0-0 ||| Equivalence\n"
        for word, other, score in pairs
    ),
    "json": lambda pairs: "".join(json.dumps({word: row}) + "\n" for word, row in by_word(pairs)),
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
    """A function that runs the command, and returns the rows in words and the description."""
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS), encoding="utf-8")
    dictionary, output = load_dictionary(tmp_path / "dict.txt"), tmp_path / "table.safetensors"

    def build(path, format, *options):
        flags = "--dict", tmp_path / "dict.txt", "--source", "list", "--synonyms", path, "--format", format, *options
        main(list(map(str, [*flags, "--output", output])))
        names = dictionary.symbols
        rows = {
            names[index]: [names[other] for other in row if other != -1]
            for index, row in enumerate(load_synonym_table(output, dictionary).synonyms.tolist())
            if row[0] != -1
        }
        return rows, read_description(output)

    return build


@pytest.mark.parametrize("made", WRITERS)
@pytest.mark.parametrize("named", FORMATS)
def test_every_format_is_read_and_never_as_another_one(write, made, named):
    path = write(WRITERS[made](PAIRS))
    if made != named:
        assert f"{path}, line 1: " in refused(SynonymList, path, WORDS, named)
        return
    read = SynonymList(path, WORDS, named)
    assert read.synonyms == {"big": ["large", "huge"], "polish": ["shine"], "large": ["big"]}
    digest, lines = hashlib.sha256(path.read_bytes()).hexdigest(), path.read_bytes().count(b"\n")
    assert read.version == f"synonyms.txt, {lines} lines, sha256 {digest}"


def test_symmetric_is_both_directions(write):
    both = [pair for word, other, score in PAIRS for pair in ((word, other, score), (other, word, score))]
    expected = SynonymList(write(table(both, ",")), WORDS, "csv").synonyms
    assert SynonymList(write(table(PAIRS, ",")), WORDS, "csv", symmetric=True).synonyms == expected
    assert expected["shine"] == ["polish"]


GROUP = {word: [other for other in ("big", "large", "huge") if other != word] for word in ("big", "large", "huge")}
MYTHES = "ISO8859-2\nbig|2\n(adj)|large|vast and wide|big (rzad.)\n-|huge (similar term)|small (antonym)\n|1\n-\n"


@pytest.mark.parametrize(
    ("format", "content", "expected"),
    [
        ("tsv", "\ufeffword\tsynonym\r\nbig\tlarge\r\n\r\nhuge\tunknown\r\n", {"big": ["large"], "huge": []}),
        ("csv", "score,synonym,note,word\n1,large,x,big\n2e0,huge,,big\n", {"big": ["huge", "large"]}),
        ("csv", "word,synonym,score\nbig,large,1\nbig,huge,2\nbig,large,3\nbig,large,0\n", {"big": ["large", "huge"]}),
        ("csv", "word,synonym,score\nbig,huge,-1\nbig,large,\nbig,small,0\n", {"big": ["small", "huge", "large"]}),
        ("csv", 'word,synonym,gloss\n"big","large","two\nlines, ""quoted"""\n', {"big": ["large"]}),
        ("tsv", "word\tsynonym\nBIG\tLarge\necole\tbig\nÉCOLE\tbig\n", {"big": ["large"], "école": ["big"]}),
        ("groups", "# a\n\nbig, large,huge\n", GROUP),
        ("groups", "big, so big => large, huge\nhuge=>big\n", {"big": ["large", "huge"], "huge": ["big"]}),
        ("groups", "big\\, large, huge, small, \\:), a\\=>a,\n", {"huge": ["small"], "small": ["huge"]}),
        ("mythes", MYTHES.encode(), {"big": ["large", "huge"]}),
        ("mythes", "ISO8859-1\nécole|1\n-|big|size (generic term)\n".encode("latin-1"), {"école": ["big"]}),
        ("mythes", "microsoft-cp1252\nécole|1\n-|big\n\n".encode("cp1252"), {"école": ["big"]}),
        ("json", '\n{\n "big": ["large"],\n "huge": []\n}\n', {"big": ["large"], "huge": []}),
        (
            "json",
            '{"big": ["large"], "huge": ["big"]}\n\n{"big": ["huge"]}',
            {"big": ["large", "huge"], "huge": ["big"]},
        ),
    ],
)
def test_the_lines_of_each_format(write, format, content, expected):
    assert SynonymList(write(content), WORDS, format).synonyms == expected


def test_columns_with_other_names_and_rows_with_a_value(build, write):
    path = write("id,rel,term,gloss,p\n1,syn,big,large,1\n2,ant,big,small,9\n3,near,big,huge,2\n")
    rows, description = build(path, "csv", "--columns", "word=term,synonym=gloss", "--where", "rel=syn")
    assert rows == {"big": ["large"]} and description["source"] == "list"
    options = json.loads(description["options"])
    assert options["columns"] == {"word": "term", "synonym": "gloss"} and options["where"] == {"rel": ["syn"]}
    scored = "--columns", "word=term,synonym=gloss,score=p"
    assert build(path, "csv", *scored, "--where", "rel=syn", "rel=near")[0] == {"big": ["huge", "large"]}
    assert build(path, "csv", *scored, "--where", "rel=syn", "rel=near", "id=3")[0] == {"big": ["huge"]}


def test_every_entry_is_counted_once(write):
    rows = ["big,large,3", "big,very large,3", "big,take_on,9", "big,unknown,3", "big,large,0.5", "big,big,3"]
    rows += ["unknown,much,1", "huge,small,1", "huge,big (rare),1", "huge,,1"]
    lines = ["word,synonym,score,kind,note", *(f"{row},a," for row in rows), "big,small,9,b,"]
    read = SynonymList(write("\n".join(lines) + "\n"), WORDS, "csv", min_score=1, where={"kind": ["a"]})
    assert read.synonyms == {"big": ["large"], "huge": ["small"]}
    assert read.counts == {
        "entries used": 2,
        "entries skipped: below --min-score": 1,
        "entries skipped: other values of --where": 1,
        "entries skipped: no pair of words": 7,
        "words left out: empty": 1,
        "words left out: with a remark": 1,
        "words left out: several words": 2,
        "words left out: not in the dictionary": 3,
    }
    assert sum(count for name, count in read.counts.items() if name.startswith("entries")) == len(rows) + 1
    assert read.notes[:2] == ["read as csv", "  big: large, very large, take_on, unknown"]
    assert "1 columns left out: 'note'" in read.notes
    for name, count in read.counts.items():
        assert any(note.startswith(f"{name:40}{count:11,}") for note in read.notes)
    assert "('very large')" in "".join(read.notes)


def test_a_dry_run_writes_nothing(build, write, tmp_path, capsys):
    flags = ["--dict", tmp_path / "dict.txt", "--source", "list", "--synonyms", write("big, large\n")]
    main([*map(str, flags), "--format", "groups", "--dry-run", "--output", str(tmp_path / "table.safetensors")])
    assert "read as groups\n  big: large" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dict.txt", "synonyms.txt"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from([-4, -2, 0, 2, 4]))))
def test_rows_are_by_score_and_then_in_the_order_of_the_file(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("list") / "pairs.tsv"
    path.write_text(table(pairs, "\t"), encoding="utf-8")
    best = {}
    for word, other, score in pairs:
        if word.lower() != other.lower():
            row = best.setdefault(word.lower(), {})
            row[other.lower()] = max(score, row.get(other.lower(), score))
    if not best:
        return
    synonyms = SynonymList(path, WORDS, "tsv").synonyms
    found = {word: [other.lower() for other in row] for word, row in synonyms.items() if row}
    assert found == {word: sorted(row, key=lambda other: -row[other]) for word, row in best.items()}


def test_top_k_counts_the_synonyms_that_fit_the_casing_of_the_word(build, write):
    path = write("word,synonym,score\nPolish,big,9\nPolish,shine,8\nPolish,École,7\npolish,large,1\n")
    assert build(path, "csv")[0] == {"polish": ["big", "shine", "large"], "Polish": ["École"]}
    rows, description = build(path, "csv", "--top-k", 1)
    assert rows == {"polish": ["big"], "Polish": ["École"]}
    assert json.loads(description["options"]) == {"format": "csv", "symmetric": False, "top_k": 1, "min_score": None}


def test_other_sources_combine_with_a_list(build, write):
    near = "--vectors", write("big 1 0\nlarge 1 0.1\nsmall 0 1\nhuge 1 0.2\n", "vectors.txt")
    sources = "--source", "list", "vectors", *near, "--combine", "intersection"
    rows, description = build(write("big,small\nbig,large\n"), "groups", *sources)
    assert rows == {"big": ["large", "small"], "large": ["big"], "small": ["big"]}
    assert json.loads(description["counts"])["in the list"] == 3


RECORDS = '{"word": ["big"], "synonyms": ["large"]}\n' * 2
NESTED = '{"big": ["large"],\n "huge": {"noun": ["vast"]}}\n'


@pytest.mark.parametrize(
    ("format", "content", "place"),
    [
        # tables
        ("tsv", "big\tlarge\n", "line 1: no column 'word' (column 1 is 'big', column 2 is 'large')"),
        ("csv", "", "line 1: no column 'word' (the line is empty)"),
        ("csv", "word,synonym,word\nbig,large,huge\n", "line 1: 2 columns 'word'"),
        ("csv", "word,synonym\nbig,large\nbig,large,huge\n", "line 3: 3 columns, not 2"),
        ("csv", 'word,synonym\nbig,large\n"big,huge\nsmall,big\n', "line 3: "),
        ("tsv", "word\tsynonym\tscore\nbig\tlarge\t0,9\n", "line 2: column 3: '0,9'"),
        ("tsv", "word\tsynonym\tscore\nbig\tlarge\tnan\n", "line 2: column 3: 'nan'"),
        # groups
        ("groups", "# a\nbig\n", "line 2: character 4: neither a, b"),
        ("groups", "big, large\nbig =>\n", "line 2: character 5: neither a, b"),
        ("groups", "big => large => huge\n", "line 1: character 14: neither a, b"),
        ("groups", "word,synonym\nbig,large\n", "line 1: character 1: names of columns"),
        ("groups", "big: large, huge\n", "line 1: character 4: ':'"),
        ("groups", "big <= large\n", "line 1: character 5: '<'"),
        ("groups", "big, large = huge\n", "line 1: character 12: '='"),
        ("groups", "big, large > huge\n", "line 1: character 12: '>'"),
        ("groups", ",".join(map(str, range(101))), "line 1: 101 words"),
        # MyThes
        ("mythes", "big|1\n-|large\n", "line 1: character 1: 'big|1'"),
        ("mythes", "UTF-8\nbig|2\n-|large\nhuge|1\n-|big\n", "line 5: character 3: not a word"),
        ("mythes", "UTF-8\nbig|2\n-|large\n", "line 3: a meaning of 'big'"),
        ("mythes", b"ASCII\nbig|1\n-|large\n\xe9cole|0\n", "line 4, byte 1: not ASCII"),
        # PPDB
        ("ppdb", "[X] ||| big ||| large ||| a=1 ||| 0-0\n", "line 1: column 5: not the 6"),
        ("ppdb", "X ||| big ||| large ||| PPDB2.0Score=1 ||| 0-0 ||| Equivalence\n", "line 1: column 1: not the 6"),
        ("ppdb", "[X] ||| big ||| large ||| a=1 ||| 0-0 ||| Equivalence\n", "line 1: column 4: PPDB2.0Score"),
        # JSON
        ("json", '{\n"big": ["large"],\n"huge" ["big"]}', "line 3: column 8: not valid JSON"),
        ("json", '{"big": ["large"]}\n\n{"huge": [}\n', "line 3: column 11: not valid JSON"),
        ("json", "", "line 1: column 1: not valid JSON"),
        ("json", "[" * 100_000, "line 1: not valid JSON"),
        ("json", '[["big", "large"]]\n', "line 1: column 1: not an object"),
        ("json", NESTED, "line 2: column 2: 'huge' has no list of words"),
        ("json", '{"big": ["large", 5]}', "line 1: column 2: 'big' has no list of words"),
        ("json", RECORDS, "line 2: column 1: the names of the object before"),
        ("json", '{"big": ["large"],\n"big": ["huge"]}', "line 1: the name 'big' occurs twice"),
        # all of them
        ("groups", b"\x1f\x8b", "line 1, byte 2: not UTF-8"),
        ("csv", "word,synonym\nunknown,big\n", "no synonyms for the dictionary"),
        ("json", '{"\\ud800": ["big"]}', "no synonyms for the dictionary"),
    ],
)
def test_another_format_is_one_line_with_its_place(write, format, content, place):
    path = write(content)
    message = refused(SynonymList, path, WORDS, format)
    assert message.startswith(str(path)) and place in message


def test_a_missing_score_is_refused_with_a_minimum(write):
    path = write("word,synonym,score\nbig,large,1\nbig,huge,\n")
    assert "line 3: no score, which --min-score needs" in refused(SynonymList, path, WORDS, "csv", min_score=0)
