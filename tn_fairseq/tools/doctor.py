"""Check an installation, and whether data, a checkpoint and a synonym table fit together: one line for each check.

Nothing is imported before its check, so that this also runs if torch or fairseq is missing or damaged. What is not ours
(Python, torch, GPUs, versions of packages) is printed by ``python -m torch.utils.collect_env``.
"""

import shutil
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from ..core import PLUGIN
from ..core.errors import InputError, first_line
from ..core.packages import version_of

REINSTALL = "install this package again: pip install '.[fairseq]' in a clone of its repository"
FAIRSEQS = ("ve-fairseq", "fairseq-fixed", "fairseq")  # all of them install the package fairseq
FILES = ("data", "checkpoint", "synonym table", "together")
NEEDS = {"tn_fairseq": "fairseq", **dict.fromkeys(FILES, "tn_fairseq")}


class Dictionary(NamedTuple):
    """The dictionary that a file belongs to; the fingerprint is None if the file does not record it."""

    size: int
    fingerprint: str | None

    def __str__(self) -> str:
        return f"dictionary of {self.size:,} symbols, fingerprint {self.fingerprint[:12] if self.fingerprint else '-'}"


def examine(data: Path | None, checkpoint: Path | None, synonym_table: Path | None) -> bool:
    """Print all checks, and return whether all succeeded."""
    checks = {"fairseq": _fairseq, "tn_fairseq": _plugin, "WordNet": _wordnet, "fairseq-train": _command}
    dictionaries: dict[Path, Dictionary] = {}
    for name, path, read in zip(FILES, (data, checkpoint, synonym_table), (_data, _checkpoint, _table)):
        if path is not None:
            checks[name] = partial(_read, path, read, dictionaries)
    if len(checks) > 5:  # several files
        checks["together"] = partial(_together, dictionaries)
    failed: set[str] = set()
    for name, check in checks.items():
        try:
            if NEEDS.get(name) in failed:
                raise InputError(f"not checked, because it needs {NEEDS[name]}")
            with warnings.catch_warnings(), redirect_stderr(StringIO()):
                warnings.simplefilter("ignore")
                mark, text = "ok", check()
        except InputError as error:
            mark, text = "FAILED", str(error)
        except Exception as error:  # a broken installation can raise anything
            mark, text = "FAILED", f"{type(error).__name__}: {first_line(error)}; {REINSTALL}"
        if mark == "FAILED":
            failed.add(name)
        print(f"{mark:7} {name:14} {text}", flush=True)
    print("python -m torch.utils.collect_env prints the rest: Python, torch, GPUs and versions of packages")
    return not failed


def _import(name: str, remedy: str) -> None:
    """Import a module; raises InputError with the remedy if that fails, however it fails."""
    try:
        import_module(name)
    except Exception as error:
        raise InputError(f"cannot be imported ({type(error).__name__}: {first_line(error)}); {remedy}") from None


def _fairseq() -> str:
    _import("torch", "pip install --force-reinstall torch")
    installed = [name for name in FAIRSEQS if version_of(name)]
    again = (
        f"pip uninstall --yes {' '.join(installed)}; pip install --no-deps ve-fairseq==0.12.3"
        if installed
        else REINSTALL
    )
    _import("fairseq", again)
    if len(installed) > 1:
        raise InputError(f"{' and '.join(installed)} are installed into the same folder; {again}")
    return ", ".join(f"{version_of(name)} ({name})" for name in installed) or "not installed by pip"


def _plugin() -> str:
    for part in ("fairseq_patches", "criterions", "models", "optim", "tasks"):
        _import(f"tn_fairseq.{part}", REINSTALL)
    from ..fairseq_patches.replacing import REPLACED

    other = [f"{owner.__name__}.{name}" for owner, name, ours in REPLACED if getattr(owner, name) is not ours]
    if other:
        raise InputError(f"another package replaces {', '.join(other)} of fairseq; use this package without it")
    version = version_of("tn_fairseq") or "not installed by pip"
    return f"{version}, replaces {len(REPLACED)} functions of fairseq; --user-dir {PLUGIN}"


def _wordnet() -> str:
    from ..synonyms.wordnet import FETCH, find_wordnet, wordnet_version

    reader = find_wordnet()
    if reader is None:
        raise InputError(f"not found; get it with {FETCH}")
    return f"{wordnet_version(reader).removeprefix('WordNet ')} in {reader.root}"


def _command() -> str:
    executable = shutil.which("fairseq-train")
    here = Path(sys.executable).parent
    if executable is None or Path(executable).parent.resolve() != here.resolve():
        where = f"is {executable}, of another environment" if executable else "is not on PATH"
        raise InputError(f"{where}; activate this one: source {here / 'activate'}")
    return executable


def _read(path: Path, read: Callable[[Path], tuple[Dictionary, str]], dictionaries: dict[Path, Dictionary]) -> str:
    dictionary, details = read(path)
    dictionaries[path] = dictionary
    return f"{path}: {dictionary}; {details}"


def _data(path: Path) -> tuple[Dictionary, str]:
    from ..core.configuration import check_data_folder
    from ..core.dictionary import fingerprint, load_dictionary

    if not path.is_dir():
        raise InputError(f"{path}: not a folder; name one that tn-fairseq data binarize wrote")
    check_data_folder(path)
    dictionary = load_dictionary(path / "dict.txt")
    splits = sorted(file.stem for file in path.glob("*.idx"))
    if not splits:
        raise InputError(f"{path}: has no text; run tn-fairseq data binarize again")
    return Dictionary(len(dictionary), fingerprint(dictionary)), ", ".join(splits)


def _checkpoint(path: Path) -> tuple[Dictionary, str]:
    from ..core.checkpoints import load_checkpoint, registered_name, updates_of, word_embeddings

    state = load_checkpoint(path)
    embeddings, fingerprint = word_embeddings(state), state["model"].get("dictionary_fingerprint")
    if embeddings is None:
        raise InputError(f"{path}: not a model of this package, nor RoBERTa; name another checkpoint")
    updates = updates_of(state)
    known = "unknown" if updates is None else updates
    details = f"{registered_name(state['cfg']['model'], 'arch')}, {known} updates"
    recorded = None if fingerprint is None else bytes(fingerprint.tolist()).hex()
    return Dictionary(len(embeddings), recorded), details


def _table(path: Path) -> tuple[Dictionary, str]:
    from ..core.synonym_table import read_description

    description = read_description(path)
    size, fingerprint = int(description["dictionary_size"]), description["dictionary_fingerprint"]
    return Dictionary(size, fingerprint), description.get("source", "source unknown")


def _together(dictionaries: dict[Path, Dictionary]) -> str:
    """Compare the dictionaries of all files with the first."""
    if len(dictionaries) < 2:
        raise InputError("not compared, because a file above cannot be read")
    first, *others = dictionaries
    for other in others:
        known = {dictionaries[path].fingerprint for path in (first, other)} - {None}
        if dictionaries[first].size != dictionaries[other].size or len(known) > 1:
            raise InputError(
                f"{first} and {other} have different dictionaries; make data with the tokenizer of the checkpoint, and "
                "the table from the dict.txt of the data"
            )
    return f"{' and '.join(map(str, dictionaries))} have the same dictionary"
