"""Scrub a log in the background, and record damage in a file. A damaged conversation accepts no appends."""

import atexit
import json
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from refold.application.errors import LogBusy, LogDamaged
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.value import Value, build_unvalidated, plain_fields, replace
from refold.infrastructure.event_store.anchor import fingerprint
from refold.infrastructure.event_store.plain_shapes import read_plain
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import open_private
from refold.infrastructure.observability.log_observer import Figure, Notice
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, may_be_damage

from .row_proof import ProvedRow, RowProver

_TITLE = b"refold-checked-1"
LOCK_TIMEOUT = 1.0
"""Seconds to wait for the lock. Writers hold it for less than a millisecond."""
MOST = 10_000
"""Maximum number of stored findings."""

logger = plain_logger(__name__)


class Finding(Value, frozen=True):
    """A damaged row. The conversation is identified by its fingerprint, because ids may be private."""

    number: int
    fingerprint: str
    version: int
    problem: str


class ScrubRecord(Value, frozen=True):
    """The content of the file."""

    log: str = ""
    """First event of the log, which identifies it."""
    after: int = 0
    """Row after which the next scrub continues, or 0 for the start."""
    words: str = ""
    """Segment of the recall index that was checked last."""
    findings: tuple[Finding, ...] = ()


def checked_path(log: Path) -> Path:
    """Return the path of the file: ``agent.db.checked`` next to ``agent.db``."""
    return log.with_name(f"{log.name}.checked")


class ScrubFile:
    """The file of one log. If it is lost or damaged, the next scrub starts from the beginning."""

    def __init__(self, path: Path | None, *, of: Path, writable: bool) -> None:
        """Create the file object. ``path`` is None for a log in memory. ``writable``: the folder can be
        written.
        """
        self._path = path
        self._name = str(path)
        self._of = of
        self._writable = writable and path is not None
        self._lock = WriteLock(path if self._writable else None, LOCK_TIMEOUT, of=of)
        self._fails = False

    @property
    def stamp(self) -> tuple[int, int] | None:
        """Value that changes with the content of the file, or None if there is no file."""
        # Every append asks. Usually there is no file, and an error of `stat` would take longer.
        if self._path is None or not os.access(self._name, os.F_OK):
            return None
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def read(self) -> ScrubRecord:
        """Return the content, or an empty record if the file is missing, damaged or unreadable."""
        if self._path is None:
            return build_unvalidated(ScrubRecord)
        try:
            title, checksum, content = self._path.read_bytes().split(b"\n", 2)
            if title == _TITLE and checksum == b"%08x" % zlib.crc32(content):
                return read_plain(ScrubRecord, json.loads(content))
        except (OSError, ValueError):
            pass
        return build_unvalidated(ScrubRecord)

    def write(self, record: ScrubRecord, *, lifted: Mapping[int, str]) -> None:
        """Replace the file. Findings of other processes are kept, except those in ``lifted``."""
        if self._path is None or not self._writable:
            return
        try:
            with self._lock.held():
                self._replace(self._path, _merge(record, self.read(), lifted))
            self._fails = False
        except (OSError, LogBusy) as error:
            if not self._fails:
                logger.warning("%s cannot be written: %s", self._path, error)
            self._fails = True
        finally:
            self._lock.close()

    def _replace(self, path: Path, record: ScrubRecord) -> None:
        content = json.dumps(plain_fields(record), separators=(",", ":")).encode()
        place = path.with_name(f"{path.name}.new")
        with suppress(FileNotFoundError):
            place.unlink()
        with open_private(place, "xb", like=self._of) as file:
            file.write(b"%b\n%08x\n%b" % (_TITLE, zlib.crc32(content), content))
        place.replace(path)


def _merge(record: ScrubRecord, found: ScrubRecord, lifted: Mapping[int, str]) -> ScrubRecord:
    others = found.findings if found.log == record.log else ()
    kept = {one.number: one for one in others if lifted.get(one.number) != one.problem}
    kept |= {one.number: one for one in record.findings}
    return replace(record, findings=tuple(kept.values())[:MOST])


ADVICE = "run `refold verify`, and restore a backup from before the damage"


