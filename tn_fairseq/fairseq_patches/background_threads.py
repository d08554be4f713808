"""Wait for fairseq's thread that prepares batches before Python exits.

The thread is still running if a run stops inside an epoch. Python kills such threads, and if one is inside torch's C++
code, that aborts the process after all work is done: "terminate called", exit code 134.
"""

import atexit
import sys
import threading
import time

from fairseq.data.iterators import BackgroundConsumer

SECONDS = 30  # enough to prepare a batch


def install() -> None:
    """Wait for these threads when Python exits."""
    atexit.register(wait_until_at_rest)


def wait_until_at_rest() -> None:
    """Return when each of the threads has ended or waits for room in its queue, or after ``SECONDS``."""
    deadline = time.monotonic() + SECONDS
    for thread in threading.enumerate():
        while isinstance(thread, BackgroundConsumer) and thread.is_alive() and time.monotonic() < deadline:
            frame = sys._current_frames().get(thread.ident)
            if frame is not None and frame.f_code.co_filename == threading.__file__:
                break  # it is waiting
            time.sleep(0.005)
