"""Import and export weights of ``transformers``: ``tn-fairseq exchange import|export``.

``TrueNegativeTrainer``, ``JointElectra``, ``SynonymTable``, ``keep_layers``, ``teach`` and ``DrawsCollator`` are for
training with ``transformers``, without fairseq.
"""

from importlib import import_module
from typing import Any

from ..core.packages import hide_broken_torchaudio

_MODULES = {
    "DrawsCollator": "drawn_rows",
    "JointElectra": "joint_electra",
    "SynonymTable": "synonyms",
    "TrueNegativeTrainer": "trainer",
    "keep_layers": "layers",
    "teach": "drawn_rows",
}  # imported when they are used, because two of them import transformers


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        hide_broken_torchaudio()
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
