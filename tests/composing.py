"""Compose fairseq's configuration in this process without starting over each time, which takes Hydra half a second.

``fast`` wraps Hydra's ``compose``. It keeps what Hydra composed for each choice of task, model, criterion, and so on.
For the same choices, it sets only the values that differ, as Hydra's last step does. Programs that the tests start
compose everything as for a user.
"""

from collections.abc import Callable
from copy import deepcopy

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException


def fast(compose: Callable) -> Callable:
    """Like ``compose``, for overrides that neither add nor delete settings."""
    parser, known = OverridesParser.create(), {}

    def composed(name: str, overrides: list[str], **options: object) -> DictConfig:
        keys = [override.partition("=")[0] for override in overrides]
        choices = [override for key, override in zip(keys, overrides) if "." not in key]
        place = (name, *choices, *keys, *options.items())
        if place in known and len(set(keys)) == len(keys):
            before, cfg = known[place]
            cfg = deepcopy(cfg)
            try:
                for override in set(overrides) - set(before):
                    parsed = parser.parse_override(override)
                    if isinstance(parsed.value(), dict):  # which is merged with the value before
                        break
                    OmegaConf.update(cfg, parsed.key_or_group, parsed.value(), merge=True)
                else:
                    return cfg
            except (HydraException, OmegaConfBaseException):
                pass  # Hydra's own error follows
        cfg = compose(name, overrides=overrides, **options)
        known[place] = overrides, deepcopy(cfg)
        return cfg

    return composed
