"""The log on SQLite: one file, one lock of all writers, commits that threads share, and an anchor next to it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from refold.application.errors import LogBusy, LogDamaged
from refold.application.runtime.foreign_code import CURRENT, Withdrawal, Withdrawn
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.fork_gate import deferred
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import translate_errors

from .anchor import Mark
from .conversation_loader import Stream, StreamLoader
from .envelope import EventMapper
from .erased_rows import StreamEraser
from .recorder import DurableDatastore, Head, Row, SealedRows
from .stored_log import Alone, Decided, LogParts, Ready, StoredLog
from .stream_reads import SCAN_BATCH, StreamReader
from .turn_files import open_log_file

if TYPE_CHECKING:
    from refold.application.maintenance.maintenance_results import Compressed
    from refold.application.ports.conversation_log import Damage, LoggedEvent
    from refold.infrastructure.files.lock import WriteLock
    from refold.infrastructure.maintenance.compressed_payloads import LogCompressor
    from refold.infrastructure.maintenance.scrubber import KnownDamage

    from .encryption import KeySource
    from .log_copy import FileCopyEnd
    from .recorder import LogRecorder
    from .stream_copies import StreamCopier

LAST_WRITE = 2.0
"""Seconds that closing waits for another thread that writes."""
MOST_TOGETHER = 64
"""Maximum number of appends in one commit."""
LOOK = 0.001
"""Seconds between two looks whether a commit of another thread has ended."""

logger = plain_logger(__name__)


class _Append:
    """An append that waits for the lock."""

    __slots__ = ("has_ended", "is_doubtful", "is_stored", "is_taken", "ready", "withdrawal")

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.withdrawal: Withdrawal | None = CURRENT.get()
        self.is_taken = self.has_ended = self.is_stored = self.is_doubtful = False

    def begin(self) -> bool:
        """Begin to write. Return whether the caller still wants it."""
        try:
            if self.withdrawal is not None:
                self.withdrawal.write()
        except Withdrawn:
            return False
        return True


class SharedCommits:
    """Stores the appends of several threads in one commit.

    A thread puts its append into a queue and waits for the lock of the writers. The first one that gets the lock
    stores all that wait; the others find theirs stored. An append that cannot be stored with the others, or
    may not be, is stored alone, so that each thread gets its own error.
    """

    def __init__(
        self,
        lock: WriteLock,
        store_all: Callable[[Sequence[Ready]], Sequence[bool]],
    ) -> None:
        """Share commits. ``store_all`` stores several appends in one, and returns which were stored."""
        self._lock = lock
        self._store_all = store_all
        self._queue: deque[_Append] = deque()
        self._changing = threading.Lock()

    def store(self, ready: Ready, alone: Alone) -> Decided:
        """Store an append, together with those of other threads that wait.

        Raises:
            LogError: it is not stored.
        """
        own = _Append(ready)
        with self._changing:
            self._queue.append(own)
        try:
            with self._lock.held(lambda: own.has_ended) as leads:
                if leads and not self._lead(own):
                    return alone(ready)
        except (LogBusy, Withdrawn):
            # Another thread may have begun to store it meanwhile.
            if self._leave(own):
                raise
        except BaseException:
            self._leave(own)
            raise
        if own.is_stored:
            return ready.answer()
        with self._lock.held():
            return alone(ready if own.is_doubtful else None, is_doubtful=own.is_doubtful)

    def _lead(self, own: _Append) -> bool:
        """Store ``own`` with others that wait. Return False, and store nothing, if there are none."""
        together = [own]
        try:
            self._take(own, together)
            if len(together) == 1:
                return False
            self._store(together)
        except Exception as error:
            # Each thread now stores its own append, and gets its own error.
            logger.info("%d appends could not be stored together: %s", len(together), error)
        finally:
            for one in together:
                one.has_ended = True
        return True

    def _store(self, together: Sequence[_Append]) -> None:
        for one in together:
            one.is_doubtful = True
        stored = self._store_all([one.ready for one in together])
        for one, is_stored in zip(together, stored, strict=True):
            one.is_stored, one.is_doubtful = is_stored, False

    def _take(self, own: _Append, together: list[_Append]) -> None:
        """Move the appends of the next commit out of the queue, in the order of their arrival."""
        with self._changing:
            self._discard(own)
            while self._queue and len(together) < MOST_TOGETHER:
                one = self._queue.popleft()
                if one.begin():
                    together.append(one)
                    one.is_taken = True

    def _leave(self, own: _Append) -> bool:
        """Leave the queue, or wait for the thread that stores it already. Return whether it left."""
        with self._changing:
            if not own.is_taken:
                self._discard(own)
                return True
        while not own.has_ended:
            time.sleep(LOOK)
        return False

    def _discard(self, own: _Append) -> None:
        if own in self._queue:
            self._queue.remove(own)


class _Guard(translate_errors):
    """Also records damage that a read finds."""

    __slots__ = ("_known",)

    def __init__(self, path: Path, known: KnownDamage) -> None:
        super().__init__(path)
        self._known = known

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        except LogDamaged as damage:
            self._known.note_event(damage.thread_id, damage.version)
            raise
        if isinstance(error, LogDamaged):
            self._known.note_event(error.thread_id, error.version)


def _copier(recorder: LogRecorder, mapper: EventMapper) -> StreamCopier:
    from .stream_copies import SQLiteCopyRows, StreamCopier

    return StreamCopier(SQLiteCopyRows(recorder), mapper)


class SQLiteLog(StoredLog):
    """A ``ConversationLog`` in one SQLite file."""

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool = True,
        anchor: bool = True,
        checkpoints: bool = True,
        key: KeySource | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Open the log at ``path``; ``":memory:"`` creates a log that exists as long as this object.

        ``anchor`` says whether to compare the log with an anchor file next to it and to keep that up to
        date. ``checkpoints`` says whether SQLite may empty the write-ahead log by itself. ``key`` encrypts new
        events.

        Raises:
            LogError: the path or the file is not suitable; see ``check_place`` and ``identify``.
            LogLocked: the log is encrypted, and the key is missing or wrong.
        """
        self.path = Path(path)
        opened = open_log_file(
            self.path,
            create=create,
            anchor=anchor,
            checkpoints=checkpoints,
            key=key,
            notify=notify,
        )
        self._lock, self._datastore, self._recorder, encodings, mapper, snapshots = opened[:6]
        self.held, self.known, self._keys = opened.held, opened.known, opened.keys
        self.turns = opened.turns
        reader = StreamReader(self._recorder, mapper, self._datastore.forget_pages)
        loader = StreamLoader(reader, snapshots, self.held)
        self._eraser = StreamEraser(self._recorder, mapper)
        copier = deferred(lambda: _copier(self._recorder, mapper))
        parts = LogParts(mapper, reader, loader, snapshots, copier, self._eraser, self._keys)
        super().__init__(str(path), parts)
        self._together = SharedCommits(self._lock, self._store_all)
        self._storing: set[int] = set()
        """Threads in the middle of a write. A signal handler there must not wait for the locks of its own thread."""
        self._encodings = encodings

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """Remove older bytes of erased content from all files. Return whether nothing is left."""
        with self._guard():
            number = self._eraser.pending()
            if number is None:
                return True
            if not drop():
                return False
            self._compressor().renew_dictionaries()
            with self._lock.held():
                return self._eraser.finish(number)

    def newest(self) -> int:
        """Return the log position of the newest event."""
        with self._guard():
            return self._recorder.max_notification_id() or 0

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """Yield all events after a log position."""
        self._process.check()
        expected, anchored = self.held.anchor.changed(self.held.proved)
        seen: dict[str, int] = {}
        with self._guard():
            yield from self._scan(after, seen)
        if expected:
            self.held.prove(expected, seen, after)
        self.held.proved = anchored

    def check(self) -> Iterator[Damage]:
        """Yield all damage of the log."""
        with self._guard():
            yield from self.held.check(self._parts.mapper).damage

    def compress(self, keep: int) -> Compressed:
        """Compress payloads, except for the newest ``keep`` events of each conversation."""
        from refold.infrastructure.maintenance.compressed_payloads import old_versions

        with self._guard():
            loader, snapshots = self._parts.loader, self._parts.snapshots
            return self._compressor().compress(
                old_versions(self._recorder, snapshots, loader, keep)
            )

    def _compressor(self) -> LogCompressor:
        from refold.infrastructure.maintenance.compressed_payloads import LogCompressor

        return LogCompressor(self._recorder, self._encodings, self._lock)

    def parts(self) -> tuple[DurableDatastore, EventMapper]:
        """Return the datastore and the mapper, for maintenance."""
        with self._guard():
            return self._datastore, self._parts.mapper

    def writing(self, *, or_reading: bool = False) -> AbstractContextManager[object]:
        """Hold the lock of the writers. With ``or_reading``, hold nothing if the log cannot be written."""
        with self._guard():
            return nullcontext() if or_reading and self._lock.refuses else self._writing()

    def _writing(self) -> AbstractContextManager[object]:
        return self._lock.held()

    def copy_end(self) -> FileCopyEnd:
        """Return this log as an end of a copy."""
        from .log_copy import FileCopyEnd

        return FileCopyEnd(
            self.path,
            self._recorder,
            self._parts.mapper,
            self.held,
            self._eraser,
            self.writing,
        )

    def renew_keys(self) -> None:
        """Rebuild the index of keys from the events."""
        with self._guard(), self._lock.held():
            self._keys.renew_all()

    def close(self) -> None:
        """Close the log. Do nothing in a process that was forked from the one that opened it."""
        if not self._process.is_this:
            return
        self._closed = True
        self._remembered.clear()
        self.known.close()  # Before the lock: it waits for the thread that checks the log.
        with self._lock.closing(LAST_WRITE):
            self.held.anchor.close()
            self._datastore.close()

    def _guard(self) -> AbstractContextManager[None]:
        """Check that the log is open here, convert errors, and record damage that a read finds."""
        self._check_open()
        return _Guard(self.path, self.known)

    def _rows_after(self, number: int) -> Sequence[Row]:
        return self._recorder.rows_after(number, SCAN_BATCH)

    def _in_turn(self, ready: Ready | None, alone: Alone) -> Decided:
        thread = threading.get_ident()
        if thread in self._storing:
            raise LogBusy(
                f"{self.path}: this thread is in the middle of a write, so its signal handlers and destructors "
                "cannot write now. Nothing of this write was stored: try it later, or in another thread"
            )
        try:
            self._storing.add(thread)
            if ready is None or not ready.may_share:
                return super()._in_turn(ready, alone)
            return self._together.store(ready, alone)
        finally:
            self._storing.discard(thread)

    def _store_all(self, appends: Sequence[Ready]) -> Sequence[bool]:
        """Store appends of several threads in one commit, and return which were stored."""
        self._admit([one.thread_id for one in appends])
        stored = self._recorder.insert_together(
            [(one.sealed, {one.thread_id: one.before.head}) for one in appends]
        )
        for one, numbers in zip(appends, stored, strict=True):
            if numbers and one.after is not None:
                self._keep(one.thread_id, one.sealed.head, numbers)
                self._remembered.put(one.thread_id, one.after)
        return [bool(numbers) for numbers in stored]

    def _store(self, thread_id: str, sealed: SealedRows, before: Head) -> None:
        rows, keys, head = sealed
        numbers = self._recorder.insert_events(
            rows, keys=keys, follows={thread_id: before}, link=head.link
        )
        if numbers:
            self._keep(thread_id, head, numbers)
        else:
            self.held.keep(thread_id, head)

    def _presumed(self, thread_id: str) -> Stream | None:
        known, held = super()._presumed(thread_id), self.held
        if known is not None or held.anchor.path is None or held.known(thread_id) is not None:
            return known
        return self._parts.loader.new(thread_id)  # The anchor does not know it.

    def _keep(self, thread_id: str, head: Head, numbers: Sequence[int]) -> None:
        """Record the newest event of a conversation, whose new events have these log positions."""
        mark = Mark(thread_id, *head, numbers[-1])
        # After the first events of a log, a new anchor has no other line.
        self.held.anchor.keep(mark, self.held.marks if numbers[0] > 1 else lambda: (mark,))

    def _admit(self, thread_ids: Sequence[str]) -> None:
        if not self.held.is_admitted:
            self.held.admit()
        for thread_id in thread_ids:
            self.known.refuse(thread_id)

    def _note_heads(self, heads: Mapping[str, tuple[Head, int | None]]) -> None:
        match list(heads.items()):
            case [(thread_id, (head, None))]:
                self.held.keep(thread_id, head)
            case _:
                self.held.keep_all(heads)
