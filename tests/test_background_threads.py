"""The thread that prepares batches is waited for, and not for ever."""

import queue
import time

from fairseq.data.iterators import BackgroundConsumer

from tn_fairseq import background_threads


def test_a_thread_is_waited_for_until_its_queue_is_full():
    made = []

    def batches():
        for number in range(5):
            end = time.monotonic() + 0.1
            while time.monotonic() < end:  # at work, not waiting
                pass
            made.append(number)
            yield number

    room = queue.Queue(2)
    thread = BackgroundConsumer(room, batches(), 5, None)
    thread.start()
    background_threads.wait_until_at_rest()
    assert made == [0, 1, 2] and thread.is_alive()  # two in the queue, one that waits for room
    for _ in range(5):
        room.get()
    background_threads.wait_until_at_rest()
    assert made == [0, 1, 2, 3, 4]


def test_a_thread_that_never_rests_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(background_threads, "SECONDS", 0.2)
    go_on = [True]

    def busy():
        while go_on[0]:
            pass
        yield 1

    BackgroundConsumer(queue.Queue(2), busy(), 1, None).start()
    start = time.monotonic()
    background_threads.wait_until_at_rest()
    assert 0.2 <= time.monotonic() - start < 5
    go_on[0] = False
