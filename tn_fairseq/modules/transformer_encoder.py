"""The post-LayerNorm Transformer encoder of BERT and ELECTRA.

B is the batch size, T the length, E the embedding size, H the hidden size.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple, Optional, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from .dropout import Dropout, dropout_matmul
from .linear import Linear, in_autocast_dtype

HAS_VARLEN_ATTN = find_spec("torch.nn.attention.varlen") is not None  # from torch 2.10 on
LAYER_NORM_EPS = 1e-12
INIT_STD = 0.02
TOKEN_TYPES = 2
# cuDNN's attention, which torch would use on new GPUs, needs copies of the output and of its gradient
GPU_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
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


_graphs_allowed = True


@contextmanager
def without_graphs() -> Iterator[None]:
    """Use no CUDA graphs: the gradients of one are in its memory, which it overwrites when it runs again.

    So they cannot be added up over several batches (https://github.com/pytorch/pytorch/issues/169545).
    """
    global _graphs_allowed
    _graphs_allowed = False
    try:
        yield
    finally:
        _graphs_allowed = True


class Layout(NamedTuple):
    """What the process that makes a batch knows about its padding; a GPU would have to synchronize to find it out."""

    lengths: Tensor  # (B), of rows that are padded on the right
    tokens: int  # without padding
    documents: int  # their number; each row has at least one
    longest: int  # document, in tokens


def layout(lengths: Tensor, documents: Optional[Tensor] = None) -> Layout:
    """The layout of rows with the given lengths, (B), and the numbers of their tokens' documents, (B, T)."""
    if documents is None:
        return Layout(lengths, int(lengths.sum()), len(lengths), int(lengths.max()))
    packed = _indices(~padding_after(lengths, documents.size(1)).flatten())
    starts, longest = document_bounds(documents, packed)
    return Layout(lengths, len(packed), len(starts) - 1, longest)


def padding_after(lengths: Tensor, width: int) -> Tensor:
    """True after the end of each row: (B) -> (B, T)."""
    return torch.arange(width, device=lengths.device) >= lengths.unsqueeze(1)


def document_bounds(documents: Tensor, packed: Tensor, known: Optional[Layout] = None) -> DocumentBounds:
    """The bounds of documents, which are numbered (B, T), in the packed tokens: their indices in the batch, (N)."""
    starts = _starts(documents).flatten()[packed]
    begins = _indices(starts, known and known.documents)
    bounds = torch.cat([begins, begins.new_full((1,), len(packed))]).int()
    return DocumentBounds(bounds, int(bounds.diff().max()) if known is None else known.longest)


def _indices(where: Tensor, count: Optional[int] = None) -> Tensor:
    """The indices of true entries, (N) boolean; a GPU need not synchronize if their number is known."""
    return (where.nonzero() if count is None else torch.nonzero_static(where, size=count)).squeeze(1)


class Grid(NamedTuple):
    """Rows of equal length, for attention inside each of them."""

    rows: int
    mask: Optional[Tensor] = None  # (B, 1, 1 or T, T): where it is true, or what is added to the scores


Attended = Union[Grid, DocumentBounds]


class SelfAttention(nn.Module):
    """Multi-head self-attention with one projection for queries, keys and values: (N, H) -> (N, H).

    The N tokens are those of B rows with T tokens, or of documents of different lengths, packed. With the indices of
    the M tokens that are needed, (M), the output is (M, H).
    """

    def __init__(self, hidden_size: int, heads: int, attention_dropout: float):
        super().__init__()
        self.heads = heads
        self.attention_dropout = attention_dropout
        self.query_key_value = Linear(hidden_size, 3 * hidden_size)
        self.output = Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor, attended: Attended, needed: Optional[Tensor] = None) -> Tensor:
        projected = self.query_key_value(x)
        dropout_p = self.attention_dropout if self.training else 0.0
        if isinstance(attended, DocumentBounds):
            context = attend_inside_documents(projected.unflatten(-1, (3, self.heads, -1)), attended, dropout_p)
        else:
            rows, length = attended.rows, x.size(0) // attended.rows
            query, key, value = projected.view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            context = attend(query, key, value, attended.mask, dropout_p).transpose(1, 2)
        return self.output(_take(context.reshape(x.shape), needed))


