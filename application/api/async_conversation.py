"""Looking back at a conversation, for asyncio: the same questions, each answered in a thread."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from refold.application.agent_tools.toolbox import AsyncToolbox
from refold.application.compaction.background import Background
from refold.application.conversation.appending import Keys, append, append_recorded
from refold.application.conversation.owner_scope import Scope
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.erasure.erasing import Where
from refold.application.history.diff import ContextDiff
from refold.application.history.expand import ExpandedSummary
from refold.application.history.explain import MessageFate
from refold.application.history.export import USUAL_CHARACTERS, ExportFormat, TextPart
from refold.application.history.moments import At
from refold.application.history.query import HistoryPage
from refold.application.ports.read_models import CompactionRow, NoteRow, SummaryRow, TopicSeen
from refold.application.recall.hits import Recalled
from refold.application.recall.recall_query import RecallOptions
from refold.application.rendering.request_parts import RequestPart
from refold.application.runtime.core import Core
from refold.domain.messages import Author

from .argument_checks import checked
from .blocking import to_the_end
from .context import Context
from .conversation_memory import Chat
from .results import Appended, StoredMessage


@checked
class AsyncLookingBack:
    """``LookingBack`` for asyncio."""

    def __init__(self, core: Core, chat: Chat) -> None:
        self._opened = core
        self._opened_chat = chat
        self.thread_id = chat.thread_id

    @property
    def _chat(self) -> Chat:
        # Before a thread is asked for: the loop of a forked process's parent does not run there.
        self._opened.process.check()
        return self._opened_chat

    async def diff(self, before: At, after: At, *, model: str | None = None) -> ContextDiff:
        """See ``Chat.diff``."""
        return await asyncio.to_thread(self._chat.diff, before, after, model=model)

    async def export(
        self, format: ExportFormat = "jsonl", *, at: At | None = None
    ) -> list[dict[str, Any]]:
        """See ``Chat.export``."""
        return await asyncio.to_thread(_all_of, self._chat, format, at)

    async def shared_with(self, where: Where | None = None) -> tuple[str, ...]:
        """See ``Chat.shared_with``."""
        return await asyncio.to_thread(self._chat.shared_with, where)

    async def messages(self, start: int = 0, stop: int | None = None) -> list[StoredMessage]:
        """See ``Chat.messages``."""
        return await asyncio.to_thread(self._chat.messages, start, stop)

    async def read(self, where: str | int) -> StoredMessage:
        """See ``Chat.read``."""
        return await asyncio.to_thread(self._chat.read, where)

    async def recall(self, query: str = "", **how: Unpack[RecallOptions]) -> Recalled:
        """See ``Chat.recall``."""
        return await asyncio.to_thread(partial(self._chat.recall, query, **how))

    async def query(
        self,
        *,
        ids: Sequence[str | int] = (),
        start: int | None = None,
        stop: int | None = None,
        text: str | None = None,
        limit: int = 20,
        max_tokens: int | None = None,
    ) -> HistoryPage:
        """See ``Chat.query``."""
        return await asyncio.to_thread(
            self._chat.query,
            ids=ids,
            start=start,
            stop=stop,
            text=text,
            limit=limit,
            max_tokens=max_tokens,
        )

    async def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """See ``Chat.expand``."""
        return await asyncio.to_thread(self._chat.expand, summary_id, start, max_tokens, limit)

    async def read_part(
        self, where: str | int, start: int = 0, max_characters: int = USUAL_CHARACTERS
    ) -> TextPart:
        """See ``Chat.read_part``."""
        return await asyncio.to_thread(self._chat.read_part, where, start, max_characters)

    def tools(
        self, *, scope: Scope = "conversation", all_conversations: bool = False
    ) -> AsyncToolbox:
        """See ``Chat.tools``; calls of these are awaited, and refused where the conversation is another's."""
        return AsyncToolbox(self._chat.toolbox("all" if all_conversations else scope))

    async def explain(
        self, start: int = 0, stop: int | None = None, *, at: At | None = None
    ) -> tuple[MessageFate, ...]:
        """See ``Chat.explain``."""
        return await asyncio.to_thread(self._chat.explain, start, stop, at=at)

    async def request_parts(self, context: Context) -> tuple[RequestPart, ...]:
        """See ``Chat.request_parts``."""
        return await asyncio.to_thread(self._chat.request_parts, context)

    async def summaries(self) -> Sequence[SummaryRow]:
        """See ``Chat.summaries``."""
        return await asyncio.to_thread(self._chat.summaries)

    async def topics(self) -> Sequence[TopicSeen]:
        """See ``Chat.topics``."""
        return await asyncio.to_thread(self._chat.topics)

    async def notes(self) -> Sequence[NoteRow]:
        """See ``Chat.notes``."""
        return await asyncio.to_thread(self._chat.notes)

    async def version(self) -> int:
        """See ``Chat.version``; here it is awaited, for it reads the log."""
        return await asyncio.to_thread(lambda: self._chat.version)

    async def compactions(self) -> Sequence[CompactionRow]:
        """See ``Chat.compactions``."""
        return await asyncio.to_thread(self._chat.compactions)

    async def owner(self) -> str | None:
        """See ``Chat.owner``."""
        return await asyncio.to_thread(lambda: self._chat.owner)


def _all_of(chat: Chat, format: ExportFormat, at: At | None) -> list[dict[str, Any]]:
    return list(chat.export(format, at=at))


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
