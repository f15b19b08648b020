"""Files of a log: the log itself, and the lock files with which processes take turns."""

import hashlib
import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from refold.application.conversation.turn_lock import Turns, TurnsInMemory
from refold.application.errors import LogError, LogNotWritable
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.files.lock import WriteLock, is_file_at, try_lock, unlock
from refold.infrastructure.files.private_files import open_private
from refold.infrastructure.maintenance.row_proof import RowProver
from refold.infrastructure.maintenance.scrubber import KnownDamage, ScrubFile, checked_path
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite import read_only as network
from refold.infrastructure.sqlite.read_only import ReadOnlyPlace, RefusingLock, read_only_place
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, retry, translate_errors

from .anchor import Anchor, anchor_path
from .anchor_check import HeldLog
from .encodings import Encodings
from .encryption import Keys, KeySource
from .envelope import EventMapper, random_hex
from .file_format import check_place, closed_on_error, make_log
from .proven_keys import ProvenKeys
from .recorder import LOCK_TIMEOUT, DurableDatastore, LogRecorder
from .shelf import SQLiteShelf
from .snapshots import SnapshotStore, SQLiteSnapshots

logger = plain_logger(__name__)

PLACES = 64
"""Number of ordered places in one queue, including that of the turn. Further callers wait in no order."""


class FileTurns:
    """The queues of a log that other processes may have open as well.

    The lock files are empty; they exist only to be locked.
    """

    def __init__(self, log: Path) -> None:
        self._log = log

    def place(self, thread_id: str) -> "FilePlace":
        """Return a place in the queue of a conversation."""
        return line_of(self._log, thread_id)


class FilePlace:
    """A place backed by one file for each conversation. The first process to try after a release is next."""

    def __init__(self, log: Path, thread_id: str) -> None:
        digest = hashlib.sha256(thread_id.encode()).digest()
        self._log = log
        self._number = int.from_bytes(digest[:8]) >> 10
        self._process = OpeningProcess(f"{log}")
        self._file: IO[bytes] | None = None
        GATE.close_in_child(self._close)

    @property
    def _path(self) -> Path:
        return Path(f"{self._log}.turn-{self._number:014x}.lock")

    def take(self) -> bool:
        """Try to take the turn, and return whether it was taken."""
        self._process.check()
        with translate_errors(self._log):
            file = self._file or open_private(self._path, "ab", like=self._log, buffering=0)
            self._file = file
            if not self._is_ours(file):
                return False
            if is_file_at(self._path, file):
                return True
        self.leave()  # The file was deleted, and other processes lock its replacement.
        return False

    def leave(self) -> None:
        """Leave the queue and release the turn."""
        if self._file is not None and self._process.is_this:
            self._unlock(self._file)
        self._close()

    def _is_ours(self, file: IO[bytes]) -> bool:
        return try_lock(file)

    def _unlock(self, file: IO[bytes]) -> None:
        unlock(file)

    def _close(self) -> None:
        """Close the file. In a forked process, this releases none of the parent's locks."""
        if self._file is not None:
            self._file.close()
            self._file = None


line_of: type[FilePlace] = FilePlace

if sys.platform == "linux":
    from fcntl import F_OFD_SETLK, F_UNLCK, F_WRLCK, fcntl

    class RangePlace(FilePlace):
        """A place in a queue: a lock on one byte of a file. The first byte is the turn.

        A process moves only to the free place before its own, so it is never overtaken. The locks
        belong to the open file, so they also order threads and tasks of one process. The system
        releases the locks of a process that dies.
        """

        _at = PLACES

        @property
        def _path(self) -> Path:
            return Path(f"{self._log}.turns.lock")

        def _is_ours(self, file: IO[bytes]) -> bool:
            while self._at and _took(file, self._begin + self._at - 1):
                self._at -= 1
                if self._at < PLACES - 1:
                    _set(file, F_UNLCK, self._begin + self._at + 1, 1)
            return self._at == 0

        def _unlock(self, file: IO[bytes]) -> None:
            _set(file, F_UNLCK, self._begin, PLACES)

        def _close(self) -> None:
            self._at = PLACES
            super()._close()

        @property
        def _begin(self) -> int:
            return self._number * PLACES

    def _took(file: IO[bytes], at: int) -> bool:
        try:
            _set(file, F_WRLCK, at, 1)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _set(file: IO[bytes], kind: int, first: int, count: int) -> None:
        """Set a lock with the system's ``struct flock``: type, whence, start, length, process."""
        fcntl(file, F_OFD_SETLK, struct.pack("@hhqqi0q", kind, os.SEEK_SET, first, count, 0))

    line_of = RangePlace


