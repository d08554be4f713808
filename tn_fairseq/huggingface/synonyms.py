"""Synonym tables for the tokenizers of ``transformers``; nothing here needs fairseq.

The dictionary of a tokenizer is the one that ``binarize`` writes for it, with ``<mask>``. Tables are built for this
dictionary and stored in its order. So fairseq and ``transformers`` can read the same files.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from ..core.dictionary import MASK, SPECIAL_SYMBOLS, PlainSymbols, Symbols, fingerprint, read_symbols, symbols_of_pieces
from ..core.errors import InputError
from ..core.options import check
from ..core.synonym_table import PADDING, load_synonym_table, read_description, save_synonym_table
from ..core.vocabulary import continues_word, is_special, whole_words
from ..synonyms.building import build_table
from ..synonyms.embeddings import embedding_vectors, read_embeddings
from ..synonyms.neighbors import Vectors
from ..synonyms.table_options import ENGLISH, TableOptions
from .model_loading import load_model, unwrapped

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# The attributes of a tokenizer that name the token of each of fairseq's special symbols; the first that is set counts.
_ATTRIBUTES = {
    "<s>": ("cls_token", "bos_token"),
    "<pad>": ("pad_token",),
    "</s>": ("sep_token", "eos_token"),
    "<unk>": ("unk_token",),
    MASK: ("mask_token",),
}


class TokenizerSymbols(PlainSymbols):
    """The dictionary of a tokenizer: fairseq's special symbols, all other tokens by their ids, and ``<mask>``.

    ``token_ids`` are the tokenizer's ids of the symbols, -1 for a special symbol that it lacks. ``size`` is the number
    of its ids, with added tokens. ``special`` are the dictionary's ids of its special tokens.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        if not hasattr(tokenizer, "get_vocab"):
            raise InputError(f"{tokenizer!r}: must be a tokenizer, such as AutoTokenizer.from_pretrained gives")
        vocabulary, names = tokenizer.get_vocab(), tokenizer.special_tokens_map
        ours = {
            symbol: vocabulary.get(next((names[name] for name in attributes if names.get(name)), symbol), -1)
            for symbol, attributes in _ATTRIBUTES.items()
        }
        pieces = {token: piece for piece, token in vocabulary.items() if token not in ours.values()}
        tokens = sorted(pieces)
        super().__init__([*SPECIAL_SYMBOLS, *symbols_of_pieces([pieces[token] for token in tokens]), MASK])
        self.token_ids = [*(ours[symbol] for symbol in SPECIAL_SYMBOLS), *tokens, ours[MASK]]
        self.size = max(len(tokenizer), max(self.token_ids) + 1)
        special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
        special.update(tokenizer.all_special_ids)
        self.special = [index for index, token in enumerate(self.token_ids) if token == -1 or token in special]

    @cached_property
    def words(self) -> dict[int, str]:
        """The whole words among the tokens: id in the dictionary -> word."""
        special = set(self.special)
        return {index: word for index, word in whole_words(self).items() if index not in special}

    @cached_property
    def continuations(self) -> list[bool]:
        """Which symbols continue a word; special tokens do not."""
        special = set(self.special)
        return [continues and index not in special for index, continues in enumerate(continues_word(self))]

    def read_model(
        self, model: "str | Path | PreTrainedModel", dictionary: Symbols, words: Mapping[int, str]
    ) -> Vectors:
        """The input word embeddings of ``words``, as vectors for a synonym table.

        ``model`` is a model of ``transformers`` with this tokenizer, its folder or name on the Hub, or a checkpoint of
        fairseq-train. Raises InputError if it cannot be read, and for a model with fewer embeddings than tokens.
        """
        if isinstance(model, (str, Path)):
            if Path(model).is_file():
                return read_embeddings(model, dictionary, words)
            name, loaded = str(model), load_model(model)
        else:
            loaded = unwrapped(model)
            name = loaded.name_or_path or type(loaded).__name__
        embeddings = loaded.get_input_embeddings().get_parameter("weight").detach().float().cpu()
        self.check_size(len(embeddings), name)
        digest = hashlib.sha256(embeddings.numpy().tobytes()).hexdigest()
        matrix = embeddings[[self.token_ids[index] for index in words]]
        description = f"embeddings of dimension {embeddings.size(1)}, sha256 {digest}"
        return embedding_vectors(matrix, words, name, description)

    def check_size(self, rows: int, name: str) -> None:
        """Raises InputError if a model with ``rows`` embeddings lacks some of the tokens."""
        if rows < self.size:
            raise InputError(
                f"{name}: has {rows:,} embeddings, but the tokenizer has {self.size:,} tokens; give the tokenizer of "
                "the model, or call model.resize_token_embeddings(len(tokenizer))"
            )


