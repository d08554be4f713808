"""ELECTRA's generator and discriminator, trained together as models of ``transformers``."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn
from transformers import ElectraForMaskedLM, ElectraForPreTraining

from ..core import corruption
from ..core.errors import InputError
from ..core.masked_prediction import ElectraOutput
from .model_loading import load_model

logger = logging.getLogger(__name__)


class JointElectra(nn.Module):
    """An ELECTRA generator and discriminator that share all embeddings (Clark et al. 2020, section 3).

    These are the generator's. If the discriminator is already trained, the generator must have been trained with it;
    otherwise, there is a warning.
    """

    def __init__(self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining) -> None:
        """Raises InputError if they are not a generator and a discriminator with embeddings of the same size."""
        super().__init__()
        if not (isinstance(generator, ElectraForMaskedLM) and isinstance(discriminator, ElectraForPreTraining)):
            given = f"{type(generator).__name__} and a {type(discriminator).__name__}"
            raise InputError(f"must be an ElectraForMaskedLM and an ElectraForPreTraining, not a {given}")
        for size in ("vocab_size", "embedding_size", "max_position_embeddings", "type_vocab_size"):
            theirs, ours = (getattr(model.config, size) for model in (generator, discriminator))
            if theirs != ours:
                raise InputError(
                    f"generator and discriminator share their embeddings, but {size} is {theirs} and {ours}; give both "
                    f"configurations the same {size}"
                )
        if discriminator.name_or_path and discriminator.device.type != "meta":
            own = discriminator.electra.embeddings.state_dict()
            shared = generator.electra.embeddings.state_dict()
            if not all(value.equal(own[name].to(value)) for name, value in shared.items()):
                logger.warning(
                    f"{discriminator.name_or_path}: the discriminator's embeddings are replaced by the generator's, "
                    "which differ; if it is trained, give the generator with which it was trained"
                )
        self.generator, self.discriminator = generator, discriminator
        self.discriminator.electra.embeddings = self.generator.electra.embeddings
        self.config = discriminator.config

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        masked_tokens: Tensor,
        target_tokens: Tensor,
        temperature: float = 1.0,
    ) -> ElectraOutput:
        """Masked tokens (B, T), masked positions (B, T), and the original ``target_tokens`` there -> ElectraOutput."""
        others = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        hidden = self.generator.electra(input_ids=input_ids, **others)[0][masked_tokens]
        # the output layer costs a quarter of a small model's step, so only masked positions get it
        logits = self.generator.generator_lm_head(self.generator.generator_predictions(hidden))
        drawn = corruption.draw_replacements(logits, temperature)
        corrupted = corruption.fill_in(input_ids, masked_tokens, drawn)
        is_replaced = corrupted.ne(target_tokens) & masked_tokens
        return ElectraOutput(logits, drawn, is_replaced, self.discriminator(input_ids=corrupted, **others).logits)

    def gradient_checkpointing_enable(self, *args: Any, **options: Any) -> None:
        """Compute the activations of both encoders again in the backward pass, which saves memory."""
        for model in (self.generator, self.discriminator):
            model.gradient_checkpointing_enable(*args, **options)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.generator.get_input_embeddings()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Each tensor once, because safetensors refuses tensors that share memory."""
        state = super().state_dict(*args, **kwargs)
        return {name: value for name, value in state.items() if not self._is_another_name(name)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load what ``state_dict`` returned."""
        missing, unexpected = super().load_state_dict(state_dict, strict=False, assign=assign)
        missing = [name for name in missing if not self._is_another_name(name)]
        if strict and (missing or unexpected):
            raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
        return nn.modules.module._IncompatibleKeys(missing, unexpected)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read what ``save_pretrained`` wrote."""
        generator = load_model(Path(folder) / "generator", "ElectraForMaskedLM")
        return cls(generator, load_model(Path(folder) / "discriminator", "ElectraForPreTraining"))

    def save_pretrained(self, folder: str | Path, **options: Any) -> None:
        """Write ``generator`` and ``discriminator``, which ``from_pretrained`` of their classes reads."""
        self.generator.save_pretrained(Path(folder) / "generator", **options)
        self.discriminator.save_pretrained(Path(folder) / "discriminator", **options)

    def _is_another_name(self, name: str) -> bool:
        """Whether a parameter is one of the generator's embeddings, which are saved once under their first name."""
        is_tied = self.generator.generator_lm_head.weight is self.get_input_embeddings().weight
        return "discriminator.electra.embeddings." in name or (is_tied and "generator.generator_lm_head.weight" in name)