class KnownDamage:
    """The findings of this and other processes. Threads may share this object."""

    def __init__(
        self, file: ScrubFile, prover: RowProver, notify: Callable[[Notice], None]
    ) -> None:
        self._file = file
        self.prover = prover
        self._notify = notify
        self._threads = threading.RLock()
        self._findings: dict[int, Finding] = {}
        self._lifted: dict[int, str] = {}
        self._stamp: tuple[int, int] | None = None
        self.stop_reading: Callable[[], None] = _nothing
        """Function that stops the background scrub."""
        self.record = build_unvalidated(ScrubRecord)
        """Record as it was last read or written."""

    def refuse(self, thread_id: str) -> None:
        """Refuse to append to a conversation with a row that is still damaged.

        Raises:
            LogDamaged: the conversation has a damaged row.
        """
        if self._file.stamp != self._stamp:
            self.look()
        if not self._findings:
            return
        name = fingerprint(thread_id).decode()
        for finding in [one for one in self._findings.values() if one.fingerprint == name]:
            if self._is_damaged(finding):
                raise LogDamaged(
                    thread_id,
                    finding.version,
                    f"{finding.problem}; nothing can be appended to a damaged conversation",
                )

    def look(self) -> None:
        """Load the findings of the file."""
        with self._threads:
            stamp = self._file.stamp
            self.record = self._file.read()
            self._findings |= {one.number: one for one in self.record.findings}
            self._stamp = stamp

    def prove_again(self) -> None:
        """Check every damaged row again. Report those that are still damaged and remove the others."""
        for finding in list(self._findings.values()):
            row = self.prover.at(finding.number)
            if row.problem:
                self._report(row)
            else:
                self._lift(finding)

    def note(self, row: ProvedRow, *, report: bool = True) -> bool:
        """Record a damaged row and report it unless it is known. Return whether it is new."""
        name = fingerprint(row.thread_id).decode()
        with self._threads:
            known = self._findings.get(row.number)
            if known is not None and known.fingerprint == name:
                return False
            self._lifted.pop(row.number, None)
            self._findings[row.number] = Finding(
                number=row.number, fingerprint=name, version=row.version, problem=row.problem
            )
        if report:
            self._report(row)
        return True

    def note_event(self, thread_id: str, version: int) -> None:
        """Record an event that a read found to be damaged or missing, if its row confirms that."""
        try:
            numbers = [self.prover.number_of(thread_id, at) for at in (version, version + 1)]
            rows = [self.prover.at(number) for number in numbers if number is not None]
        except STORE_ERRORS:
            return  # Nothing is known about the row.
        # The reader reports it.
        new = [self.note(row, report=False) for row in rows if row.problem]
        if any(new):
            self.keep(self.record)

    def keep(self, record: ScrubRecord) -> None:
        """Store the scrub position together with all findings."""
        with self._threads:
            self.record = replace(record, findings=tuple(self._findings.values()))
            if not self.record.log and not self._findings:
                return  # An empty log has nothing to record.
            self._file.write(self.record, lifted=self._lifted)
            self._lifted.clear()
            self._stamp = self._file.stamp

    def begin_again(self) -> None:
        """Remove the findings about another log."""
        with self._threads:
            self._findings.clear()

    def keep_words(self, name: str) -> None:
        """Record which segment of the recall index was checked last."""
        self.keep(replace(self.record, words=name))

    def _is_damaged(self, finding: Finding) -> bool:
        try:
            damaged = bool(self.prover.at(finding.number).problem)
        except STORE_ERRORS as error:
            if may_be_damage(error):
                return True
            raise
        if not damaged:
            self._lift(finding)
            self.keep(self.record)
        return damaged

    def _lift(self, finding: Finding) -> None:
        with self._threads:
            self._findings.pop(finding.number, None)
            self._lifted[finding.number] = finding.problem

    def _report(self, row: ProvedRow) -> None:
        figures: dict[str, Figure] = {
            "error": "LogDamaged",
            "version": row.version,
            "advice": ADVICE,
        }
        self._notify(Notice("log.damaged", row.thread_id, figures))

    def close(self) -> None:
        """Stop the background scrub, which uses the connections of the log."""
        self.stop_reading()


def _nothing() -> None:
    """Do nothing, because no background scrub runs."""


