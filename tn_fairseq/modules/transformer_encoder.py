"""The post-LayerNorm Transformer encoder of BERT and ELECTRA.

B is the batch size, T the length, E the embedding size, H the hidden size.
"""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import Dropout, dropout_matmul
from .linear import Linear, in_autocast_dtype

LAYER_NORM_EPS = 1e-12
INIT_STD = 0.02
TOKEN_TYPES = 2


def init_parameters(module: nn.Module) -> None:
    """Truncated normal weights (standard deviation 0.02, cut off at two of them), zero biases (Devlin et al. 2019)."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.trunc_normal_(module.weight, std=INIT_STD, a=-2 * INIT_STD, b=2 * INIT_STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


class Embeddings(nn.Module):
    """Word, position and token-type embeddings, summed and normalized: (B, T) token ids -> (B, T, E)."""

    def __init__(self, dictionary_size: int, embedding_size: int, max_positions: int, dropout: float):
        super().__init__()
        self.word_embeddings = nn.Embedding(dictionary_size, embedding_size)
        self.position_embeddings = nn.Embedding(max_positions, embedding_size)
        self.token_type_embeddings = nn.Embedding(TOKEN_TYPES, embedding_size)
        self.layer_norm = nn.LayerNorm(embedding_size, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor, token_types: Optional[Tensor] = None) -> Tensor:
        length = tokens.size(1)
        x = self.word_embeddings(tokens) + self.position_embeddings.weight[:length]
        if token_types is None:
            x = x + self.token_type_embeddings.weight[0]
        else:
            x = x + self.token_type_embeddings(token_types)
        return self.dropout(in_autocast_dtype(self.layer_norm(x)))


class SelfAttention(nn.Module):
    """Multi-head self-attention with one projection for queries, keys and values: (B, T, H) -> (B, T, H)."""

    def __init__(self, hidden_size: int, heads: int, attention_dropout: float):
        super().__init__()
        self.heads = heads
        self.attention_dropout = attention_dropout
        self.query_key_value = Linear(hidden_size, 3 * hidden_size)
        self.output = Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor, attention_mask: Optional[Tensor]) -> Tensor:
        batch, length, hidden_size = x.shape
        projected = self.query_key_value(x).view(batch, length, 3, self.heads, hidden_size // self.heads)
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        context = attend(query, key, value, attention_mask, self.attention_dropout if self.training else 0.0)
        return self.output(context.transpose(1, 2).reshape(batch, length, hidden_size))


def attend(query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor], dropout_p: float) -> Tensor:
    """Scaled dot-product attention, (B, heads, T, D) each -> (B, heads, T, D); masks are true where to attend."""
    if not dropout_p or query.device.type != "cpu" or torch.compiler.is_compiling():
        return F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, dropout_p=dropout_p)
    # torch has no fused attention with dropout on a CPU, so we can use our own. Scale first, so that products do not
    # overflow in half precision
    scores = (query * query.size(-1) ** -0.5) @ key.transpose(-2, -1)
    if attention_mask is not None:
        scores = scores.masked_fill_(~attention_mask, float("-inf"))
    return dropout_matmul(scores.softmax(dim=-1), value, dropout_p)


class TransformerLayer(nn.Module):
    """Self-attention and feed-forward network, each followed by dropout, residual sum and LayerNorm: (B, T, H)."""

    def __init__(self, hidden_size: int, heads: int, ffn_size: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.attention = SelfAttention(hidden_size, heads, attention_dropout)
        self.attention_layer_norm = nn.LayerNorm(hidden_size, eps=LAYER_NORM_EPS)
        self.ffn_in = Linear(hidden_size, ffn_size)
        self.ffn_out = Linear(ffn_size, hidden_size)
        self.ffn_layer_norm = nn.LayerNorm(hidden_size, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, attention_mask: Optional[Tensor]) -> Tensor:
        x = self.attention_layer_norm(x + self.dropout(self.attention(x, attention_mask)))
        return self.ffn_layer_norm(x + self.dropout(self.ffn_out(self.ffn_in(x), gelu=True)))


class TransformerEncoder(nn.Module):
    """A stack of layers over embeddings, which are projected if E differs from H: (B, T, E) -> (B, T, H)."""

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        heads: int,
        ffn_size: int,
        dropout: float,
        attention_dropout: float,
    ):
        super().__init__()
        self.embedding_projection = (
            Linear(embedding_size, hidden_size) if embedding_size != hidden_size else nn.Identity()
        )
        self.compiled = False
        self.layers = nn.ModuleList(
            TransformerLayer(hidden_size, heads, ffn_size, dropout, attention_dropout) for _ in range(layers)
        )

    def forward(self, embedded: Tensor, padding: Tensor) -> Tensor:
        """`padding` is true at padding positions, (B, T)."""
        x = self.embedding_projection(embedded)
        attention_mask = None
        # on a CPU, a batch without padding needs no mask; on a GPU, checking for padding would force a synchronization,
        # and the compiler would compile the layers twice
        if self.compiled or padding.device.type != "cpu" or padding.any():
            attention_mask = ~padding[:, None, None, :]
        for layer in self.layers:
            # only the layer's __call__ is compiled; evaluation uses forward, to avoid a second compilation
            x = layer(x, attention_mask) if self.training else layer.forward(x, attention_mask)
        return x

    def compile_layers(self) -> None:
        """Compile the layers for training, for all lengths; they share the code, and parameters keep their names."""
        self.compiled = True
        for layer in self.layers:
            layer.compile(dynamic=True)
