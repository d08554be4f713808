"""The post-LayerNorm Transformer encoder of BERT and ELECTRA.

B is the batch size, T the length, E the embedding size, H the hidden size.
"""

from importlib.util import find_spec
from typing import Any, NamedTuple, Optional, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import Dropout, dropout_matmul
from .linear import Linear, in_autocast_dtype

HAS_VARLEN_ATTN = find_spec("torch.nn.attention.varlen") is not None  # from torch 2.10 on
LAYER_NORM_EPS = 1e-12
INIT_STD = 0.02
TOKEN_TYPES = 2
# On a CPU: how many attention scores, with what is computed from them, fit in its caches, and the overhead of attention
# for one more document, in multiply-adds.
CACHED_SCORES, DOCUMENT_COST = 1 << 22, 1 << 21


def init_parameters(module: nn.Module, std: float = INIT_STD) -> None:
    """Truncated normal weights (cut off at two standard deviations), zero biases (Devlin et al. 2019)."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)
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

    def forward(
        self, tokens: Tensor, token_types: Optional[Tensor] = None, documents: Optional[Tensor] = None
    ) -> Tensor:
        """Token types and the numbers of the tokens' documents are (B, T); positions restart in every document."""
        if documents is None:
            positions = self.position_embeddings.weight[: tokens.size(1)]
        else:
            positions = self.position_embeddings(positions_in_documents(documents))
        x = self.word_embeddings(tokens) + positions
        if token_types is None:
            x = x + self.token_type_embeddings.weight[0]
        else:
            x = x + self.token_type_embeddings(token_types)
        return self.dropout(in_autocast_dtype(self.layer_norm(x)))


def positions_in_documents(documents: Tensor) -> Tensor:
    """The distance of each token from the first token of its document: (B, T) numbers of documents -> (B, T)."""
    positions = torch.arange(documents.size(1), device=documents.device).expand_as(documents)
    return positions - torch.where(_starts(documents), positions, 0).cummax(dim=1).values


def _starts(documents: Tensor) -> Tensor:
    """True at the first token of each document: (B, T) -> (B, T)."""
    return torch.cat([torch.ones_like(documents[:, :1], dtype=torch.bool), documents.diff(dim=1) != 0], dim=1)


def outer_padding(is_padding: Tensor) -> Tensor:
    """Padding before and after a text: (B, T) -> (B, T). A padding symbol that is predicted in a text is a token."""
    before, after = is_padding.cumprod(dim=1), is_padding.flip(1).cumprod(dim=1).flip(1)
    return (before + after).bool()


class DocumentBounds(NamedTuple):
    """Where documents begin in a packed batch, for attention inside each of them."""

    starts: Tensor  # (documents + 1), int32; the last entry is the number of tokens
    longest: int  # in tokens


def document_bounds(documents: Tensor, packed: Optional[Tensor] = None) -> DocumentBounds:
    """The bounds of documents, which are numbered (B, T); the padding of each row may be a document of its own.

    Of the flattened batch, only the tokens with the indices ``packed``, (N), are counted if they are given.
    """
    starts = _starts(documents).flatten()
    if packed is not None:
        starts = starts[packed]
    starts = torch.cat([starts.nonzero().squeeze(1), starts.new_tensor([len(starts)], dtype=torch.long)]).int()
    return DocumentBounds(starts, int(starts.diff().max()))


# where a token attends to: everywhere; where a mask, (B, 1, 1 or T, T), is true; or inside its document
Attended = Union[Tensor, DocumentBounds, None]


class SelfAttention(nn.Module):
    """Multi-head self-attention with one projection for queries, keys and values.

    (B, T, H) -> (B, T, H), or (N, H) -> (N, H) for packed tokens, which attend inside their documents.
    """

    def __init__(self, hidden_size: int, heads: int, attention_dropout: float):
        super().__init__()
        self.heads = heads
        self.attention_dropout = attention_dropout
        self.query_key_value = Linear(hidden_size, 3 * hidden_size)
        self.output = Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor, attended: Attended) -> Tensor:
        projected = self.query_key_value(x).unflatten(-1, (3, self.heads, -1))
        dropout_p = self.attention_dropout if self.training else 0.0
        if isinstance(attended, DocumentBounds):
            context = attend_inside_documents(projected, attended, dropout_p)
        else:
            query, key, value = projected.permute(2, 0, 3, 1, 4)
            context = attend(query, key, value, attended, dropout_p).transpose(1, 2)
        return self.output(context.flatten(-2))


