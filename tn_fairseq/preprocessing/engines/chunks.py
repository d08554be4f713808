"""Map a function over many questions or texts, in several processes."""

from collections.abc import Callable, Sequence
from functools import partial

from tqdm import tqdm

from . import open_engine

CHUNK = 64  # items that a worker gets at a time


def map_chunks(function: Callable, items: Sequence, workers: int, title: str, unit: str) -> list:
    """The function's results for all items, in order; the work is that of the workers."""
    chunks = [_Chunk(items[start : start + CHUNK]) for start in range(0, len(items), CHUNK)]
    results: list = []
    with (
        tqdm(total=len(items), unit=f" {unit}", desc=title, disable=None) as progress,
        open_engine(partial(_do, function), workers) as engine,
    ):
        for done in engine.map(chunks):
            results += done
            progress.update(len(done))
    return results


class _Chunk(tuple):
    def __str__(self) -> str:
        return f"{len(self)} items"


def _do(function: Callable, chunk: _Chunk) -> list:
    return [function(item) for item in chunk]
