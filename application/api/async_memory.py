"""What a memory lists of all conversations, for asyncio."""

import asyncio
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from refold.application.agent_tools.definitions import Tools, definitions_of
from refold.application.agent_tools.toolbox import AsyncToolbox
from refold.application.compaction.background import Background
from refold.application.compaction.next_request import context_at
from refold.application.compaction.on_demand import Demand, compact_on_demand
from refold.application.compaction.pinning import PinnedItem
from refold.application.conversation.owner_scope import Scope
from refold.application.conversation.owners import require_owner
from refold.application.conversation.parsing import read_thread_id
from refold.application.conversation.turn_lock import USUAL_WAIT, AsyncConversationTurn
from refold.application.erasure.erasing import Where, erase, erase_all, erase_owner
from refold.application.erasure.erasure_report import ErasureReport
from refold.application.history.expand import ExpandedSummary
from refold.application.history.fork import fork
from refold.application.history.moments import At, one_moment
from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    Salvaged,
    Sizes,
)
from refold.application.maintenance.verifying import Replayed, Verification
from refold.application.notes.markdown_search import NotesFound, NotesStatus
from refold.application.ports.read_models import ConversationRow, NoteRow
from refold.application.recall.embedding import EmbeddingProgress
from refold.application.recall.hits import Recalled, RecallMode
from refold.application.recall.recall_query import RecallOptions
from refold.application.rendering.render import System
from refold.application.runtime.core import Core, Extras

from .argument_checks import checked
from .async_conversation import AsyncAppending
from .blocking import Runner, to_the_end
from .context import Context
from .conversation_memory import Chat
from .memory import Memory, patience
from .results import CompactionResult


@checked
class AsyncMemoryLists:
    """``MemoryLists`` for asyncio."""

    def __init__(self, core: Core, memory: Memory) -> None:
        self._opened = core
        self._opened_memory = memory

    @property
    def _memory(self) -> Memory:
        # Before a thread is asked for: the loop of a forked process's parent does not run there.
        self._opened.process.check()
        return self._opened_memory

    async def conversations(self, *, owner: str | None = None) -> Sequence[ConversationRow]:
        """See ``Memory.conversations``."""
        return await asyncio.to_thread(self._memory.conversations, owner=owner)

    async def notes(self, *, owner: str | None = None) -> Sequence[NoteRow]:
        """See ``Memory.notes``."""
        return await asyncio.to_thread(self._memory.notes, owner=owner)

    async def search_notes(
        self,
        query: str,
        *,
        owner: str | None = None,
        limit: int = 5,
        min_score: float = 0.0,
        mode: RecallMode | None = None,
    ) -> NotesFound:
        """See ``Memory.search_notes``."""
        search = partial(self._memory.search_notes, query, owner=owner, limit=limit)
        return await asyncio.to_thread(search, min_score=min_score, mode=mode)

    async def notes_status(self, *, owner: str | None = None) -> NotesStatus:
        """See ``Memory.notes_status``."""
        return await asyncio.to_thread(self._memory.notes_status, owner=owner)

    async def write_notes(self) -> bool:
        """See ``Memory.write_notes``."""
        return await to_the_end(self._memory.write_notes)


@checked
class AsyncChat(AsyncAppending):
    """``Chat`` for asyncio: the same use cases; what touches the disk runs in a thread."""

    def __repr__(self) -> str:
        return f"<AsyncChat {self.thread_id!r}>"

    async def context(
        self,
        *,
        system: System = None,
        tools: Tools = (),
        model: str | None = None,
        at: At | None = None,
        position: int | None = None,
    ) -> Context:
        """See ``Chat.context``."""
        await self._check_owner()
        core, extras = self._core, Extras(system, definitions_of(tools), model)
        if at is not None or position is not None:
            moment = await asyncio.to_thread(one_moment, core, self.thread_id, at, position)
            assert moment is not None
            return await asyncio.to_thread(context_at, core, self.thread_id, extras, moment)
        background = self._background
        ready = await to_the_end(background.ready_context, self.thread_id, extras)
        if ready is None:
            return await background.settled_context(self.thread_id, extras)
        await self._begin_if_due()
        return ready

    async def compact(
        self,
        *,
        focus: str | None = None,
        force: bool = False,
        target: int | None = None,
        keep_last: int | None = None,
        model: str | None = None,
        all: bool = False,
        system: System = None,
        tools: Tools = (),
    ) -> CompactionResult:
        """See ``Chat.compact``."""
        await self._check_owner()
        demand = Demand(focus, force, target, keep_last, model, all)
        extras = Extras(system, definitions_of(tools))
        return await compact_on_demand(self._core, self.thread_id, demand, extras)

    async def revert_compaction(
        self, reason: str = "", *, system: System = None, tools: Tools = ()
    ) -> CompactionResult:
        """See ``Chat.revert_compaction``."""
        return await to_the_end(self._chat.revert_compaction, reason, system=system, tools=tools)

    def turn(self, wait: float = USUAL_WAIT) -> AsyncConversationTurn:
        """See ``Chat.turn``; here it is ``async with chat.turn():``."""
        return AsyncConversationTurn(self._core.turns, self.thread_id, wait)

    async def pin(self, what: int | str) -> str:
        """See ``Chat.pin``."""
        return await to_the_end(self._chat.pin, what)

    async def unpin(self, pin_id: str) -> bool:
        """See ``Chat.unpin``."""
        return await to_the_end(self._chat.unpin, pin_id)

    async def pins(self) -> tuple[PinnedItem, ...]:
        """See ``Chat.pins``."""
        return await asyncio.to_thread(self._chat.pins)

    async def fork(
        self, *, at: At | None = None, position: int | None = None, thread_id: str | None = None
    ) -> "AsyncChat":
        """See ``Chat.fork``."""
        await self._check_owner()
        moment = await asyncio.to_thread(one_moment, self._core, self.thread_id, at, position)
        forked = await to_the_end(fork, self._core, self.thread_id, moment, thread_id)
        return AsyncChat(self._core, Chat(self._core, forked, Runner()), self._background)

    async def erase(self, where: Where, reason: str = "") -> ErasureReport:
        """See ``Chat.erase``."""
        await self._check_owner()
        return await to_the_end(erase, self._core, self.thread_id, where, reason)

    async def label(self, label: str, *, recorded: bool = False) -> None:
        """See ``Chat.label``."""
        await to_the_end(self._chat.label, label, recorded=recorded)

    async def _check_owner(self) -> None:
        if self._chat.names_owner:
            await asyncio.to_thread(self._chat.check_owner)


