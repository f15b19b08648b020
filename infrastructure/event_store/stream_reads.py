"""Read the events of streams, checked one by one, and scan those of the whole log."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from pydantic_core import from_json

from refold.application.errors import LogDamaged, LogError, NewerLog
from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.domain.events import Event, EventLost, MessageAppended
from refold.domain.messages import Message
from refold.domain.originals import Original
from refold.infrastructure.sqlite.sqlite_failures import look_twice

from . import codec
from .codec import MESSAGE_APPENDED, NAMES, SHAPES, check_known, message_appended, stored_message
from .envelope import (
    GENESIS,
    MAGIC,
    Envelope,
    EnvelopeError,
    EventMapper,
    Place,
    RecordedEvent,
    link_in,
)
from .plain_shapes import CodecError, NewerShape
from .recorder import MAX_VERSION, Head, Plain, Row

BATCH = 1_000
"""Number of events in memory at once."""
READ_AGAIN = "notes_flushed"
"""Name of the events that each compaction reads again, to repeat none of their notes."""
_MOST_READ = 8
"""Number of conversations whose events of this name are kept as they were last read."""
_Opened = dict[int, tuple[bytes, LoggedEvent, str, str]]
"""Events of a conversation that are read again, by their versions: bytes, event, and links before and after it."""
Answer = TypeVar("Answer")


class StreamRows(Protocol):
    """The part of a recorder that reads streams."""

    def rows_at(self, stream: str, versions: Sequence[int]) -> Sequence[Plain]:
        """Return version, name and bytes of the existing events with these versions, in their order."""
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
        """Forget all decoded events, because some were erased. A read that is under way keeps none."""
        self._opened = OrderedDict()

    def read(self, thread_id: str, first: int, last: int) -> list[LoggedEvent]:
        """Return the existing events from version ``first`` to ``last``, each checked against the one before it."""
        wanted = range(first, last + 1)

        def read() -> list[LoggedEvent]:
            return list(self._logged(thread_id, self._rows_of(thread_id, first, last), wanted))

        return self._look(read)

    def _rows_of(self, thread_id: str, first: int, last: int) -> Iterator[Plain]:
        """Yield the rows from the version before ``first`` to ``last``, a batch at a time."""
        after, wanted = max(0, first - 2), first
        while rows := self.recorder.rows_of(thread_id, after, BATCH, last):
            for row in rows:
                if not after < row[0] <= wanted:
                    raise LogDamaged(thread_id, wanted, "the event is missing")
                yield row
                after, wanted = row[0], max(first, row[0] + 1)
            if len(rows) < BATCH:
                return

    def batches(
        self, thread_id: str, first: int, last: int | None, size: int = BATCH
    ) -> Iterator[list[RecordedEvent]]:
        """Yield the events from version ``first`` to ``last`` in batches, each checked against the one before."""
        last = MAX_VERSION if last is None else last
        after, link, wanted = max(0, first - 2), None, first
        while recorded := self._look(partial(self._open_rows, thread_id, after, size, last)):
            for event in recorded:
                after = event.originator_version
                if after > wanted:
                    raise LogDamaged(thread_id, wanted, "the event is missing")
                follows(event, GENESIS if after == 1 else link)
                link, wanted = event.link, max(first, after + 1)
            if found := [event for event in recorded if event.originator_version >= first]:
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

    def read_at(self, thread_id: str, versions: Collection[int]) -> list[LoggedEvent]:
        """Return the existing events with these versions, each checked against the one before it."""
        wanted = frozenset(versions)
        before = {version - 1 for version in wanted if version > 1}
        needed, opened, kept = sorted(before | wanted), _Opened(), self._opened

        def read() -> list[LoggedEvent]:
            rows = self.recorder.rows_at(thread_id, needed)
            return list(self._logged(thread_id, rows, wanted, opened))

        found = self._look(read)
        if opened:
            _keep(kept, thread_id, opened)
        return found

    def _logged(
        self,
        thread_id: str,
        rows: Iterable[Plain],
        wanted: Container[int],
        opened: _Opened | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the events of those rows that are wanted. The others say what these must follow."""
        links = {0: GENESIS}
        is_plain = not self.mapper.encoder.encoding
        for version, name, state in rows:
            before_it = links.get(version - 1)
            is_message = is_plain and name == MESSAGE_APPENDED
            if version not in wanted:
                links[version] = link_in(state)
            elif is_message and (plain := open_plain_message(thread_id, version, state)):
                at, _, digest, previous, fields = plain
                _expect_link(thread_id, version, previous, before_it)
                if version + 1 in wanted:
                    links[version] = _next_link(previous, digest)
                yield UnreadMessage(0, thread_id, version, at, fields)
            else:
                place = Place(thread_id, version, name)
                logged, previous, links[version] = self._open(place, state, opened)
                _expect_link(thread_id, version, previous, before_it)
                yield logged

    def _open(
        self, place: Place, state: bytes, opened: _Opened | None
    ) -> tuple[LoggedEvent, str, str]:
        """Return the event of a row, and its links. One that is read again is kept in ``opened``, and decoded once."""
        is_kept = opened is not None and place.name == READ_AGAIN
        known = self._opened.get(place.stream, {}).get(place.version) if is_kept else None
        if known is None or known[0] != state:
            envelope = unseal_row(self.mapper, place, state)
            known = state, _unread(0, place, envelope), envelope.previous, envelope.link()
        if opened is not None and is_kept:
            opened[place.version] = known
        return known[1:]

    def _look(self, look: Callable[[], Answer]) -> Answer:
        return look_twice(look, self.forget)


