"""What the commands that binarize share: their options, and how they report."""

from dataclasses import dataclass
from pathlib import Path

from ..core.options import option
from ..tokenizers.base import Tokenizer
from ..tokenizers.pretrained import load_pretrained


@dataclass(frozen=True, kw_only=True)
class BinarizingOptions:
    """The vocabulary and the output."""

    tokenizer: Path = option("see above", metavar="DIR-OR-FILE")
    dict: Path | None = option(
        "the dict.txt of a released or pre-trained model (default: made from the tokenizer)", default=None
    )
    destdir: Path = option("folder for the output", metavar="DIR")

    def load_tokenizer(self) -> Tokenizer:
        """Load the tokenizer, and print what it is."""
        tokenizer = load_pretrained(self.tokenizer)
        print(f"tokenizer: {tokenizer.description}", flush=True)
        return tokenizer


def cells(*values: str | int) -> list[str]:
    """A row of a table: integers with thousands separators."""
    return [value if isinstance(value, str) else f"{value:,}" for value in values]


def percentage(part: int, whole: int) -> str:
    """A share with three digits."""
    return f"{100 * part / max(whole, 1):.3f}%"