START = 0.1
"""Seconds before the first step, which leave the processor to the program that opened the log."""
PAUSE = 0.002
"""Seconds between two steps, which leave the processor to other threads."""


class Job(Protocol):
    """Work that is done in steps."""

    def step(self) -> bool:
        """Run one step, and return whether more work remains."""
        ...

    def interrupt(self) -> None:
        """Cancel the current step if it takes long."""
        ...


class ScrubThread:
    """A thread that runs several jobs in steps, one job after the other, until they are done or it stops."""

    def __init__(self, jobs: Iterable[Job], finish: Callable[[], None]) -> None:
        """Create a thread. The first of ``jobs`` always runs at least one step.

        So the whole log is read in the end, even if each thread is stopped early. ``finish`` is called
        at the end in any case.
        """
        self._jobs = tuple(jobs)
        self._finish = finish
        self._process = OpeningProcess()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refold-scrub", daemon=True)

    def start(self) -> None:
        """Start the thread. If the system refuses one, this opening checks nothing."""
        _started.add(self)
        try:
            self._thread.start()
        except RuntimeError as error:
            logger.warning("the background check of the log does not run: %s", raised(error))

    def stop(self) -> None:
        """Stop the thread after the current step. In a forked process, the thread does not exist."""
        if not self._process.is_this:
            return
        self._stopped.set()
        for job in self._jobs:
            job.interrupt()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._stopped.wait(START)
            for job in self._jobs:
                while job.step() and not self._stopped.wait(PAUSE):
                    pass
                if self._stopped.is_set():
                    break
            self._finish()
        except Exception as error:  # A background job must not disturb the program.
            if self._stopped.is_set():  # The log was closed under its last step.
                return
            logger.warning("the background check of the log stopped: %s", raised(error))


_started: WeakSet[ScrubThread] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stop the threads of memories that were not closed, because none may run during interpreter shutdown."""
    for thread in list(_started):
        thread.stop()


BATCH = 64 * 1024
"""Number of bytes in a step: about a millisecond. A writer waits for its transaction, and a process that only opens
the log for a moment runs one step.
"""
KEPT_EVERY = 1 << 20
"""Number of bytes after which the position is stored, in case the process is killed."""


class LogScrubber:
    """One scrub of a part of the log, in steps. Each opening of the log runs one."""

    def __init__(self, known: KnownDamage, budget: int) -> None:
        """Create a scrubber. ``budget`` is the total number of stored bytes to read."""
        self._prover = known.prover
        self._known = known
        self._left = budget
        self._unkept = 0
        self._newest = 0
        self._begun = False

    def step(self) -> bool:
        """Read the next rows, and return whether this scrub has more to read."""
        try:
            if not self._begun:
                self._begun = True
                if not self._begin():
                    return False
            return self._read()
        except STORE_ERRORS as error:
            # This is not damage, which the rows would reveal: the log is in use, or its disk fails.
            logger.info("the background check of the log stopped: %s", error)
            return False

    def interrupt(self) -> None:
        """Do nothing, because a step is short."""

    def finish(self) -> None:
        """Store the position."""
        if self._unkept:
            self._known.keep(self._known.record)
            self._unkept = 0

    def _begin(self) -> bool:
        """Load the findings, and return whether there are rows to read."""
        self._known.look()
        first = self._prover.first()
        if self._known.record.log != first:
            self._known.begin_again()
            self._known.record = replace(self._known.record, log=first, after=0, findings=())
        self._known.prove_again()
        self._newest = self._prover.newest()
        return bool(first)

    def _read(self) -> bool:
        record = self._known.record
        rows = self._prover.after(record.after, min(BATCH, self._left))
        found = [self._known.note(row) for row in rows if row.problem]
        read = sum(row.size for row in rows)
        self._left -= read
        self._unkept += read
        # At the end of the log, the next scrub starts from the beginning. Rows of later appends are left to it.
        ended = not rows or rows[-1].number >= self._newest
        self._known.record = replace(record, after=0 if ended else rows[-1].number)
        if any(found) or self._unkept >= KEPT_EVERY or ended:
            self._unkept += 1
            self.finish()
        return not ended and self._left > 0
