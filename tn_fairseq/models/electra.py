"""ELECTRA: ``--arch electra_tiny``, ``electra_small``, ``electra_base`` or ``electra_large``.

A generator fills in the masked tokens, and a discriminator predicts for every position whether the token was replaced
(Clark et al. 2020). Both encoders share their embeddings and nothing else. A frozen generator has
its own embeddings, because the discriminator's change in training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from fairseq.data import Dictionary
from torch import Tensor, nn

from ..core import corruption
from ..core.errors import InputError, one_line_errors
from ..core.masked_prediction import ElectraOutput
from ..core.options import option
from ..modules.heads import MaskedLMHead, ReplacedTokenHead
from ..modules.transformer_encoder import Embeddings, TransformerEncoder
from .base import (
    EncoderConfig,
    EncoderModel,
    build_encoder,
    encoder_sizes,
    initialize,
    register_sizes,
)


@dataclass
class ElectraConfig(EncoderConfig):
    embedding_size: int = option("embedding size, shared by generator and discriminator", default=128)
    generator_layers: int = option("layers of the generator", default=12, at_least=1)
    generator_embed_dim: int = option("hidden size of the generator", default=64, at_least=1)
    generator_attention_heads: int = option("attention heads of the generator", default=1, at_least=1)
    generator_ffn_embed_dim: int = option("feed-forward size of the generator", default=256)
    generator_checkpoint: Optional[str] = option(
        "ELECTRA or BERT whose weights a new run's generator starts with", default=None
    )
    freeze_generator: bool = option(
        "train only the discriminator; the generator gets its own embeddings", default=False
    )
    generator_embedding_size: Optional[int] = option(
        "embedding size of a frozen generator (default: that of the discriminator)", default=None
    )


class ElectraModel(EncoderModel):
    """Generator and discriminator over shared embeddings; fine-tuning uses only the discriminator."""

    config = ElectraConfig
    owners = ("encoder", "generator")
    frozen = ("generator", "generator_head", "generator_embeddings")  # with --freeze-generator
    pretraining_only = (*frozen, "discriminator_head")

    def __init__(self, cfg: ElectraConfig, dictionary: Dictionary):
        super().__init__(cfg, dictionary)
        generator_embedding_size = cfg.generator_embedding_size or cfg.embedding_size
        self.generator = build_encoder(cfg, "generator", generator_embedding_size)
        self.discriminator = build_encoder(cfg, "encoder", cfg.embedding_size)
        self.generator_head = MaskedLMHead(cfg.generator_embed_dim, generator_embedding_size, len(dictionary))
        self.discriminator_head = ReplacedTokenHead(cfg.encoder_embed_dim)
        if cfg.freeze_generator:
            self.generator_embeddings = Embeddings(
                len(dictionary), generator_embedding_size, cfg.max_positions, cfg.dropout
            )
        initialize(self, self.generator, self.discriminator)
        for module in self._frozen_modules():
            module.requires_grad_(False)

    @classmethod
    def check_sizes(cls, cfg: ElectraConfig) -> None:
        super().check_sizes(cfg)
        if cfg.generator_embedding_size not in (None, cfg.embedding_size) and not cfg.freeze_generator:
            raise InputError(
                f"--generator-embedding-size {cfg.generator_embedding_size} differs from --embedding-size "
                f"{cfg.embedding_size}, but generator and discriminator share their embeddings; give "
                f"--embedding-size {cfg.generator_embedding_size}, or --freeze-generator"
            )

    def embeddings_of(self, encoder: TransformerEncoder) -> Embeddings:
        is_frozen = self.cfg.freeze_generator and encoder is not self.discriminator
        return self.generator_embeddings if is_frozen else self.embeddings

    def train(self, mode: bool = True) -> "ElectraModel":
        """A frozen generator stays in evaluation mode: without dropout, one text always gives the same logits."""
        super().train(mode)
        for module in self._frozen_modules():
            module.eval()
        return self

    def _frozen_modules(self) -> list[nn.Module]:
        """The modules that are not trained; none are left when fine-tuning."""
        return [self._modules[name] for name in self.frozen if self.cfg.freeze_generator and name in self._modules]

    @one_line_errors()
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, *args: Any, **options: Any) -> Any:
        """Load parameters; a generator that is frozen from now on copies the shared embeddings.

        Raises InputError as the base class does, and if the checkpoint's generator is frozen, but this one is not.
        """
        its_own = any(name.startswith("generator_embeddings.") for name in state_dict)
        if its_own and not self.cfg.freeze_generator and not self.classification_heads:
            raise InputError("the checkpoint's generator is frozen; add --freeze-generator")
        if self.cfg.freeze_generator and not its_own:
            shared = [name for name in state_dict if name.startswith("embeddings.")]
            state_dict = {**state_dict, **{f"generator_{name}": state_dict[name] for name in shared}}
        return super().load_state_dict(state_dict, strict, *args, **options)

    def forward(
        self,
        src_tokens: Tensor,
        token_types: Optional[Tensor] = None,
        documents: Optional[Tensor] = None,
        layout: Optional[tuple] = None,
        masked_tokens: Optional[Tensor] = None,
        masked_indices: Optional[Tensor] = None,
        target_tokens: Optional[Tensor] = None,
        uniform_draws: Optional[Tensor] = None,
        temperature: float = 1.0,
        features_only: bool = False,
        encoder: str = "discriminator",
        classification_head_name: Optional[str] = None,
        **unused: Any,
    ) -> Union[tuple[Tensor, None], ElectraOutput]:
        """Masked tokens (B, T), masked positions and the original `target_tokens` there -> ElectraOutput.

        `uniform_draws`, (N), are random numbers for the generator's draws, by default from torch. Without targets, only
        the generator runs: (logits, None). With `features_only`, one encoder: (hidden states (B, T, H), None). With the
        name of a head, the discriminator: (output of the head, None).
        """
        if classification_head_name is not None:
            return self.classify(self.discriminator, classification_head_name, src_tokens, token_types), None
        context = token_types, documents, layout
        if features_only:
            return self.encode(getattr(self, encoder), src_tokens, *context), None

        masked = masked_tokens, masked_indices
        logits = self.masked_logits(self.generator, self.generator_head, src_tokens, *context, *masked)
        if target_tokens is None or masked_tokens is None:
            return logits, None

        drawn_tokens = corruption.draw_replacements(logits, temperature, uniform_draws)
        corrupted_tokens = corruption.fill_in(src_tokens, masked_tokens, drawn_tokens)
        hidden = self.encode(self.discriminator, corrupted_tokens, *context)
        is_replaced = corrupted_tokens.ne(target_tokens) & masked_tokens
        return ElectraOutput(logits, drawn_tokens, is_replaced, self.discriminator_head(hidden))


register_sizes(
    ElectraModel,
    ElectraConfig,
    {
        name: {
            "embedding_size": size,
            **encoder_sizes("encoder", *discriminator),
            **encoder_sizes("generator", *generator),
        }
        for name, size, discriminator, generator in (
            ("electra_tiny", 128, (2, 128, 2, 512), (2, 128, 2, 512)),
            ("electra_small", 128, (12, 256, 4, 1024), (12, 64, 1, 256)),
            ("electra_base", 768, (12, 768, 12, 3072), (12, 256, 4, 1024)),
            ("electra_large", 1024, (24, 1024, 16, 4096), (24, 256, 4, 1024)),
        )
    },
)
