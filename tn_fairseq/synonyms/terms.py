"""What the files of others write beside words: remarks, relations, parts of speech, and the names of columns."""

import re
from functools import cache

_REMARK = re.compile(r"\(([^()]*)\)?")
# between synonyms in one cell; not inside a remark, a number or a fraction
_SEPARATOR = re.compile(r"(?<!\\)[|;,/、，；／](?![^()]*\))(?!\d)")
_EDGES = " \t\u00a0[]{}"

_SYNONYMY = re.compile(
    r"\b(syns?\b|synon|sin[oóôò]n|szinon|синон|συνων|samheiti|similar|same|equivalen|сходн)"
    r"|同义|近义|同義|近義|類義|類語|동의어|유의어|مرادف|eş ?anlam|समानार्थ|पर्याय|đồng nghĩa|נרדפ"
)
_OTHER_RELATION = re.compile(
    r"\b(ant[oóôò]n|ant\b|антон|αντων|andheiti|gegenteil|gegensatz|gegenwort|motsats|opposite|contrary|contrast(s|ing|ed|ive)?\b"
    r"|przeciw|protiklad|protikl|ellent|nasprot"
    r"|generali[sz](es|ation)|gener\w* term|related|связанн|узагальн|родов|общий термин"
    r"|hyp[eo]r?n|iper[oó]n|ip[oó]n|hip[eo]r?[oóôò]n|гип[eе]рон|гипон"
    r"|oberbegriff|unterbegriff|overbegreb|underbegreb|overbegrep|underbegrep|överordn|underordn|yfirheiti|undirheiti"
    r"|pojęcie nadrz|pojęcie podrz|nadrzędn|podrzędn|nadřazen|podřazen|nadpomen|podpomen|holon|meron|part of|has a"
    r"|is ?a\b|derived|entail|cause|see also|exclusion|independent|verwandt|liés?$|relacionad|powiązan)"
    r"|^(gener(al|ic|ico|isch|isk|ieke?)|t[eé]rm\w* g[eé]n[eéè]ri[cq]\w*|contraste)$"
    r"|反义|反義|対義|上位|下位|반의어|ضد"
)
_PARTS_OF_SPEECH = frozenset(
    """
n nn nns nnp nnps noun nouns propn propernoun v vb vbd vbg vbn vbp vbz verb verbs vt vi a adj adjs adjective adjectives
j jj jjr jjs s satellite adjectivesatellite r adv advs adverb adverbs rb rbr rbs prep preposition adp conj conjunction
cconj sconj pron pronoun prp det determiner dt interj interjection intj uh num numeral cd particle aux modal phrase
subst substantiv substantive nomen hauptwort adjektiv adverb präposition verbum sb sust sustantivo verbo adjetivo
adverbio nom verbe adjectif adverbe sostantivo aggettivo avverbio substantivo advérbio adjectivo rzeczownik czasownik
przymiotnik przysłówek rzecz czas przym przysł сущ существительное гл глагол прил прилагательное нареч наречие
zelfstandignaamwoord bijvoeglijknaamwoord werkwoord bijwoord podstjm přídjm slov přísl sam prid glag
名词 动词 形容词 副词 名詞 動詞 形容詞 副詞 명사 동사 형용사 부사
""".split()
)

_SCORE_NAME = re.compile(
    r"\b(score|weight|similarity|sim\b|cosine|confidence|prob|strength|rating|relatedness|punt|punkt|gewicht|poids|peso"
    r"|ähnlich|bewertung|similitud|similarité|waga|вес|оценка|ppdb2)|分数|得分|权重|相似度"
)
_PART_OF_SPEECH_NAME = re.compile(r"\b(pos|part of speech|wortart|tag|category|catégorie|categor[ií]a)\b|词性|品詞")
_RELATION_NAME = re.compile(r"\b(rel|relation|relations?hip|relation type|type|link|beziehung|relación|тип)\b|关系")
_WORD_NAME = re.compile(
    r"\b(word|words|w|term|terms|head|headword|keyword|lemma|entry|source|token|input|from|query|original|expression"
    r"|phrase|canonical|preferred"
    r"|wort|w[oö]rter|begriff|stichwort|ausdruck|mot|mots|terme|entrée|palabra|palabras|término|vocablo|parola"
    r"|parole|termine|palavra|palavras|termo|słowo|wyraz|hasło|слово|слова|термин|woord|woorden|ord|begrepp|slovo|szó"
    r"|kelime|sana|cuvânt|beseda|riječ|λέξη|kata|từ)\b|单词|词语|^词$|单词|言葉|単語|단어|كلمة"
)
_TARGET_NAME = re.compile(
    r"\b(alternatives?|substitutes?|replacements?|paraphrases?|target|neighbou?rs?|variants?|to|bedeutungsgleich)\b"
)
_NO_LIST_NAME = re.compile(r"\b(synset|count|number|anzahl|id|index|definition|meaning|example|gloss)\b")


@cache
def is_other_relation(text: str) -> bool:
    """Whether a remark or a cell names a relation other than synonymy, such as ``antonym`` or ``generic term``."""
    text = _plain(text)
    return bool(_OTHER_RELATION.search(text)) and not _SYNONYMY.search(text)


@cache
def is_synonymy(text: str) -> bool:
    """Whether a cell names synonymy or similarity, such as ``synonym``, ``/r/SimilarTo`` or ``hasExactSynonym``."""
    return bool(_SYNONYMY.search(_plain(text)))


def _plain(text: str) -> str:
    """The lowercase words of a text, also of ``twoWords``."""
    return re.sub(r"[\W_]+", " ", re.sub(r"([a-z])([A-Z])", r"\1 \2", text)).strip().lower()


@cache
def is_part_of_speech(text: str) -> bool:
    """Whether a cell names a part of speech, such as ``noun``, ``(adj.)`` or ``VBZ``."""
    return re.sub(r"[\W_]+", "", text.lower()) in _PARTS_OF_SPEECH


def column_role(name: str) -> str:
    """What a column with this name holds: word, synonym, score, part of speech, relation, left out, or other."""
    name = _plain(re.sub(r"\d+", " ", name))
    if is_other_relation(name) or _NO_LIST_NAME.search(name):
        return "left out"
    if _SCORE_NAME.search(name):
        return "score"
    for role, pattern in (
        ("synonym", _SYNONYMY),
        ("part of speech", _PART_OF_SPEECH_NAME),
        ("relation", _RELATION_NAME),
        ("synonym", _TARGET_NAME),
        ("word", _WORD_NAME),
    ):
        if pattern.search(name):
            return role
    return "other"


def split_cell(cell: str) -> list[str]:
    """The terms in a cell: ``glad|joyful``, ``glad, joyful (literary)`` or ``['glad', 'joyful']``."""
    return [part for part in _SEPARATOR.split(cell) if part.strip(_EDGES)]


def without_remarks(term: str) -> str | None:
    """A term without what LibreOffice strips: remarks in parentheses, and from an asterisk on.

    None if the term is not a synonym: a remark names another relation, or it starts with a sign of opposition.
    """
    if any(is_other_relation(part) for remark in _REMARK.findall(term) for part in re.split("[,;]", remark)):
        return None
    term = _unquoted(term)
    if term.startswith("≠"):
        return None
    return _unquoted(" ".join(_REMARK.sub(" ", term).partition("*")[0].split()))


def _unquoted(term: str) -> str:
    """A term without brackets and quotes around it; the apostrophe of *'tis* stays."""
    term = term.strip(_EDGES)
    return term[1:-1].strip() if len(term) > 1 and term[0] in "'\"" and term[-1] == term[0] else term.strip('"')
