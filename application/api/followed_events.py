"""Events of the log as the function of a follower gets them, and the functions themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from refold.application.history.export import stored_name
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import ConversationErased, MessageErased
from refold.domain.lazy_pattern import lazy_property
from refold.domain.notes import MemoriesChosen


@dataclass(frozen=True, eq=False)
class FollowedEvent:
    """An event of the log, as a fold gets it."""

    log_position: int
    """Position in the whole log; increases, with gaps."""
    thread_id: str
    version: int
    """Version in the stream of the conversation, from 1."""
    at: str
    """Time when it was logged: ISO 8601, UTC."""
    logged: LoggedEvent
    """Event with its class, for programs that know the classes of events."""

    @property
    def originator_id(self) -> str:
        """Id of the conversation, under the name that ``eventsourcing`` uses."""
        return self.thread_id

    @property
    def originator_version(self) -> int:
        """Version in the stream, under the name that ``eventsourcing`` uses."""
        return self.version

    @property
    def erased(self) -> bool:
        """True if content was erased from the event; the other fields are what is left."""
        return self.logged.erased

    @lazy_property
    def name(self) -> str:
        """Stored name, such as ``message_appended``. docs/compatibility.md lists all names."""
        return "message_appended" if self.logged.is_unread else stored_name(self.logged.event)

    @lazy_property
    def fields(self) -> Mapping[str, Any]:
        """All fields as JSON in their newest shape. docs/schemas describes them."""
        return self.logged.event.model_dump(mode="json")

    @lazy_property
    def blocks(self) -> Sequence[Mapping[str, Any]]:
        """Content blocks of an appended message; a plain text is one block. Empty for other events."""
        message = self.logged.message
        if message is None:
            return ()
        content = message["message"]["content"]
        return ({"type": "text", "text": content},) if isinstance(content, str) else content


class Fold(Protocol):
    """A function that folds one event into tables.

    ``tables`` is a ``sqlite_utils.Database`` for a file, a ``psycopg.Connection`` for a server. The function may be
    called again for events that were folded before, after the tables were emptied, and so must depend on nothing else.
    """

    def __call__(self, tables: Any, event: FollowedEvent, /) -> object:
        """Fold the event into the tables."""
        ...


class ForeignProjection(Protocol):
    """A projection of ``eventsourcing``, which has a view that records tracking."""

    @property
    def view(self) -> Any:
        """The view."""
        ...

    @property
    def process_event(self) -> Any:
        """Method that gets an event and its tracking, and stores both."""
        ...


Forget = Callable[[Any, str], object]
"""Function that removes all rows of a conversation from the tables."""


def mark_of(logged: LoggedEvent) -> str:
    """Return a mark that differs for events at the same log position in different histories."""
    return f"{logged.thread_id} {logged.version} {logged.at}"


def erases(logged: LoggedEvent) -> bool:
    """Return whether an event records that content of earlier events was erased."""
    if logged.is_unread:
        return False
    event = logged.event
    if isinstance(event, MemoriesChosen):
        return bool(event.rewritten)
    return isinstance(event, MessageErased | ConversationErased)
