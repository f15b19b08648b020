"""The memory of one log, its conversations and their tools, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast, overload

from refold.application.agent_tools.definitions import Tools, definitions_of
from refold.application.agent_tools.tool_scope import EditMode, Tool
from refold.application.agent_tools.toolbox import Toolbox
from refold.application.compaction.background import Background
from refold.application.compaction.on_demand import Demand, compact_on_demand
from refold.application.conversation.owner_scope import Scope
from refold.application.conversation.turn_lock import USUAL_WAIT, AsyncConversationTurn
from refold.application.history.export import ExportFormat
from refold.application.history.moments import At
from refold.application.ports.read_models import ConversationRow
from refold.application.rendering.render import System
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.opening_process import Uncopied
from refold.domain.errors import InvalidSetting

from .blocking import in_thread, run_to_end
from .conversation_memory import ConversationMemory
from .followed_events import Fold, ForeignProjection, Forget
from .followers import Follower
from .forwarding import CallersLoop, Forwarding, calls, forwarding, in_pages, reads, writes
from .memory import Memory, patience
from .results import CompactionResult, Context, StoredMessage


@forwarding
class AsyncToolbox(Forwarding[Toolbox], Uncopied):
    """Tools with which a model searches its memory, and edits it if that was asked for, for asyncio.

    Each call runs in a thread. A cancellation of an edit takes effect after its outcome is known.

    Iterating yields every tool; ``toolbox["recall_memory"]`` returns one by name.
    """

    call = calls(Toolbox.call)
    result_for = calls(Toolbox.result_for)
    results_for = calls(Toolbox.results_for)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Definitions for ``tools=`` of ``messages.create``; ``conversation.context`` also takes the
        toolbox.
        """
        return self._blocking.definitions

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which models call the tools."""
        return self._blocking.names

    def for_anthropic(self) -> list[Any]:
        """Return the tools as objects of the ``anthropic`` SDK, for ``client.beta.messages.tool_runner``."""
        return self._blocking.sdk.awaited(self)

    def __contains__(self, item: object) -> bool:
        """Return whether the toolbox has a tool, given as an object or by name."""
        return item in self._blocking

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._blocking)

    def __len__(self) -> int:
        return len(self._blocking)

    @overload
    def __getitem__(self, index: int | str) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tool, ...]: ...
    def __getitem__(self, index: int | str | slice) -> Tool | tuple[Tool, ...]:
        return self._blocking[index]


@forwarding
class AsyncConversationMemory(Forwarding[ConversationMemory]):
    """A conversation, identified by its thread id, for asyncio. Cheap to create; has no state of its own."""

    def __init__(
        self, core: Core, conversation: ConversationMemory, background: Background
    ) -> None:
        super().__init__(core, conversation)
        self._background = background
        self.thread_id = conversation.thread_id

    def __repr__(self) -> str:
        return f"<AsyncConversationMemory {self.thread_id!r}>"

    append = writes(ConversationMemory.append)
    append_recorded = writes(ConversationMemory.append_recorded)
    revert_compaction = writes(ConversationMemory.revert_compaction)
    pin = writes(ConversationMemory.pin)
    unpin = writes(ConversationMemory.unpin)
    erase = writes(ConversationMemory.erase)
    label = writes(ConversationMemory.label)
    allow = writes(ConversationMemory.allow)
    refuse = writes(ConversationMemory.refuse)
    withdraw_note = writes(ConversationMemory.withdraw_note)
    knows = reads(ConversationMemory.knows)
    select_known = reads(ConversationMemory.select_known)
    pins = reads(ConversationMemory.pins)
    diff = reads(ConversationMemory.diff)
    shared_with = reads(ConversationMemory.shared_with)
    messages = reads(ConversationMemory.messages)
    read = reads(ConversationMemory.read)
    recall = reads(ConversationMemory.recall)
    query = reads(ConversationMemory.query)
    expand = reads(ConversationMemory.expand)
    summary_sources = reads(ConversationMemory.summary_sources)
    ledger = reads(ConversationMemory.ledger)
    read_part = reads(ConversationMemory.read_part)
    explain = reads(ConversationMemory.explain)
    why = reads(ConversationMemory.why)
    fate_history = reads(ConversationMemory.fate_history)
    facts = reads(ConversationMemory.facts)
    compare_rules = reads(ConversationMemory.compare_rules)
    request_parts = reads(ConversationMemory.request_parts)
    cache_report = reads(ConversationMemory.cache_report)
    summaries = reads(ConversationMemory.summaries)
    compactions = reads(ConversationMemory.compactions)
    topics = reads(ConversationMemory.topics)
    row = reads(ConversationMemory.row)
    notes = reads(ConversationMemory.notes)
    size_history = reads(ConversationMemory.size_history)
    message_strip = reads(ConversationMemory.message_strip)
    proposals = reads(ConversationMemory.proposals)

    async def context(
        self,
        *,
        system: System = None,
        tools: Tools = (),
        model: str | None = None,
        at: At | None = None,
        position: int | None = None,
    ) -> Context:
        """Return the request to send next; compact first if a compaction is due.

        Arguments and errors are those of ``ConversationMemory.context``. The event loop stays free while a
        summary is written.
        """
        conversation, extras = self._blocking, Extras(system, definitions_of(tools), model)
        if at is None and position is None:
            without_model = conversation._context_without_model  # pyright: ignore[reportPrivateUsage]
            ready = await run_to_end(without_model, extras)
        else:
            ready = await in_thread(
                conversation._context_without_model,  # pyright: ignore[reportPrivateUsage]
                extras,
                at,
                position,
            )
        if ready is None:
            return await self._background.make_context(self.thread_id, extras)
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
        """Compact now.

        If there is nothing to do, the call succeeds. A failure is reported in the result and changes
        nothing. Content that still does not fit is shortened, as in ``context``.

        Arguments and errors are those of ``ConversationMemory.compact``. The event loop stays free while a
        summary is written.
        """
        await in_thread(self._blocking.check_owner)
        demand = Demand(focus, force, target, keep_last, model, all)
        extras = Extras(system, definitions_of(tools))
        return await compact_on_demand(self._core, self.thread_id, demand, extras)

    async def fork(
        self, *, at: At | None = None, position: int | None = None, thread_id: str | None = None
    ) -> AsyncConversationMemory:
        """Create a conversation as a copy of this one: now, at a version or time, or after a message.

        Arguments and errors are those of ``ConversationMemory.fork``.
        """
        fork = partial(self._blocking.fork, at=at, position=position, thread_id=thread_id)
        return AsyncConversationMemory(self._core, await run_to_end(fork), self._background)

    async def iter_messages(
        self, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[StoredMessage]:
        """Iterate over the same messages, with a few hundred of them in memory at a time.

        Use ``async for``. Arguments and errors are those of ``ConversationMemory.iter_messages``.
        """
        messages = await in_thread(self._blocking.iter_messages, start, stop)
        async for message in in_pages(messages):
            yield message

    async def export(
        self, format: ExportFormat = "jsonl", *, at: At | None = None
    ) -> list[dict[str, Any]]:
        """Return the original messages, or all events, as JSON objects.

        Arguments and errors are those of ``ConversationMemory.export``. All objects are read before this
        returns.
        """
        conversation = self._blocking
        return await in_thread(lambda: list(conversation.export(format, at=at)))

    def tools(
        self,
        *,
        scope: Scope = "conversation",
        all_conversations: bool = False,
        edits: EditMode | None = None,
        author: str = "model",
    ) -> AsyncToolbox:
        """Return the tools with which a model searches this conversation, and edits it if ``edits`` is given.

        Arguments are those of ``ConversationMemory.tools``. Answer calls with ``await .result_for(block)``. This
        method does not read the log: if the conversation has another owner, each call is refused.
        """
        tools = self._blocking.toolbox("all" if all_conversations else scope, edits, author)
        return AsyncToolbox(self._core, tools)

    def turn(self, wait: float = USUAL_WAIT) -> AsyncConversationTurn:
        """Return a lock that gives one caller at a time the turn in this conversation.

        Use ``async with conversation.turn():`` around everything from ``append`` of the user's message to
        ``append`` of the answer. Arguments and errors are those of ``ConversationMemory.turn``. The event
        loop stays free while the turn is awaited.
        """
        return AsyncConversationTurn(self._core.turns, self.thread_id, wait)

    async def owner(self) -> str | None:
        """Owner from the log, else the given owner, or None if there is no owner."""
        conversation = self._blocking
        return await in_thread(lambda: conversation.owner)

    async def version(self) -> int:
        """Number of events in the conversation; 0 before the first."""
        conversation = self._blocking
        return await in_thread(lambda: conversation.version)


@forwarding
class AsyncFollower(Forwarding[Follower]):
    """Tables that follow the log, filled by a fold of one's own, for asyncio.

    An async context manager; ``close`` stops it.
    """

    def __repr__(self) -> str:
        return f"<AsyncFollower {self._opened_blocking.name} in {self.place}>"

    position = reads(Follower.position)
    update = writes(Follower.update)
    rebuild = writes(Follower.rebuild)
    stop = writes(Follower.stop)
    close = writes(Follower.close)

    @property
    def name(self) -> str:
        """Name of the follower."""
        return self._opened_blocking.name

    @property
    def version(self) -> int:
        """Version of the fold."""
        return self._opened_blocking.version

    @property
    def place(self) -> str:
        """Place of the tables, without a password."""
        return self._opened_blocking.place

    @property
    def has_remains(self) -> bool:
        """True if something that was removed from the tables may still be in their files."""
        return self._opened_blocking.has_remains

    def start(self, every: float = 1.0) -> Self:
        """Look for new events in a thread of its own, every so many seconds, until ``stop`` or the memory is closed.

        Arguments and errors are those of ``Follower.start``.
        """
        self._blocking.start(every)
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


@forwarding
class AsyncMemory(Forwarding[Memory]):
    """The conversations of one log, for asyncio.

    An async context manager; ``close`` releases files and threads.
    """

    def __init__(self, core: Core) -> None:
        self._background = Background(core)
        super().__init__(core, Memory(core, CallersLoop(), self._background))

    def __repr__(self) -> str:
        return f"<AsyncMemory {self._opened.process.what}>"

    conversations = reads(Memory.conversations)
    conversations_page = reads(Memory.conversations_page)
    notes = reads(Memory.notes)
    search_notes = reads(Memory.search_notes)
    notes_status = reads(Memory.notes_status)
    write_notes = writes(Memory.write_notes)
    search = reads(Memory.search)
    expand = reads(Memory.expand)
    index = writes(Memory.index)
    embed = reads(Memory.embed)
    embedding = reads(Memory.embedding)
    erase_conversation = writes(Memory.erase_conversation)
    erase_owner = writes(Memory.erase_owner)
    finish_erasures = writes(Memory.finish_erasures)
    verify = writes(Memory.verify)
    anchor = writes(Memory.anchor)
    salvage = writes(Memory.salvage)
    replay = writes(Memory.replay)
    backup = writes(Memory.backup)
    compress = writes(Memory.compress)
    stats = reads(Memory.stats)

    def conversation(self, thread_id: str, *, owner: str | None = None) -> AsyncConversationMemory:
        """Return the conversation with this id; it need not exist yet.

        Arguments and errors are those of ``Memory.conversation``.
        """
        conversation = self._blocking.conversation(thread_id, owner=owner)
        return AsyncConversationMemory(self._core, conversation, self._background)

    def tools(
        self,
        thread_id: str | None = None,
        *,
        owner: str | None = None,
        scope: Scope | None = None,
        edits: EditMode | None = None,
        author: str = "model",
    ) -> AsyncToolbox:
        """Return tools for a model that is not the agent of a conversation, such as an MCP client.

        Arguments and errors are those of ``Memory.tools``; calls of these tools are awaited.
        """
        tools = self._blocking.tools(
            thread_id, owner=owner, scope=scope, edits=edits, author=author
        )
        return AsyncToolbox(self._core, tools)

    def follow(
        self,
        name: str,
        fold: Fold | ForeignProjection,
        *,
        into: str | Path | None = None,
        version: int = 1,
        forget: Forget | None = None,
    ) -> AsyncFollower:
        """Return a follower: tables of your own that a function fills from the events of all conversations.

        Arguments and errors are those of ``Memory.follow``. The functions are called in a thread; they are no
        coroutines.
        """
        follower = self._blocking.follow(name, fold, into=into, version=version, forget=forget)
        return AsyncFollower(self._core, follower)

    async def iter_conversations(self) -> AsyncIterator[ConversationRow]:
        """Iterate over all conversations in the order of their ids, with a few hundred in memory at a time.

        Use ``async for``. A conversation that begins in the meantime may be omitted.
        """
        async for row in in_pages(self._blocking.iter_conversations()):
            yield row

    async def drain(self, wait: float | None = None) -> bool:
        """Wait until no compaction runs in the background. Return False if one still runs.

        ``wait``: maximum number of seconds, or None to wait as long as necessary.
        """
        return await self._background.drain(wait)

    async def close(self, wait: float | None = None) -> None:
        """Release files and threads; closing twice is safe.

        ``wait`` is that of ``Memory.close``. In a process forked from the one that opened the memory,
        nothing happens.
        """
        if not self._opened.process.is_this:
            return
        try:
            await self._background.finish(wait)
        finally:
            await run_to_end(self._blocking.close, wait)

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


def blocking_memory(memory: Memory | AsyncMemory) -> Memory:
    """Return the blocking form of a memory.

    Raises:
        InvalidSetting: it is no memory.
    """
    if isinstance(memory, Memory):
        return memory
    if not isinstance(cast("object", memory), AsyncMemory):
        raise InvalidSetting(
            f"memory={memory!r:.60}: must be what refold.open or refold.aopen returns",
            setting="memory",
            value=memory,
        )
    return Memory(memory._core)  # pyright: ignore[reportPrivateUsage]
