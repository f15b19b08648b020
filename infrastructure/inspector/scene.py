"""A conversation as one request asks to see it, and the part of the memory that its reader may see."""

from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import Request

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.ports.read_models import ConversationRow

from .links import ServerLinks
from .reader import Reader


class Scene(NamedTuple):
    """A conversation as one request asks to see it."""

    reader: Reader
    links: ServerLinks
    conversation: ConversationMemory
    row: ConversationRow
    at: int | None
    """Version to show, or None for the newest."""
    query: Mapping[str, str]

    def number(self, name: str) -> int | None:
        """Return a number of the query, or None if it is not given.

        Raises:
            ValueError: it is not a number.
        """
        given = self.query.get(name)
        return int(given) if given else None

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

    Raises:
        NotShown: there is no such conversation for this reader.
    """
    query = request.query_params
    conversation, row = reader.conversation(query.get("id", ""))
    at = query.get("at")
    return Scene(reader, links, conversation, row, int(at) if at else None, query)