def _keep(kept: OrderedDict[str, _Opened], thread_id: str, opened: _Opened) -> None:
    """Keep the events of one read, and none of earlier reads: a conversation goes on for ever."""
    known = kept.pop(thread_id, {})
    is_part = opened.keys() <= known.keys()  # A search reads only some of them.
    kept[thread_id] = {**known, **opened} if is_part else opened
    while len(kept) > _MOST_READ:
        kept.popitem(last=False)


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
    if link == "":
        raise LogDamaged(stream, version - 1, "the frame of the stored event is damaged")
    if link is not None and previous != link:
        raise LogDamaged(stream, version, "it does not follow the event before")


def _next_link(previous: str, digest: str) -> str:
    """Return the link of an event, as ``Envelope.link`` does."""
    return sha256((previous + digest).encode("ascii")).hexdigest()


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


class _Unread(LoggedEvent, ABC):
    """A stored event that is made when it is first used."""

    __slots__ = ("_report",)

    @abstractmethod
    def _make(self) -> Event: ...

    def report_damage(self, report: Callable[[Any], None]) -> None:
        """Let ``report`` be called with ``LogDamaged`` if the event proves damaged when it is first used."""
        self._report = report

    def __reduce__(self) -> tuple[type[LoggedEvent], tuple[object, ...]]:
        """Copy the event as a plain value."""
        at = self.number, self.thread_id, self.version, self.at
        return LoggedEvent, (*at, self.event, self.erased)

    def __getattr__(self, name: str) -> Any:
        """Make the event, which is missing at first, and keep it."""
        if name != "event":
            raise AttributeError(name)
        try:
            self.event = made = self._make()
        except CodecError as error:
            damage = LogDamaged(self.thread_id, self.version, str(error))
            if (report := getattr(self, "_report", None)) is not None:
                report(damage)
            raise damage from error
        return made


class UnreadMessage(_Unread):
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
    def kind(self) -> type[Event]:
        """The class of the event."""
        return MessageAppended

    @property
    def message(self) -> MessageFields:
        """The stored fields."""
        return self._fields

    @property
    def said(self) -> Message | None:
        """The message, without its event."""
        try:
            return stored_message(self._fields["message"])
        except (KeyError, TypeError, ValueError):
            return super().said  # It says what is damaged.

    @property
    def original(self) -> Original | None:
        """The form in which another API gave the message, or None."""
        return super().original if "original" in self._fields else None

    def _make(self) -> Event:
        return message_appended(dict(self._fields))


class UnreadEvent(_Unread):
    """A stored event that is decoded when it is first used. Many readers need only some kinds."""

    __slots__ = ("_stored",)

    def __init__(self, number: int, place: Place, envelope: Envelope) -> None:
        self.number, (self.thread_id, self.version, name) = number, place
        self.at, self.erased = envelope.at, envelope.erased
        self._stored = name, envelope.shape, envelope.payload

    @property
    def kind(self) -> type[Event]:
        """The class of the event."""
        return NAMES[self._stored[0]]

    def _make(self) -> Event:
        return codec.decode(*self._stored)


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


def _unread(number: int, place: Place, envelope: Envelope) -> LoggedEvent:
    """Return the event of a row that was checked. It is decoded when it is first used."""
    if envelope.erased and not envelope.payload:
        return LoggedEvent(number, place[0], place[1], envelope.at, EventLost(), erased=True)
    try:
        check_known(place.name, envelope.shape)
    except CodecError as error:
        raise _damage_error(place, error) from error
    return UnreadEvent(number, place, envelope)


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
                logged: LoggedEvent
                is_message = is_plain and name == MESSAGE_APPENDED
                if is_message and (plain := open_plain_message(stream, version, state)):
                    logged = UnreadMessage(number, stream, version, plain[0], plain[-1])
                else:
                    place = Place(stream, version, name)
                    logged = _unread(number, place, unseal_row(mapper, place, state))
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
