"""The thread that drives the scrubber: it ends with its work, and neither closing nor exiting waits for that."""

import atexit
import threading
from collections.abc import Callable, Iterable
from typing import Protocol
from weakref import WeakSet

from refold.application.opening_process import OpeningProcess
from refold.application.plain_lines import plain_logger, raised

PAUSE = 0.002
"""Seconds between two steps, in which others have the processor."""

logger = plain_logger(__name__)


class Job(Protocol):
    """Work that is done step by step."""

    def step(self) -> bool:
        """Make one step; whether there is more to do."""
        ...

    def interrupt(self) -> None:
        """Give up the step that is under way, if it takes long."""
        ...


class ScrubThread:
    """Steps through several jobs, one after the other, until they are done or it is stopped."""

    def __init__(self, jobs: Iterable[Job], finish: Callable[[], None]) -> None:
        """``jobs``: the first makes a step in any case, so that everything is read in the end, however
        soon it is stopped each time.

        ``finish``: called at the end, also where it was stopped.
        """
        self._jobs = tuple(jobs)
        self._finish = finish
        self._process = OpeningProcess()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refold-scrub", daemon=True)

    def start(self) -> None:
        """Begin."""
        _started.add(self)
        self._thread.start()

    def stop(self) -> None:
        """End after the step that is under way. The thread does not live in a forked process."""
        if not self._process.is_this:
            return
        self._stopped.set()
        for job in self._jobs:
            job.interrupt()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            for job in self._jobs:
                while job.step() and not self._stopped.wait(PAUSE):
                    pass
                if self._stopped.is_set():
                    break
            self._finish()
        except Exception as error:  # What runs beside the work of others must not disturb it.
            logger.warning("the log is not read any further in the background: %s", raised(error))


_started: WeakSet[ScrubThread] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """End the threads of memories that were not closed: none may run while Python takes itself down."""
    for thread in list(_started):
        thread.stop()
