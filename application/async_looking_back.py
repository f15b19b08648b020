"""Looking back at a conversation, for asyncio: the same questions, each answered in a thread."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from .argument_checks import checked
from .chat import Chat
from .context import Context
from .core import Core
from .erasure.erasing import Where
from .explaining import MessageFate
from .exporting import ExportFormat
from .owners.scope import Scope
from .read_models import CompactionRow, NoteRow, SummaryRow, TopicSeen
from .recall.expanding import ExpandedSummary
from .recall.history import HistoryPage
from .recall.inquiry import RecallOptions
from .recall.paging import USUAL_CHARACTERS, TextPart
from .recall.results import Recalled
from .request_parts import RequestPart
from .results import StoredMessage
from .time_travel.diffing import ContextDiff
from .time_travel.moments import At
from .tools.toolbox import AsyncToolbox


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
