"""The two ends of a copy in the file of a log, and the form of rows that both kinds of store understand."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from refold.application.errors import LogDamaged, LogError
from refold.application.ports.log_copy import CopyHead, CopyRow, RowPlace
from refold.infrastructure.sqlite.sqlite_failures import translate_errors

from .anchor_check import HeldLog
from .codec import key_of
from .envelope import (
    PLAIN,
    EnvelopeError,
    EventMapper,
    Place,
    is_place,
    parse_frame,
    stored_bytes,
)
from .erased_rows import StreamEraser, replace_rows
from .plain_shapes import CodecError
from .recorder import Head, LogRecorder, Row

ERASED_WHOLE = "conversation_erased"
"""Name of the event after which a conversation has no keys."""


def copy_row(mapper: EventMapper, row: Row) -> CopyRow:
    """Return a stored row in the form that does not depend on its store.

    Raises:
        LogDamaged: the event was changed.
        LogLocked: it is encrypted, and the key is missing.
    """
    position, stream, version, name, state = row
    if not is_place(stream, version, name):
        raise LogDamaged("", 0, f"row {position} does not identify its event")
    place = Place(stream, version, name)
    try:
        envelope = mapper.unsealed_columns(place, state)
        plain = stored_bytes(place, envelope._replace(encoding=""), PLAIN)
        key = key_of(name, envelope.payload)
    except (EnvelopeError, CodecError) as error:
        raise LogDamaged(stream, version, str(error)) from error
    return CopyRow(
        RowPlace(stream, version), position, name, plain, envelope.link(), key, envelope.erased
    )


def stored_row(mapper: EventMapper, row: CopyRow) -> StoredEvent:
    """Return a copied row as a log with this mapper stores it."""
    place = Place(*row.place, row.name)
    encoder = mapper.encoder
    if not encoder.encoding:
        return StoredEvent(*place, row.state)
    envelope = parse_frame(row.state)._replace(encoding=encoder.encoding)
    return StoredEvent(*place, stored_bytes(place, envelope, encoder))


def keys_in(rows: Iterable[CopyRow]) -> list[tuple[str, str, int]]:
    """Return the idempotency keys of rows: conversation, key and version."""
    return [
        (row.place.thread_id, row.key, row.place.version) for row in rows if row.key is not None
    ]


def heads_before(rows: Iterable[CopyRow]) -> Mapping[str, Head]:
    """Return the events that the first of these rows of each conversation follow."""
    heads: dict[str, Head] = {}
    for row in rows:
        stream, version = row.place
        if stream not in heads:
            heads[stream] = Head(version - 1, parse_frame(row.state).previous)
    return heads


def gone_in(rows: Iterable[CopyRow]) -> list[str]:
    """Return the conversations that these rows erase as a whole."""
    return [row.place.thread_id for row in rows if row.name == ERASED_WHOLE]


def taken_error(shown: str) -> LogError:
    """Return the error for rows that another writer stored first."""
    return LogError(
        f"{shown}: another program appended to a conversation that is being copied; nothing of it was overwritten. "
        "Stop that program, and copy again"
    )


class FileCopyEnd:
    """A ``CopyEnd`` of a log file."""

    def __init__(
        self,
        path: Path,
        recorder: LogRecorder,
        mapper: EventMapper,
        held: HeldLog,
        eraser: StreamEraser,
        writing: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.shown = str(path)
        self._path = path
        self._recorder = recorder
        self._mapper = mapper
        self._held = held
        self._eraser = eraser
        self._writing = writing

    def newest(self) -> int:
        """Return the log position of the newest event; 0 in an empty log."""
        with translate_errors(self._path):
            return self._recorder.max_notification_id() or 0

    def heads(self) -> Mapping[str, CopyHead]:
        """Map each conversation to its newest event."""
        with translate_errors(self._path):
            marks = list(self._held.marks())
        return {mark.thread_id: CopyHead(mark.version, mark.link) for mark in marks}

    def rows_after(self, position: int, limit: int) -> Sequence[CopyRow]:
        """Return the next rows in the order of the log."""
        with translate_errors(self._path):
            rows = self._recorder.rows_after(position, limit)
            return [copy_row(self._mapper, row) for row in rows]

    def find(self, places: Sequence[RowPlace]) -> Mapping[RowPlace, CopyRow]:
        """Return the existing rows at these places."""
        versions: dict[str, list[int]] = defaultdict(list)
        for place in places:
            versions[place.thread_id].append(place.version)
        found: dict[RowPlace, CopyRow] = {}
        with translate_errors(self._path):
            for stream, of_stream in versions.items():
                for row in self._recorder.select_versions(stream, of_stream):
                    version = row.originator_version
                    columns = (0, stream, version, row.topic, row.state)
                    found[RowPlace(stream, version)] = copy_row(self._mapper, columns)
        return found

    def write(self, new: Sequence[CopyRow], rewritten: Sequence[CopyRow]) -> None:
        """Store new rows in this order, and replace the bytes of erased ones, in one transaction."""
        changed = [stored_row(self._mapper, row) for row in rewritten]

        def finish(c: SQLiteCursor) -> None:
            replace_rows(c, changed)
            for stream in gone_in(new):
                self._recorder.keys.drop(c, stream)

        with translate_errors(self._path), self._writing():
            self._held.admit()
            try:
                self._recorder.insert_events(
                    [stored_row(self._mapper, row) for row in new],
                    keys=keys_in(new),
                    follows=heads_before(new),
                    with_rows=finish,
                )
            except IntegrityError as error:
                raise taken_error(self.shown) from error

    def finish(self) -> None:
        """Record the newest events in the anchor."""
        with translate_errors(self._path), self._writing():
            self._held.renew()

    def has_pending_erasures(self) -> bool:
        """Return whether older bytes of erased content may still be in the files of the log."""
        with translate_errors(self._path):
            return self._eraser.pending() is not None
