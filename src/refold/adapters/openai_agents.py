"""A memory for agents of the OpenAI Agents SDK: their session, and a filter that compacts the input of the model."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

try:
    from agents.memory.session_settings import (
        SessionSettings,
        coerce_session_settings,
        resolve_session_limit,
    )
    from agents.run_config import CallModelData, ModelInputData
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.openai_agents needs openai-agents 0.24 or newer: pip install 'refold[openai-agents]'"
    ) from error

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.following import Failures, FollowingMemory, says_the_same
from refold.application.api.memory import Memory
from refold.application.api.results import Context, StoredMessage
from refold.application.conversation.parsing import plain_json, read_messages, read_thread_id
from refold.application.errors import OpenedBeforeFork, ThreadExists
from refold.application.rendering.request_forms import responses_request
from refold.application.runtime.opening_process import waiting_at_most
from refold.application.runtime.plain_lines import conversation as named
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.errors import InvalidMessage
from refold.domain.originals import RESPONSES

from .openai_items import (
    RUN,
    Item,
    NotContinued,
    Run,
    end_of_known,
    files_of,
    fingerprint,
    messages_of,
    with_files,
    without_halves,
)

__all__ = ["RefoldSession"]
logger = plain_logger("refold.adapters.openai_agents")
Answer = TypeVar("Answer")
_COMPARED = 64
"""Number of items at the end of a session that the input of a model is compared with."""
_LAST = "~99999"
"""Longest end of a copy's id."""
_PAGE = 200
"""Number of messages that are read at a time, from the end."""


