"""BERT and ELECTRA in Python, with the methods of fairseq's RoBERTa: what ``from_pretrained`` returns."""

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch
from fairseq import utils
from fairseq.data import Dictionary
from torch import Tensor, nn

from ..core.dictionary import MASK
from ..core.errors import InputError
from ..models.base import EncoderModel
from ..models.electra import ElectraModel
from ..tokenizers.base import BERT_NAMES, Tokenizer, one_line
from ..tokenizers.pretrained import load_pretrained
from .exporting import read_checkpoint
from .importing import read_encoders, read_model


class Filled(NamedTuple):
    """A text with its mask filled in."""

    text: str
    probability: float
    token: str  # what was filled in, without the space before it


class HubInterface(nn.Module):
    """A pre-trained model with its dictionary and tokenizer, in evaluation mode."""

    masked_lm_head = "masked_lm_head"
    remedy = "give a model that was saved with its masked-LM head"

    def __init__(self, model: EncoderModel, dictionary: Dictionary, tokenizer: Tokenizer):
        super().__init__()
        self.model = model
        self.dictionary = dictionary
        self.tokenizer = tokenizer
        self._symbol_of_token = tokenizer.lookup_table(dictionary)
        self._token_of_symbol = {dictionary.index(symbol): token for token, symbol in tokenizer.symbols.items()}
        masks = [MASK]
        if BERT_NAMES[MASK] in set(tokenizer.pieces) - set(tokenizer.symbols.values()):
            masks.append(BERT_NAMES[MASK])
        self._mask = re.compile("|".join(map(re.escape, masks)))
        self.eval()

    @property
    def device(self) -> torch.device:
        return self.model.embeddings.word_embeddings.weight.device

    def encode(self, sentence: str, *more_sentences: str) -> Tensor:
        """The tokens of ``<s> a </s>``, or of the pair ``<s> a </s> b </s>``, as in fine-tuning: (T), int64.

        A mask is ``<mask>`` or the tokenizer's name for it, and includes the space before it. Names of other special
        tokens are ordinary text.
        """
        tokens = [self.dictionary.bos()]
        for text in (sentence, *more_sentences):
            tokens += [*self._encode(text), self.dictionary.eos()]
        return torch.tensor(tokens)

    def decode(self, tokens: Tensor) -> str | list[str]:
        """The text of a sentence, or the texts of several, each of which ends with ``</s>``: (T) -> text."""
        others = {self.dictionary.bos(), self.dictionary.pad()}
        sentences: list[list[int]] = [[]]
        for token in tokens.tolist():
            if token == self.dictionary.eos():
                sentences.append([])
            elif token not in others:
                sentences[-1].append(token)
        if len(sentences) > 1 and not sentences[-1]:  # after the last </s>
            sentences.pop()
        texts = [self._decode(sentence) for sentence in sentences]
        return texts[0] if len(texts) == 1 else texts

    def extract_features(self, tokens: Tensor) -> Tensor:
        """Hidden states of the last layer: (T) or (B, T), padded with ``<pad>`` -> (B, T, H).

        As in fine-tuning, tokens after the first ``</s>`` are of type 1. Raises InputError if there are more tokens
        than the model has positions.
        """
        return self._features(tokens)

    @torch.no_grad()
    def fill_mask(self, masked_input: str, topk: int = 5) -> list[Filled]:
        """The ``topk`` most likely tokens in place of a mask, most likely first.

        Raises InputError if the text does not have exactly one mask, or if the model has no masked-LM head.
        """
        self._require(self.masked_lm_head, "fill in masks", self.remedy)
        before, *after = self._mask.split(masked_input)
        if len(after) != 1:
            raise InputError(f"the text has {len(after)} masks; give exactly one {MASK}, as in 'He is a {MASK} guy'")
        if not 1 <= topk <= len(self.dictionary):
            raise InputError(f"topk must be between 1 and {len(self.dictionary)}, the dictionary's size, not {topk}")
        tokens = self._batch(self.encode(masked_input))
        with utils.model_eval(self.model):
            logits, _ = self.model(tokens, masked_tokens=tokens.eq(self.dictionary.index(MASK)))
        best = logits[0].float().softmax(dim=-1).topk(topk)
        filled = []
        for probability, symbol in zip(best.values.tolist(), best.indices.tolist()):
            form = self._form(symbol)
            # a part of a word, or a full stop, follows the word before the mask
            start = before if form[:1].isspace() else before.rstrip()
            filled.append(Filled(start + form.lstrip() + after[0], probability, form.strip()))
        return filled

    def _features(self, tokens: Tensor, **options: str) -> Tensor:
        tokens = self._batch(tokens)
        return self.model(tokens, self.model.sentence_types(tokens), features_only=True, **options)[0]

    def _batch(self, tokens: Tensor) -> Tensor:
        return (tokens.unsqueeze(0) if tokens.dim() == 1 else tokens).to(self.device)

    def _require(self, part: str, purpose: str, remedy: str) -> None:
        if not hasattr(self.model, part):
            raise InputError(f"the model has no {part} to {purpose}; {remedy}")

    def _encode(self, text: str) -> list[int]:
        # a mask includes the space before it, because the piece that it replaces does
        first, *others = re.split(rf"\s*(?:{self._mask.pattern})", one_line(text))
        symbols = self._symbol_of_token[self.tokenizer.encode_chunk([first])[0]].tolist()
        for part in others:
            tokens = self.tokenizer.encode_continuation(part)
            symbols += [self.dictionary.index(MASK), *self._symbol_of_token[tokens].tolist()]
        return symbols

    def _decode(self, symbols: Sequence[int]) -> str:
        text = ""
        for has_tokens, run in groupby(symbols, key=self._token_of_symbol.__contains__):
            if has_tokens:
                tokens = [self._token_of_symbol[symbol] for symbol in run]
                text += self._continued(tokens) if text else self.tokenizer.decode(tokens)
            else:  # masks, and unknown characters
                text += " " * bool(text) + " ".join(self.dictionary[symbol] for symbol in run)
        return text

    def _continued(self, tokens: list[int]) -> str:
        """What the tokens add to a text, with the space before them: tokenizers drop it at the start of a text."""
        return self.tokenizer.decode(tokens[:1] + tokens).removeprefix(self.tokenizer.decode(tokens[:1]))

    def _form(self, symbol: int) -> str:
        """What a symbol adds to a text, with the space before it."""
        token = self._token_of_symbol.get(symbol)
        return f" {self.dictionary[symbol]}" if token is None else self._continued([token])


