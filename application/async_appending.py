"""Appending to a conversation, for asyncio: what begins a compaction in the background where one is due."""

import asyncio
from collections.abc import Sequence

from refold.application.recordings.transcripts import RecordedMessage
from refold.domain.messages import Author

from .appending import Keys, append, append_recorded
from .argument_checks import checked
from .async_looking_back import AsyncLookingBack
from .background import Background
from .blocking import to_the_end
from .chat import Chat
from .core import Core
from .results import Appended


@checked
class AsyncAppending(AsyncLookingBack):
    """The part of ``AsyncChat`` that appends."""

    def __init__(self, core: Core, chat: Chat, background: Background) -> None:
        super().__init__(core, chat)
        self._background = background

    @property
    def _core(self) -> Core:
        return self._opened.here()

    async def append(
        self,
        message: object,
        *,
        key: Keys = None,
        recorded: bool = False,
        author: Author | None = None,
        expected_version: int | None = None,
        owner: str | None = None,
    ) -> Appended:
        """See ``Chat.append``."""
        stored = await to_the_end(
            append,
            self._core,
            self.thread_id,
            message,
            key=key,
            recorded=recorded,
            author=author,
            expected_version=expected_version,
            owners=self._chat.owners_of(owner),
        )
        await self._begin_if_due(stored)
        return stored

    async def append_recorded(self, messages: Sequence[RecordedMessage]) -> Appended:
        """See ``Chat.append_recorded``."""
        owner = self._chat.owners_of(None).conversation
        stored = await to_the_end(append_recorded, self._core, self.thread_id, messages, owner)
        await self._begin_if_due(stored)
        return stored

    async def knows(self, message: RecordedMessage) -> bool:
        """See ``Chat.knows``."""
        return await asyncio.to_thread(self._chat.knows, message)

    async def _begin_if_due(self, stored: Appended | None = None) -> None:
        background = self._background
        if background.enabled and await asyncio.to_thread(
            background.falls_due, self.thread_id, stored
        ):
            background.begin(self.thread_id)