def _take(x: Tensor, needed: Optional[Tensor]) -> Tensor:
    return x if needed is None else x.index_select(0, needed)


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
    """Self-attention and feed-forward network: (N, H) -> (N, H), or (M, H) for the M tokens that are needed.

    Each is followed by dropout, residual sum and LayerNorm.
    """

    def __init__(self, hidden_size: int, heads: int, ffn_size: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.attention = SelfAttention(hidden_size, heads, attention_dropout)
        self.attention_layer_norm = nn.LayerNorm(hidden_size, eps=LAYER_NORM_EPS)
        self.ffn_in = Linear(hidden_size, ffn_size)
        self.ffn_out = Linear(ffn_size, hidden_size)
        self.ffn_layer_norm = nn.LayerNorm(hidden_size, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, attended: Attended, needed: Optional[Tensor] = None) -> Tensor:
        attention = self.attention(x, attended, needed)
        x = self.attention_layer_norm(_take(x, needed) + self.dropout(attention))
        return self.ffn_layer_norm(x + self.dropout(self.ffn_out(self.ffn_in(x), gelu=True)))


class Layers(nn.ModuleList):
    """Layers that follow each other: (N, H) -> (N, H), or (M, H) for the M tokens that are needed."""

    def forward(self, x: Tensor, attended: Attended, needed: Optional[Tensor] = None) -> Tensor:
        # only __call__ is compiled; evaluation and the compiler itself use forward, to avoid a second compilation
        compiled = self.training and not torch.compiler.is_compiling()
        for i, layer in enumerate(self, start=1):
            # the other tokens are keys and values of the last layer, but their outputs are not needed
            arguments = x, attended, needed if i == len(self) else None
            x = layer(*arguments) if compiled else layer.forward(*arguments)
        return x


def _mask(attended: Tensor, x: Tensor) -> Tensor:
    """A mask for attention to what is true: on a GPU, scores to add, which torch would make again in every layer."""
    if not x.is_cuda:
        return attended
    return x.new_zeros(attended.shape).masked_fill_(~attended, float("-inf"))


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
        self.layers = Layers(
            TransformerLayer(hidden_size, heads, ffn_size, dropout, attention_dropout) for _ in range(layers)
        )
        self.graph_shape: Optional[tuple[int, int]] = (
            None  # CUDA graphs have one, and nearly all batches have the first's
        )

    def forward(
        self,
        embedded: Tensor,
        padding: Tensor,
        documents: Optional[Tensor] = None,
        known: Optional[Layout] = None,
        needed: Optional[Tensor] = None,
    ) -> Tensor:
        """`padding` is true at padding positions, (B, T). Attention stays inside each of the `documents`, (B, T).

        The output at padding positions has no meaning. With the indices of `needed` positions in the flattened batch,
        (N), which are not padding, the output is (N, H), and the last layer computes only those.
        """
        # rows and columns in one dimension, so that a product is one operation, without views
        x = self.embedding_projection(embedded.flatten(0, 1))
        attended, packed = self._attended(x, padding, documents, known)
        if packed is not None:
            x = x[packed]
            needed = None if needed is None else torch.searchsorted(packed, needed)
        if x.is_cuda:
            with sdpa_kernel(GPU_ATTENTION):
                x = self._through_layers(x, attended, needed)
        else:
            x = self._through_layers(x, attended, needed)
        if needed is not None:
            return x
        if packed is not None:
            x = x.new_zeros(padding.numel(), x.size(-1)).index_copy(0, packed, x)
        return x.view(*padding.shape, -1)

    def _through_layers(self, x: Tensor, attended: Attended, needed: Optional[Tensor]) -> Tensor:
        if self.compiled and self.training and x.is_cuda and isinstance(attended, Grid) and _graphs_allowed:
            shape = attended.rows, x.size(0)
            if self.graph_shape is None:
                self.graph_shape = shape
            if shape == self.graph_shape:
                # the number of masked positions varies, so the graph computes all positions
                return _take(self.layers(x, attended), needed)
        return self.layers.forward(x, attended, needed)

    def _attended(
        self, x: Tensor, padding: Tensor, documents: Optional[Tensor] = None, known: Optional[Layout] = None
    ) -> tuple[Attended, Optional[Tensor]]:
        """Where the tokens x, (N, H), attend to, and the indices of those to pack, (N); None for all of them."""
        if known is not None:
            padded = known.tokens < padding.numel()
        else:
            # on a GPU, checking for padding would force a synchronization, and the compiler would compile twice
            padded = self.compiled or padding.device.type != "cpu" or bool(padding.any())
        if documents is not None:
            documents = documents.masked_fill(padding, -1)
        has_kernel = self._has_kernel(x) and (documents is not None or (padded and known is not None))
        if not self.compiled and (has_kernel or (self.training and padding.device.type == "cpu")):
            packed = _indices(~padding.flatten(), known and known.tokens)
            bounds = document_bounds(padding.long() if documents is None else documents, packed, known)
            if has_kernel or self._saves_work(bounds, padding.size(0), padding.size(1), x.size(1)):
                return bounds, packed
        mask: Optional[Tensor] = None
        if documents is not None:
            # padding attends to padding, because a row of the softmax needs at least one entry
            mask = _mask((documents.unsqueeze(1) == documents.unsqueeze(2)).unsqueeze(1), x)
        elif padded:
            mask = _mask(~padding[:, None, None, :], x)
        return Grid(len(padding), mask), None

    def _has_kernel(self, x: Tensor) -> bool:
        """Whether torch has a kernel for packed documents of different lengths, for an Ampere GPU or a newer one.

        It needs half precision, no dropout, and heads whose size is a multiple of 8 and at most 256.
        """
        dropout = self.training and self.attention_dropout > 0
        if not HAS_VARLEN_ATTN or dropout or x.dtype not in (torch.float16, torch.bfloat16):
            return False
        head_size = x.size(-1) // self.heads
        if head_size % 8 or head_size > 256:
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
        """Compile the layers for training, when they are first used; parameters keep their names.

        The layers share the code, which is for all shapes. On a GPU, all layers together become CUDA graphs, without
        Python between the kernels, for batches with the shape of the first, if an update has one batch.
        """
        self.compiled = True
        for layer in self.layers:
            layer.compile(dynamic=True)
        self.layers.compile(mode="reduce-overhead", dynamic=False)
