"""One interface to all kinds of tokenizers: from lines to ids, and from ids to symbols of ``dict.txt``.

``load_tokenizer(path)`` reads a Hugging Face ``tokenizer.json``, a BERT ``vocab.txt``, a SentencePiece ``.model`` or
GPT-2's ``encoder.json`` with ``vocab.bpe``. Special tokens that occur literally in a text are ordinary text.
"""

from pathlib import Path

from ..core.errors import InputError
from ..core.files import read_json_object
from .base import REMEDY, Tokenizer
from .fast import load_gpt2, load_tokenizer_json
from .sentencepiece import load_sentencepiece
from .wordpiece import load_bert_vocabulary


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Load a tokenizer from a folder or a file; the file name determines its kind.

    Raises InputError for a tokenizer that is missing, damaged, of an unknown kind or without the special tokens.
    """
    path = Path(path)
    if path.is_dir():
        path = _tokenizer_file(path)
    if path.suffix == ".model":
        return load_sentencepiece(path)
    if path.suffix == ".txt":
        return load_bert_vocabulary(path)
    if path.suffix == ".json":
        content = read_json_object(path, REMEDY)
        # GPT-2's encoder.json also has the key "model", as a piece with a number.
        return load_tokenizer_json(path) if isinstance(content.get("model"), dict) else load_gpt2(path, content)
    if not path.exists():
        raise InputError(f"{path}: no such file; give the folder or file of a tokenizer")
    raise InputError(f"{path}: unknown kind of tokenizer; give a tokenizer.json, vocab.txt, .model or encoder.json")


def _tokenizer_file(folder: Path) -> Path:
    """The main file of a tokenizer's folder: ``tokenizer.json`` first, because it is complete by itself."""
    models_found = sorted(folder.glob("*.model"))
    if len(models_found) > 1:
        names = ", ".join(model.name for model in models_found)
        raise InputError(f"{folder}: contains several SentencePiece models ({names}); give the one to use")
    for candidate in (folder / "tokenizer.json", folder / "vocab.txt", *models_found, folder / "encoder.json"):
        if candidate.exists():
            return candidate
    if (folder / "vocab.json").exists():
        raise InputError(
            f"{folder}: vocab.json does not say which tokenizer it belongs to; add a tokenizer_config.json, such as "
            '{"tokenizer_class": "RobertaTokenizer"}'
        )
    raise InputError(f"{folder}: no tokenizer.json, vocab.txt, .model or encoder.json in it; give a tokenizer's folder")
