"""The port of the log: loading conversations, deciding against the newest state, reading back."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from refold.application.conversation.loaded import LoadedConversation
from refold.domain.events import Event
from refold.domain.value import Rewritten

Decision = Callable[[LoadedConversation], Sequence[Event]]
"""Looks at the newest state and returns what happens; may be asked again after a conflict."""


class Erasure(NamedTuple):
    """What is to be removed from a conversation, and what happens with that."""

    remains: Mapping[int, Event] | None
    """By version: what is left of each event that loses content; an event of the same kind. None:
    nothing of any but places, times and links, and what it was forked from."""
    events: Callable[[Sequence[Rewritten]], Sequence[Event]]
    """What is appended, given what was left of each of these events."""


Loading = Callable[[str], LoadedConversation]
"""Gives the newest state of a conversation, by its id."""

ErasureDecision = Callable[[Loading], Mapping[str, Erasure]]
"""Looks at the newest states and returns what is removed, by conversation. May be asked again after a
conflict; what it asks for must be loaded with what it is given."""


class Stored(NamedTuple):
    """What was stored of a decision, and the conversation after it."""

    loaded: LoadedConversation
    events: tuple[Event, ...]


class Fork(NamedTuple):
    """A conversation that began as a copy of another."""

    thread_id: str
    source: str
    version: int
    """Of the source, of which it is a copy."""


class LoggedEvent(NamedTuple):
    """An event with its places: in the whole log, and in its conversation's stream."""

    number: int
    """The position in the whole log; grows, with gaps."""
    thread_id: str
    version: int
    """The position in the conversation's stream, from 1, without gaps."""
    at: str
    """When it was logged: ISO 8601, UTC."""
    event: Event
    erased: bool = False
    """Whether content of it was erased: ``event`` is what is left."""


class Damage(NamedTuple):
    """Something that is wrong with stored data."""

    place: str
    """Where: ``log``, ``snapshots``, ``keys``, ``anchor``, or the name of a table that is folded from the log."""
    thread_id: str
    version: int
    """The version of the event, or 0 where it is not about one event."""
    kind: str
    """A short constant.

    Of an event: ``digest`` (its content was changed), ``chain`` (it or the one before is of another
    history), ``foreign`` (it is), ``gap`` (it is missing), ``reordered`` (it lies elsewhere),
    ``duplicate`` (it lies elsewhere as well), ``erased`` (its content was taken out, and no erasure says
    so), ``restored`` (an erasure says so, and its content is back), ``unsealed`` (it is not encrypted,
    and the log is), ``keys`` (the index of keys lacks it), ``missing`` (only the index or the anchor
    knows it), ``unreadable`` (it or its page), ``newer`` (than this refold).
    Of a log: ``behind`` (its anchor knows more), ``empty`` (a file without content), ``dictionary`` (one
    that events are compressed with is damaged).
    Of a snapshot: ``snapshot``. Of a read model: ``differs``, ``missing``, ``unexpected``, ``unreadable``,
    ``foreign`` (a file of somebody else lies in its place).
    """
    detail: str


class ConversationLog(Protocol):
    """The log of all conversations.

    Every method may raise ``LogError``. An event that was returned by ``transact`` is durable.
    """

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """The conversation now, or as it was at version ``at``."""
        ...

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide on the newest state and store the events, all in one transaction or none."""
        ...

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """Rewrite events in place, drop snapshots and append what happened, in all of these
        conversations in one transaction or in none.

        Older bytes may be left in files until ``finish_erasures`` says that nothing is.
        """
        ...

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """Remove what earlier erasures may have left in the log's files; whether nothing is left.

        ``drop`` removes what was folded from the log, whether it could; not called where all is done.
        """
        ...

    def newest(self) -> int:
        """The number of the newest event of the whole log; 0 if there is none."""
        ...

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """Copy the events of ``source`` up to ``version``, with their times, into the new conversation
        ``into`` and append what is decided to it, all in one transaction.

        ``decide`` is given the source as it was then, while nobody can write. What is left of an erased
        event stays marked as that where an event of the copy records it.

        Raises:
            ThreadExists: ``into`` has events already.
        """
        ...

    def forks(self) -> Sequence[Fork]:
        """Every conversation that began as a copy."""
        ...

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """The newest version that was logged at or before ``moment``; 0 if there was none."""
        ...

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """The versions under which idempotency keys are stored already."""
        ...

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """The events of a conversation from version ``first`` to ``last``, both included."""
        ...

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """The events of a conversation with these versions, in their order, without those that were
        never stored.
        """
        ...

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """All events of all conversations with a number over ``after``, in the order of the log."""
        ...

    def check(self) -> Iterator[Damage]:
        """Read everything and report what is damaged; never stops at the first."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        ...
