"""The words of an English text, with their character offsets and parts of speech.

HanTa (Wartena 2019) tags, with a hidden Markov model of words and their morphemes. It reads its model from its own
package, so nothing is downloaded. Its tags are those of the British National Corpus; ours are the Penn Treebank's.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from HanTa import HanoverTagger

VERSION = f"HanTa {version('HanTa')}"

# Contractions are two words, as in the tagger's training text: do|n't, it|'s.
_WORD = re.compile(
    r"""
    \w+?(?=n['’]t\b) | n['’]t\b | ['’](?:s|re|ve|ll|d|m)\b
    | \d+(?:[.,:/]\d+)+\w* | (?:[^\W\d_]\.){2,}
    | \w+(?:-\w+)* (?:['’](?!(?:s|re|ve|ll|d|m)\b)(?<!n['’])\w+)?
    | [^\w\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE_END = frozenset(".?!")
_CLOSING = frozenset("\"'’”»)]}")
_ABBREVIATIONS = frozenset("dr mr mrs ms prof rev gen col capt lt sgt st jr sr no vs etc approx ca fig vol pp".split())

_PUNCTUATION = {".": ".", "?": ".", "!": ".", ",": ",", "$": "$"}
_PENN = {
    **{"AJ0": "JJ", "AJC": "JJR", "AJS": "JJS", "ORD": "JJ", "CRD": "CD"},
    **{"AV0": "RB", "AVP": "RP", "AVQ": "WRB", "XX0": "RB", "ITJ": "UH", "EX0": "EX"},
    **{"AT0": "DT", "DT0": "DT", "DTQ": "WDT", "DPS": "PRP$", "PNP": "PRP", "PNX": "PRP", "PNQ": "WP", "PNI": "NN"},
    **{"CJC": "CC", "CJS": "IN", "CJT": "IN", "PRF": "IN", "PRP": "IN", "TO0": "TO", "POS": "POS"},
    **{"NN0": "NN", "NN1": "NN", "NN2": "NNS", "NP0": "NNP", "VM0": "MD"},
    **{f"V{verb}{form}": penn for verb in "BDHV" for form, penn in zip("BDGINZ", "VBP VBD VBG VB VBN VBZ".split())},
}


class Word(NamedTuple):
    """A word or punctuation mark, ``text[start:end]``, and its tag of the Penn Treebank.

    Capitalized nouns, verbs and adverbs within a sentence are names (NNP, NNPS), as are capitalized nouns and
    adjectives before another capital (*Super Bowl*, but not *American football*). Punctuation has the tags ``.`` (at
    the end of a sentence), ``,``, ``$``, and ``:`` for all others; words of a foreign language and other rare tokens
    have FW. ``begins_sentence`` is true for the first word of a sentence, whose capital letter means nothing.
    """

    text: str
    start: int
    end: int
    tag: str
    begins_sentence: bool


def tag(text: str) -> list[Word]:
    """The words and punctuation marks of an English text, in order; only white space is between them."""
    return [word for sentence in _sentences(text) for word in _tag_sentence(sentence)]


def _sentences(text: str) -> Iterator[list[re.Match[str]]]:
    """The tokens of each sentence, which ends at a new line and after ``.``, ``?`` or ``!``; not in *J. S. Bach*."""
    sentence: list[re.Match[str]] = []
    ended = False
    for token in _WORD.finditer(text):
        gap = text[sentence[-1].end() : token.start()] if sentence else ""
        if "\n" in gap or ended and gap and not token[0].islower():
            yield sentence
            sentence, ended = [], False
        if token[0] in _SENTENCE_END:
            last = sentence[-1][0] if sentence and token[0] == "." else ""
            ended = not (len(last) == 1 and last.isupper() or last.lower() in _ABBREVIATIONS)
        elif token[0] not in _CLOSING:
            ended = False
        sentence.append(token)
    if sentence:
        yield sentence


def _tag_sentence(tokens: list[re.Match[str]]) -> Iterator[Word]:
    texts = [token[0].replace("’", "'") for token in tokens]
    tagger = _tagger()
    tags = [tagger.int2tag[number] for number in tagger.tag_sent_viterbi(texts)]  # tag_sent also looks for lemmas
    first = next((index for index, text in enumerate(texts) if text[0].isalnum()), 0)
    for index, (token, bnc) in enumerate(zip(tokens, tags)):
        penn = _PENN.get(bnc, "FW") if any(map(str.isalnum, token[0])) else _PUNCTUATION.get(token[0], ":")
        if token[0][0].isupper() and _is_name(penn, index == first, texts[index + 1 : index + 2]):
            penn = "NNPS" if penn == "NNS" else "NNP"
        yield Word(token[0], token.start(), token.end(), penn, index == first)


def _is_name(penn: str, is_first: bool, following: list[str]) -> bool:
    """Whether a capitalized word, tagged as if it were not capitalized, is a name."""
    before_capital = any(text[0].isupper() for text in following)
    if penn.startswith("JJ") or is_first and penn.startswith("NN"):
        return before_capital
    return not is_first and penn.startswith(("NN", "VB", "RB"))


@cache
def _tagger() -> HanoverTagger.HanoverTagger:
    # With a bare name, HanTa would unpickle a file of that name in the current folder.
    return HanoverTagger.HanoverTagger(str(Path(HanoverTagger.__file__).with_name("morphmodel_en.pgz")))
