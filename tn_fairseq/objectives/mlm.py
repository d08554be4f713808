"""The baseline, ``--criterion mlm`` or ``electra``: masked LM (Eq. 1), and replaced token detection on ELECTRA."""

from .base import Objective


class MaskedLM(Objective):
    """Masked LM without any correction."""

    name = "mlm"
    changes = ()
    description = "masked language modeling without correction"