@checked
class AsyncMemory(AsyncMemoryLists):
    """``Memory`` for asyncio."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, Memory(core))
        self._background = Background(core)

    @property
    def _core(self) -> Core:
        return self._opened.here()

    def __repr__(self) -> str:
        return f"<AsyncMemory {self._opened.process.what}>"

    def conversation(self, thread_id: str, *, owner: str | None = None) -> AsyncChat:
        """See ``Memory.conversation``."""
        chat = self._memory.conversation(thread_id, owner=owner)
        return AsyncChat(self._core, chat, self._background)

    async def search(
        self, query: str = "", *, owner: str | None = None, **how: Unpack[RecallOptions]
    ) -> Recalled:
        """See ``Memory.search``."""
        return await asyncio.to_thread(partial(self._memory.search, query, owner=owner, **how))

    async def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """See ``Memory.expand``."""
        return await asyncio.to_thread(self._memory.expand, summary_id, start, max_tokens, limit)

    async def index(self) -> int:
        """See ``Memory.index``."""
        return await to_the_end(self._memory.index)

    async def embed(self, wait: float | None = None) -> EmbeddingProgress | None:
        """See ``Memory.embed``."""
        return await asyncio.to_thread(self._memory.embed, wait)

    async def embedding(self) -> EmbeddingProgress | None:
        """See ``Memory.embedding``."""
        return await asyncio.to_thread(self._memory.embedding)

    def tools(
        self,
        thread_id: str | None = None,
        *,
        owner: str | None = None,
        scope: Scope | None = None,
    ) -> AsyncToolbox:
        """See ``Memory.tools``; calls of these are awaited."""
        return AsyncToolbox(self._memory.tools(thread_id, owner=owner, scope=scope))

    async def erase_conversation(self, thread_id: str, reason: str = "") -> ErasureReport:
        """See ``Memory.erase_conversation``."""
        return await to_the_end(erase_all, self._core, read_thread_id(thread_id), reason)

    async def erase_owner(self, owner: str, reason: str = "") -> ErasureReport:
        """See ``Memory.erase_owner``."""
        return await to_the_end(erase_owner, self._core, require_owner(owner), reason)

    async def verify(
        self, *, repair: bool = False, anchor: str | Path | None = None
    ) -> Verification:
        """See ``Memory.verify``."""
        return await to_the_end(self._memory.verify, repair=repair, anchor=anchor)

    async def anchor(self, out: str | Path | None = None, *, accept: bool = False) -> AnchorState:
        """See ``Memory.anchor``."""
        return await to_the_end(self._memory.anchor, out, accept=accept)

    async def salvage(self, to: str | Path) -> Salvaged:
        """See ``Memory.salvage``."""
        return await to_the_end(self._memory.salvage, to)

    async def replay(self) -> Replayed:
        """See ``Memory.replay``."""
        return await to_the_end(self._memory.replay)

    async def backup(self, to: str | Path, *, replace: bool = False) -> BackedUp:
        """See ``Memory.backup``."""
        return await to_the_end(self._memory.backup, to, replace=replace)

    async def compress(self, *, keep: int = 0) -> Compressed:
        """See ``Memory.compress``."""
        return await to_the_end(self._memory.compress, keep=keep)

    async def stats(self) -> Sizes:
        """See ``Memory.stats``."""
        return await asyncio.to_thread(self._memory.stats)

    async def drain(self, wait: float | None = None) -> bool:
        """See ``Memory.drain``."""
        return await self._background.drained(wait)

    async def close(self, wait: float | None = None) -> None:
        """See ``Memory.close``."""
        if not self._opened.process.is_this:
            return
        try:
            await self._background.finish(wait)
        finally:
            await to_the_end(self._memory.close)

    def __await__(self) -> Generator[Any, Any, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        self._opened.process.check()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(patience(kind))
