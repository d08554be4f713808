"""The base class of BERT and ELECTRA: sizes, limits, the check of the vocabulary, and fine-tuning."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from typing import Any, NoReturn, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    BaseFairseqModel,
    register_model,
)
from fairseq.modules import SinusoidalPositionalEmbedding
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..core import corruption
from ..core.dictionary import fingerprint
from ..core.errors import InputError, one_line_errors
from ..core.options import check, option
from ..data.segments import token_types
from ..modules.heads import AnswerHead, SentenceHead
from ..modules.memory import keep_freed_memory
from ..modules.transformer_encoder import (
    INIT_STD,
    Embeddings,
    Layout,
    TransformerEncoder,
    init_parameters,
    outer_padding,
    padding_after,
)

logger = logging.getLogger(__name__)

# what the sizes of an encoder end with, after encoder_ or generator_
SIZES = ("layers", "embed_dim", "attention_heads", "ffn_embed_dim")


@dataclass
class EncoderConfig(FairseqDataclass):
    encoder_layers: int = option("layers", default=12, at_least=1)
    encoder_embed_dim: int = option("hidden size", default=256, at_least=1)
    encoder_attention_heads: int = option("attention heads", default=4, at_least=1)
    encoder_ffn_embed_dim: int = option("size of the feed-forward network", default=1024)
    max_positions: int = option("longest sequence in tokens, <s> and </s> included", default=512)
    dropout: float = option("dropout on embeddings and sublayers", default=0.1, at_least=0, below=1)
    attention_dropout: float = option("dropout on attention weights", default=0.1, at_least=0, below=1)
    init_std: float = option("standard deviation of the weights before training", default=INIT_STD, above=0)
    sinusoidal_positions: bool = option(
        "start the position embeddings as sines and cosines, not as random numbers", default=False
    )
    compile_model: bool = option("compile the layers with torch.compile", default=False)


class EncoderModel(BaseFairseqModel):
    """A model with one set of embeddings and a fingerprint of its dictionary."""

    config: type[EncoderConfig] = EncoderConfig
    owners: tuple[str, ...] = ("encoder",)  # the prefixes of size options, such as encoder_layers
    pretraining_only: tuple[str, ...] = ()  # modules that a head for fine-tuning deletes

    def __init__(self, cfg: EncoderConfig, dictionary: Dictionary):
        super().__init__()
        self.cfg = cfg
        self.padding_index, self.separator_index = dictionary.pad(), dictionary.eos()
        self.classification_heads = nn.ModuleDict()  # the name that fairseq uses
        embedding_size = getattr(cfg, "embedding_size", cfg.encoder_embed_dim)  # BERT has no other one
        self.embeddings = Embeddings(len(dictionary), embedding_size, cfg.max_positions, cfg.dropout)
        # saved in checkpoints to detect data with another vocabulary, even one of the same size
        digest = bytes.fromhex(fingerprint(dictionary))
        self.register_buffer("dictionary_fingerprint", torch.tensor(list(digest), dtype=torch.uint8))
        # the longest sequences of pre-training: positions after them are as they were initialized
        self.register_buffer("trained_positions", torch.tensor(0))
        self.longest_trained = 0  # a copy on the CPU, which needs no synchronization with a GPU
        self.longest_sequence = cfg.max_positions  # of the task

    @classmethod
    @one_line_errors()
    def build_model(cls, cfg: EncoderConfig, task: FairseqTask) -> "EncoderModel":
        """Build the model for a task; raises InputError (as a one-line exit) for sizes and rates that do not fit."""
        cls.check_sizes(cfg)
        if not torch.cuda.is_available():
            keep_freed_memory()
        length = task.max_positions()
        if isinstance(length, int) and length > cfg.max_positions:
            raise InputError(
                f"--tokens-per-sample {length} is longer than the model's {cfg.max_positions} positions; "
                f"give --tokens-per-sample {cfg.max_positions} or a larger --max-positions"
            )
        model = cls(cfg, task.source_dictionary)
        if isinstance(length, int):
            model.longest_sequence = length
        return model

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises InputError: fairseq's method of this name would unpickle the file."""
        raise InputError("load the model with tn_fairseq.from_pretrained(...), which takes the same arguments")

    @classmethod
    def check_sizes(cls, cfg: EncoderConfig) -> None:
        check(cfg, cls.config)
        for owner in cls.owners:
            hidden_size, heads = getattr(cfg, f"{owner}_embed_dim"), getattr(cfg, f"{owner}_attention_heads")
            if hidden_size % heads:
                raise InputError(
                    f"--{owner}-embed-dim {hidden_size} is not a multiple of --{owner}-attention-heads {heads}"
                )

    def train(self, mode: bool = True) -> "EncoderModel":
        """As torch's, but visit no module in training mode: fairseq calls this twice in each update."""
        return self if mode and self.training else super().train(mode)

    def set_num_updates(self, num_updates: int) -> None:
        """Visit no module, because none of them counts the updates; fairseq's method would, in each update."""

    def encode(
        self,
        encoder: TransformerEncoder,
        tokens: Tensor,
        token_types: Optional[Tensor] = None,
        documents: Optional[Tensor] = None,
        layout: Optional[tuple] = None,
        needed: Optional[Tensor] = None,
    ) -> Tensor:
        """Last-layer hidden states of one encoder: (B, T) -> (B, T, H).

        Token types are (B, T), by default 0. With the tokens' documents, (B, T), each is read as if it were alone. The
        batch's ``Layout``, as a tuple, saves a GPU work. With the indices of the positions that are `needed` in the
        flattened batch, (N), the last layer computes only those: (N, H).
        """
        if tokens.size(1) > self.cfg.max_positions:
            raise InputError(
                f"a sequence of {tokens.size(1)} tokens is longer than the model's {self.cfg.max_positions} "
                "positions; shorten it (--tokens-per-sample, --max-positions)"
            )
        if self.training and tokens.size(1) > self.longest_trained:
            self._note_training(tokens.size(1))
        embedded = self.embeddings_of(encoder)(tokens, token_types, documents)
        if layout is None:
            return encoder(embedded, outer_padding(tokens.eq(self.padding_index)), documents, needed=needed)
        known = Layout(*layout)
        return encoder(embedded, padding_after(known.lengths, tokens.size(1)), documents, known, needed)

    def embeddings_of(self, encoder: TransformerEncoder) -> Embeddings:
        """The embeddings that an encoder reads."""
        return self.embeddings

    def _note_training(self, length: int) -> None:
        if not self.classification_heads:
            self.longest_trained = max(self.longest_trained, self.longest_sequence)
            self.trained_positions.fill_(self.longest_trained)
        elif 0 < self.longest_trained < length:
            logger.warning(
                f"fine-tuning on sequences of more than {self.longest_trained} tokens, but pre-training reached only "
                f"{self.longest_trained} positions; pre-train further with longer sequences (--tokens-per-sample), or "
                "prepare shorter data (--max-length)"
            )
            self.longest_trained = self.cfg.max_positions  # one warning is enough

    def register_classification_head(self, name: str, num_classes: int) -> None:
        """Add a head for sentences or sentence pairs; fairseq's task ``sentence_prediction`` calls this."""
        self._add_head(name, SentenceHead(self.cfg.encoder_embed_dim, num_classes, self.cfg.dropout))

    def register_answer_head(self, name: str) -> None:
        """Add a head that finds the answer to a question in a text."""
        self._add_head(name, AnswerHead(self.cfg.encoder_embed_dim))

    def _add_head(self, name: str, head: nn.Module) -> None:
        self.classification_heads[name] = head.apply(init_parameters)
        for module in self.pretraining_only:
            self._modules.pop(module, None)

    def sentence_types(self, tokens: Tensor) -> Tensor:
        """The token types of a sentence or a pair: 1 after the first ``</s>``, else 0; (B, T) -> (B, T)."""
        return token_types(tokens, self.separator_index)

    def classify(
        self, encoder: TransformerEncoder, head: str, tokens: Tensor, token_types: Optional[Tensor] = None
    ) -> Tensor:
        """The output of a head for tokens (B, T). By default, tokens after the first ``</s>`` are of type 1."""
        if token_types is None:
            token_types = self.sentence_types(tokens)
        classifier: Any = self.classification_heads[head]
        return classifier(self.encode(encoder, tokens, token_types, needed=classifier.needed(tokens)))

    def masked_logits(
        self,
        encoder: TransformerEncoder,
        head: nn.Module,
        tokens: Tensor,
        token_types: Optional[Tensor],
        documents: Optional[Tensor],
        layout: Optional[tuple],
        masked_tokens: Optional[Tensor],
        masked_indices: Optional[Tensor],
    ) -> Tensor:
        """A masked-LM head on what ``encode`` reads: logits (N, V) of the masked positions, or (B, T, V) of all."""
        needed = None if masked_tokens is None else corruption.flat_indices(masked_tokens, masked_indices)
        hidden = self.encode(encoder, tokens, token_types, documents, layout, needed)
        return head(hidden, self.embeddings_of(encoder).word_embeddings.weight)

    def max_positions(self) -> int:
        return self.cfg.max_positions

    @one_line_errors()
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, *args: Any, **options: Any) -> Any:
        """Load parameters; raises InputError (as a one-line exit) for another vocabulary or, if strict, model."""
        theirs = state_dict.get("dictionary_fingerprint")
        if theirs is not None and not torch.equal(theirs.cpu(), self.dictionary_fingerprint.cpu()):
            raise InputError(
                "the checkpoint was trained with another vocabulary than this data's dict.txt; binarize the data "
                "with the checkpoint's own tokenizer (there is a copy in tokenizer/ of the data it was trained on)"
            )
        if "trained_positions" not in state_dict:  # a checkpoint of version 0.1: assume the best
            state_dict = {**state_dict, "trained_positions": torch.tensor(self.cfg.max_positions)}
        self.longest_trained = int(state_dict["trained_positions"])
        own = self.state_dict()
        if self.classification_heads:
            state_dict = self._for_fine_tuning(state_dict, own)
        for key in sorted(own.keys() | state_dict.keys()) if strict else []:
            here, there = (tuple(state[key].shape) if key in state else "missing" for state in (own, state_dict))
            if here != there:
                raise InputError(
                    f"the checkpoint holds another model: {key} is {there} there, but {here} with these flags; give "
                    "the --arch and the sizes that it was trained with"
                )
        return super().load_state_dict(state_dict, strict, *args, **options)

    def _for_fine_tuning(self, theirs: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Drop what only pre-training needs, and keep this model's heads if no others fit."""
        foreign = tuple(f"{module}." for module in self.pretraining_only)
        kept = {key: value for key, value in theirs.items() if not key.startswith(foreign)}
        for name in [key for key in kept if key.startswith("classification_heads.")]:
            if name not in own or own[name].shape != kept[name].shape:
                logger.warning(f"{name} of the checkpoint belongs to another task and is not loaded")
                del kept[name]
        return {**{key: value for key, value in own.items() if key.startswith("classification_heads.")}, **kept}


def encoder_sizes(owner: str, *sizes: int) -> dict[str, int]:
    """Layers, hidden size, heads and feed-forward size as fields ``encoder_*`` or ``generator_*``."""
    return {f"{owner}_{name}": size for name, size in zip(SIZES, sizes, strict=True)}


def build_encoder(cfg: EncoderConfig, owner: str, embedding_size: int) -> TransformerEncoder:
    """An encoder with the sizes ``encoder_*`` or ``generator_*`` of the configuration."""
    layers, hidden_size, heads, ffn_size = (getattr(cfg, f"{owner}_{name}") for name in SIZES)
    return TransformerEncoder(embedding_size, hidden_size, layers, heads, ffn_size, cfg.dropout, cfg.attention_dropout)


def tag_layer_depth(module: nn.Module, depth: int) -> None:
    """Tell the optimizer the depth of a module (embeddings 0, first layer 1, …), for layer-wise learning rates.

    fairseq's half-precision optimizers copy the attribute ``optim_overrides`` to their float32 parameters.
    """
    for parameter in module.parameters():
        parameter.optim_overrides = {"layer_depth": depth}  # type: ignore[attr-defined]


def initialize(model: EncoderModel, *encoders: TransformerEncoder) -> None:
    """Initialize all parameters, tag embeddings and layers with their depth, and compile the layers if configured."""
    model.apply(partial(init_parameters, std=model.cfg.init_std))
    if model.cfg.sinusoidal_positions:
        # Vaswani et al. (2017). All positions differ from the next by the same rotation, so a head that finds the next
        # token does so everywhere; random embeddings must be learned position by position.
        positions = model.embeddings.position_embeddings.weight
        waves = SinusoidalPositionalEmbedding.get_embedding(*positions.shape)
        with torch.no_grad():
            positions.copy_(waves * model.cfg.init_std * math.sqrt(2))  # the mean square of a sine is 1/2
    tag_layer_depth(model.embeddings, 0)
    for encoder in encoders:
        tag_layer_depth(encoder.embedding_projection, 0)
        for depth, layer in enumerate(encoder.layers, start=1):
            tag_layer_depth(layer, depth)
        if model.cfg.compile_model:
            encoder.compile_layers()


def register_sizes(model: type[EncoderModel], config: type[EncoderConfig], sizes: dict[str, dict[str, int]]) -> None:
    """Register one model per size, so that the command line and YAML recipes know each by its name.

    Each has its own class: fairseq stores one dataclass per class, and recipes ignore the defaults of architectures.
    """
    described = config.__dataclass_fields__
    for name, defaults in sizes.items():
        fields = [(key, int, field(default=value, metadata=described[key].metadata)) for key, value in defaults.items()]
        size_config = make_dataclass(f"{name}_config", fields, bases=(config,))
        # fairseq's old masked_lm model uses the names bert_base and bert_large; we take them over
        for registry in (ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY):
            registry.pop(name, None)
        register_model(name, dataclass=size_config)(type(name, (model,), {}))
