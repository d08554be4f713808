"""Swaps of words for WordNet synonyms."""

import re

import pytest

from tn_fairseq.synonyms.swords import Substitute, Target
from tn_fairseq.tools.attacks.synonym_swaps import (
    Swap,
    Swapping,
    Text,
    apply_swaps,
    candidates,
    changed_sentences,
    choose_swaps,
    judge_swaps,
    moved,
    occurrences,
)

STORY = (
    "Doctors met near an automobile. The sailors wanted food, and the car stopped. He quickly purchased a ticket. "
    "The lovely autumn was a big problem because the government had raised the prices of every house in the village."
)
ARTICLES = Text("articles", "He saw an automobile and a lawyer.")


def synonyms(text: str, inflection: str = "keep", senses: str = "all") -> dict[str, tuple[str, ...]]:
    """The synonyms of each word of a text that can be swapped."""
    return {found.word.text: found.synonyms for found in candidates(text, inflection, senses)[1]}


@pytest.mark.parametrize(
    ("text", "word", "kept", "lemma"),
    [
        ("The cars stopped.", "cars", "automobiles", "automobile"),
        ("It stops here.", "stops", "ceases", "cease"),
        ("They are buying bread.", "buying", "purchasing", "purchase"),
        ("He purchased a house.", "purchased", "bought", "buy"),
        ("The bread was taught and purchased.", "purchased", "bought", "buy"),
        ("The bigger house is here.", "bigger", "larger", "large"),
        ("The largest ship is here.", "largest", "biggest", "big"),
        ("He quickly ate.", "quickly", "rapidly", "rapidly"),
        ("The sailors wanted food.", "sailors", "crewmen", "crewman"),
    ],
)
def test_synonyms_keep_the_form_of_the_word(text, word, kept, lemma):
    assert kept in synonyms(text)[word] and lemma in synonyms(text, "any")[word]
    assert kept == lemma or lemma not in synonyms(text)[word]
    assert word not in synonyms(text)[word]
    assert list(synonyms(text)[word]) == sorted(synonyms(text)[word])


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("He had been in New York.", []),  # names and auxiliary verbs
        ("The prime ministers had five hundred first ideas.", ["ideas"]),  # a phrase of WordNet, and numbers
        ("They took and made it.", []),  # verbs with many senses
        ("The blood–brain barrier, the car/house and the AT&T problem", ["barrier", "problem"]),
        ("He won. Panthers won, my Panthers.", ["won", "won"]),  # a name also at the beginning of a sentence
        ("Cars are in the American houses.", ["Cars", "houses"]),
        ("I left the left car.", ["left", "left", "car"]),
    ],
)
def test_what_can_be_swapped(text, swapped):
    assert [found.word.text for found in candidates(text, "keep", "all")[1]] == swapped


def test_synonyms_have_the_part_of_speech_of_the_word():
    left = [found.synonyms for found in candidates("He left the left car.", "keep", "all")[1]][:2]
    assert "departed" in left[0] and "departed" not in left[1] and "leftover" in left[1]
    assert "found" not in synonyms("He found the car.") or "established" not in synonyms("He found the car.")["found"]


def test_the_first_sense_has_some_of_all_synonyms():
    first, everything = (synonyms(STORY, senses=senses) for senses in ("first", "all"))
    assert set(first) < set(everything) and all(set(first[word]) <= set(everything[word]) for word in first)
    assert "gondola" in everything["car"] and set(first["car"]) == {"auto", "automobile", "machine", "motorcar"}


def test_forms_of_a_word_and_other_endings_of_a_possessive_are_no_synonyms():
    for word, others in synonyms("The bacteria favour cancelled programmes.").items():
        assert not {"bacterias", "bacterium", "canceled"} & set(others), word
    assert set(synonyms("the people's car")["people"]) == {"citizenry", "multitude"}


@pytest.mark.parametrize(("share", "most", "count"), [(0.1, 10, 3), (0.001, 10, 1), (0.5, 3, 3), (1, 100, None)])
def test_how_many_words_are_swapped(share, most, count):
    words, found = candidates(STORY, "keep", "all")
    assert words == len(re.findall(r"\w+", STORY)) == 38
    swaps = choose_swaps(Swapping(share, most), Text("a", STORY))
    assert sum(not swap.is_article for swap in swaps) == (count or len(found))


