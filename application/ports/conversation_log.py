"""The port of the log: load conversations, decide on the newest state, read events."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, NotRequired, Protocol, TypedDict

from refold.application.conversation.loaded import LoadedConversation
from refold.domain.events import Event, MessageAppended
from refold.domain.messages import Author, Block, Message, Role
from refold.domain.notes import Rewritten
from refold.domain.originals import Original

PAGE = 500
"""Number of events of a page: decoding them costs much more than finding the page."""

Decision = Callable[[LoadedConversation], Sequence[Event]]
"""Function that returns new events for the newest state; it is called again after a conflict."""


class Erasure(NamedTuple):
    """The content to remove from a conversation, and the events to append for it."""

    remains: Mapping[int, Event] | None
    """Remaining event of the same kind for each event that loses content, by version.

    None removes the content of all events: only positions, times, links and the source of a fork remain.
    """
    events: Callable[[Sequence[Rewritten]], Sequence[Event]]
    """Function that returns the events to append, given the rewritten events."""


Loading = Callable[[str], LoadedConversation]
"""Function that returns the newest state of a conversation, by thread id."""

ErasureDecision = Callable[[Loading], Mapping[str, Erasure]]
"""Function that returns the erasures by conversation, based on the newest states.

It is called again after a conflict and must load every conversation that it changes with the given
function.
"""


class Stored(NamedTuple):
    """The stored events of a decision, with the conversation after them."""

    loaded: LoadedConversation
    events: tuple[Event, ...]


class Fork(NamedTuple):
    """A conversation that was created as a copy of another."""

    thread_id: str
    source: str
    version: int
    """Version of the source at the time of the copy."""


class MessageContent(TypedDict):
    """A stored message as JSON."""

    role: Role
    content: str | Sequence[Block]
    author: NotRequired[Author | None]


class MessageFields(TypedDict):
    """The fields of ``MessageAppended`` that lists show, as JSON. One that has its default may be missing."""

    position: int
    message_id: str
    message: MessageContent
    tokens: int
    thinking_tokens: NotRequired[int]
    stop_reason: NotRequired[str | None]
    stale_thinking: NotRequired[bool]
    written_at: NotRequired[str | None]
    owner: NotRequired[str | None]
    conversation_owner: NotRequired[str | None]


@dataclass(slots=True)
class LoggedEvent:
    """An event with its log position and its stream version."""

    number: int
    """Position in the whole log; increases, with gaps."""
    thread_id: str
    version: int
    """Version in the stream of the conversation, from 1, without gaps."""
    at: str
    """Time when it was logged: ISO 8601, UTC."""
    event: Event
    erased: bool = False
    """True if content was erased from it; ``event`` is the remaining part."""
    is_unread: ClassVar[bool] = False
    """True for a message whose event is made when it is first used."""

    @property
    def kind(self) -> type[Event]:
        """The class of the event."""
        return type(self.event)

    @property
    def said(self) -> Message | None:
        """The appended message, or None for another event."""
        event = self._appended
        return None if event is None else event.message

    @property
    def original(self) -> Original | None:
        """The form in which another API gave the message, or None."""
        event = self._appended
        return None if event is None else event.whole_original

    @property
    def message(self) -> MessageFields | None:
        """The fields of an appended message, or None for another event."""
        event = self._appended
        if event is None:
            return None
        said, at = event.message, event.written_at
        return {
            "position": event.position,
            "message_id": event.message_id,
            "message": {"role": said.role, "content": said.content, "author": said.author},
            "tokens": event.tokens,
            "thinking_tokens": event.thinking_tokens,
            "stop_reason": event.stop_reason,
            "stale_thinking": event.stale_thinking,
            "written_at": at.isoformat() if at else None,
            "owner": event.owner,
            "conversation_owner": event.conversation_owner,
        }

    def report_damage(self, report: Callable[[Any], None]) -> None:
        """Let ``report`` be called with ``LogDamaged`` if the event proves damaged when it is first used.

        This one is whole.
        """

    @property
    def _appended(self) -> MessageAppended | None:
        event = self.event if self.kind is MessageAppended else None
        return event if isinstance(event, MessageAppended) else None


class Damage(NamedTuple):
    """A finding about damaged data."""

    place: str
    """``log``, ``snapshots``, ``keys``, ``anchor``, or the name of a table folded from the log."""
    thread_id: str
    version: int
    """Version of the damaged event, or 0 if the damage does not concern one event."""
    kind: str
    """Kind of damage, as a short constant.

    Of an event: ``digest`` (its content was changed), ``chain`` (it or the event before belongs to another
    history), ``foreign`` (it belongs to another history), ``gap`` (it is missing), ``reordered`` (it is in
    another place), ``duplicate`` (it is also in another place), ``erased`` (its content was removed without
    a recorded erasure), ``restored`` (its content is present although an erasure is recorded), ``unsealed``
    (it is not encrypted, but the log is), ``keys`` (the index of keys lacks it), ``missing`` (only the
    index or the anchor knows it), ``unreadable`` (it or its page cannot be read), ``newer`` (a newer refold
    wrote it).
    Of a log: ``behind`` (its anchor has newer events), ``empty`` (a file without content), ``dictionary``
    (a compression dictionary is damaged).
    Of a snapshot: ``snapshot``. Of a read model: ``differs``, ``missing``, ``unexpected``, ``unreadable``,
    ``foreign`` (another program's file has its name).
    """
    detail: str


class ConversationLog(Protocol):
    """The log of all conversations.

    Every method may raise ``LogError``. Events returned by ``transact`` are durable.
    """

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """Return the conversation now, or as it was at version ``at``."""
        ...

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide on the newest state and store the events, in one transaction.

        It decides again if another writer was faster, or if a message has a key that is stored already.
        """
        ...

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """Erase content from several conversations, in one transaction.

        Events are rewritten in place, snapshots are dropped, and events are appended. Older bytes may
        remain in files until ``finish_erasures`` returns True.
        """
        ...

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """Remove remains of earlier erasures from the files of the log. Return whether nothing remains.

        ``drop`` deletes the data folded from the log and returns whether it could; it is not called if
        nothing remains.
        """
        ...

    def newest(self) -> int:
        """Return the log position of the newest event; 0 if none exists."""
        ...

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """Create the conversation ``into`` from the events of ``source`` up to ``version``.

        Times are copied, and the events of the decision are appended, all in one transaction. ``decide``
        gets the source at that version while no other process can write. Erased events stay marked as
        erased if an event of the copy records the erasure.

        Raises:
            ThreadExists: ``into`` has events already.
        """
        ...

    def forks(self) -> Sequence[Fork]:
        """Return all conversations that were created as a copy."""
        ...

    def existing(self, thread_ids: Collection[str]) -> Collection[str]:
        """Return those of these conversations that have events. No event is read."""
        ...

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before ``moment``; 0 if there was none."""
        ...

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Return the versions of idempotency keys that are stored already."""
        ...

    def versions_of(
        self, thread_id: str, kinds: Collection[type[Event]], after: int
    ) -> Sequence[int]:
        """Return the versions after ``after`` whose events are of these kinds, in order. No event is read."""
        ...

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """Return the events of a conversation from version ``first`` to ``last``, both included."""
        ...

    def pages(self, thread_id: str, first: int, last: int) -> Iterator[Sequence[LoggedEvent]]:
        """Yield the same events in pages of at most ``PAGE``. Each is read when it is asked for."""
        ...

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """Return the events with these versions in their order, without those that were never stored."""
        ...

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """Iterate over all events with a log position after ``after``, in the order of the log."""
        ...

    def check(self) -> Iterator[Damage]:
        """Read everything and report all damage."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is safe."""
        ...
