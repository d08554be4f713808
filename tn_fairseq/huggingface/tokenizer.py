"""Write a tokenizer as files for ``transformers.AutoTokenizer`` that gives the same ids for the same text.

There is one difference. If a text contains the name of a special token, ``transformers`` reads it as that token; here
it is ordinary text. ``AutoTokenizer.from_pretrained(folder, split_special_tokens=True)`` also reads it as text,
except with SentencePiece models.

SentencePiece models have more differences, because the ``tokenizers`` library is not identical to SentencePiece:

- If two splits have the same score (9 99 and 99 9), rounding to 32 bits decides in SentencePiece. This affects about
  one line in ten thousand of Wikipedia text with a unigram model.
- A combining mark after a character that the model normalizes can get lost: decomposed Vietnamese, a circled digit
  with an accent.
- Names of control, byte and unknown pieces in a text (``<s>``, ``<0x41>``, ``<unk>``) are read as those pieces.
- No space is added before a line that starts with a literal U+2581.
"""

import json
from typing import Any

import tokenizers
from fairseq.data import Dictionary
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from ..core.dictionary import MASK
from ..core.errors import InputError
from ..tokenizers.base import BERT_NAMES, ROBERTA_NAMES, TOKEN_FIELDS, Tokenizer
from ..tokenizers.fast import FastTokenizer
from ..tokenizers.wordpiece import wordpiece_tokenizer

_SPACE = "▁"  # how SentencePiece writes a space
_WHITE_SPACE = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
_MODEL_INPUTS = ["input_ids", "token_type_ids", "attention_mask"]


def tokenizer_files(tokenizer: Tokenizer, dictionary: Dictionary, max_positions: int) -> dict[str, bytes]:
    """Names and contents of the files that ``AutoTokenizer`` needs next to a ``config.json`` of BERT or ELECTRA.

    Tokens have the ids of ``tokenizer.token_ids(dictionary)``. ``load_tokenizer`` can also read the files. Raises
    InputError if the dictionary does not match the tokenizer, or if ``tokenizers`` does not support the tokenizer.
    """
    if isinstance(tokenizer, FastTokenizer):
        backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    else:
        backend = _from_sentencepiece(tokenizer)
    names = ROBERTA_NAMES | {symbol: tokenizer.pieces[token] for symbol, token in tokenizer.special_ids.items()}
    special = {
        token: names.get(symbol, symbol)
        for symbol, token in zip(dictionary.symbols, tokenizer.token_ids(dictionary).tolist())
        if symbol in names or token >= len(tokenizer.pieces)
    }
    added = {token for token, added in backend.get_added_tokens_decoder().items() if added.special}
    for token, name in sorted(special.items()):
        if token not in added:
            # As in RoBERTa, a mask includes the space before it, because the piece that it replaces does, too.
            backend.add_special_tokens([AddedToken(name, special=True, normalized=False, lstrip=name == names[MASK])])
        if backend.token_to_id(name) != token:
            raise InputError(
                f"{tokenizer.description}: dict.txt adds the symbol {name!r}, but a piece already has this name; "
                "rename one of them"
            )
    bos, eos = names["<s>"], names["</s>"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{bos}:0 $A:0 {eos}:0",
        pair=f"{bos}:0 $A:0 {eos}:0 $B:1 {eos}:1",
        special_tokens=[(name, backend.token_to_id(name)) for name in (bos, eos)],
    )
    config = _class_and_options(backend, tokenizer.pieces, names)
    config |= {field: names[symbol] for symbol, field in TOKEN_FIELDS.items()}
    config |= {"model_max_length": max_positions, "model_input_names": _MODEL_INPUTS}
    files = {name: content for name, content in tokenizer.files.items() if name != "special_tokens_map.json"}
    files["tokenizer.json"] = backend.to_str(pretty=True).encode()
    files["tokenizer_config.json"] = (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode()
    return files


def _class_and_options(backend: tokenizers.Tokenizer, pieces: list[str], names: dict[str, str]) -> dict[str, Any]:
    """The class in ``transformers``: BERT's if it builds the same tokenizer, else the generic fast tokenizer."""
    normalizer = backend.normalizer
    if names == BERT_NAMES and isinstance(normalizer, normalizers.BertNormalizer):
        options = normalizer.lowercase, normalizer.strip_accents, normalizer.handle_chinese_chars
        bert, ours = (json.loads(t.to_str()) for t in (wordpiece_tokenizer(pieces, *options), backend))
        # BertTokenizer rebuilds these from the vocabulary and the options, and ignores tokenizer.json.
        if all(bert[part] == ours[part] for part in ("model", "normalizer", "pre_tokenizer", "added_tokens")):
            keys = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
            return {"tokenizer_class": "BertTokenizer", **dict(zip(keys, options))}
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names["<s>"],
        "eos_token": names["</s>"],
    }
    if isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        # Some versions read this instead of tokenizer.json.
        config["add_prefix_space"] = backend.pre_tokenizer.add_prefix_space
    return config


