"""The criteria: ``--criterion electra|mlm_hard_correction|mlm_soft_reg|mlm_sent_kl``, and ``squad``."""

from . import electra, mlm_hard_correction, mlm_sent_kl, mlm_soft_reg, squad  # noqa: F401
