"""Training of WordPiece and SentencePiece tokenizers."""

import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sentencepiece
from tokenizers import Tokenizer, models, trainers

from ...core.dictionary import MASK, UNKNOWN
from ...core.errors import InputError
from ...tokenizers.base import BERT_SPECIAL_TOKENS
from ...tokenizers.base import Tokenizer as TrainedTokenizer
from ...tokenizers.wordpiece import wordpiece_tokenizer
from .text import Reading, read_chunks
from .text_files import TextFile

FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "sentencepiece.model", "sentencepiece.vocab")
MOST_PIECES = 1 << 24  # the trainers allocate memory for all of them
# WordPiece keeps the most frequent characters, as many as BERT in the tokenizers library, and those that occur at least
# so often, up to this share of the vocabulary: Chinese has thousands.
MOST_FREQUENT, MIN_CHARACTER_COUNT, CHARACTERS_SHARE = 1000, 5, 0.5
# A merge seen only once is specific to one word, not a piece of the language.
MIN_FREQUENCY = 2
# SentencePiece sums counts per thread, so the model depends on the number of threads.
SENTENCEPIECE_THREADS = 16
# SentencePiece skips longer lines; its default limit, 4192 bytes, would lose long paragraphs.
SENTENCEPIECE_LINE_BYTES = 1 << 24
SENTENCEPIECE_COVERAGE = 0.98  # at least


def train_wordpiece(
    lines: Iterable[str],
    characters: dict[str, int],
    vocab_size: int,
    lowercase: bool = True,
    coverage: float | None = None,
) -> dict[str, bytes]:
    """Train BERT's tokenizer; ``characters`` counts the characters of the lines. Returns the files' contents.

    ``coverage`` is the share of the text whose characters become pieces; None is the default of the command. The lines
    may be read twice. Raises InputError if the vocabulary size does not fit the corpus.
    """
    blank = wordpiece_tokenizer(BERT_SPECIAL_TOKENS, lowercase)
    counts, inside = _normal_characters(blank, characters)
    ordered = list(counts)
    # the size of the vocabulary with the first characters and no other pieces
    sizes = np.cumsum([1 + (character in inside) for character in ordered]) + len(BERT_SPECIAL_TOKENS)
    if coverage is None:
        often = sum(count >= MIN_CHARACTER_COUNT for count in counts.values())
        kept = max(MOST_FREQUENT, min(often, int(np.searchsorted(sizes, vocab_size * CHARACTERS_SHARE, side="right"))))
    else:
        kept = int(np.searchsorted(np.cumsum(list(counts.values())), coverage * sum(counts.values()))) + 1
    pieces = _learn(blank, lines, ordered[:kept], inside, vocab_size)
    if coverage is None and len(pieces) < vocab_size and kept < len(ordered):
        # there is room for rarer characters
        kept = int(np.searchsorted(sizes, vocab_size, side="right"))
        pieces = _learn(blank, lines, ordered[:kept], inside, vocab_size)
        if len(pieces) < vocab_size:
            pieces += ordered[kept : kept + 1]  # no room for its second piece
    _check_size(vocab_size, most=len(pieces), all_characters=kept >= len(ordered))
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase}
    config |= {f"{token[1:-1].lower()}_token": token for token in BERT_SPECIAL_TOKENS}
    return {
        "vocab.txt": "".join(f"{piece}\n" for piece in pieces).encode(),
        "tokenizer.json": wordpiece_tokenizer(pieces, lowercase).to_str(pretty=True).encode(),
        "tokenizer_config.json": (json.dumps(config, indent=2) + "\n").encode(),
    }


