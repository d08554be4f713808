"""Python waits for the thread that prepares batches, but not forever."""

import queue
import time

import pytest
from fairseq.data.iterators import BackgroundConsumer

from tn_fairseq.fairseq_patches import background_threads


def test_waits_for_a_thread_until_its_queue_is_full():
    made = []

    def batches():
        for number in range(5):
            end = time.monotonic() + 0.1
            while time.monotonic() < end:  # working, not waiting
                pass
            made.append(number)
            yield number

    room = queue.Queue(2)
    thread = BackgroundConsumer(room, batches(), 5, None)
    thread.start()
    background_threads.wait_until_at_rest()
    assert made == [0, 1, 2] and thread.is_alive()  # two in the queue, one waiting for room
    for _ in range(5):
        room.get()
    background_threads.wait_until_at_rest()
    assert made == [0, 1, 2, 3, 4]


class Clock:
    """A clock that only moves when someone sleeps."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 2000, "waited forever"


def test_the_wait_for_a_busy_thread_ends(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(background_threads, "time", clock)
    works, go_on = [], [True]

    def busy():
        works.append(True)
        while go_on[0]:
            pass
        yield 1

    BackgroundConsumer(queue.Queue(2), busy(), 1, None).start()
    while not works:
        time.sleep(0.001)
    try:
        background_threads.wait_until_at_rest()
    finally:
        go_on[0] = False
    assert clock.now - 1000 == pytest.approx(background_threads.SECONDS, abs=0.1)
