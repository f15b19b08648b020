"""The two ends of a copy on a server."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from eventsourcing.persistence import IntegrityError, StoredEvent

from refold.application.errors import LogBusy
from refold.application.ports.log_copy import CopyHead, CopyRow, RowPlace
from refold.infrastructure.event_store.envelope import LONGEST_FRAME, EventMapper, link_in
from refold.infrastructure.event_store.log_copy import (
    copy_row,
    gone_in,
    heads_before,
    keys_in,
    stored_row,
    taken_error,
)

from .connections import from_text, to_text
from .eraser import PostgresEraser
from .event_rows import PostgresRecorder
from .failures import as_log_errors, retry
from .sealing import open_state

_HEADS = f"""
SELECT DISTINCT ON (originator_id) originator_id, originator_version, substr(state, 1, {LONGEST_FRAME})
FROM {{stored_events}} ORDER BY originator_id DESC, originator_version DESC
"""
_FIND = """
SELECT e.originator_id, e.originator_version, e.topic, e.state, k.key
FROM unnest(%s::text[], %s::bigint[]) AS n(stream, version)
JOIN {stored_events} e ON e.originator_id = n.stream AND e.originator_version = n.version
LEFT JOIN {payload_keys} k ON k.originator_id = e.originator_id AND k.originator_version = e.originator_version
"""
_WITHOUT_POSITION = """
SELECT (current_setting('transaction_read_only') = 'on' OR NOT has_table_privilege(n.tableoid, 'UPDATE')) AND (
    coalesce((SELECT max(id) FROM {stored_events}) > n.last_id, false)
    OR EXISTS (SELECT FROM {missing_ids} m JOIN {stored_events} e ON e.id BETWEEN m.first_id AND m.last_id))
FROM {numbering} n
"""
"""Query for whether a replica, or a role that may only read, has events that cannot be read in the order of the log."""


class ServerCopyEnd:
    """A ``CopyEnd`` of a log on a server."""

    def __init__(
        self, recorder: PostgresRecorder, eraser: PostgresEraser, mapper: EventMapper
    ) -> None:
        self.shown = recorder.store.address.shown
        self._recorder = recorder
        self._store = recorder.store
        self._eraser = eraser
        self._mapper = mapper

    def newest(self) -> int:
        """Return the log position of the newest event; 0 in an empty log.

        Raises:
            LogBusy: this is a replica, or the role may only read, and there are events that got no position yet.
        """
        with as_log_errors(self.shown):
            newest = self._recorder.max_notification_id() or 0
            if retry(lambda: self._store.rows(_WITHOUT_POSITION)) == [(True,)]:
                raise LogBusy(
                    f"{self.shown}: there are events without a place in the order of the log, which a replica or a "
                    "role that may only read cannot give: run `refold list` on the primary, and copy again"
                )
            return newest

    def heads(self) -> Mapping[str, CopyHead]:
        """Map each conversation to its newest event."""
        with as_log_errors(self.shown):
            rows = retry(lambda: self._store.rows(_HEADS))
        return {
            from_text(stream): CopyHead(version, link_in(frame)) for stream, version, frame in rows
        }

    def rows_after(self, position: int, limit: int) -> Sequence[CopyRow]:
        """Return the next rows in the order of the log."""
        with as_log_errors(self.shown):
            rows = self._recorder.rows_after(position, limit)
        return [copy_row(self._mapper, row) for row in rows]

    def find(self, places: Sequence[RowPlace]) -> Mapping[RowPlace, CopyRow]:
        """Return the existing rows at these places."""
        values = [to_text(place.thread_id) for place in places], [one.version for one in places]
        with as_log_errors(self.shown):
            rows = retry(lambda: self._store.rows(_FIND, values))
        found: dict[RowPlace, CopyRow] = {}
        for stored, version, name, state, key in rows:
            stream = from_text(stored)
            columns = (0, stream, version, name, open_state(stream, version, state, key))
            found[RowPlace(stream, version)] = copy_row(self._mapper, columns)
        return found

    def write(self, new: Sequence[CopyRow], rewritten: Sequence[CopyRow]) -> None:
        """Store new rows in this order, and replace the bytes of erased ones, in one transaction."""
        changed: dict[str, list[StoredEvent]] = defaultdict(list)
        for row in rewritten:
            changed[row.place.thread_id].append(stored_row(self._mapper, row))
        streams = sorted({to_text(row.place.thread_id) for row in (*new, *rewritten)})
        with as_log_errors(self.shown):
            try:
                with self._store.transaction():
                    self._write(new, changed, streams)
            except IntegrityError as error:
                raise taken_error(self.shown) from error

    def _write(
        self,
        new: Sequence[CopyRow],
        changed: Mapping[str, Sequence[StoredEvent]],
        streams: Sequence[str],
    ) -> None:
        if changed:
            # As an erasure does: no conversation that is being forked meanwhile keeps the content.
            self._store.lock("copies")
        for stream in streams:
            self._store.lock("stream", stream)
        # In the order of the source, so that the log positions have the same order.
        for _, run in groupby(new, lambda row: row.place.thread_id):
            part = list(run)
            rows = [stored_row(self._mapper, row) for row in part]
            self._recorder.append(rows, keys=keys_in(part), follows=heads_before(part))
        for stream, of_stream in changed.items():
            self._eraser.rewrite(stream, of_stream)
        for stream in gone_in(new):
            self._eraser.forget_keys(stream)

    def finish(self) -> None:
        """Do nothing: a server keeps no record outside the log."""

    def has_pending_erasures(self) -> bool:
        """Return whether keys of erased content may still be in their tables."""
        with as_log_errors(self.shown):
            return self._eraser.pending() is not None
