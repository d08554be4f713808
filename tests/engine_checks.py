"""Work for engines, and helpers to observe it."""

import operator
import time
from functools import partial
from pathlib import Path

# Dask workers must be able to import their work, so items are calls of Python's built-in functions.
call = operator.call
SQUARES = [partial(pow, number, 2) for number in range(100)]


def squares(count: int) -> list[int]:
    return [number**2 for number in range(count)]


def running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def wait_until(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


class Consumed:
    """Items that count how far, at most, an engine reads ahead of its results."""

    def __init__(self, items):
        self.items, self.ahead, self.results = items, 0, 0

    def __iter__(self):
        for number, item in enumerate(self.items, 1):
            self.ahead = max(self.ahead, number - self.results)
            yield item

    def run(self, engine) -> list:
        results = []
        for result in engine.map(self):
            results.append(result)
            self.results += 1
        return results
