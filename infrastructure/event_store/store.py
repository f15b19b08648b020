"""The log on SQLite: one file, one lock of all writers, and an anchor next to it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from refold.application.errors import LogDamaged
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import translate_errors

from .conversation_loader import StreamLoader
from .envelope import EventMapper
from .erased_rows import StreamEraser
from .recorder import DurableDatastore, Head, Row, SealedRows
from .stored_log import LogParts, StoredLog
from .stream_copies import SQLiteCopyRows, StreamCopier
from .stream_reads import SCAN_BATCH, StreamReader
from .turn_files import open_log_file

if TYPE_CHECKING:
    from refold.application.maintenance.maintenance_results import Compressed
    from refold.application.ports.conversation_log import Damage, LoggedEvent
    from refold.infrastructure.maintenance.compressed_payloads import LogCompressor

    from .encryption import KeySource
    from .log_copy import FileCopyEnd

LAST_WRITE = 2.0
"""Seconds that closing waits for another thread that writes."""


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
        copier = StreamCopier(SQLiteCopyRows(self._recorder), mapper)
        parts = LogParts(mapper, reader, loader, snapshots, copier, self._eraser, self._keys)
        super().__init__(str(path), parts)
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

    def writing(self, *, or_reading: bool = False) -> AbstractContextManager[None]:
        """Hold the lock of the writers. With ``or_reading``, hold nothing if the log cannot be written."""
        with self._guard():
            return nullcontext() if or_reading and self._lock.refuses else self._lock.held()

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

    @contextmanager
    def _guard(self) -> Generator[None]:
        """Check that the log is open here, convert errors, and record damage that a read finds."""
        self._check_open()
        try:
            with translate_errors(self.path):
                yield
        except LogDamaged as error:
            self.known.note_event(error.thread_id, error.version)
            raise

    def _rows_after(self, number: int) -> Sequence[Row]:
        return self._recorder.rows_after(number, SCAN_BATCH)

    def _store(self, thread_id: str, sealed: SealedRows, before: Head) -> None:
        from .anchor import Mark

        rows, keys, head = sealed
        numbers = self._recorder.insert_events(rows, keys=keys, follows={thread_id: before})
        if numbers:
            self.held.anchor.keep(Mark(thread_id, *head, numbers[-1]), self.held.marks)
        else:
            self.held.keep(thread_id, head)

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
