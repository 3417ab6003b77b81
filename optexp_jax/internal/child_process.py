"""What every worker process does first: it leaves Ctrl-C to its parent, and ends with it."""

import multiprocessing
import os
import signal
import threading


def live_under_parent() -> None:
    """Call it in a worker before its work.

    Ctrl-C reaches all processes of a terminal; what it means is the parent's affair. A parent that
    is killed says nothing: its workers would go on for nobody, or wait for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
