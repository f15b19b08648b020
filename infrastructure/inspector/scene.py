"""A conversation as one request asks to see it, and the part of the memory that its reader may see."""

from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import Request

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.ports.read_models import ConversationRow

from .links import Links, ServerLinks
from .reader import Reader, number_in


class Scene(NamedTuple):
    """A conversation as one request asks to see it."""

    reader: Reader
    links: Links
    conversation: ConversationMemory
    row: ConversationRow
    at: int | None
    """Version to show, or None for the newest."""
    query: Mapping[str, str]

    def number(self, name: str) -> int | None:
        """Return a number of the query, or None if it is not given.

        Raises:
            InvalidSetting: it is not a number.
        """
        return number_in(self.query, name)

    def has(self, version: int) -> bool:
        """Return whether something of this version had happened at the version that is shown."""
        return self.at is None or version <= self.at

    @property
    def length(self) -> int:
        """Number of messages at the version."""
        if self.at is None:
            return self.row.messages
        last = self.conversation.explain(-1, at=self.at)
        return last[0].position + 1 if last else 0


def scene_of(reader: Reader, links: ServerLinks, request: Request) -> Scene:
    """Return the conversation that a request asks for.

    The address has the version to show, or the position of the message after which it is.

    Raises:
        NotShown: there is no such conversation for this reader.
        UnknownMessage: there is no such message.
    """
    query = request.query_params
    conversation, row = reader.conversation(query.get("id", ""))
    at, message = number_in(query, "at"), number_in(query, "message")
    if at is None and message is not None:
        at = conversation.read(message).version
    return Scene(reader, links, conversation, row, at, query)