def _from_sentencepiece(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """A SentencePiece model in the ``tokenizers`` library; rejects models that it would tokenize differently."""
    try:
        from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec
    except ImportError:
        raise InputError("SentencePiece models require protobuf: pip install 'tn_fairseq[transformers]'") from None
    model = ModelProto.FromString(tokenizer.files["sentencepiece.model"])
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    kind = ModelProto.SentencePiece
    special = set(tokenizer.special_ids.values())
    problems = [f"{flag}=false" for flag in _WHITE_SPACE if not getattr(normalizer, flag)]
    problems += ["treat_whitespace_as_suffix=true"] * trainer.treat_whitespace_as_suffix
    problems += [
        f"the {kind.Type.Name(piece.type).lower()} piece {piece.piece!r}"
        for token, piece in enumerate(model.pieces)
        if piece.type in (kind.USER_DEFINED, kind.UNUSED) and token not in special
    ]
    if trainer.model_type not in (TrainerSpec.UNIGRAM, TrainerSpec.BPE):
        problems.append(f"model_type={TrainerSpec.ModelType.Name(trainer.model_type).lower()}")
    if problems:
        raise InputError(
            f"{tokenizer.description}: has {problems[0]}, which the tokenizers library cannot do; "
            "train a unigram or BPE model without it"
        )

    normal = {piece.piece: piece.score for piece in model.pieces if piece.type == kind.NORMAL}
    if trainer.model_type == TrainerSpec.UNIGRAM:
        scores = [(piece.piece, piece.score) for piece in model.pieces]
        backend = tokenizers.Tokenizer(models.Unigram(scores, trainer.unk_id, trainer.byte_fallback))
    else:
        # SentencePiece merges the two neighbors whose piece has the best score, for any split of the piece.
        merges = [
            (piece[:cut], piece[cut:])
            for piece in sorted(normal, key=normal.__getitem__, reverse=True)
            for cut in range(1, len(piece))
            if piece[:cut] in normal and piece[cut:] in normal
        ]
        ids = {piece.piece: token for token, piece in enumerate(model.pieces)}
        unknown = model.pieces[trainer.unk_id].piece
        backend = tokenizers.Tokenizer(
            models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=trainer.byte_fallback)
        )
    # A space at the start is kept because it may follow a special token; the pre-tokenizer does not add another one.
    steps: list[Any] = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex(" $"), "")]
    if normalizer.precompiled_charsmap:
        steps.insert(0, normalizers.Precompiled(normalizer.precompiled_charsmap))
    backend.normalizer = normalizers.Sequence(steps)
    # Splitting by word is faster, and gives the same result if no piece crosses a word boundary.
    by_word = not any(_SPACE in piece[1:] for piece in normal)
    backend.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="first", split=by_word)
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(_SPACE, prepend_scheme="first")])
    return backend