class SynonymTable:
    """The synonyms of the tokens of a tokenizer of ``transformers``.

    ``synonyms``, (V, S) int32, has the ids of the synonyms of each token, best first, padded on the right with -1, and
    ``continues_word``, (V) boolean, says which tokens make the token before them a part of a longer word. V is the
    number of the tokenizer's ids, with added tokens. Only complete words have synonyms; special tokens never do.
    ``description`` is that of the file: the source and its version, options and counts.
    """

    def __init__(
        self,
        symbols: TokenizerSymbols,
        table: Tensor,
        continuations: Tensor,
        description: Mapping[str, str],
        rows: int | None = None,
    ) -> None:
        """``table``, (len(symbols), S), and ``continuations``, (len(symbols)), have the order of the dictionary."""
        self._symbols, self._table, self._continuations = symbols, table, continuations
        self.description = dict(description)
        rows = symbols.size if rows is None else rows
        token_ids = torch.tensor(symbols.token_ids)
        self.synonyms, self.continues_word = _move(table, continuations, token_ids, rows)

    @classmethod
    def from_wordnet(cls, tokenizer: "PreTrainedTokenizerBase", *, lang: str = ENGLISH, **options: Any) -> Self:
        """The lemmas of all synsets of each word, in any language of the Open Multilingual WordNet.

        Takes the ``options`` of ``build``. A missing WordNet is downloaded.
        """
        return cls.build(tokenizer, ["wordnet"], lang=lang, **options)

    @classmethod
    def from_vectors(cls, tokenizer: "PreTrainedTokenizerBase", vectors: str | Path, **options: Any) -> Self:
        """The nearest words by the cosine of word vectors: a file of GloVe or word2vec, or a folder with a matrix.

        Takes the ``options`` of ``build``, such as ``top_k`` (default: 10) and ``min_similarity`` (default: none).
        """
        return cls.build(tokenizer, ["vectors"], vectors=vectors, **options)

    @classmethod
    def from_model(
        cls, tokenizer: "PreTrainedTokenizerBase", model: "str | Path | PreTrainedModel", **options: Any
    ) -> Self:
        """The nearest words by the cosine of a model's input embeddings, without their common directions.

        ``model`` is a model with this tokenizer, its folder or name on the Hub, or a checkpoint of fairseq-train.
        Takes the ``options`` of ``build``, such as ``top_k`` (default: 10) and ``min_similarity`` (default: 0.5).
        """
        return cls.build(tokenizer, ["model"], path=model, **options)

    @classmethod
    def from_list(cls, tokenizer: "PreTrainedTokenizerBase", synonyms: str | Path, format: str, **options: Any) -> Self:
        """The synonyms in a file in one of the formats of ``synonyms build --format``, such as tsv.

        Takes the ``options`` of ``build``, such as ``columns``, ``where``, ``symmetric``, ``min_score`` and ``top_k``.
        """
        return cls.build(tokenizer, ["list"], synonyms=synonyms, format=format, **options)

    @classmethod
    def build(cls, tokenizer: "PreTrainedTokenizerBase", source: Sequence[str], **options: Any) -> Self:
        """Build a table from one source or several: ``wordnet``, ``vectors``, ``model`` and ``list``.

        The ``options`` are the fields of ``TableOptions``, which ``synonyms build --help`` explains, such as
        ``where={"relation": "synonym"}`` or ``filter={"model": 0.3}``; ``path`` can also be a model. Raises InputError
        for invalid options, and for a source that is missing, damaged, or does not fit the tokenizer.
        """
        symbols = TokenizerSymbols(tokenizer)
        table_options = TableOptions(source=source, read_model=symbols.read_model, **options)
        check(table_options, say=str)
        table = build_table(table_options, symbols, symbols.words)
        return cls(symbols, table.table, torch.tensor(symbols.continuations), table.description)

    @classmethod
    def from_file(
        cls, tokenizer: "PreTrainedTokenizerBase", path: str | Path, dictionary: str | Path | None = None
    ) -> Self:
        """Read a table that ``save`` or ``synonyms build`` wrote for this tokenizer, or for data with its pieces.

        If the ``dict.txt`` of the data is not the one that ``binarize`` writes for the tokenizer, name it with
        ``dictionary``. Raises InputError for a file that is missing, damaged, or of another tokenizer or dictionary.
        """
        symbols = TokenizerSymbols(tokenizer)
        if dictionary is None and read_description(path).get("dictionary_fingerprint") != fingerprint(symbols):
            raise InputError(
                f"{path}: the table of another tokenizer, or of a dict.txt with other symbols; build it with "
                f"tn-fairseq synonyms build --tokenizer, or also give the dict.txt"
            )
        theirs = symbols if dictionary is None else read_symbols(dictionary)
        table, continuations, description = load_synonym_table(path, theirs)
        if dictionary is not None:
            ids = _ids_of(theirs, symbols, table, dictionary)
            table, continuations = _move(table, continuations, ids, len(symbols))
        special = torch.tensor(symbols.special)
        if torch.isin(table, special).any() or (table[special] != PADDING).any():
            raise InputError(
                f"{path}: has synonyms of a special token, or a special token as a synonym; build it again"
            )
        continuations[special] = False
        return cls(symbols, table, continuations, description)

    def save(self, path: str | Path) -> None:
        """Write the table, for ``from_file`` and for fairseq; raises InputError if it cannot be written."""
        save_synonym_table(
            path, self._table, self._symbols, self.description, continuations=self._continuations.tolist()
        )

    def padded(self, rows: int) -> Self:
        """The same table with ``rows`` rows, for a model with more embeddings than its tokenizer has tokens.

        Raises InputError if there are more tokens than rows.
        """
        self._symbols.check_size(rows, "the model")
        return type(self)(self._symbols, self._table, self._continuations, self.description, rows)

    def check_tokenizer(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        """Raises InputError if the table is that of another tokenizer."""
        symbols = TokenizerSymbols(tokenizer)
        if (symbols.symbols, symbols.token_ids) != (self._symbols.symbols, self._symbols.token_ids):
            raise InputError("the synonyms are those of another tokenizer; build them with the tokenizer of the model")

    def to_rows(self) -> dict[str, list[str]]:
        """The synonyms of each word that has some, best first; words as in a text, without markers."""
        words = dict(enumerate(self._symbols.symbols)) | self._symbols.words
        return {
            words[index]: [words[synonym] for synonym in row if synonym != PADDING]
            for index, row in enumerate(self._table.tolist())
            if row[0] != PADDING
        }

    def __len__(self) -> int:
        """The number of words with synonyms."""
        return int((self._table[:, 0] != PADDING).sum())

    def __repr__(self) -> str:
        pairs = int((self._table != PADDING).sum())
        source = self.description.get("source", "an unknown source")
        return f"<SynonymTable: {len(self):,} of {self._symbols.size:,} tokens have {pairs:,} synonyms, from {source}>"


def _move(table: Tensor, continuations: Tensor, ids: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Give the symbols of a table other ``ids``, -1 for none, and the table this number of ``rows``."""
    known = ids >= 0
    moved = torch.full((rows, table.size(1)), PADDING, dtype=torch.int32)
    # the last element is what PADDING becomes
    moved[ids[known]] = torch.cat([ids, torch.tensor([PADDING])]).int()[table[known].long()]
    flags = torch.zeros(rows, dtype=torch.bool)
    flags[ids[known]] = continuations[known]
    return moved, flags


def _ids_of(theirs: Symbols, ours: TokenizerSymbols, table: Tensor, path: str | Path) -> Tensor:
    """The ids among our symbols of those in the ``dict.txt`` at ``path``, -1 for special symbols that we lack.

    Raises InputError if we lack another symbol, or one that has or is a synonym in their ``table``.
    """
    ids = {symbol: index for index, symbol in enumerate(ours.symbols)}
    our_ids = torch.tensor([ids.get(symbol, -1) for symbol in theirs.symbols])
    used = table[:, 0] != PADDING
    used[table[table != PADDING].long()] = True
    for index in (our_ids < 0).nonzero().flatten().tolist():
        symbol = theirs.symbols[index]
        if used[index] or not is_special(symbol):
            raise InputError(f"{path}: {symbol!r} is not a token; give the tokenizer with which the data was binarized")
    return our_ids
