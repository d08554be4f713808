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

from ..core import PLUGIN
from ..core.errors import InputError, first_line
from ..core.packages import version_of

REINSTALL = "install this package again: pip install '.[fairseq]' in a clone of its repository"
FAIRSEQS = ("ve-fairseq", "fairseq-fixed", "fairseq")  # all of them install the package fairseq
REMEDIES = {
    "torch": "pip install --force-reinstall torch",
    "fairseq": f"pip uninstall --yes {' '.join(FAIRSEQS)}; pip install --no-deps ve-fairseq==0.12.3",
}
Read = tuple[int, str | None, str]  # the size and the fingerprint, if it is known, of a file's dictionary; details


def examine(data: Path | None, checkpoint: Path | None, synonym_table: Path | None) -> bool:
    """Print all checks up to a failed one that the others need, and return whether all succeeded."""
    checks = {"WordNet": _wordnet, "fairseq-train": _command, "fairseq": _fairseq, "tn_fairseq": _plugin}
    read: dict[Path, Read] = {}
    files = {"data": (data, _data), "checkpoint": (checkpoint, _checkpoint), "synonym table": (synonym_table, _table)}
    checks |= {name: partial(_file, path, reader, read) for name, (path, reader) in files.items() if path is not None}
    all_succeeded = True
    for name, check in checks.items():
        try:
            with warnings.catch_warnings(action="ignore"), redirect_stderr(StringIO()):
                mark, text = "ok", check()
        except Exception as error:  # a broken installation can raise anything
            reinstall = "" if isinstance(error, InputError) else f"; {REINSTALL}"
            mark, text, all_succeeded = "FAILED", f"{first_line(error)}{reinstall}", False
        print(f"{mark:7} {name:14} {text}", flush=True)
        if mark == "FAILED" and name in ("fairseq", "tn_fairseq"):
            break
    print("python -m torch.utils.collect_env prints the rest: Python, torch, GPUs and versions of packages")
    return all_succeeded


def _fairseq() -> str:
    for name, remedy in REMEDIES.items():
        try:
            import_module(name)
        except Exception as error:
            raise InputError(f"{name} cannot be imported ({first_line(error)}); {remedy}") from None
    installed = {name: version for name in FAIRSEQS if (version := version_of(name))}
    if len(installed) > 1:
        raise InputError(f"{' and '.join(installed)} are installed into the same folder; {REMEDIES['fairseq']}")
    return ", ".join(f"{version} ({name})" for name, version in installed.items()) or "not installed by pip"


def _plugin() -> str:
    for part in ("fairseq_patches", "criterions", "models", "optim", "tasks"):
        import_module(f"tn_fairseq.{part}")
    from ..fairseq_patches.replacing import REPLACED

    other = [f"{owner.__name__}.{name}" for owner, name, ours in REPLACED if getattr(owner, name) is not ours]
    if other:
        raise InputError(f"another package replaces {', '.join(other)} of fairseq; use this package without it")
    return f"{version_of('tn_fairseq') or 'not installed by pip'}; --user-dir {PLUGIN}"


def _wordnet() -> str:
    from ..synonyms.wordnet import FETCH, find_wordnet, wordnet_version

    if (reader := find_wordnet()) is None:
        raise InputError(f"not found; get it with {FETCH}")
    return f"{wordnet_version(reader).removeprefix('WordNet ')} in {reader.root}"


def _command() -> str:
    executable, here = shutil.which("fairseq-train"), Path(sys.executable).parent
    if executable is None or Path(executable).parent.resolve() != here.resolve():
        where = f"is {executable}, of another environment" if executable else "is not on PATH"
        raise InputError(f"{where}; activate this one: source {here / 'activate'}")
    return executable


def _file(path: Path, reader: Callable[[Path], Read], read: dict[Path, Read]) -> str:
    size, fingerprint, details = reader(path)
    for other, (its_size, its_fingerprint, _) in read.items():
        if size != its_size or fingerprint and its_fingerprint and fingerprint != its_fingerprint:
            remedy = "make data with the tokenizer of the checkpoint, and the table from the dict.txt of the data"
            raise InputError(f"{other} and {path} have different dictionaries; {remedy}")
    read[path] = size, fingerprint, details
    return f"{path}: dictionary of {size:,} symbols, fingerprint {(fingerprint or '-')[:12]}; {details}"


def _data(path: Path) -> Read:
    from ..core.configuration import check_data_folder
    from ..core.dictionary import fingerprint, load_dictionary

    check_data_folder(path)
    dictionary, splits = load_dictionary(path / "dict.txt"), sorted(file.stem for file in path.glob("*.idx"))
    if not splits:
        raise InputError(f"{path}: has no text; run tn-fairseq data binarize again")
    return len(dictionary), fingerprint(dictionary), ", ".join(splits)


def _checkpoint(path: Path) -> Read:
    from ..core.checkpoints import load_checkpoint, registered_name, updates_of, word_embeddings

    state = load_checkpoint(path)
    embeddings, fingerprint = word_embeddings(state), state["model"].get("dictionary_fingerprint")
    if embeddings is None:
        raise InputError(f"{path}: not a model of this package, nor RoBERTa; name another checkpoint")
    details = f"{registered_name(state['cfg']['model'], 'arch')}, updates: {updates_of(state)}"
    return len(embeddings), None if fingerprint is None else bytes(fingerprint.tolist()).hex(), details


def _table(path: Path) -> Read:
    from ..core.synonym_table import read_description

    known = read_description(path)
    return int(known["dictionary_size"]), known["dictionary_fingerprint"], known.get("source", "source unknown")
