"""The rows of a log together with what was found in page images: for each event, what can be proved."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from refold.infrastructure.event_store.codec import CodecError, NewerShape
from refold.infrastructure.event_store.envelope import (
    GENESIS,
    LONGEST_FRAME,
    EnvelopeError,
    Place,
    framed,
)
from refold.infrastructure.event_store.mapper import EventMapper
from refold.infrastructure.maintenance.row_reads import DAMAGE, RawRow, RowReader

from .page_images import Carved

RowsOf = Callable[[sqlite3.Connection], RowReader]
"""Makes the reader of a log's rows."""


class MendedRows(RowReader):
    """Reads the rows of a log, and puts what was found in page images where a row is damaged or missing."""

    def __init__(
        self, connection: sqlite3.Connection, mapper: EventMapper, found: Carved, kept: Carved
    ) -> None:
        """``found``: in the write-ahead log of now. ``kept``: in copies of earlier ones, which can be of
        a history that was not gone on with: what does not fit to its neighbours is left out.
        """
        super().__init__(connection)
        self._mapper = mapper
        self._found = dict(found)
        for number, rows in self._fitting(kept):
            self._found[number] = [*self._found.get(number, ()), *rows]

    def rows(self) -> Iterator[RawRow]:
        """Return every row, in the order of the log."""
        missing = sorted(self._found)
        at = 0
        for row in super().rows():
            while at < len(missing) and missing[at] < row.number:
                yield from self._best(self._found[missing[at]])
                at += 1
            if at < len(missing) and missing[at] == row.number:
                yield from self._best([row, *self._found[row.number]])
                at += 1
            else:
                yield row
        for number in missing[at:]:
            yield from self._best(self._found[number])

    def _best(self, rows: Sequence[RawRow]) -> Iterator[RawRow]:
        """Return the newest row that can be proved; if there is none, the newest one."""
        yield next((row for row in rows if self._is_proved(row)), rows[0])

    def _is_proved(self, row: RawRow) -> bool:
        try:
            self._mapper.open(Place(row.stream, row.version, row.name), row.state)
        except NewerShape:
            return True
        except (EnvelopeError, CodecError):
            return False
        return True

    def _fitting(self, kept: Carved) -> Iterator[tuple[int, list[RawRow]]]:
        """Return the rows that go on from the log's own, or lead to them."""
        streams: dict[str, list[RawRow]] = defaultdict(list)
        for rows in kept.values():
            for row in filter(self._is_proved, rows):
                streams[row.stream].append(row)
        for stream, rows in streams.items():
            for row in self._chained(stream, rows):
                yield row.number, [row]

    def _chained(self, stream: str, rows: Iterable[RawRow]) -> Iterator[RawRow]:
        links = dict(self._links(stream))
        for row in sorted(rows, key=lambda row: row.version):
            envelope = framed(row.state)
            known = links.get(row.version)
            before = links.get(row.version - 1, ("", GENESIS if row.version == 1 else ""))
            after = links.get(row.version + 1)
            fits = (
                envelope.previous == before[1]
                if known is None
                else known == (envelope.previous, envelope.link())
            )
            if fits or (known is None and after is not None and after[0] == envelope.link()):
                links[row.version] = (envelope.previous, envelope.link())
                yield row

    def _links(self, stream: str) -> Iterator[tuple[int, tuple[str, str]]]:
        """Return for each event of a stream the link that it names and its own."""
        query = "SELECT originator_version, substr(state, 1, ?) FROM stored_events WHERE originator_id=?"
        try:
            for version, frame in self._connection.execute(query, (LONGEST_FRAME, stream)):
                try:
                    envelope = framed(frame)
                except EnvelopeError:
                    continue
                yield version, (envelope.previous, envelope.link())
        except DAMAGE:
            return
