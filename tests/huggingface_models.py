"""Models made by ``transformers`` with a WordPiece vocabulary in BERT's order, and text binarized with it."""

from pathlib import Path

import pytest
import torch
from files import refused
from helpers import WORDS, random_sentences

from tn_fairseq.__main__ import main
from tn_fairseq.tokenizers.pretrained import load_pretrained
from tn_fairseq.tools.preprocessing.binarization import binarize

transformers = pytest.importorskip("transformers")

# special tokens are placed as in released vocabularies: neither first nor last, and in another order than ours
PIECES = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "the", *WORDS[:60], "[MASK]", *WORDS[60:], "##s", "##ed"]
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 48}

# other masked language models, and their sizes
OTHERS = {
    "RobertaForMaskedLM": {},
    "XLMRobertaForMaskedLM": {},
    "DistilBertForMaskedLM": {"n_layers": 2, "dim": 32, "n_heads": 2, "hidden_dim": 48},
    "DebertaV2ForMaskedLM": {},
    "ModernBertForMaskedLM": dict.fromkeys(["pad_token_id", "cls_token_id", "sep_token_id"], 0),
    "ElectraForMaskedLM": {"embedding_size": 16},
}


def write_vocabulary(folder: Path, pieces: list[str] = PIECES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
    return folder


def write_bin(folder: Path, tokenizer: Path) -> Path:
    """A data-bin of random sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "corpus.txt"
    text.write_text("".join(" ".join(words) + "\n" for words in random_sentences(200, seed=3)))
    binarize({"train": [text], "valid": [text]}, load_pretrained(tokenizer), folder / "data-bin")
    return folder / "data-bin"


def randomize(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Set all parameters to distinct random values, scaled so that logits are as large as in a trained model."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.6 / model.config.hidden_size**0.5
            parameter.copy_(1 + noise if name.endswith("LayerNorm.weight") else noise)
    return model.eval()


def make_electra(vocab_size: int, seed: int = 1, generator_sizes: dict | None = None, **sizes):
    """Discriminator and generator of ``transformers`` with shared embeddings."""
    sizes = {**SIZES, "embedding_size": 16, **sizes}
    discriminator = transformers.ElectraForPreTraining(transformers.ElectraConfig(vocab_size=vocab_size, **sizes))
    sizes |= generator_sizes or {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3}
    generator = transformers.ElectraForMaskedLM(transformers.ElectraConfig(vocab_size=vocab_size, **sizes))
    randomize(discriminator, seed)
    randomize(generator, seed + 1)
    generator.electra.embeddings.load_state_dict(discriminator.electra.embeddings.state_dict())
    return discriminator, generator


def make_bert(vocab_size: int, seed: int = 1, **sizes):
    config = transformers.BertConfig(vocab_size=vocab_size, **{**SIZES, **sizes})
    return randomize(transformers.BertForMaskedLM(config), seed)


def make_other(kind: str, vocab_size: int):
    """A model of the class in ``OTHERS``."""
    kind_of_model = getattr(transformers, kind)
    sizes = {} if kind.startswith("Distil") else SIZES
    return randomize(
        kind_of_model(kind_of_model.config_class(vocab_size=vocab_size, **{**sizes, **OTHERS[kind]})), seed=1
    )


def save_models(folder: Path, models: dict[str, torch.nn.Module], pieces: list[str] = PIECES) -> None:
    for name, model in models.items():
        model.save_pretrained(folder / name)
        write_vocabulary(folder / name, pieces)


def refusal(*words: object) -> str:
    """The one-line error of ``tn-fairseq exchange``."""
    return refused(main, list(map(str, words)))
