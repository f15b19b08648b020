"""Read the events of streams, checked one by one, and scan those of the whole log."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from pydantic_core import from_json

from refold.application.errors import LogDamaged, LogError, NewerLog
from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.infrastructure.sqlite.sqlite_failures import look_twice

from .codec import MESSAGE_APPENDED, SHAPES, CodecError, NewerShape, message_appended
from .envelope import (
    GENESIS,
    MAGIC,
    Envelope,
    EnvelopeError,
    EventMapper,
    Place,
    RecordedEvent,
    parse_frame,
)
from .recorder import MAX_VERSION, Head, Plain, Row

BATCH = 1_000
"""Number of events in memory at once."""
READ_AGAIN = "notes_flushed"
"""Name of the events that each compaction reads again, to repeat none of their notes."""
_MOST_READ = 8
"""Number of conversations whose events of this name are kept as they were last read."""
_Opened = dict[int, tuple[bytes, RecordedEvent]]
"""Events of a conversation that are read again, by their versions, with their bytes."""
Answer = TypeVar("Answer")


class PassedOver(NamedTuple):
    """An event that was checked and not decoded, because only messages are wanted."""

    version: int


Read = Callable[[], Sequence[LoggedEvent | PassedOver]]
"""Reads events of one stream."""


class StreamRows(Protocol):
    """The part of a recorder that reads streams."""

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the events of a stream after version ``gt``, up to version ``lte``."""
        ...

    def select_versions(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """Return the existing events with these versions, in the order of their versions."""
        ...

    def rows_at(self, stream: str, versions: Sequence[int]) -> Sequence[Plain]:
        """Return the same as version, name and bytes."""
        ...

    def rows_of(
        self, stream: str, after: int, limit: int, last: int = MAX_VERSION
    ) -> Sequence[Plain]:
        """Return version, name and bytes of the next events of a stream up to version ``last``."""
        ...

    def is_newest(self, stream: str, head: Head) -> bool:
        """Return whether a stream still ends with this event, and its frame was not changed."""
        ...


class StreamReader:
    """A reader of streams. It raises ``LogDamaged`` if an event is missing, changed or out of order."""

    def __init__(
        self, recorder: StreamRows, mapper: EventMapper, forget: Callable[[], None]
    ) -> None:
        """Create a reader. ``forget`` drops cached reads before a read that seems damaged is repeated."""
        self.recorder = recorder
        self.mapper = mapper
        self.forget = forget
        self._opened: OrderedDict[str, _Opened] = OrderedDict()

    def forget_opened(self) -> None:
        """Forget all decoded events, because some were erased."""
        self._opened.clear()

    def read(self, thread_id: str, first: int, last: int | None) -> list[LoggedEvent]:
        """Return the events from version ``first`` to ``last``, after checking that each follows the one
        before it.
        """
        batches = partial(self.batches, thread_id, first, last)
        return self._look(lambda: [event.logged() for batch in batches() for event in batch])

    def batches(
        self, thread_id: str, first: int, last: int | None, size: int = BATCH
    ) -> Iterator[list[RecordedEvent]]:
        """Yield the events from version ``first`` to ``last`` in batches, each checked against the one before."""
        last = MAX_VERSION if last is None else last
        after, before, wanted = max(0, first - 2), None, first
        while True:
            recorded = self._look(partial(self._open_rows, thread_id, after, size, last))
            if not recorded:
                return
            if before is not None:
                follows(recorded[0], before.link, before.originator_version)
            elif recorded[0].originator_version == 1:
                follows(recorded[0], GENESIS)
            for one, event in pairwise(recorded):
                follows(event, one.link, one.originator_version)
            before = recorded[-1]
            after = before.originator_version
            found = [event for event in recorded if event.originator_version >= first]
            if found and found[0].originator_version != wanted:
                raise LogDamaged(thread_id, wanted, "the event is missing")
            if found:
                wanted = after + 1
                yield found
            if len(recorded) < size:
                return

    def _open_rows(self, thread_id: str, after: int, size: int, last: int) -> list[RecordedEvent]:
        rows = self.recorder.rows_of(thread_id, after, size, last)
        is_plain = not self.mapper.encoder.encoding
        return [
            (
                _record_message(thread_id, version, state)
                if is_plain and name == MESSAGE_APPENDED
                else None
            )
            or record_row(self.mapper, Place(thread_id, version, name), state)
            for version, name, state in rows
        ]

    def read_at(
        self, thread_id: str, versions: Collection[int], *, only_messages: bool = False
    ) -> list[LoggedEvent | PassedOver]:
        """Return the existing events with these versions, each checked against the one before it.

        With ``only_messages``, other events are not decoded, and are ``PassedOver``.
        """
        return self._look(lambda: self._read_at(thread_id, versions, only_messages=only_messages))

    def _read_at(
        self, thread_id: str, versions: Collection[int], *, only_messages: bool
    ) -> list[LoggedEvent | PassedOver]:
        wanted = frozenset(versions)
        before = {version - 1 for version in wanted if version > 1}
        links = {0: GENESIS}
        found: list[LoggedEvent | PassedOver] = []
        opened: _Opened = {}
        is_plain = not self.mapper.encoder.encoding
        for version, name, state in self.recorder.rows_at(thread_id, sorted(before | wanted)):
            before_it = links.get(version - 1)
            if version not in wanted:
                links[version] = _link_in(state)
            elif (
                is_plain
                and name == MESSAGE_APPENDED
                and (plain := open_plain_message(thread_id, version, state))
            ):
                at, _, digest, previous, fields = plain
                _expect_link(thread_id, version, previous, before_it)
                if version + 1 in wanted:
                    links[version] = _next_link(previous, digest)
                found.append(UnreadMessage(0, thread_id, version, at, fields))
            elif only_messages and name != MESSAGE_APPENDED:
                passed = unseal_row(self.mapper, Place(thread_id, version, name), state)
                _expect_link(thread_id, version, passed.previous, before_it)
                links[version] = passed.link()
                found.append(PassedOver(version))
            else:
                event = self._open(Place(thread_id, version, name), state, opened)
                follows(event, before_it)
                links[version] = event.link
                found.append(event.logged())
        if opened:
            self._keep(thread_id, opened)
        return found

    def _open(self, place: Place, state: bytes, opened: _Opened) -> RecordedEvent:
        """Decode a row, or return the event of an equal row that was decoded before. Keep it in ``opened``."""
        if place.name != READ_AGAIN:
            return record_row(self.mapper, place, state)
        known = self._opened.get(place.stream, {}).get(place.version)
        if known is None or known[0] != state:
            known = state, record_row(self.mapper, place, state)
        opened[place.version] = known
        return known[1]

    def _keep(self, thread_id: str, opened: _Opened) -> None:
        """Keep the events of one read, and none of earlier reads: a conversation goes on for ever."""
        self._opened[thread_id] = opened
        self._opened.move_to_end(thread_id)
        while len(self._opened) > _MOST_READ:
            self._opened.popitem(last=False)

    def _look(self, look: Callable[[], Answer]) -> Answer:
        return look_twice(look, self.forget)


def follows(event: RecordedEvent, link: str | None, version: int | None = None) -> None:
    """Check that an event directly follows the event with this link and version.

    Raises:
        LogDamaged: an event between them is missing, or the event follows another one.
    """
    if version is not None and event.originator_version != version + 1:
        raise LogDamaged(event.originator_id, version + 1, "the event is missing")
    _expect_link(event.originator_id, event.originator_version, event.previous, link)


def _expect_link(stream: str, version: int, previous: str, link: str | None) -> None:
    """Check that the event before has the link that an event names, if that link is known."""
    if link is not None and previous != link:
        raise LogDamaged(stream, version, "it does not follow the event before")


def _next_link(previous: str, digest: str) -> str:
    """Return the link of an event, as ``Envelope.link`` does."""
    return sha256((previous + digest).encode("ascii")).hexdigest()


def _link_in(state: bytes) -> str:
    """Return the link of an event from its frame alone, or an empty string if that is damaged."""
    try:
        return parse_frame(state).link()
    except EnvelopeError:
        return ""


def open_row(mapper: EventMapper, row: StoredEvent) -> RecordedEvent:
    """Decode a row. Raise ``LogDamaged`` with the place of the row if it is damaged."""
    place = Place(str(row.originator_id), row.originator_version, row.topic)
    return record_row(mapper, place, row.state)


def record_row(mapper: EventMapper, place: Place, state: object) -> RecordedEvent:
    """Decode a row that is given as columns. Raise ``LogDamaged`` with the place of the row if it is damaged."""
    try:
        return mapper.recorded(place, state)
    except (EnvelopeError, CodecError) as error:
        raise _damage_error(place, error) from error


def unseal_row(mapper: EventMapper, place: Place, state: object) -> Envelope:
    """Check a row without decoding it. Raise ``LogDamaged`` with the place of the row if it is damaged."""
    try:
        return mapper.unsealed_columns(place, state)
    except EnvelopeError as error:
        raise _damage_error(place, error) from error


def _damage_error(place: Place, error: EnvelopeError | CodecError) -> LogError:
    if isinstance(error, NewerShape):
        return NewerLog(f"{error}; install a newer refold to use this log")
    return LogDamaged(place.stream, place.version, str(error))


def read_complete(
    thread_id: str,
    wanted: Sequence[int],
    read: Read,
    head: Callable[[], int],
) -> Sequence[LoggedEvent]:
    """Return the events that ``read`` returns, after checking that all ``wanted`` versions are among them.

    Those that are ``PassedOver`` are left out.
    Versions after ``head()``, the newest version of the stream, may be missing.

    Raises:
        LogDamaged: an event is missing.
    """
    lacking: int | None = None
    while True:
        found = read()
        there = {event.version for event in found}
        missing = next((version for version in wanted if version not in there), None)
        if missing is None or missing > head():
            return [one for one in found if not isinstance(one, PassedOver)]
        if missing == lacking:
            raise LogDamaged(thread_id, missing, "the event is missing")
        # Another process may have appended it between the two reads.
        lacking = missing


_PLAIN_MAGIC = MAGIC.decode()
_MESSAGE_SHAPE = str(SHAPES[MESSAGE_APPENDED])


PlainMessage = tuple[str, str, str, str, MessageFields]
"""Time, salt, digest, previous link and fields of a stored message."""


def open_plain_message(stream: str, version: int, blob: object) -> PlainMessage | None:
    """Check the stored bytes of a message, and return what they contain.

    This is ``EventMapper.open`` in one step, for what most rows are. Return None for all others: damaged,
    erased, encrypted, compressed, or of an earlier shape.
    """
    if not isinstance(blob, bytes):
        return None
    try:
        head, _, payload = blob.partition(b"\n")
        magic, shape, at, salt, digest, previous = head.decode("ascii").split(" ")
        place = f"{salt}\0{stream}\0{version}\0{MESSAGE_APPENDED}\0{shape}\0{at}\0"
        proof = sha256(place.encode() + payload).hexdigest()
        if proof != digest or shape != _MESSAGE_SHAPE or magic != _PLAIN_MAGIC:
            return None
        fields: MessageFields = from_json(payload, cache_strings="keys")
        said = fields["message"]
        kind = type(said["content"])
        if (
            (kind is list or kind is str)
            and type(said["role"]) is str
            and fields["position"] >= 0 <= fields["tokens"]
            and fields["message_id"]
        ):
            return at, salt, digest, previous, fields
        return None
    except (KeyError, TypeError, ValueError):
        return None


class UnreadMessage(LoggedEvent):
    """A stored message whose event is made when it is first used. The lists need only its fields."""

    __slots__ = ("_fields",)
    is_unread = True

    def __init__(
        self, number: int, thread_id: str, version: int, at: str, fields: MessageFields
    ) -> None:
        self.number = number
        self.thread_id = thread_id
        self.version = version
        self.at = at
        self.erased = False
        self._fields = fields

    @property
    def message(self) -> MessageFields:
        """The stored fields."""
        return self._fields

    def __getattr__(self, name: str) -> Any:
        """Make the event, which is missing at first, and keep it."""
        if name != "event":
            raise AttributeError(name)
        try:
            self.event = made = message_appended(dict(self._fields))
        except CodecError as error:
            place = Place(self.thread_id, self.version, MESSAGE_APPENDED)
            raise _damage_error(place, error) from error
        return made


def read_message(number: int, stream: str, version: int, state: object) -> UnreadMessage | None:
    """Return the message in a row, or None if the row must be read in the usual way."""
    found = open_plain_message(stream, version, state)
    return found and UnreadMessage(number, stream, version, found[0], found[-1])


def _record_message(stream: str, version: int, state: object) -> RecordedEvent | None:
    """Return the message in a row, or None if the row must be read in the usual way."""
    found = open_plain_message(stream, version, state)
    if found is None:
        return None
    at, salt, digest, previous, fields = found
    try:
        event = message_appended(dict(fields))
    except CodecError:
        return None
    link = _next_link(previous, digest)
    return RecordedEvent(stream, version, at, event, previous, link, salt)


def _read_row(mapper: EventMapper, number: int, place: Place, state: object) -> LoggedEvent:
    try:
        envelope, event = mapper.open(place, state)
    except (EnvelopeError, CodecError) as error:
        raise _damage_error(place, error) from error
    return LoggedEvent(number, place.stream, place.version, envelope.at, event, envelope.erased)


SCAN_BATCH = 200
"""Number of events that a scan reads at once: as many as fit the processor's cache."""


def scan_events(
    rows_after: Callable[[int], Sequence[Row]],
    mapper: EventMapper,
    after: int,
    seen: dict[str, int],
    forget: Callable[[], None],
) -> Iterator[LoggedEvent]:
    """Yield the events after a log position, and put the newest version of each stream into ``seen``.

    The digest proves that an event belongs to its place. Only ``check`` verifies the chain of links.
    ``forget`` drops cached reads before a read that seems damaged is repeated.

    Raises:
        LogDamaged: an event is missing or changed.
    """
    # A scan from the beginning expects every stream from its first version; a later scan does not
    # know it.
    begins = 0 if after == 0 else None
    looked_at: int | None = None
    is_plain = not mapper.encoder.encoding
    while True:
        try:
            rows = rows_after(after)
            for number, stream, version, name, state in rows:
                before = seen.get(stream, begins)
                if before is not None and version != before + 1:
                    raise LogDamaged(stream, before + 1, "the event is missing")
                logged = (
                    read_message(number, stream, version, state)
                    if is_plain and name == MESSAGE_APPENDED
                    else None
                ) or _read_row(mapper, number, Place(stream, version, name), state)
                seen[stream] = version
                after = number
                yield logged
        except LogDamaged:
            if looked_at == after:
                raise
            looked_at = after
            forget()
        else:
            if len(rows) < SCAN_BATCH:
                return
