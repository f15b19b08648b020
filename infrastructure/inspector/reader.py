"""The part of a memory that one reader may see."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from refold.application.api.argument_checks import require_owner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context, StoredMessage
from refold.application.history.explain import MessageFate
from refold.application.maintenance.verifying import Verification
from refold.application.ports.read_models import (
    ConversationOrder,
    ConversationRow,
    ConversationsPage,
)
from refold.application.ports.recall_index import Visible
from refold.application.recall.hits import Recalled
from refold.application.recall.search import query_with_defaults, search
from refold.domain.errors import InvalidSetting, RefoldError

from .access import Access
from .policy_trials import PolicyTrials

PAGE = 200
"""Messages of a page."""
NEIGHBOURS = 8
"""Messages before and after a page in which partners of calls and results are found."""

MOST_DIGITS = 12
"""Digits of a number in an address, at most: no log has a million million messages."""


class NotShown(RefoldError):
    """There is no such conversation, or the reader may not see it."""


class TimelinePage(NamedTuple):
    """A page of messages with their fates."""

    start: int
    stop: int
    length: int
    """Number of messages of the conversation."""
    messages: Sequence[StoredMessage]
    fates: dict[int, MessageFate]
    around: Sequence[StoredMessage]


class Reader:
    """Reads a memory for one reader."""

    def __init__(self, memory: Memory, access: Access, trials: PolicyTrials | None = None) -> None:
        self.memory = memory
        self.trials = trials
        """Trials of policies, or None if the server makes none."""
        self._access = access

    @property
    def sees_all(self) -> bool:
        """True if the reader may see every conversation."""
        return self._access.owner is None

    def conversations(self) -> Sequence[ConversationRow]:
        """Return the conversations that the reader may see, latest activity first."""
        return self.memory.conversations(owner=self._access.owner)

    def conversations_page(
        self,
        start: int,
        count: int,
        owner: str | None = None,
        order: ConversationOrder = "activity",
    ) -> ConversationsPage:
        """Return a part of the list of conversations that the reader may see."""
        whose = owner if self.sees_all else self._access.owner
        return self.memory.conversations_page(start, count, owner=whose, order=order)

    def conversation(self, thread_id: str) -> tuple[ConversationMemory, ConversationRow]:
        """Return a conversation and its row.

        Raises:
            NotShown: there is no such conversation for this reader.
        """
        if not thread_id.strip():
            raise NotShown("the address names no conversation")
        conversation = self.memory.conversation(thread_id)
        row = conversation.row()
        hidden = self._access.owner is not None and row and row.owner != self._access.owner
        if row is None or row.erased or hidden:
            raise NotShown(f"there is no conversation {thread_id!r} here")
        return conversation, row

    def search(self, query: str, limit: int = 20, *, owner: str | None = None) -> Recalled:
        """Search all conversations that the reader may see, or those of one owner."""
        owner = owner if self.sees_all else self._access.owner
        if owner is None:
            return self.memory.search(query, scope="all", limit=limit)
        core = self.memory._core  # pyright: ignore[reportPrivateUsage]
        threads = core.views.owned_conversations(require_owner(owner))
        # Only what stands in these conversations counts: what the owner said as a guest would take the places.
        visible = Visible("", frozenset(threads))
        return search(core, query_with_defaults(core, query, {"limit": limit}), visible)

    def verify(self) -> Verification:
        """Check the whole log and its read models.

        Raises:
            NotShown: the reader may not see all of the log.
        """
        if self._access.owner is not None:
            raise NotShown("only a reader of the whole log may verify it")
        return self.memory.verify()


def number_in(query: Mapping[str, str], name: str) -> int | None:
    """Return a number of a query, or None if it is not given.

    Raises:
        InvalidSetting: it is not a whole number from 0 to a million million.
    """
    given = query.get(name)
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= MOST_DIGITS):
        raise InvalidSetting(
            f"{name}={given[:40]!r} is not a whole number such as 17",
            setting=name,
            value=given[:40],
        )
    return int(given)


def timeline_page(
    conversation: ConversationMemory, length: int, start: int, count: int, at: int | None
) -> TimelinePage:
    """Return the messages from ``start`` on, at most ``count``."""
    start = max(0, min(start, max(0, length - 1)))
    stop = min(length, start + count)
    first = max(0, start - NEIGHBOURS)
    found = conversation.messages(first, min(length, stop + NEIGHBOURS))
    fates = conversation.explain(start, stop, at=at)
    return TimelinePage(
        start,
        stop,
        length,
        [one for one in found if start <= one.position < stop],
        {fate.position: fate for fate in fates},
        [one for one in found if not start <= one.position < stop],
    )


def request_at(conversation: ConversationMemory, at: int | None) -> Context:
    """Return the request at a version, by default the newest, without compacting anything."""
    return conversation.context(at=conversation.version if at is None else at)