def varlen_attn(*args: Any) -> Any:
    """torch's attention for packed sequences, imported in the first call because that takes two seconds."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(*args)


def attend_inside_documents(projected: Tensor, bounds: DocumentBounds, dropout_p: float) -> Tensor:
    """Attention of packed queries, keys and values, (N, 3, heads, D) -> (N, heads, D); on a GPU without dropout."""
    starts, longest = bounds
    if projected.is_cuda:
        return varlen_attn(*projected.unbind(1), starts, starts, longest, longest)
    # one document at a time also keeps the scores in the caches of a CPU
    contexts = []
    for document in projected.split(starts.diff().tolist()):
        query, key, value = document.unsqueeze(0).permute(2, 0, 3, 1, 4)
        contexts.append(attend(query, key, value, None, dropout_p).squeeze(0).transpose(0, 1))
    return torch.cat(contexts)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], dropout_p: float) -> Tensor:
    """Scaled dot-product attention, (B, heads, T, D) each -> (B, heads, T, D)."""
    if not dropout_p or query.device.type != "cpu" or torch.compiler.is_compiling():
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout_p)
    # torch has no fused attention with dropout on a CPU, so we can use our own. Scale first, so that products do not
    # overflow in half precision
    scores = (query * query.size(-1) ** -0.5) @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill_(~mask, float("-inf"))
    return dropout_matmul(scores.softmax(dim=-1), value, dropout_p)


class TransformerLayer(nn.Module):
    """Self-attention and feed-forward network, each followed by dropout, residual sum and LayerNorm.

    (B, T, H) -> (B, T, H), or (N, H) -> (N, H) for packed tokens.
    """

    def __init__(self, hidden_size: int, heads: int, ffn_size: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.attention = SelfAttention(hidden_size, heads, attention_dropout)
        self.attention_layer_norm = nn.LayerNorm(hidden_size, eps=LAYER_NORM_EPS)
        self.ffn_in = Linear(hidden_size, ffn_size)
        self.ffn_out = Linear(ffn_size, hidden_size)
        self.ffn_layer_norm = nn.LayerNorm(hidden_size, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, attended: Attended) -> Tensor:
        x = self.attention_layer_norm(x + self.dropout(self.attention(x, attended)))
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
        self.heads = heads
        self.attention_dropout = attention_dropout
        self.compiled = False
        self.layers = nn.ModuleList(
            TransformerLayer(hidden_size, heads, ffn_size, dropout, attention_dropout) for _ in range(layers)
        )

    def forward(self, embedded: Tensor, padding: Tensor, documents: Optional[Tensor] = None) -> Tensor:
        """`padding` is true at padding positions, (B, T). Attention stays inside each of the `documents`, (B, T).

        The output at padding positions has no meaning.
        """
        x = self.embedding_projection(embedded)
        attended, packed = self._attended(x, padding, documents)
        if isinstance(attended, DocumentBounds):
            x = x.flatten(0, 1)
        if packed is not None:
            x = x[packed]
        for layer in self.layers:
            # only the layer's __call__ is compiled; evaluation uses forward, to avoid a second compilation
            x = layer(x, attended) if self.training else layer.forward(x, attended)
        if packed is not None:
            x = x.new_zeros(padding.numel(), x.size(-1)).index_copy(0, packed, x)
        return x.view(*padding.shape, -1)

    def _attended(self, x: Tensor, padding: Tensor, documents: Optional[Tensor]) -> tuple[Attended, Optional[Tensor]]:
        """Where tokens attend to, and which tokens of the flattened batch are packed, (N); None for all of them."""
        # on a GPU, checking for padding would force a synchronization, and the compiler would compile the layers twice
        padded = self.compiled or padding.device.type != "cpu" or bool(padding.any())
        if documents is not None:
            documents = documents.masked_fill(padding, -1)
            if self._has_kernel_for_documents(x):
                return document_bounds(documents), None
        if self.training and padding.device.type == "cpu" and not self.compiled:
            packed = (~padding).flatten().nonzero().squeeze(1)
            bounds = document_bounds(padding.long() if documents is None else documents, packed)
            if self._saves_work(bounds, *x.shape):
                return bounds, packed
        if documents is not None:
            # padding attends to padding, because a row of the softmax needs at least one entry
            return (documents.unsqueeze(1) == documents.unsqueeze(2)).unsqueeze(1), None
        return (~padding[:, None, None, :] if padded else None), None

    def _has_kernel_for_documents(self, x: Tensor) -> bool:
        """Whether torch has a kernel for documents of different lengths, for an Ampere GPU or a newer one.

        It needs half precision and no dropout.
        """
        dropout = self.training and self.attention_dropout > 0
        if not HAS_VARLEN_ATTN or dropout or x.dtype not in (torch.float16, torch.bfloat16):
            return False
        return x.is_cuda and torch.cuda.get_device_capability(x.device) >= (8, 0)

    def _saves_work(self, bounds: DocumentBounds, batch: int, length: int, hidden_size: int) -> bool:
        """Whether training on a CPU is faster without padding, and with attention to one document at a time.

        Evaluation sorts texts by length, so it has little padding.
        """
        if self.attention_dropout > 0 and batch * self.heads * length**2 > CACHED_SCORES:
            return True
        padding = batch * length - int(bounds.starts[-1])
        return padding * hidden_size**2 > (len(bounds.starts) - 1) * DOCUMENT_COST

    def compile_layers(self) -> None:
        """Compile the layers for training, for all lengths; they share the code, and parameters keep their names."""
        self.compiled = True
        for layer in self.layers:
            layer.compile(dynamic=True)
