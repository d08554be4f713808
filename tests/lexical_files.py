"""Files for the lexical measures: SWORDS and BLiMP in their formats, and checkpoints."""

import gzip
import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from helpers import FAMILIES, save_random_model
from omegaconf import DictConfig

from tn_fairseq.core.configuration import training_config
from tn_fairseq.core.dictionary import MASK
from tn_fairseq.models.loading import Loaded
from tn_fairseq.tools.evaluate.lexical.scoring import Place

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


def write_blimp(path: Path, pairs: Mapping[str, Sequence[tuple[str, str]]], phenomenon: str = "binding") -> Path:
    """Write an archive as BLiMP's, with a file for each paradigm."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, sentences in pairs.items():
            entries = [
                {"sentence_good": good, "sentence_bad": bad, "linguistics_term": phenomenon, "UID": name}
                for good, bad in sentences
            ]
            archive.writestr(f"data/{name}.jsonl", "".join(json.dumps(entry) + "\n" for entry in entries))
            archive.writestr(f"__MACOSX/data/._{name}.jsonl", b"\x00\xff")
    return path


@cache  # Hydra takes a second
def _configuration(data: Path, family: str) -> DictConfig:
    return training_config([data, *FAMILIES[family].split(), "--tokens-per-sample", 32, "--batch-size", 8])


def save_model(path: Path, data: Path, family: str, seed: int = 1, updates: int = 1) -> Path:
    """Save a new model of a family with large random parameters."""
    return save_random_model(path, _configuration(data, family), seed, optimizer_history=[{"num_updates": updates}])


@torch.no_grad()
def alone(loaded: Loaded, place: Place) -> torch.Tensor:
    """The log-probabilities at a masked place, (V,), from a pass over one sequence with the logits of all positions."""
    tokens = torch.from_numpy(place.tokens)[None].clone()
    tokens[0, place.position] = loaded.task.source_dictionary.index(MASK)
    logits = loaded.model(src_tokens=tokens)[0]
    return logits[0, place.position].log_softmax(-1)
