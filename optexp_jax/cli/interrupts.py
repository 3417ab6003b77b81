"""Ctrl-C, heard from the first moment on: before anything large is imported.

While JAX is imported, and in functions that JAX calls, Python loses some interrupts: they are
raised where nobody can catch them, or come out as another error. So they are noted here, and raised
again until the command says that it has heard.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""
AGAIN = 0.5
"""Seconds after which an interrupt that nobody has heard is raised again."""
PATIENCE = 3.0
"""Seconds after which the process ends without being asked, in a long computation say. What is
stored is whole at any moment, and the command goes on from there."""

WAY_OUT = 10.0
"""Seconds for the way out, once the command has heard."""


class Interrupts:
    """Ctrl-C in this process. Nothing happens before `listen`."""

    def __init__(self) -> None:
        self.asked = False
        """Whether there was one."""
        self._begun = False
        self._heard = threading.Event()
        self._read: int | None = None

    def listen(self) -> None:
        """From now on nothing is lost; unless Ctrl-C is ignored, as in the background."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        signal.signal(signal.SIGINT, self._raise)
        # Signals are written to a pipe at once, even while a long computation keeps Python from
        # calling the handler.
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        threading.Thread(target=self._watch, daemon=True).start()
        self._silence_hooks()
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def begin(self) -> None:
        """From now on there is something to unwind, so that interrupts are raised.

        Not before: to raise one while JAX is imported can crash the process.
        """
        self._begun = True

    def hear(self) -> None:
        """The command knows, and is on its way out. Another Ctrl-C ends it at once."""
        self._heard.set()

    def _silence_hooks(self) -> None:
        """One that is raised where it cannot be caught is raised again: no need to read of it."""
        lost, printed = sys.unraisablehook, sys.excepthook
        sys.unraisablehook = lambda what: None if what.exc_type is KeyboardInterrupt else lost(what)
        sys.excepthook = lambda kind, *what: (
            None if kind is KeyboardInterrupt else printed(kind, *what)
        )

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked or not self._begun:
            self._end()
        self.asked = True
        raise KeyboardInterrupt

    def _watch(self) -> None:
        assert self._read is not None
        while signal.SIGINT not in os.read(self._read, 64):
            pass
        deadline = time.monotonic() + PATIENCE
        main = threading.main_thread().ident
        while not self._heard.wait(AGAIN):
            if time.monotonic() > deadline:
                self._end()
            if self.asked:  # else the handler has not even been called yet
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(main or 0), ctypes.py_object(KeyboardInterrupt)
                )
        time.sleep(WAY_OUT)
        self._end()

    def _end(self) -> None:
        """End this process and those that it has started, now."""
        processes = sys.modules.get("multiprocessing")
        for child in [] if processes is None else processes.active_children():
            child.kill()
        os.write(2, b"optexp: interrupted\n")
        os._exit(INTERRUPTED)


interrupts = Interrupts()
