"""The model card of an exported model, filled in from its training configuration."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairseq.criterions import CRITERION_REGISTRY

from ..errors import InputError
from ..synonym_table import read_description

_LOADED_BY = {
    "ElectraForPreTraining": ("AutoModelForPreTraining", "predicts for every position whether the token was replaced"),
    "ElectraForMaskedLM": ("AutoModelForMaskedLM", "fills in masked tokens"),
    "BertForMaskedLM": ("AutoModelForMaskedLM", "fills in masked tokens"),
}


def model_card(name: str, architecture: str, state: Mapping[str, Any]) -> str:
    """The Markdown card of one tower of a checkpoint of fairseq-train; contains only the last part of paths."""
    cfg = state["cfg"]
    loaded_by, does = _LOADED_BY[architecture]
    tower = {"ElectraForPreTraining": "discriminator", "ElectraForMaskedLM": "generator"}.get(architecture)
    location = f"{name}/{tower}" if tower else name
    quoted = json.dumps(location, ensure_ascii=False)
    tags = ["electra" if tower else "bert", "tn_fairseq", "true-negatives"]
    front_matter = ["library_name: transformers"]
    if loaded_by == "AutoModelForMaskedLM":
        front_matter.append("pipeline_tag: fill-mask")
    front_matter += ["tags:", *(f"- {tag}" for tag in tags)]
    header = "\n".join(front_matter)
    rows = "\n".join(f"| {key} | {value} |" for key, value in _training(cfg, state).items())
    kind = f"ELECTRA's {tower}" if tower else "BERT"
    return f"""---
{header}
---

# {location}

{kind}, {"pre-trained" if _steps(state) else "converted"} with tn_fairseq {version("tn_fairseq")}; it {does}.

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


def _training(cfg: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, str]:
    steps = _steps(state)
    if not steps:
        return {"objective": "none yet: imported weights", "architecture": f"`{cfg['model']['_name']}`"}
    criterion, task, optimization = cfg["criterion"], cfg["task"], cfg["optimization"]
    name = criterion["_name"]
    options = {
        key: _last_part(value) if key == "correction_judge" else value
        for key, value in criterion.items()
        if key not in ("_name", "synonym_table") and value is not None and value is not False
    }
    sequences, tokens = (cfg["dataset"].get(key) for key in ("batch_size", "max_tokens"))
    limits = [f"{sequences} sequences"] if sequences else []
    limits += [f"at most {tokens:,} tokens"] if tokens else []
    workers = cfg["distributed_training"]["distributed_world_size"]
    accumulated = optimization["update_freq"][0]
    rows = {
        "objective": _objective(name),
        "its options": ", ".join(f"{key} {value}" for key, value in options.items()) or "none",
        "synonym table": _synonym_table(criterion.get("synonym_table")),
        "architecture": f"`{cfg['model']['_name']}`",
        "data": _last_part(task["data"]),
        "steps": f"{steps:,}",
        "batch": f"{', '.join(limits)} x {accumulated} accumulated x {workers} workers",
        "sequence length": f"{task['tokens_per_sample']} tokens" if "tokens_per_sample" in task else "?",
        "learning rate": ", ".join(f"{rate:g}" for rate in optimization["lr"]),
        "seed": str(cfg["common"]["seed"]),
    }
    start = cfg["checkpoint"].get("finetune_from_model") or cfg["checkpoint"].get("restore_file")
    if start and start != "checkpoint_last.pt":
        rows["continued from"] = _last_part(start)
    return rows


def _objective(criterion: str) -> str:
    described = getattr(CRITERION_REGISTRY.get(criterion), "objective", None)
    return f"{described} (`--criterion {criterion}`)" if described else f"`--criterion {criterion}`"


def _steps(state: Mapping[str, Any]) -> int:
    history = state.get("optimizer_history") or [{}]
    return history[-1].get("num_updates", 0)


def _synonym_table(path: str | None) -> str:
    if not path:
        return "none"
    try:
        description = read_description(path)
    except InputError:  # was moved or deleted
        return _last_part(path)
    source = " ".join(description[key] for key in ("source", "source_version") if key in description)
    return f"{_last_part(path)} ({source})" if source else _last_part(path)


def _last_part(path: str) -> str:
    return Path(path).name
