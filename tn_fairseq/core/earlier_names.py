"""The names that commands had until version 0.2.0, which users know."""

_NAMES = {
    "preprocessing build-synonym-table": "synonyms build",
    "preprocessing swap-synonyms": "evaluate swap-synonyms",
    "preprocessing add-distractors": "evaluate add-distractors",
    "preprocessing": "data",
    "analysis": "look analysis",
    "evaluation": "evaluate",
    "huggingface": "exchange",
    "synonyms.fetch_wordnet": "synonyms fetch-wordnet",
}


def renamed(module: str, *words: str) -> str | None:
    """The command that replaces ``python -m tn_fairseq.MODULE WORDS``; None if there is none."""
    for size in (1, 0):
        if name := _NAMES.get(" ".join([module, *words[:size]])):
            return " ".join(["tn-fairseq", name, *words[size:]])
    return None