class RefoldSession:
    """The session of a run, whose items are kept in a conversation.

    Items come back exactly. What is popped or cleared is left in the log: the session goes on in a copy. If the
    memory cannot be used, items are kept in this object until it works again, with one warning.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | AsyncMemory,
        *,
        owner: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        lock_wait: float = 2.0,
    ) -> None:
        """Create the session of the conversation ``session_id``.

        ``owner``: owner of the conversation. ``session_settings``: those of the SDK, maybe as a dictionary; ``limit``
        is the number of the newest items that a run gets. ``lock_wait``: seconds to wait for a log that another
        process holds.

        Raises:
            InvalidThreadId: ``session_id`` is blank, too long or not printable.
            InvalidSetting: ``memory`` is no memory.
            TypeError: the SDK has no such setting.
        """
        self.session_id = read_thread_id(session_id)
        read_thread_id(f"{session_id}{_LAST}")
        self.session_settings: SessionSettings | dict[str, Any] | None = coerce_session_settings(
            session_settings or SessionSettings()
        )
        self._memory = FollowingMemory(memory, owner)
        self._lock_wait = lock_wait
        self._lock = threading.RLock()
        self._first: str | None = None
        """Conversation in which the session began, once it is known."""
        self._number = 0
        """Number of the copy in which the session goes on; 0 is the first conversation."""
        self._unsaved: list[Item] = []
        self._given: list[Item] = []
        """Items that a run got last and has added since, for one that begins while the memory cannot be used."""
        self._alone = Run(self, is_new=False)
        """Run of calls that belong to none of which the session knows."""
        self._counted = ("", 0, 0)
        """A conversation, the number of its messages that were counted, and that of their items."""
        self._failures = Failures(logger, "the agent goes on without it")
        self._said_changed = False

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest ``limit`` items of the session. Without a limit, or with a negative one, return all."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most < 0:
            most = None
        RUN.set(Run(self, is_new=True))
        return await self._run(
            partial(self._get, most), lambda: _newest_of(self._known_here(), most)
        )

    async def add_items(self, items: Sequence[Any]) -> None:
        """Store items.

        Raises:
            InvalidMessage: an item cannot be stored as JSON; names the value. Nothing is stored.
        """
        # Copies, because they may be kept, and the caller may change its own.
        given = [
            cast(Item, plain_json(_plain(item), f"items[{number}]"))
            for number, item in enumerate(items)
        ]
        await self._run(partial(self._add, given), partial(self._keep, given))

    async def pop_item(self) -> Any:
        """Return the newest item, and go on without it. It is None if the session is empty."""
        return await self._run(self._pop, lambda: self._unsaved.pop() if self._unsaved else None)

    async def clear_session(self) -> None:
        """Go on without items."""
        await self._run(self._clear, self._unsaved.clear)

    def close(self) -> None:
        """Do nothing: the memory is the application's, which closes it. Sessions of the SDK have this method."""

    async def input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the compacted input. Give it to the run as ``RunConfig(call_model_input_filter=…)``."""
        given = data.model_data
        run = RUN.get()
        # A run with a session of its own may have inherited the filter as well.
        is_turn = (run is None or run.session is self) and self._run_here().take_turn()
        try:
            with waiting_at_most(self._lock_wait):
                name = await _settled(
                    partial(self._store_ahead, list(cast("list[Item]", given.input)), is_turn)
                )
                context = await self._memory.acontext(name, **_shown(data))
                # A conversation that is not shown as a whole is never counted: it may be long.
                is_own = context.is_whole and await _settled(
                    partial(self._has_as_many, name, len(given.input))
                )
        except NotContinued:
            if is_turn and not self._said_changed:
                self._said_changed = True
                logger.warning(
                    "%s: the input of the model lacks items of its session, so it is sent as it is",
                    named(self.session_id),
                )
            return given
        except Exception as error:  # The agent must go on as it would without a memory.
            self._failures.report(self.session_id, error)
            return given
        self._failures.is_over(self.session_id)
        return given if is_own else _compacted(given, context)

    async def _run(self, call: Callable[[], Answer], otherwise: Callable[[], Answer]) -> Answer:
        try:
            with waiting_at_most(self._lock_wait):
                answer, failure = await _settled(partial(self._locked, call, otherwise))
        except InvalidMessage:
            raise  # No later try can store it.
        except Exception as error:  # No thread could start.
            answer, failure = otherwise(), error
        if failure is not None:
            self._failures.report(self.session_id, failure)
        else:
            self._failures.is_over(self.session_id)
        return answer

    def _locked(
        self, call: Callable[[], Answer], otherwise: Callable[[], Answer]
    ) -> tuple[Answer, Exception | None]:
        """Return the answer. If the memory cannot be used, return the other one, and why."""
        try:
            self._memory.check_process()
        except OpenedBeforeFork as error:
            return otherwise(), error
        with self._lock:
            try:
                self._store_kept()
                return call(), None
            except InvalidMessage:
                raise
            except Exception as error:  # The agent must go on without its memory.
                return otherwise(), error

    def _run_here(self) -> Run:
        run = RUN.get()
        return run if run is not None and run.session is self else self._alone

    # What runs in a thread, while the lock is held.

    def _store_kept(self) -> None:
        if self._unsaved:
            self._current().append(messages_of(self._unsaved), recorded=True)
            self._given += self._unsaved
            self._unsaved.clear()

    def _known_here(self) -> list[Item]:
        return cast("list[Item]", plain_json([*self._given, *self._unsaved], "items"))

    def _get(self, limit: int | None) -> list[Item]:
        self._alone.begin()
        found = [] if limit == 0 else self._newest(limit)
        self._given = plain_json(found, "items")
        return found

    def _add(self, items: Sequence[Item]) -> None:
        run = self._run_here()
        fresh, rest = run.fresh(items)
        if fresh:
            self._current().append(messages_of(fresh), recorded=True)
        run.was_given(fresh, rest)
        self._given += items

    def _keep(self, items: Sequence[Item]) -> None:
        """Keep items until the memory works again. One that can never be stored would stand in the way of all."""
        read_messages(messages_of(items), recorded=True)
        run = self._run_here()
        fresh, rest = run.fresh(items)
        run.was_given(fresh, rest)
        self._unsaved += fresh

    def _pop(self) -> Item | None:
        while True:
            conversation = self._current()
            last = self._last(conversation)
            if last is None:
                return None
            items = _items_of(last)
            try:
                self._go_on(conversation, last.position, items[:-1])
            except ThreadExists:
                continue  # Another process was faster.
            return items[-1]

    def _clear(self) -> None:
        self._run_here().begin()
        while self._last(conversation := self._current()) is not None:
            try:
                self._go_on(conversation, 0, [])
            except ThreadExists:
                continue

    def _go_on(self, conversation: ConversationMemory, position: int, rest: Sequence[Item]) -> None:
        """Go on in a copy of the messages before a position, and with these items."""
        self._given = []
        name = self._name(self._number + 1)
        copy = self._memory.conversation(name)
        if position:
            conversation.fork(position=position - 1, thread_id=name)
        if rest:
            copy.append(messages_of(rest), recorded=True, key=_rest_key(position))
        if not position:
            copy.label(self.session_id)
        self._number += 1

    def _current(self) -> ConversationMemory:
        """Return the conversation in which the session goes on, whichever process has popped an item last."""
        while (found := self._memory.conversation(self._name(self._number + 1))).version:
            before = self._memory.conversation(self._name(self._number))
            self._number += 1
            self._complete(before, found)
        return self._memory.conversation(self._name(self._number))

    def _complete(self, before: ConversationMemory, copy: ConversationMemory) -> None:
        """Add the items that stood before a popped one in its message, if the process that popped it ended there."""
        position = self._memory.length(copy.thread_id)
        known = before.messages(position - 1, position + 1) if position else ()
        if len(known) < 2 or len(items := _items_of(known[1])) < 2:
            return
        # One that was cleared begins with messages of its own, and so does what was added to a copy.
        (last,) = copy.messages(position - 1, position)
        if last.message_id == known[0].message_id:
            copy.append(messages_of(items[:-1]), recorded=True, key=_rest_key(position))

    def _last(self, conversation: ConversationMemory) -> StoredMessage | None:
        stop = self._memory.length(conversation.thread_id)
        found = conversation.messages(max(0, stop - 1), stop)
        return found[-1] if found else None

    def _name(self, number: int) -> str:
        if number:
            return f"{self.session_id}~{number}"
        if self._first is None:
            self._first = self._begun()
        return self._first

    def _begun(self) -> str:
        """Return the conversation in which the session began, never a copy of another session."""
        root, _, number = self.session_id.rpartition("~")
        if not root or not number.isdecimal():
            return self.session_id
        apart = f"{self.session_id}~0"
        row = self._memory.conversation(self.session_id).row()
        if row is None or row.erased or row.forked_from is not None or row.label == root:
            return apart
        return apart if self._memory.length(apart) else self.session_id

    def _newest(self, limit: int | None) -> list[Item]:
        conversation = self._current()
        if limit is None:
            return [item for stored in conversation.messages() for item in _items_of(stored)]
        stop = self._memory.length(conversation.thread_id)
        found: list[Item] = []
        while stop and len(found) < limit:
            start = max(0, stop - _PAGE)
            some = [
                item for stored in conversation.messages(start, stop) for item in _items_of(stored)
            ]
            found, stop = [*some, *found], start
        return found[-limit:]

    def _store_ahead(self, given: Sequence[Item], is_turn: bool) -> str:
        """Store the end of the input that the run has not given to the session yet, and return the conversation.

        ``is_turn``: whether it is the run's own input. After a handoff it may be one that has the whole session.
        """
        self._memory.check_process()
        with self._lock:
            self._store_kept()
            kept = without_halves(self._newest(_COMPARED), self._given, given)
            known = [*map(fingerprint, kept)]
            asked = [*map(fingerprint, given)]
            begin, run = end_of_known(known, asked), self._run_here()
            current = self._current()
            if begin < len(given):
                if not (is_turn and run.is_new):
                    raise NotContinued
                current.append(messages_of(given[begin:]), recorded=True)
                run.ahead.update(asked[begin:])
            elif not is_turn and (len(known) > begin or self._count(current) > begin):
                raise NotContinued
            return current.thread_id

    def _has_as_many(self, name: str, items: int) -> bool:
        """Return whether a conversation has so many items."""
        self._memory.check_process()
        with self._lock:
            return self._count(self._memory.conversation(name)) == items

    def _count(self, conversation: ConversationMemory) -> int:
        """Return the number of items of a conversation. Only messages that are new are read."""
        name, read, items = self._counted
        length = self._memory.length(conversation.thread_id)
        if name != conversation.thread_id or length < read:
            read = items = 0
        items += sum(len(_items_of(stored)) for stored in conversation.messages(read, length))
        self._counted = (conversation.thread_id, length, items)
        return items


def _newest_of(items: list[Item], limit: int | None) -> list[Item]:
    return items if limit is None else items[max(0, len(items) - limit) :]


def _rest_key(position: int) -> str:
    return f"rest:{position}"


def _items_of(stored: StoredMessage) -> list[Item]:
    """Return the items of a message. One that was stored in other ways is converted."""
    original = stored.original
    if original is not None and original.format == RESPONSES:
        return list(original.data)
    message = stored.message
    content = message.content if isinstance(message.content, str) else list(message.content)
    made = responses_request("", [{"role": message.role, "content": content}], ())["input"]
    return list(made) or [{"role": message.role, "content": ""}]


def _shown(data: CallModelData[Any]) -> dict[str, Any]:
    """Return what the compacted input depends on besides the items."""
    model = getattr(data.agent, "model", None)
    name = model if isinstance(model, str) else getattr(model, "model", None)
    tools = [
        {
            "name": tool.name,
            "description": tool.description or "",
            "input_schema": {"type": "object", **tool.params_json_schema},
        }
        for tool in getattr(data.agent, "tools", ())
        if hasattr(tool, "params_json_schema")
    ]
    return {
        "system": data.model_data.instructions,
        "tools": tools,
        "model": name if isinstance(name, str) else None,
    }


def _compacted(given: ModelInputData, context: Context) -> ModelInputData:
    """Return the compacted input; as it is while it says what the run's own says."""
    own = messages_of(cast("list[Item]", given.input))
    if context.system == (given.instructions or "") and says_the_same(context.messages, own):
        return given
    request = context.for_openai(api="responses")
    kept = [one.data for one in context.originals.values() if one.format == RESPONSES]
    files = files_of(chain(*kept, cast("list[Item]", given.input)))
    made = [with_files(item, files) for item in request["input"]] if files else request["input"]
    return ModelInputData(input=cast(Any, made), instructions=request.get("instructions"))


async def _settled(call: Callable[[], Answer]) -> Answer:
    """Run a call in a thread to its end, also if the caller is cancelled."""
    task = asyncio.ensure_future(asyncio.to_thread(call))
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()


def _plain(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else item
