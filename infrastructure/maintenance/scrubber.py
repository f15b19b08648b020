"""The scrubber: reads some of the log at each opening, in a thread, and goes on at the next where it stopped."""

import atexit
import threading
from collections.abc import Callable, Iterable
from typing import Protocol
from weakref import WeakSet

from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.value import replace
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS

from .known_damage import KnownDamage

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


BATCH = 256 * 1024
"""Bytes of a step: a few milliseconds, so that nobody waits for its transaction."""
KEPT_EVERY = 1 << 20
"""Bytes after which it is noted how far it is, for a process that is killed."""


class LogScrubber:
    """One opening's share of the work, in steps."""

    def __init__(self, known: KnownDamage, budget: int) -> None:
        """``budget``: bytes of stored rows that are read in all."""
        self._prover = known.prover
        self._known = known
        self._left = budget
        self._unkept = 0
        self._begun = False

    def step(self) -> bool:
        """Read the next rows; whether there is more to do at this opening."""
        try:
            if not self._begun:
                self._begun = True
                if not self._begin():
                    return False
            return self._read()
        except STORE_ERRORS as error:
            # No damage, that is found by the rows: others use the log, or its disk fails.
            logger.info("the log is not read any further in the background: %s", error)
            return False

    def interrupt(self) -> None:
        """Do nothing: a step is short."""

    def finish(self) -> None:
        """Note how far it is."""
        if self._unkept:
            self._known.keep(self._known.record)
            self._unkept = 0

    def _begin(self) -> bool:
        """Take over what is known; whether there is anything to read."""
        self._known.look()
        first = self._prover.first()
        if self._known.record.log != first:
            self._known.begin_anew()
            self._known.record = replace(self._known.record, log=first, after=0, findings=())
        self._known.prove_again()
        return bool(first)

    def _read(self) -> bool:
        record = self._known.record
        rows = self._prover.after(record.after, min(BATCH, self._left))
        found = [self._known.note(row) for row in rows if row.problem]
        read = sum(row.size for row in rows)
        self._left -= read
        self._unkept += read
        # At the end it is read from the start again, by the next opening.
        self._known.record = replace(record, after=rows[-1].number if rows else 0)
        if any(found) or self._unkept >= KEPT_EVERY or not rows:
            self._unkept += 1
            self.finish()
        return bool(rows) and self._left > 0
