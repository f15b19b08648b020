"""A memory as adapters use it: it follows an application's list, and gives the compacted request."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from refold.application.conversation.followed_lists import FollowedLists
from refold.application.conversation.stream_places import stored_messages
from refold.application.errors import LogBusy
from refold.application.ports.read_models import ConversationRow
from refold.application.recall.hits import Recalled
from refold.application.runtime.plain_lines import conversation as named
from refold.application.runtime.plain_lines import raised, strip_quotations
from refold.domain.errors import InvalidSetting, RefoldError

from .async_memory import AsyncConversationMemory, AsyncMemory, blocking_memory
from .blocking import in_thread, run_to_end
from .conversation_memory import ConversationMemory
from .memory import Memory
from .results import Context, StoredMessage

H = TypeVar("H")
_TRIES = 8
"""How often a list is followed again because another agent has gone on in its conversation."""


class FollowingMemory:
    """The lists of an application and the requests made from them, for callers with and without asyncio."""

    def __init__(self, memory: Memory | AsyncMemory, owner: str | None = None) -> None:
        self._blocking = blocking_memory(memory)
        self._memory = memory
        self._owner = owner
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        self._followed = FollowedLists(core, owner)
        """It starts a thread only where a blocking caller has a summary written."""

    def check_process(self) -> None:
        """Raise before a lock is taken if this process was forked: a thread that it does not have may hold the lock.

        Raises:
            OpenedBeforeFork: the memory was opened before the fork.
        """
        self._blocking._opened.process.check()  # pyright: ignore[reportPrivateUsage]

    @property
    def _lists(self) -> FollowedLists:
        self.check_process()
        return self._followed

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

    def length(self, name: str) -> int:
        """Return the number of messages of a conversation, erased ones as well."""
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        return core.log.load(name).state.length

    def place(self, name: str) -> tuple[int, int]:
        """Return the version that an append goes on from, and the number of messages; 0 and 0 if it begins."""
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        state = core.log.load(name).state
        return (0, 0) if state.erased else (state.version, state.length)

    def rows(self, prefix: str) -> list[ConversationRow]:
        """Return the conversations whose ids begin with a text, oldest first."""
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        rows = core.views.iter_conversations(prefix)
        return sorted(rows, key=lambda row: (row.created_at, row.thread_id))

    def logged_at(self, row: ConversationRow) -> str:
        """Return the time when the newest event of a listed conversation was logged: ISO 8601, UTC."""
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        found = core.log.read_at(row.thread_id, (row.version,))
        return found[0].at if found else row.last_activity

    def began_at(self, name: str) -> str:
        """Return the time when the first event of a conversation was logged; empty if it does not exist.

        One that was erased and has begun again has another.
        """
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        found = core.log.read_at(name, (1,))
        return found[0].at if found else ""

    def erase_conversation(self, name: str, reason: str) -> None:
        """Erase a conversation for good, if it exists."""
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        if core.log.load(name).state.version:
            self._blocking.erase_conversation(name, reason)

    def context(self, name: str, **given: Any) -> Context:
        """Return the request to send next."""
        return self.conversation(name).context(**given)

    def conversation(self, name: str, owner: str | None = None) -> ConversationMemory:
        """Return a conversation, for a blocking caller. ``owner`` is its owner, if it is not that of all."""
        return self._blocking.conversation(name, owner=owner or self._owner)

    def search(self, query: str, *, owner: str, limit: int) -> Recalled:
        """Return the best passages of an owner, for a blocking caller."""
        return self._blocking.search(query, owner=owner, limit=limit)

    def context_of(self, follow: Callable[[], str], length: int, **given: Any) -> Context:
        """Return the request to send next for a list of this length. ``follow`` stores it and returns its conversation.

        Where another agent has gone on in that conversation in between, the list is followed again, to a fork.
        """
        for _ in range(_TRIES):
            context = self.context(follow(), **given)
            if self._has_only(context, length):
                return context
        raise _moved()

    async def acontext_of(self, follow: Callable[[], str], length: int, **given: Any) -> Context:
        """Return the request to send next, as ``context_of`` does."""
        for _ in range(_TRIES):
            context = await self.acontext(await run_to_end(follow), **given)
            if await in_thread(self._has_only, context, length):
                return context
        raise _moved()

    def _has_only(self, context: Context, length: int) -> bool:
        """Return whether a request was made of so many messages."""
        if self.length(context.thread_id) == length:
            return True
        core = self._blocking._core  # pyright: ignore[reportPrivateUsage]
        return core.log.load(context.thread_id, at=context.version).state.length == length

    async def acontext(self, name: str, **given: Any) -> Context:
        """Return the request to send next."""
        if isinstance(self._memory, AsyncMemory):
            return await self._memory.conversation(name, owner=self._owner).context(**given)
        return await in_thread(self.context, name, **given)


def _moved() -> LogBusy:
    return LogBusy(
        "other agents of this thread go on in the same conversation at the same time; "
        "give each a thread of its own"
    )


def blocking_conversation(
    conversation: ConversationMemory | AsyncConversationMemory,
) -> ConversationMemory:
    """Return the blocking form of a conversation.

    Raises:
        InvalidSetting: it is no conversation.
    """
    if isinstance(conversation, AsyncConversationMemory):
        return conversation._blocking  # pyright: ignore[reportPrivateUsage]
    if not isinstance(cast("object", conversation), ConversationMemory):
        raise InvalidSetting(
            f"conversation={conversation!r:.60}: must be what memory.conversation(…) returns",
            setting="conversation",
            value=conversation,
        )
    return conversation


def newest_history(
    conversation: ConversationMemory | AsyncConversationMemory,
    read: Callable[[Sequence[StoredMessage]], list[H]],
    give: Callable[[list[H]], Sequence[Mapping[str, Any]]],
) -> list[H]:
    """Return the history that a new process goes on with.

    ``read`` makes a history of stored messages, and ``give`` returns it in the form in which it is stored now.
    Earlier versions stored some messages, such as files, in other forms, so that a list with them goes on in a fork.
    Then it is the history of the newest fork that begins with all of it.

    Raises:
        InvalidSetting: it is no conversation.
    """
    blocking = blocking_conversation(conversation)
    every = blocking.messages()
    history = read(every)
    given = give(history)
    said = [(message["role"], _blocks(message["content"])) for message in given]
    if said == [(one.message.role, list(one.message.blocks())) for one in every]:
        return history
    forks = map(read, _messages_of_forks(blocking))
    return next((fork for fork in forks if give(fork)[: len(given)] == given), history)


def _messages_of_forks(conversation: ConversationMemory) -> Iterator[list[StoredMessage]]:
    """Yield the messages of each fork in which a list of a conversation went on, that of the newest activity first."""
    core, thread_id = conversation._core, conversation.thread_id  # pyright: ignore[reportPrivateUsage]
    forks = FollowedLists(core).forks(thread_id)
    for fork in sorted(forks, key=lambda row: (row.last_activity, row.thread_id), reverse=True):
        yield stored_messages(core, fork.thread_id)


class MemoryUnusedWarning(UserWarning):
    """An agent continues without its memory because the memory cannot be used.

    The warning is given if the program shows no log lines.
    """


class Failures:
    """The conversations whose memory cannot be used. The first failure of each is reported, and its end."""

    def __init__(self, logger: logging.Logger, instead: str) -> None:
        """``instead``: what happens, such as "the agent goes on without it"."""
        self._logger = logger
        self._instead = instead
        self._threads = set[str]()

    def report(self, thread_id: str, error: Exception) -> None:
        """Report a failure, unless the one before was not over."""
        if thread_id in self._threads:
            return
        self._threads.add(thread_id)
        why = strip_quotations(error) if isinstance(error, RefoldError) else raised(error)
        text = f"{named(thread_id)}: the memory cannot be used, so {self._instead}: {why}"
        self._logger.warning("%s", text)
        if not _is_heard(self._logger):
            warnings.warn(text, MemoryUnusedWarning, stacklevel=3)

    def is_over(self, thread_id: str) -> None:
        """Note that the memory of a conversation can be used."""
        if thread_id in self._threads:
            self._threads.discard(thread_id)
            text = f"{named(thread_id)}: the memory works again; nothing is missing"
            self._logger.info("%s", text)


def _is_heard(logger: logging.Logger) -> bool:
    """Return whether the program shows the lines of a logger."""
    asked: logging.Logger | None = logger
    while asked is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in asked.handlers):
            return True
        asked = asked.parent if asked.propagate else None
    return False


def says_the_same(
    messages: Sequence[Mapping[str, Any]], given: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether a request says what these messages say: nothing was shortened, added or left out."""
    return _turns(messages) == _turns(given)


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return the blocks of each turn, results first, as a request has them."""
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        blocks = _blocks(message["content"])
        if not turns or turns[-1][0] != message["role"]:
            turns.append((message["role"], []))
        turns[-1][1].extend(blocks)
    for _, blocks in turns:
        blocks.sort(key=lambda block: block.get("type") != "tool_result")
    return turns


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
