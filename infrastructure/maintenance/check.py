"""Check a whole log: every page, digest, link, gap and erasure, its keys and its anchor."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.infrastructure.event_store.anchor import Anchored, fingerprint
from refold.infrastructure.event_store.encodings import DictionaryDamaged
from refold.infrastructure.event_store.envelope import (
    GENESIS,
    LONGEST_FRAME,
    EnvelopeError,
    EventMapper,
    Place,
    RecordedEvent,
    Unsealed,
    link_in,
    parse_frame,
)
from refold.infrastructure.event_store.plain_shapes import CodecError, NewerShape
from refold.infrastructure.event_store.recorder import LogRecorder

from .row_proof import DAMAGE, RowReader, lenient, refuse_trouble
from .table_checks import (
    INDEX_TABLES,
    KEYS,
    LOG,
    StreamCheck,
    check_chains,
    check_keys,
    check_snapshots,
    stored_payload,
)

PROBLEMS = 20
"""Maximum number of findings requested from SQLite."""


class Held(NamedTuple):
    """Events of a log that a source outside the log has recorded."""

    lines: Mapping[bytes, Anchored]
    source: str
    """Description of the source for messages."""


def check_rows(recorder: LogRecorder, mapper: EventMapper, *held: Held) -> Iterator[Damage]:
    """Report all damage of the stored events, one conversation after the other."""
    yield from check_log(recorder, mapper, *held).damage


def check_log(recorder: LogRecorder, mapper: EventMapper, *held: Held) -> Checked:
    """Check the stored events and return the damage and the number of events.

    ``held`` must be read before the log.
    """
    with recorder.datastore.transaction(commit=False) as c:
        connection = c.sqlite_cursor.connection
        usual = connection.text_factory
        try:
            return once_for_all(check_connection(connection, mapper, *held))
        finally:
            connection.text_factory = usual


def check_connection(
    connection: sqlite3.Connection,
    mapper: EventMapper,
    *held: Held,
    rows: Callable[[sqlite3.Connection], RowReader] = RowReader,
) -> Checked:
    """Check a log that may be too damaged to open. ``rows`` reads its events."""
    lenient(connection)
    check = _LogCheck(connection, mapper, held, rows(connection))
    found = [*check.file_damage(), *check.event_damage()]
    found += check_keys(connection, mapper, check.streams)
    if not any(damage.place == LOG for damage in found):
        found += check_chains(connection, mapper, check.streams)
    broken = {d.thread_id: d.version for d in reversed(found) if d.place == LOG}
    found += (d for d in check_snapshots(connection, mapper) if not _follows(d, broken))
    order = {thread_id: at for at, thread_id in enumerate(check.streams)}
    found.sort(key=lambda d: (order.get(d.thread_id, -1), d.version))
    return Checked(check.events, len(check.streams), tuple(whereabouts(connection, mapper, found)))


def _follows(damage: Damage, broken: Mapping[str, int]) -> bool:
    """Return whether a snapshot only lacks events that are already reported, so that it cannot be judged."""
    return damage.thread_id in broken and broken[damage.thread_id] <= damage.version


def once_for_all(checked: Checked) -> Checked:
    """Report a missing dictionary once instead of for each event that needs it."""
    needing = Counter(found.detail for found in checked.damage if found.kind == "dictionary")
    reported = [found for found in checked.damage if found.kind != "dictionary"]
    for problem, count in needing.items():
        detail = f"{count:,} compressed events cannot be read: {problem}"
        reported.insert(0, Damage(LOG, "", 0, "dictionary", detail))
    return checked._replace(damage=tuple(reported))


class _LogCheck:
    def __init__(
        self,
        connection: sqlite3.Connection,
        mapper: EventMapper,
        held: tuple[Held, ...],
        rows: RowReader,
    ) -> None:
        self.streams: dict[str, StreamCheck] = {}
        self.events = 0
        self._connection = connection
        self._mapper = mapper
        self._held = held
        self._rows = rows
        self._threads: dict[bytes, str] = {}
        """Streams by their fingerprints."""
        self._foreign: set[tuple[str, bytes]] = set()
        """Sources that have another link for an event of a stream, with the fingerprint of the stream."""

    def file_damage(self) -> Iterator[Damage]:
        """Report the damage that SQLite itself detects. SQLite does not check contents."""
        try:
            problems = self._problems(PROBLEMS)
            place = KEYS if problems and self._is_of_index() else LOG
            for problem in problems:
                yield Damage(place, "", 0, "unreadable", f"SQLite reports: {problem}")
        except DAMAGE as error:
            refuse_trouble(error)
            yield Damage(LOG, "", 0, "unreadable", f"SQLite cannot check the file: {error}")

    def _problems(self, most_or_table: int | str) -> list[str]:
        query = "SELECT * FROM pragma_integrity_check(?)"
        found = self._connection.execute(query, (most_or_table,))
        return [str(problem) for (problem,) in found if problem != "ok"]

    def _is_of_index(self) -> bool:
        """Return whether all damaged pages belong to the index of keys, which can be rebuilt."""
        query = "SELECT name FROM sqlite_schema WHERE type='table'"
        names = [str(name) for (name,) in self._connection.execute(query)]
        damaged = {name for name in names if self._problems(name)}
        return bool(damaged) and damaged <= INDEX_TABLES

    def event_damage(self) -> Iterator[Damage]:
        """Report damage of the events and of the tables next to them."""
        name, stream = b"", None
        for row in self._rows.rows():
            self.events += 1
            stored = StoredEvent(row.stream, row.version, row.name, row.state)  # type: ignore[arg-type]
            link = link_in(stored.state)
            recorded, problem = open_checked(self._mapper, stored)
            if stream is None or row.stream != stream.thread_id:
                stream, name = self._stream(row.stream)
            for held in self._held:
                line = held.lines.get(name)
                if line is None or line.version != row.version:
                    continue
                if line.link == link:
                    link = line.link  # One text for both: a log may have very many streams.
                    self._foreign.discard((held.source, name))
                else:
                    self._foreign.add((held.source, name))
            yield from stream.take(row, link, recorded, problem)
        for problem_of_file in self._rows.problems:
            yield Damage(LOG, "", 0, "unreadable", problem_of_file)
        for stream in self.streams.values():
            yield from stream.finish(partial(self._payload, stream.thread_id))
        for held in self._held:
            yield from self._check_held(held)

    def _payload(self, thread_id: str, version: int) -> bytes | None:
        rows = [StoredEvent(*row) for row in _row(self._connection, thread_id, version)]  # type: ignore[arg-type]
        return stored_payload(self._mapper, rows[0]) if rows else None

    def _stream(self, thread_id: str) -> tuple[StreamCheck, bytes]:
        """Return the check of a stream and its fingerprint, if a source outside the log is compared."""
        stream = self.streams.get(thread_id)
        name = fingerprint(thread_id) if self._held else b""
        for held in self._held:
            if (line := held.lines.get(name)) is not None:
                name = line.fingerprint  # The same object, for the same reason.
        if stream is None:
            stream = self.streams[thread_id] = StreamCheck(thread_id)
            if self._held:
                self._threads[name] = thread_id
        return stream, name

    def _check_held(self, held: Held) -> Iterator[Damage]:
        for name, line in held.lines.items():
            thread_id = self._threads.get(name)
            if thread_id is None:
                detail = (
                    f"a conversation of {line.version} events is missing according to {held.source}; its "
                    f"fingerprint is {name.decode()}"
                )
                yield Damage(LOG, "", 0, "missing", detail)
            elif self.streams[thread_id].version < line.version:
                last = self.streams[thread_id].version
                detail = f"{line.version} events were stored according to {held.source}; the log has {last}"
                yield Damage(LOG, thread_id, last + 1, "behind", detail)
            elif (held.source, name) in self._foreign:
                detail = f"it is not the event that was stored according to {held.source}"
                yield Damage(LOG, thread_id, line.version, "foreign", detail)


def open_checked(
    mapper: EventMapper, row: StoredEvent
) -> tuple[RecordedEvent | None, Damage | None]:
    """Return the event of a row, or the damage that keeps it from being read."""
    place = (LOG, str(row.originator_id), row.originator_version)
    try:
        return mapper.to_domain_event(row), None
    except DictionaryDamaged as error:
        return None, Damage(*place, "dictionary", str(error))
    except Unsealed as error:
        return None, Damage(*place, "unsealed", str(error))
    except EnvelopeError as error:
        return None, Damage(*place, "digest", str(error))
    except NewerShape as error:
        return None, Damage(*place, "newer", str(error))
    except CodecError as error:
        return None, Damage(*place, "unreadable", str(error))


MOST = 1_000
"""Maximum number of damaged events to search places for."""


class _Found(NamedTuple):
    stream: str
    version: int
    name: str
    state: object


def whereabouts(
    connection: sqlite3.Connection, mapper: EventMapper, found: Sequence[Damage]
) -> Iterator[Damage]:
    """Yield the findings. Report events that belong elsewhere as misplaced.

    An event names the link of the one before it. This link reveals its place, and its digest proves it.
    """
    damaged = {(d.thread_id, d.version) for d in found if d.kind == "digest"}
    rows = [row for place in list(damaged)[:MOST] for row in _row(connection, *place)]
    wanted: dict[str, list[_Found]] = {}
    for row in rows:
        if (previous := _previous(row.state)) is not None:
            wanted.setdefault(previous, []).append(row)
    homes = dict(_homes(connection, mapper, wanted)) if wanted else {}
    for damage in found:
        home = homes.get((damage.thread_id, damage.version))
        if damage.kind != "digest" or home is None:
            yield damage
            continue
        kind = "reordered" if home in damaged or not _row(connection, *home) else "duplicate"
        detail = f"the event here belongs at {home[1]} of conversation {home[0]!r}"
        yield damage._replace(kind=kind, detail=detail)


def _homes(
    connection: sqlite3.Connection, mapper: EventMapper, wanted: dict[str, list[_Found]]
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Yield the places of damaged events with the places where they belong."""
    for row in wanted.get(GENESIS, []):
        yield from _proved(mapper, row, row.stream, 1, wanted)
    query = "SELECT originator_id, originator_version, substr(state, 1, ?) FROM stored_events"
    try:
        for stream, version, frame in connection.execute(query, (LONGEST_FRAME,)):
            try:
                link = parse_frame(frame).link()
            except EnvelopeError:
                continue
            for row in wanted.get(link, []):
                yield from _proved(mapper, row, stream, version + 1, wanted)
    except DAMAGE:
        return


def _proved(
    mapper: EventMapper, row: _Found, stream: str, version: int, wanted: dict[str, list[_Found]]
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Yield the place of ``row`` if it belongs there, and then those of the events that follow it."""
    while True:
        try:
            envelope, _ = mapper.open(Place(stream, version, row.name), row.state)
        except (EnvelopeError, CodecError):
            return
        yield (row.stream, row.version), (stream, version)
        following = wanted.get(envelope.link())
        if not following:
            return
        (row, *_), version = following, version + 1


def _row(connection: sqlite3.Connection, stream: str, version: int) -> list[_Found]:
    query = (
        "SELECT originator_id, originator_version, topic, state FROM stored_events "
        "WHERE originator_id=? AND originator_version=?"
    )
    try:
        return [_Found(*row) for row in connection.execute(query, (stream, version))]
    except DAMAGE:
        return []


def _previous(state: object) -> str | None:
    try:
        return parse_frame(state).previous
    except EnvelopeError:
        return None