def _learn(
    blank: Tokenizer, lines: Iterable[str], characters: Sequence[str], inside: set[str], vocab_size: int
) -> list[str]:
    """The special tokens, the characters, "##" and each inside words, and the most frequent other pieces."""
    initial = sorted(characters)
    pieces = [*BERT_SPECIAL_TOKENS, *initial, *sorted(f"##{character}" for character in inside.intersection(initial))]
    _check_size(vocab_size, least=len(pieces))
    # The library adds characters in the order of a randomly seeded hash table, which then breaks ties between merges.
    # As special tokens they come first, in the same order in every run.
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=pieces,
        initial_alphabet=initial,
        limit_alphabet=len(initial),
        show_progress=False,
    )
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer, learner.pre_tokenizer = blank.normalizer, blank.pre_tokenizer
    learner.train_from_iterator(lines, trainer)
    vocabulary = learner.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def train_sentencepiece(lines: Iterable[str], vocab_size: int, coverage: float | None = None) -> dict[str, bytes]:
    """Train a unigram model with fairseq's special symbols first. Returns the files' contents.

    ``coverage`` is the share of the text whose characters become pieces, by default that of the library. Raises
    InputError if the vocabulary size does not fit the corpus.
    """
    model = io.BytesIO()
    options: dict[str, Any] = {} if coverage is None else {"character_coverage": coverage}
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,  # a model written to a file would contain the file's name
            vocab_size=vocab_size,
            **options,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            control_symbols=[MASK],
            num_threads=SENTENCEPIECE_THREADS,
            max_sentence_length=SENTENCEPIECE_LINE_BYTES,
            minloglevel=2,
        )
    except RuntimeError as error:
        # translate the errors of the library's C++ code
        message = " ".join(str(error).split())
        if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
            _check_size(vocab_size, least=int(least[1]))
        if most := re.search(r"Please set it to a value <= (\d+)", message):
            _check_size(vocab_size, most=int(most[1]), all_characters=coverage == 1)
        raise InputError(f"--vocab-size {vocab_size}: sentencepiece cannot train on this corpus: {message}") from None
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    rows = (f"{processor.id_to_piece(i)}\t{processor.get_score(i):g}\n" for i in range(len(processor)))
    return {"sentencepiece.model": model.getvalue(), "sentencepiece.vocab": "".join(rows).encode()}


def _check_size(vocab_size: int, least: int = 0, most: float = math.inf, all_characters: bool = True) -> None:
    if vocab_size < least:
        remedy = f"its characters need {least}; increase it, or give a smaller --character-coverage"
        raise InputError(f"--vocab-size {vocab_size} is too small for this corpus; {remedy}")
    if vocab_size > most:
        remedy = "reduce it" if all_characters else "reduce it, or give a larger --character-coverage"
        raise InputError(f"--vocab-size {vocab_size} is too large for this corpus; it has {most} pieces; {remedy}")


def count_characters(files: Sequence[TextFile], how: Reading) -> tuple[dict[str, int], int, int]:
    """How often each character occurs, the size of the text in bytes, and the number of bad records.

    Raises InputError for text that is empty or not UTF-8, before any training.
    """
    counts = np.zeros(0x110000, dtype=np.int64)
    size = bad = 0
    for text in read_chunks(files, "reading", how):
        chunk = text.plain(how)
        size += chunk.size
        bad += chunk.bad
        codes = np.frombuffer("\n".join(chunk.lines()).encode("utf-32-le"), dtype="<u4")
        counts += np.bincount(codes, minlength=len(counts))
    characters = {chr(code): int(counts[code]) for code in np.flatnonzero(counts)}
    if all(character.isspace() for character in characters):
        names = ", ".join(file.name for file in files)
        raise InputError(f"{names}: no line with text; give a corpus with one sentence per line")
    return characters, size, bad


@dataclass
class Lines:
    """The lines of the files, which every iteration reads again."""

    files: Sequence[TextFile]
    how: Reading

    def __iter__(self) -> Iterator[str]:
        for text in read_chunks(self.files, "loading", self.how):
            yield from text.plain(self.how).lines()
        print("learning the pieces ...", flush=True)  # the libraries print nothing until they are done


def _normal_characters(tokenizer: Tokenizer, characters: dict[str, int]) -> tuple[dict[str, int], set[str]]:
    """The characters after normalization with their counts, most frequent first, and those that can continue a word."""
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    for character, count in characters.items():
        normal = tokenizer.normalizer.normalize_str("a" + character)
        words = [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
        inside.update(*(word[1:] for word in words))
        for normal_character in "".join(words)[1:]:
            counts[normal_character] += count
    ordered = sorted(sorted(counts), key=counts.__getitem__, reverse=True)
    return {character: counts[character] for character in ordered}, inside


def unknown_characters(tokenizer: TrainedTokenizer, characters: dict[str, int]) -> dict[str, int]:
    """Those of the characters that the tokenizer does not know, with their counts."""
    remaining = dict(characters)
    for before in ("", "e"):  # SentencePiece knows an accent after its letter
        ids, lengths = tokenizer.encode_chunk([before + character for character in remaining])
        unknown = np.zeros(len(remaining), dtype=bool)
        unknown[np.repeat(np.arange(len(remaining)), lengths)[ids == tokenizer.special_ids[UNKNOWN]]] = True
        remaining = {character: n for (character, n), is_unknown in zip(remaining.items(), unknown) if is_unknown}
    return remaining
