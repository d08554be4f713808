"""fairseq's thread that prepares batches comes to rest before Python ends.

It still works when a run stops inside an epoch. Python ends such threads where they are, and one that is inside torch's
C++ then takes the process with it: "terminate called", exit code 134, after all is done.
"""

import atexit
import sys
import threading
import time

from fairseq.data.iterators import BackgroundConsumer

SECONDS = 30  # for a batch to be prepared


def install() -> None:
    """Wait for these threads when Python ends."""
    atexit.register(wait_until_at_rest)


def wait_until_at_rest() -> None:
    """Return when each of the threads has ended or waits for room in its queue, or after some seconds."""
    deadline = time.monotonic() + SECONDS
    for thread in threading.enumerate():
        while isinstance(thread, BackgroundConsumer) and thread.is_alive() and time.monotonic() < deadline:
            frame = sys._current_frames().get(thread.ident)
            if frame is not None and frame.f_code.co_filename == threading.__file__:
                break  # it waits
            time.sleep(0.005)
