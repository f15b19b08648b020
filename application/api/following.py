"""A memory as adapters use it: it follows an application's list, and gives the compacted request."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from refold.application.conversation.followed_lists import FollowedLists

from .async_memory import AsyncMemory, blocking_memory
from .conversation_memory import ConversationMemory
from .memory import Memory
from .results import Context


class FollowingMemory:
    """The lists of an application and the requests made from them, for callers with and without asyncio."""

    def __init__(self, memory: Memory | AsyncMemory, owner: str | None = None) -> None:
        self._blocking = blocking_memory(memory)
        self._memory = memory
        self._owner = owner
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        self._lists = FollowedLists(core, owner)
        """It starts a thread only where a blocking caller has a summary written."""

    def follow(self, thread_id: str, messages: Sequence[object], **missing: Any) -> str:
        """Store the messages that are new, as ``FollowedLists.follow`` does."""
        return self._lists.follow(thread_id, messages, **missing)

    def add_reply(
        self, thread_id: str, reply: Mapping[str, Any], to: Sequence[object], **missing: Any
    ) -> None:
        """Store a reply, as ``FollowedLists.add_reply`` does."""
        self._lists.add_reply(thread_id, reply, to, **missing)

    def followed(self, thread_id: str, length: int) -> str | None:
        """Return the conversation that has the last list, as ``FollowedLists.followed`` does."""
        return self._lists.followed(thread_id, length)

    def current(self, thread_id: str) -> ConversationMemory:
        """Return the conversation in which the last list went on, for a blocking caller."""
        return self.conversation(self._lists.current(thread_id))

    def context(self, name: str, **given: Any) -> Context:
        """Return the request to send next."""
        return self.conversation(name).context(**given)

    def conversation(self, name: str) -> ConversationMemory:
        """Return a conversation, for a blocking caller."""
        return self._blocking.conversation(name, owner=self._owner)

    async def acontext(self, name: str, **given: Any) -> Context:
        """Return the request to send next."""
        if isinstance(self._memory, AsyncMemory):
            return await self._memory.conversation(name, owner=self._owner).context(**given)
        return await asyncio.to_thread(self.context, name, **given)
