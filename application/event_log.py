"""The port of the log: loading conversations, deciding against the newest state, reading back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from refold.domain.events import Event

from .loaded import LoadedConversation

Decision = Callable[[LoadedConversation], Sequence[Event]]
"""Looks at the newest state and returns what happens; may be asked again after a conflict."""


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


class Damage(NamedTuple):
    """Something that is wrong with stored data."""

    place: str
    """Where: ``log`` or the name of a read model's table."""
    thread_id: str
    version: int
    """The version of the event, or 0 where it is not about one event."""
    kind: str
    """A short constant: ``digest``, ``chain``, ``gap``, ``unreadable``, ``missing``, ``differs`` …"""
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

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """The versions under which idempotency keys are stored already."""
        ...

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """The events of a conversation from version ``first`` to ``last``, both included."""
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
