"""The model card of an exported model, filled in from its training configuration."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.criterions import CRITERION_REGISTRY

from ..core.checkpoints import updates_of
from ..core.errors import InputError
from ..core.packages import version_of
from ..core.synonym_table import read_description


def model_card(location: str, encoder: str, state: Mapping[str, Any]) -> str:
    """The Markdown card of one encoder of a checkpoint of fairseq-train; contains only the last part of paths."""
    loaded_by, does, pipeline = "AutoModelForMaskedLM", "fills in masked tokens", "\npipeline_tag: fill-mask"
    if encoder == "discriminator":
        loaded_by, does = "AutoModelForPreTraining", "predicts for every position whether the token was replaced"
        pipeline = ""
    quoted = json.dumps(location, ensure_ascii=False)
    rows = "\n".join(f"| {key} | {value} |" for key, value in _training(state).items())
    kind = "BERT" if encoder == "encoder" else f"ELECTRA's {encoder}"
    return f"""---
library_name: transformers{pipeline}
tags:
- {"bert" if encoder == "encoder" else "electra"}
- tn_fairseq
- true-negatives
---

# {location}

{kind}, {"pre-trained" if updates_of(state) else "converted"} with {_package()}; it {does}.

```python
from transformers import AutoTokenizer, {loaded_by}

tokenizer = AutoTokenizer.from_pretrained({quoted})
model = {loaded_by}.from_pretrained({quoted})
```

## Training

| | |
| --- | --- |
{rows}

The objectives are those of "Language Model Pre-training on True Negatives" (Zhang, Zhao, Utiyama and Sumita, AAAI
2023, [arXiv:2212.00460](https://arxiv.org/abs/2212.00460)). This card was filled in from the training configuration;
whoever publishes the model must describe data, license, evaluation and limitations.
"""


def _training(state: Mapping[str, Any]) -> dict[str, str]:
    cfg = state["cfg"]
    architecture = f"`{cfg['model']['_name']}`"
    if not updates_of(state):
        return {"objective": "none yet: imported weights", "architecture": architecture}
    criterion, task, optimization = cfg["criterion"], cfg["task"], cfg["optimization"]
    objective = f"`--criterion {criterion['_name']}`"
    if kind := getattr(CRITERION_REGISTRY.get(criterion["_name"]), "kind", None):
        objective = f"{kind.description} ({objective})"
        shown = {field.name for field in dataclasses.fields(kind.config)}
    else:
        shown = criterion.keys() - {"_name", "synonym_table"}
    options = {
        key: Path(value).name if key in ("correction_judge", "distillation_teacher") else value
        for key, value in criterion.items()
        if key in shown and value is not None and value is not False
    }
    sequences, tokens = (cfg["dataset"].get(key) for key in ("batch_size", "max_tokens"))
    limits = [f"{sequences} sequences"] if sequences else []
    limits += [f"at most {tokens:,} tokens"] if tokens else []
    workers = cfg["distributed_training"]["distributed_world_size"]
    accumulated = optimization["update_freq"][0]
    rows = {
        "objective": objective,
        "its options": ", ".join(f"{key} {value}" for key, value in options.items()) or "none",
        "synonym table": _synonym_table(criterion.get("synonym_table")),
        "architecture": architecture,
        "data": Path(task["data"]).name,
        "steps": f"{updates_of(state):,}",
        "batch": f"{', '.join(limits)} x {accumulated} accumulated x {workers} workers",
        "sequence length": f"{task['tokens_per_sample']} tokens" if "tokens_per_sample" in task else "?",
        "learning rate": ", ".join(f"{rate:g}" for rate in optimization["lr"]),
        "seed": str(cfg["common"]["seed"]),
    }
    start = cfg["checkpoint"].get("finetune_from_model") or cfg["checkpoint"].get("restore_file")
    if start and start != "checkpoint_last.pt":
        rows["continued from"] = Path(start).name
    return rows


def _package() -> str:
    return " ".join(filter(None, ("tn_fairseq", version_of("tn_fairseq"))))


def _synonym_table(path: str | None) -> str:
    if not path:
        return "none"
    try:
        description = read_description(path)
    except InputError:  # was moved or deleted
        return Path(path).name
    source = " ".join(description[key] for key in ("source", "source_version") if key in description)
    return f"{Path(path).name} ({source})" if source else Path(path).name
