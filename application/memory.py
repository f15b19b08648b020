"""The service that agents embed: all conversations of one log, synchronous or for asyncio."""

import asyncio
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any, Self

from .appending import Keys
from .blocking import Runner
from .chat import Chat, Tools, manual_attempt
from .context import Context
from .contexts import context_at, ready_context, settled_context
from .core import Core, Extras
from .intake import read_thread_id
from .read_models import CompactionRow, ConversationRow, SummaryRow
from .rendering.render import System
from .results import Appended, CompactionResult, StoredMessage
from .verifying import Replayed, Verification, replay, verify


class Memory:
    """The conversations of one log. A context manager; ``close`` releases files and threads."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._runner = Runner()

    def conversation(self, thread_id: str) -> Chat:
        """The conversation with this id, new or not.

        Raises:
            InvalidThreadId: the id is missing or blank.
        """
        return Chat(self._core, read_thread_id(thread_id), self._runner)

    def conversations(self) -> Sequence[ConversationRow]:
        """All conversations, the latest activity first."""
        return self._core.views.conversations()

    def verify(self) -> Verification:
        """Check the log and compare every read model with a fresh fold; changes nothing."""
        return verify(self._core)

    def replay(self) -> Replayed:
        """Rebuild every read model from the log; calls no model."""
        return replay(self._core)

    def close(self) -> None:
        """Release files and threads; closing twice is fine."""
        self._runner.close()
        self._core.views.close()
        self._core.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncChat:
    """``Chat`` for asyncio: the same use cases; what touches the disk runs in a thread."""

    def __init__(self, core: Core, chat: Chat) -> None:
        self._core = core
        self._chat = chat
        self.thread_id = chat.thread_id

    async def append(
        self, message: object, *, key: Keys = None, recorded: bool = False
    ) -> Appended:
        """See ``Chat.append``."""
        return await asyncio.to_thread(self._chat.append, message, key=key, recorded=recorded)

    async def context(
        self,
        *,
        system: System = None,
        tools: Tools = (),
        model: str | None = None,
        at: int | None = None,
    ) -> Context:
        """See ``Chat.context``."""
        extras = Extras(system, tools, model)
        if at is not None:
            return await asyncio.to_thread(context_at, self._core, self.thread_id, extras, at)
        ready = await asyncio.to_thread(ready_context, self._core, self.thread_id, extras)
        if ready is not None:
            return ready
        return await settled_context(self._core, self.thread_id, extras)

    async def compact(
        self, *, focus: str | None = None, system: System = None, tools: Tools = ()
    ) -> CompactionResult:
        """See ``Chat.compact``."""
        return await manual_attempt(self._core, self.thread_id, focus, Extras(system, tools)).run()

    async def label(self, label: str) -> None:
        """See ``Chat.label``."""
        await asyncio.to_thread(self._chat.label, label)

    async def messages(self, start: int = 0, stop: int | None = None) -> list[StoredMessage]:
        """See ``Chat.messages``."""
        return await asyncio.to_thread(self._chat.messages, start, stop)

    async def summaries(self) -> Sequence[SummaryRow]:
        """See ``Chat.summaries``."""
        return await asyncio.to_thread(self._chat.summaries)

    async def compactions(self) -> Sequence[CompactionRow]:
        """See ``Chat.compactions``."""
        return await asyncio.to_thread(self._chat.compactions)


class AsyncMemory:
    """``Memory`` for asyncio."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._memory = Memory(core)

    def conversation(self, thread_id: str) -> AsyncChat:
        """See ``Memory.conversation``."""
        return AsyncChat(self._core, self._memory.conversation(thread_id))

    async def conversations(self) -> Sequence[ConversationRow]:
        """See ``Memory.conversations``."""
        return await asyncio.to_thread(self._memory.conversations)

    async def verify(self) -> Verification:
        """See ``Memory.verify``."""
        return await asyncio.to_thread(self._memory.verify)

    async def replay(self) -> Replayed:
        """See ``Memory.replay``."""
        return await asyncio.to_thread(self._memory.replay)

    async def close(self) -> None:
        """See ``Memory.close``."""
        await asyncio.to_thread(self._memory.close)

    def __await__(self) -> Generator[Any, Any, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()
