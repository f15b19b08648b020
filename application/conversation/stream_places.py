"""Finding and reading messages and decisions of a conversation without reading everything between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, get_args

from refold.application.api.results import CompactionMark, StoredMessage
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.row_changes import listed_time
from refold.application.runtime.core import Core
from refold.domain.conversation import Conversation
from refold.domain.errors import UnknownMessage
from refold.domain.events import Event, EventLost, MessageAppended
from refold.domain.value import build_in_order, build_unvalidated

from .addresses import position_in

if TYPE_CHECKING:
    from refold.application.ports.read_models import SummaryRow

ReadEvents = Callable[[int, int], Sequence[LoggedEvent]]
"""Function that reads the events of one stream between two versions, both included."""

AT_ONCE = 2_000
"""Maximum number of events to read at once."""
NEAR = 64
"""Number of events below which all are read one by one: a search would read as many."""
_BESIDE = 4
"""Maximum number of decisions among messages that are read at once."""
_DENSE = 32
"""Number of events per decision at which a search would read as many events as there are."""
_SPARSE = 1_000
"""Number of events per decision from which on a search is faster than a look at the kinds of all events."""
_DECISIONS = 32
"""Maximum number of decisions that are read at once."""
DECISION_KINDS = tuple(kind for kind in get_args(Event) if kind is not MessageAppended)


class Decisions(NamedTuple):
    """Functions that find decisions by their kinds, without reading the messages between them."""

    versions_after: Callable[[Collection[type[Event]], int], Sequence[int]]
    read_at: Callable[[Sequence[int]], Sequence[LoggedEvent]]


class _Mark(NamedTuple):
    """A version with the number of events up to it that are not messages."""

    version: int
    others: int


class StreamPlaces:
    """The versions of messages and decisions in the stream of one conversation.

    Positions increase by one with each message, versions by one with each event. So two messages give the
    number of decisions between them, and if it is 0 nothing is read.
    """

    def __init__(
        self, read: ReadEvents, newest: int, length: int, decisions: Decisions | None = None
    ) -> None:
        """``newest``: last version to search. ``length``: number of messages up to that version."""
        self._events = read
        self._decisions = decisions
        self._newest = newest
        self._others = newest - length

    def version_of(self, position: int) -> int | None:
        """Return the version of the message at this position, or None if the message was lost."""
        low, high = position + 1, min(self._newest, position + 1 + self._others)
        while low <= high:
            middle = (low + high) // 2
            near = self._message_from(middle, high)
            if near is None:
                high = middle - 1
                continue
            version, found = near
            if found == position:
                return version
            if found > position:
                high = middle - 1
            else:
                low = version + position - found
        return None

    def messages(self, start: int, stop: int) -> Iterator[LoggedEvent]:
        """Yield the messages from position ``start`` up to, but not including, ``stop``.

        Decisions between them may be included.
        """
        found = map(self.version_of, range(start, min(stop, self._newest - self._others)))
        version = next((one for one in found if one is not None), self._newest + 1)
        size = stop - start + _BESIDE
        while version <= self._newest:
            for logged in self.between(version, min(version + size - 1, self._newest)):
                position = _position(logged.event)
                if position is not None and position >= stop:
                    return
                yield logged
            version += size
            size = min(2 * size, AT_ONCE)

    def between(self, first: int, last: int) -> Iterator[LoggedEvent]:
        """Yield all events with these versions, both included."""
        for version in range(first, last + 1, AT_ONCE):
            yield from self._events(version, min(version + AT_ONCE - 1, last))

    def decisions_after(
        self, version: int, kinds: Collection[type[Event]] = DECISION_KINDS
    ) -> Iterator[LoggedEvent]:
        """Yield the events after this version that are not messages, oldest first.

        With ``kinds``, events of other kinds may be left out.
        """
        begin = self._message_before(version)
        # The end counts as the version of the next message.
        end = _Mark(self._newest + 1, self._others)
        found = self._by_kind(begin, end)
        if found is None or self._decisions is None:
            yield from self._others_in(begin, end, version)
            return
        if kinds is not DECISION_KINDS:
            # All decisions were counted, so that none of these can be hidden by a changed kind.
            found = self._decisions.versions_after(kinds, begin.version)
        wanted = [one for one in found if version < one < end.version]
        for first in range(0, len(wanted), _DECISIONS):
            yield from self._decisions.read_at(wanted[first : first + _DECISIONS])

    def _by_kind(self, low: _Mark, high: _Mark) -> Sequence[int] | None:
        """Return the versions of the decisions between two messages, or None if a search is better.

        Their number is known. If it is another one, kinds were changed or messages were lost.
        """
        wanted, distance = high.others - low.others, high.version - low.version
        if self._decisions is None or distance <= NEAR or wanted * _SPARSE < distance:
            return None
        versions = self._decisions.versions_after(DECISION_KINDS, low.version)
        found = [version for version in versions if version < high.version]
        return found if len(found) == wanted else None

    def _others_in(self, low: _Mark, high: _Mark, after: int) -> Iterator[LoggedEvent]:
        """Yield the decisions between two messages whose version is greater than ``after``."""
        wanted, distance = high.others - low.others, high.version - low.version
        if wanted <= 0 or high.version - 1 <= after:
            return
        if distance <= NEAR or wanted * _DENSE >= distance:
            for logged in self.between(max(low.version, after) + 1, high.version - 1):
                if not isinstance(logged.event, MessageAppended):
                    yield logged
            return
        middle = (low.version + high.version) // 2
        below, between, above = self._around(middle, low, high)
        yield from self._others_in(low, below, after)
        yield from (logged for logged in between if logged.version > after)
        yield from self._others_in(above, high, after)

    def _around(
        self, version: int, low: _Mark, high: _Mark
    ) -> tuple[_Mark, list[LoggedEvent], _Mark]:
        """Return the nearest message up to a version, the next one after it, and the events between them."""
        between: list[LoggedEvent] = []
        below, above = low, high
        for at in range(version, low.version, -1):
            logged = self._read(at)
            if (position := _position(logged.event)) is not None:
                below = _Mark(at, at - position - 1)
                break
            between.insert(0, logged)
        for at in range(version + 1, high.version):
            logged = self._read(at)
            if (position := _position(logged.event)) is not None:
                above = _Mark(at, at - position - 1)
                break
            between.append(logged)
        return below, between, above

    def _message_before(self, version: int) -> _Mark:
        for at in range(min(version, self._newest), 0, -1):
            position = _position(self._read(at).event)
            if position is not None:
                return _Mark(at, at - position - 1)
        return _Mark(0, 0)

    def _message_from(self, version: int, last: int) -> tuple[int, int] | None:
        """Return version and position of the first message from ``version`` to ``last``, or None."""
        for at in range(version, last + 1):
            position = _position(self._read(at).event)
            if position is not None:
                return at, position
        return None

    def _read(self, version: int) -> LoggedEvent:
        (logged,) = self._events(version, version)
        return logged


def _position(event: Event) -> int | None:
    match event:
        case MessageAppended(position=position) | EventLost(position=int(position)):
            return position
        case _:
            return None


def places_in(core: Core, thread_id: str, newest: int, length: int) -> StreamPlaces:
    """Return the places of a conversation up to a version at which it has so many messages."""
    log = core.log
    decisions = Decisions(partial(log.versions_of, thread_id), partial(log.read_at, thread_id))
    return StreamPlaces(partial(log.read, thread_id), newest, length, decisions)


def stored_messages(
    core: Core, thread_id: str, start: int = 0, stop: int | None = None
) -> list[StoredMessage]:
    """Return the stored messages from position ``start`` up to, but not including, ``stop``.

    Negative numbers count from the end, as in a slice.
    """
    return list(iter_messages(core, thread_id, start, stop))


def iter_messages(
    core: Core, thread_id: str, start: int = 0, stop: int | None = None
) -> Iterator[StoredMessage]:
    """Iterate over the messages that ``stored_messages`` returns. They are read in pages.

    The range and the active summary are those at the call.
    """
    state = core.log.load(thread_id).state
    first, last, _ = slice(start, stop).indices(state.length)
    if first >= last or not (begin := core.views.messages(thread_id, first, first + 1)):
        return iter(())
    end = core.views.messages(thread_id, last - 1, last)
    newest = end[0].version if end else state.version  # It may have been erased in the meantime.
    pages = core.log.pages(thread_id, begin[0].version, newest)
    active = state.summary
    summary = None if active is None else core.views.summary(thread_id, active.summary_id)
    mark = None if summary is None else _mark(summary)
    return _stored_messages(chain.from_iterable(pages), summary, mark)


def _stored_messages(
    events: Iterable[LoggedEvent], summary: SummaryRow | None, mark: CompactionMark | None
) -> Iterator[StoredMessage]:
    for logged in events:
        said, fields = logged.said, logged.message
        if said is None or fields is None:
            continue
        position = fields["position"]
        # The log has checked the event, so nothing is left to validate.
        yield build_unvalidated(
            StoredMessage,
            position=position,
            message_id=fields["message_id"],
            version=logged.version,
            message=said,
            at=listed_time(logged, fields),
            tokens=fields["tokens"],
            mark=mark if mark and position == mark.first_kept_index else None,
            summary_id=summary.summary_id if summary and summary.covers(position) else None,
            erased=logged.erased,
            original=logged.original,
        )


def _mark(row: SummaryRow) -> CompactionMark:
    return build_in_order(
        CompactionMark,
        summary_id=row.summary_id,
        compact_up_to_index=row.compact_up_to_index,
        first_kept_index=row.first_kept_index,
        compacted_at=row.compacted_at,
        message_count=row.message_count,
        compacted_time=datetime.fromisoformat(row.compacted_at).timestamp(),
        is_split_turn=row.is_split_turn,
    )


def read_back(core: Core, thread_id: str, where: str | int) -> StoredMessage:
    """Return the message at a position, or at an address of this conversation, word for word.

    Raises:
        InvalidAddress, ForeignAddress: the text is not an address, or belongs to another conversation.
        UnknownMessage: there is no message at this position, or damage destroyed it.
        ConversationGone: the conversation was erased.
    """
    position = position_in(thread_id, where)
    length = core.log.load(thread_id).present().state.length
    if not 0 <= position < length:
        raise UnknownMessage(position, length)
    found = stored_messages(core, thread_id, position, position + 1)
    if not found:
        raise missing_message(core, thread_id, position)
    return found[0]


def missing_message(core: Core, thread_id: str, position: int) -> UnknownMessage:
    """Return the error for an existing position whose message the read models do not have."""
    state = core.log.load(thread_id).state
    unlisted = unlisted_version(core, thread_id, state, position) is not None
    return UnknownMessage(position, state.length, lost=not unlisted, unlisted=unlisted)


def unlisted_version(core: Core, thread_id: str, state: Conversation, position: int) -> int | None:
    """Return the version of a message that only the read models do not have, or None.

    The read models of a server wait for the place of the message in the order of the log.
    """
    if core.views.messages(thread_id, position, position + 1):
        return None
    version = places_in(core, thread_id, state.version, state.length).version_of(position)
    for logged in core.log.read_at(thread_id, [] if version is None else [version]):
        if isinstance(logged.event, MessageAppended):
            return logged.version
    return None
