"""Importing the plugin changes what docs/fairseq-changes.md lists, but not the numbers of other training."""

import json
import re
import shutil
import sys
from argparse import Namespace

import torch
from guides import guide
from helpers import FAMILIES, PLUGIN, run_command
from interruption import assert_equal

PAGE = guide("fairseq-changes")
# prints the functions and registry entries of fairseq that the import replaces
DIFFERENCE = """
import inspect, json, sys
import fairseq_cli.train, fairseq_cli.validate, fairseq_cli.hydra_train, fairseq.models.ema.ema

def snapshot():
    found = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("fairseq"):
            continue
        for key, value in list(vars(module).items()):
            if inspect.isfunction(value) and value.__module__ == name:
                found[f"{name}.{key}"] = value
            elif inspect.isclass(value) and value.__module__ == name:
                found |= {f"{name}.{key}.{member}": content for member, content in vars(value).items()
                          if inspect.isfunction(inspect.unwrap(getattr(content, "__func__", content)))}
            elif key.endswith("REGISTRY") and isinstance(value, dict):
                found |= {f"{name}.{key}[{entry}]": content for entry, content in value.items()}
    return found

before = snapshot()
import tn_fairseq
after = snapshot()
print(json.dumps(sorted(name for name in before if after.get(name) is not before[name])))
"""


def test_the_page_lists_all_replaced_functions_and_names():
    run = run_command(sys.executable, "-c", DIFFERENCE, cwd=PLUGIN.parent)
    assert run.code == 0, run.output
    changed = json.loads(run.stdout)
    functions = {name.removeprefix("fairseq.") for name in changed if "REGISTRY[" not in name}
    assert functions == set(re.findall(r"^\| `([\w.]+)` \| `", PAGE, flags=re.MULTILINE))
    taken = {re.search(r"\[(\w+)\]", name).group(1) for name in changed if "REGISTRY[" in name}
    assert taken == {"bert_base", "bert_large"} and all(f"`{name}`" in PAGE for name in taken)


def test_other_training_is_the_same_with_and_without_the_plugin(data_bin, tmp_path):
    flags = [data_bin, *FAMILIES["roberta"].split(), "--criterion", "masked_lm", "--tokens-per-sample", 32]
    flags += ["--optimizer", "adam", "--lr", 1e-3, "--clip-norm", 1, "--batch-size", 8, "--update-freq", 2]
    flags += ["--max-epoch", 2, "--cpu", "--log-format", "json", "--save-interval-updates", 3, "--store-ema"]
    for name, more in (("without", []), ("with", ["--user-dir", PLUGIN])):
        save_dir = tmp_path / "checkpoints"
        run = run_command("fairseq-train", *flags, "--save-dir", save_dir, *more)
        assert run.code == 0, run.output
        shutil.move(save_dir, tmp_path / name)
    names = sorted(path.name for path in (tmp_path / "without").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "with").iterdir()) and "checkpoint_last.pt" in names
    for name in names:
        plain, ours = (torch.load(tmp_path / folder / name, weights_only=False) for folder in ("without", "with"))
        assert plain.keys() == ours.keys()
        for part in ("model", "last_optimizer_state"):
            assert_equal(plain[part], ours[part])
        assert_equal(plain["extra_state"]["train_iterator"], ours["extra_state"]["train_iterator"])
        assert settings(plain["cfg"]) == settings(ours["cfg"])


def settings(cfg: dict) -> dict:
    """The configuration without the plugin's folder."""
    groups = {name: vars(group) if isinstance(group, Namespace) else group for name, group in cfg.items()}
    return {
        name: {key: value for key, value in group.items() if key != "user_dir"} if isinstance(group, dict) else group
        for name, group in groups.items()
    }