class NoTurns:
    """The queues of a read-only log, which nothing can be appended to."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def place(self, thread_id: str) -> FilePlace:
        """Reject the request.

        Raises:
            LogNotWritable: the log cannot be written.
        """
        del thread_id
        raise LogNotWritable(f"{self._log} is read-only here, so nothing can be appended")


class LogFile(NamedTuple):
    """The parts of one open log."""

    lock: WriteLock
    datastore: DurableDatastore
    recorder: LogRecorder
    encodings: Encodings
    mapper: EventMapper
    snapshots: SnapshotStore
    held: HeldLog
    keys: ProvenKeys
    known: KnownDamage
    turns: Turns


def open_log_file(
    path: Path,
    *,
    create: bool,
    anchor: bool,
    checkpoints: bool,
    key: KeySource | None,
    notify: Callable[[Notice], None] = ignore,
) -> LogFile:
    """Open the log at ``path``, or create one. The parameters are those of ``SQLiteLog``."""
    in_memory = str(path) == ":memory:"
    place = anchor_path(path.absolute()) if anchor and not in_memory else None
    kept = Anchor(place, of=path)
    reading = None if in_memory else _check_place(path, kept, create=create)
    is_shared = in_memory or (reading is not None and reading.in_memory)
    name = _name_in_memory() if is_shared else str(path.absolute())
    datastore = DurableDatastore(name, reading=reading, checkpoints=checkpoints)
    encodings = Encodings(Keys(key), SQLiteShelf(datastore, trusted=in_memory))
    recorder, mapper = LogRecorder(datastore, encodings), EventMapper(encodings)
    snapshots = SQLiteSnapshots(datastore, "stored_snapshots")
    lock, held = _lock_of(name, reading, in_memory=in_memory), HeldLog(path, kept, recorder)
    with translate_errors(path), closed_on_error(datastore):
        if retry(lambda: make_log(None if in_memory else path, [recorder, snapshots])):
            _begin(lock, held)
        encodings.unlock()
        if not in_memory:
            network.NETWORK.look(path, notify)
            _warn_of_links(path)
    scrub = _scrub_file(path, in_memory=in_memory, reads=reading is not None)
    return LogFile(
        lock,
        datastore,
        recorder,
        encodings,
        mapper,
        SnapshotStore(snapshots, encodings, notify),
        held,
        ProvenKeys(recorder, mapper, notify),
        KnownDamage(scrub, RowProver(datastore, mapper), notify),
        _turns(path.absolute(), in_memory=in_memory, reads=reading is not None),
    )


def _refuse_second_name(path: Path) -> None:
    """Raise if this process has the log open under another name: SQLite would mix the files next to both.

    Raises:
        LogError: the message gives the other name.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_nlink > 1 and (other := GATE.other_name(path)) is not None:
            raise LogError(
                f"{path} is open in this process as {other}, which is the same file (hard links); open it "
                "under that name, or close it there first"
            )


def _warn_of_links(path: Path) -> None:
    """Warn if the log has another name: SQLite would keep a write-ahead log for each, and lose what is in one."""
    if path.stat().st_nlink > 1:
        logger.warning(
            "%s has more than one name (hard links). Open it under one name only: what is appended under two at the "
            "same time is lost. Copy a log with `refold backup`",
            path,
        )


def _lock_of(name: str, reading: ReadOnlyPlace | None, *, in_memory: bool) -> WriteLock:
    if reading is not None:
        return RefusingLock(reading)
    return WriteLock(None if in_memory else Path(f"{name}.lock"), LOCK_TIMEOUT)


def _scrub_file(path: Path, *, in_memory: bool, reads: bool) -> ScrubFile:
    checked = None if in_memory else checked_path(path.absolute())
    return ScrubFile(checked, of=path, writable=not reads)


def _begin(lock: WriteLock, held: HeldLog) -> None:
    """Create the files next to a new log, so that its first append need not. An append tries again."""
    with suppress(LogError, *STORE_ERRORS), lock.held():
        held.begin()


def _turns(path: Path, *, in_memory: bool, reads: bool) -> Turns:
    if in_memory:
        return TurnsInMemory()
    return NoTurns(path) if reads else FileTurns(path)


def _check_place(path: Path, kept: Anchor, *, create: bool) -> ReadOnlyPlace | None:
    """Check that a log can be stored at ``path``. Return how to read it if it cannot be written."""
    from refold.infrastructure.write_ahead.damaged_copies import refuse_damaged

    from .anchor_check import refuse_lost

    # Before any read: closing a descriptor here would release the locks of the log.
    GATE.refuse(path)
    with translate_errors(path):
        _refuse_second_name(path)
        retry(lambda: refuse_damaged(path))
        refuse_lost(path, kept)
        check_place(path, create=create)
        return read_only_place(path)


def _name_in_memory() -> str:
    return f"file:refold-{random_hex(8)}?mode=memory&cache=shared"