def test_a_larger_share_makes_more_swaps_and_the_seed_and_the_name_decide_which():
    def swaps(name="a", seed=1, share=0.2):
        return frozenset(choose_swaps(Swapping(share, 100, seed=seed), Text(name, STORY)))

    assert swaps(share=0.1) < swaps() < swaps(share=0.3) and swaps() == swaps()
    assert len({swaps(name, seed) for name in "abc" for seed in (1, 2, 3)}) == 9


def test_draws_are_the_same_on_every_machine():
    assert choose_swaps(Swapping(senses="first"), Text("a", STORY)) == [
        Swap(89, "purchased", "bought"),
        Swap(120, "autumn", "fall"),
        Swap(137, "problem", "job"),
    ]


def test_only_words_change_capitals_stay_and_offsets_move_with_the_text():
    swaps = choose_swaps(Swapping(1, 100), Text("a", STORY))
    assert all(STORY[swap.start : swap.end] == swap.old for swap in swaps)
    swapped = apply_swaps(STORY, swaps)
    old, new = STORY.split(), swapped.split()
    assert len(old) == len(new) and old != new
    assert [word[0].isupper() for word in old] == [word[0].isupper() for word in new]
    assert [word[-1] for word in old if not word.isalnum()] == [word[-1] for word in new if not word.isalnum()]
    changed = {offset for swap in swaps for offset in range(swap.start, swap.end)}
    for offset in set(range(len(STORY))) - changed:
        assert swapped[moved(offset, swaps)] == STORY[offset]


def test_articles_fit_the_word_after_them_unless_they_are_protected():
    text, city = "An automobile hit a problem. A big house and an honest lawyer", "He was a lawyer in a city."
    start = ARTICLES.text.index("an ")
    for seed in range(12):
        new = apply_swaps(text, choose_swaps(Swapping(1, 100, seed=seed), Text("a", text)))
        assert not re.search(r"\ban [^aeioh]|\ba [aeio]", new, re.IGNORECASE), new
        assert new.startswith(("A ", "An "))
        kept = apply_swaps(text, choose_swaps(Swapping(1, 100, "any", seed=seed), Text("a", text)))
        assert [word for word in kept.split() if word.lower() in ("a", "an")] == ["An", "a", "A", "an"]
        # a protected article chooses the word
        swaps = choose_swaps(Swapping(1, 100, seed=seed), ARTICLES._replace(protected=((start, start + 2),)))
        assert "an auto " in apply_swaps(ARTICLES.text, swaps)
        # the synonym of lawyer is attorney, which fits no protected article
        swaps = choose_swaps(Swapping(0, seed=seed), Text("a", city, occurrences(city, ["A"])))
        assert [swap.old for swap in swaps] == ["city"]


def test_protected_words_stay():
    for start in range(len(STORY)):
        if STORY[start : start + 3] in ("car", "foo", "cke"):
            swaps = choose_swaps(Swapping(1, 100), Text("a", STORY, ((start, start + 2),)))
            assert not any(swap.start <= start + 1 and start < swap.end for swap in swaps)
    assert choose_swaps(Swapping(1, 100), Text("a", STORY, ((0, len(STORY)),))) == []


def test_occurrences_are_complete_words_in_any_case():
    assert occurrences("Car, a car's (car) cars oscar CAR", ["car"]) == ((0, 3), (7, 10), (14, 17), (30, 33))
    assert occurrences("It cost $5 (US$5.00).", ["$5", "5.00).", "it"]) == ((0, 2), (8, 10), (15, 21))


def test_changed_sentences():
    text = "One car. Two big cars. Three."
    swaps = [Swap(4, "car", "automobile"), Swap(13, "big", "large"), Swap(17, "cars", "autos")]
    assert changed_sentences(text, swaps) == [("One car.", "One automobile."), ("Two big cars.", "Two large autos.")]


def test_judged_swaps():
    judged = (Substitute("auto", 0.9), Substitute("machine", 0.2), Substitute("gondola", 0.0), Substitute("boat", 1.0))
    targets = [Target("1", "Two cars stopped.", 4, 8, "NOUN", "car", judged)]
    targets.append(Target("2", "Two cars stopped.", 0, 3, "NOUN", "two", judged))
    keep = judge_swaps(targets, "keep", "all")
    assert keep[0] == 1 and keep[2] == {"acceptable": 1, "doubtful": 1, "rejected": 1}
    assert judge_swaps(targets, "any", "first") == (1, 4, {"acceptable": 1, "doubtful": 1})
