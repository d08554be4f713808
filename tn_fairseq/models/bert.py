"""BERT, for fairseq's task ``masked_lm`` or ours: ``--arch bert_tiny``, ``bert_base`` or ``bert_large``."""

from typing import Any, Optional

from fairseq.data import Dictionary
from torch import Tensor

from ..modules.heads import MaskedLMHead
from .base import EncoderConfig, EncoderModel, build_encoder, encoder_sizes, initialize, register_sizes


class BertModel(EncoderModel):
    """A Transformer encoder with a masked-LM head tied to its word embeddings."""

    pretraining_only = ("masked_lm_head",)

    def __init__(self, cfg: EncoderConfig, dictionary: Dictionary):
        super().__init__(cfg, dictionary)
        hidden_size = cfg.encoder_embed_dim
        self.encoder = build_encoder(cfg, "encoder", hidden_size)
        self.masked_lm_head = MaskedLMHead(hidden_size, hidden_size, len(dictionary))
        initialize(self, self.encoder)

    def forward(
        self,
        src_tokens: Tensor,
        token_types: Optional[Tensor] = None,
        documents: Optional[Tensor] = None,
        layout: Optional[tuple] = None,
        masked_tokens: Optional[Tensor] = None,
        masked_indices: Optional[Tensor] = None,
        features_only: bool = False,
        classification_head_name: Optional[str] = None,
        **unused: Any,
    ) -> tuple[Tensor, None]:
        """(B, T) -> logits (N, V) of the masked positions, (B, T, V) without a mask, or hidden states (B, T, H).

        With the name of a head, its output. fairseq's masked-LM criteria expect the pair and the ignored arguments.
        """
        if classification_head_name is not None:
            return self.classify(self.encoder, classification_head_name, src_tokens, token_types), None
        context = token_types, documents, layout
        if features_only:
            return self.encode(self.encoder, src_tokens, *context), None
        masked = masked_tokens, masked_indices
        return self.masked_logits(self.encoder, self.masked_lm_head, src_tokens, *context, *masked), None


register_sizes(
    BertModel,
    EncoderConfig,
    {
        "bert_tiny": encoder_sizes("encoder", 2, 128, 2, 512),
        "bert_base": encoder_sizes("encoder", 12, 768, 12, 3072),
        "bert_large": encoder_sizes("encoder", 24, 1024, 16, 4096),
    },
)