class ElectraHubInterface(HubInterface):
    """ELECTRA: the generator fills in masks, and the discriminator has the features."""

    masked_lm_head = "generator_head"
    remedy = "also give the folder of the generator: generator=..."

    def extract_features(self, tokens: Tensor, encoder: str = "discriminator") -> Tensor:
        """Hidden states of the last layer of the discriminator or the generator: (T) or (B, T) -> (B, T, H)."""
        self._require(encoder, "compute its features", self.remedy)
        return self._features(tokens, encoder=encoder)

    @torch.no_grad()
    def replaced_probabilities(self, sentence: str) -> list[tuple[str, float]]:
        """Each token with the discriminator's probability that it was replaced; raises InputError without its head."""
        self._require("discriminator_head", "detect replaced tokens", "give a discriminator that was saved with it")
        tokens = self.encode(sentence)
        with utils.model_eval(self.model):
            logits = self.model.discriminator_head(self.extract_features(tokens))
        symbols, probabilities = tokens[1:-1].tolist(), logits[0, 1:-1].float().sigmoid().tolist()  # of the text alone
        return [(self._form(symbol).strip(), probability) for symbol, probability in zip(symbols, probabilities)]


def from_pretrained(
    model_name_or_path: str | Path,
    checkpoint_file: str | None = None,
    data_name_or_path: str | Path | None = None,
    generator: str | Path | None = None,
) -> HubInterface:
    """Load BERT or ELECTRA for use in Python; ELECTRA is an ``ElectraHubInterface``.

    A checkpoint is given as its folder, its name, and the data-bin with its ``dict.txt`` and ``tokenizer/``, by default
    the one that it was trained with. Without a name, the folder is one of ``save_pretrained``; for ELECTRA,
    ``generator`` is another one. Raises InputError if the files are missing, damaged, or of another model.
    """
    folder = Path(model_name_or_path)
    if checkpoint_file is not None and generator is not None:
        raise InputError("generator: only for a folder of save_pretrained; a checkpoint has its own")
    if checkpoint_file is None and data_name_or_path is not None:
        raise InputError("data_name_or_path: only for a checkpoint_file; a folder of save_pretrained has a vocabulary")
    if checkpoint_file is not None:
        data_bin = None if data_name_or_path is None else Path(data_name_or_path)
        model, dictionary, tokenizer, _ = read_checkpoint(folder / checkpoint_file, data_bin, "data_name_or_path")
    else:
        encoders = read_encoders(folder, Path(generator) if generator else None)
        tokenizer = load_pretrained(folder)
        dictionary = tokenizer.dictionary()
        dictionary.add_symbol(MASK)
        read = read_model(encoders, dictionary, tokenizer)
        model = read.model
        for part in {name.split(".")[0] for name in read.fresh}:
            delattr(model, part)  # newly initialized, so its output would be meaningless
    return (ElectraHubInterface if isinstance(model, ElectraModel) else HubInterface)(model, dictionary, tokenizer)
