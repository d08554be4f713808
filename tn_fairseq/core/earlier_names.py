"""The names that commands had until version 0.2.0, which users know."""

import re

# the first that matches counts
_NAMES = {
    ".preprocessing build-synonym-table": "synonyms build",
    ".preprocessing swap-synonyms": "evaluate swap-synonyms",
    ".preprocessing add-distractors": "evaluate add-distractors",
    ".preprocessing": "data",
    ".analysis": "look analysis",
    ".evaluation": "evaluate",
    ".huggingface": "exchange",
    ".synonyms.fetch_wordnet": "synonyms fetch-wordnet",
    "": "user-dir",
}
_EARLIER = re.compile(rf"\bpython -m tn_fairseq({'|'.join(map(re.escape, _NAMES))})(?![\w.-])")


def renamed(command: str) -> str:
    """The same command with the names that the commands in it have now."""
    return _EARLIER.sub(lambda match: f"tn-fairseq {_NAMES[match[1]]}", command)
