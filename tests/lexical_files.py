"""Files in the formats of the lexical measures: SWORDS, word pairs and BLiMP."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# context, target and the judgments of each substitute: how many of ten judges accept it
Sentence = tuple[str, str, Mapping[str, int]]


def swords_content(sentences: Sequence[Sentence], lemmas: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The content of a SWORDS file; each target is the first occurrence of the word in its context."""
    content = {"contexts": {}, "targets": {}, "substitutes": {}, "substitutes_lemmatized": True}
    content["substitute_labels"] = {}
    for number, (context, target, judged) in enumerate(sentences):
        content["contexts"][f"c:{number}"] = {"context": context, "extra": {}}
        content["targets"][f"t:{number}"] = {
            "context_id": f"c:{number}",
            "target": target,
            "offset": context.index(target),
            "pos": "NOUN",
            "extra": {"coinco_lemma": (lemmas or {}).get(target, target.lower())},
        }
        for substitute, accepted in judged.items():
            key = f"s:{number}-{substitute}"
            content["substitutes"][key] = {"target_id": f"t:{number}", "substitute": substitute, "extra": {}}
            content["substitute_labels"][key] = ["TRUE"] * accepted + ["FALSE"] * (10 - accepted)
    return content


def write_swords(path: Path, content: Mapping[str, Any]) -> Path:
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
