"""ELECTRA: ``--arch electra_tiny``, ``electra_small``, ``electra_base`` or ``electra_large``.

A generator fills in the masked tokens, and a discriminator predicts for every position whether the token was replaced
(Clark et al. 2020). Both encoders, also called towers, share their embeddings and nothing else.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from torch import Tensor

from .. import corruption
from ..modules.heads import MaskedLMHead, ReplacedTokenHead
from .base import EncoderConfig, EncoderModel, build_encoder, check_heads, initialize, register_sizes


@dataclass
class ElectraConfig(EncoderConfig):
    embedding_size: int = field(default=128, metadata={"help": "embedding size, shared by generator and discriminator"})
    generator_layers: int = field(default=12, metadata={"help": "layers of the generator"})
    generator_embed_dim: int = field(default=64, metadata={"help": "hidden size of the generator"})
    generator_attention_heads: int = field(default=1, metadata={"help": "attention heads of the generator"})
    generator_ffn_embed_dim: int = field(default=256, metadata={"help": "feed-forward size of the generator"})


class ElectraOutput(NamedTuple):
    """One pass through both towers. N masked positions in a batch of shape (B, T)."""

    logits: Tensor  # (N, V), the generator's, at the masked positions
    drawn_tokens: Tensor  # (N), what the generator drew
    is_replaced: Tensor  # (B, T) boolean, false where a draw equals the original token
    discriminator_logits: Tensor  # (B, T), positive means replaced


class ElectraModel(EncoderModel):
    """Generator and discriminator over shared embeddings; fine-tuning uses only the discriminator."""

    pretraining_only = ("generator", "generator_head", "discriminator_head")

    def __init__(self, cfg: ElectraConfig, dictionary):
        super().__init__(cfg, dictionary, cfg.embedding_size)
        self.generator = build_encoder(
            cfg,
            cfg.embedding_size,
            cfg.generator_embed_dim,
            cfg.generator_layers,
            cfg.generator_attention_heads,
            cfg.generator_ffn_embed_dim,
        )
        self.discriminator = build_encoder(
            cfg,
            cfg.embedding_size,
            cfg.encoder_embed_dim,
            cfg.encoder_layers,
            cfg.encoder_attention_heads,
            cfg.encoder_ffn_embed_dim,
        )
        self.generator_head = MaskedLMHead(cfg.generator_embed_dim, cfg.embedding_size, len(dictionary))
        self.discriminator_head = ReplacedTokenHead(cfg.encoder_embed_dim)
        initialize(self, self.generator, self.discriminator)

    @classmethod
    def check_sizes(cls, cfg) -> None:
        super().check_sizes(cfg)
        check_heads(cfg.generator_embed_dim, cfg.generator_attention_heads, "generator")

    def forward(
        self,
        src_tokens: Tensor,
        token_types: Optional[Tensor] = None,
        documents: Optional[Tensor] = None,
        masked_tokens: Optional[Tensor] = None,
        masked_indices: Optional[Tensor] = None,
        target_tokens: Optional[Tensor] = None,
        uniform_draws: Optional[Tensor] = None,
        temperature: float = 1.0,
        features_only: bool = False,
        tower: str = "discriminator",
        classification_head_name: Optional[str] = None,
        **unused,
    ):
        """Masked tokens (B, T), masked positions and the original `target_tokens` there -> ElectraOutput.

        `uniform_draws`, (N), are random numbers for the generator's draws, by default from torch.

        Without targets, only the generator runs, as a masked language model: (logits, None). With `features_only`,
        one tower runs: (hidden states (B, T, H), None). With the name of a head, the discriminator runs: (output of the
        head, None).
        """
        if classification_head_name is not None:
            return self.classify(self.discriminator, classification_head_name, src_tokens, token_types), None
        if features_only:
            return self.encode(getattr(self, tower), src_tokens, token_types, documents), None

        hidden = self.encode(self.generator, src_tokens, token_types, documents)
        if masked_tokens is not None:
            hidden = corruption.take_masked(hidden, masked_tokens, masked_indices)
        logits = self.generator_head(hidden, self.embeddings.word_embeddings.weight)
        if target_tokens is None:
            return logits, None

        drawn_tokens = corruption.draw_replacements(logits, temperature, uniform_draws)
        corrupted_tokens = corruption.fill_in(src_tokens, masked_tokens, drawn_tokens)
        original = corruption.original_tokens(src_tokens, target_tokens, masked_tokens)
        return ElectraOutput(
            logits=logits,
            drawn_tokens=drawn_tokens,
            is_replaced=corrupted_tokens.ne(original),
            discriminator_logits=self.discriminator_head(
                self.encode(self.discriminator, corrupted_tokens, token_types, documents)
            ),
        )


def _size(layers, hidden, heads, ffn, embedding, generator_hidden, generator_heads, generator_ffn) -> dict[str, int]:
    return {
        "encoder_layers": layers,
        "encoder_embed_dim": hidden,
        "encoder_attention_heads": heads,
        "encoder_ffn_embed_dim": ffn,
        "embedding_size": embedding,
        "generator_layers": layers,  # the generator is as deep as the discriminator, but narrower
        "generator_embed_dim": generator_hidden,
        "generator_attention_heads": generator_heads,
        "generator_ffn_embed_dim": generator_ffn,
    }


register_sizes(
    ElectraModel,
    ElectraConfig,
    {
        "electra_tiny": _size(2, 128, 2, 512, 128, 128, 2, 512),
        "electra_small": _size(12, 256, 4, 1024, 128, 64, 1, 256),
        "electra_base": _size(12, 768, 12, 3072, 768, 256, 4, 1024),
        "electra_large": _size(24, 1024, 16, 4096, 1024, 256, 4, 1024),
    },
)
