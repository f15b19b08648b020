"""A memory for agents of the Claude Agent SDK: the store of their sessions."""

import copy
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from datetime import datetime
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote
from uuid import uuid4

try:
    # The SDK runs by asyncio and by trio, so threads are started by what it needs for that itself.
    from anyio import CancelScope, get_cancelled_exc_class, to_thread

    # The package is under terms of its own, so refold can be developed and checked without it.
    _fold: Any = import_module("claude_agent_sdk").fold_session_summary
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.claude_agent needs claude-agent-sdk 0.2 or newer: pip install claude-agent-sdk"
    ) from error

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.following import FollowingMemory
from refold.application.api.memory import Memory
from refold.application.api.results import StoredMessage
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.ports.read_models import ConversationRow
from refold.domain.errors import VersionConflict
from refold.domain.messages import Message
from refold.domain.originals import Original
from refold.domain.value import replace
from refold.infrastructure.transcripts import claude_code
from refold.infrastructure.transcripts.transcript_source import Record, Source

__all__ = ["RefoldSessionStore"]
FORMAT = "claude-agent-sdk"
"""Form of a message: the entries of a transcript from its first one to the next message."""
_LONGEST = 80
"""Characters of a project's key in the id of a conversation. A longer key is named by its beginning and a digest."""

_PROMPT = 0.1
"""Seconds that the event loop waits for a call; asyncio's own debugging calls what is longer slow."""
_REMEMBERED = 256
"""Conversations whose entries are known by their ids, the last ones that got any."""

_TRIES = 64
"""How often an append is tried while other stores append to the same session."""

Answer = TypeVar("Answer")
Entry = dict[str, Any]
Key = Mapping[str, Any]
"""A project, a session, and maybe the path of a sub-agent."""


class _Known(NamedTuple):
    """The entries of a conversation that were read."""

    begin: str
    """Time when it began."""
    read: int
    """Number of its messages that were read."""
    uuids: set[str]


class _Folded(NamedTuple):
    """The summary of a session."""

    begin: str
    """Time when its conversation began."""
    erased: int
    """Number of messages that were erased."""
    version: int = 0
    read: int = 0
    """Number of messages that are in the summary."""
    summary: Any = None


class RefoldSessionStore:
    """Keeps each session, and each of its sub-agents, in a conversation whose id begins with its project.

    Entries come back as they were given, and an entry with a known ``uuid`` is stored once. A deleted session is
    erased from the log. Errors are raised: the SDK logs them, tries again, and the agent goes on.
    """

    def __init__(self, memory: Memory | AsyncMemory, *, owner: str | None = None) -> None:
        """Create the store. ``owner``: owner of the conversations.

        Raises:
            InvalidSetting: ``memory`` is no memory.
        """
        self._memory = FollowingMemory(memory, owner)
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._folded: dict[str, _Folded] = {}
        self._last_ms = 0
        """Millisecond in which the last append ended, so that it was logged then or before."""

    async def append(self, key: Key, entries: Sequence[Any]) -> None:
        """Store entries of a transcript."""
        await _promptly(self._append, key, entries, writes=True)

    async def load(self, key: Key) -> Any:
        """Return all entries of a transcript, or None if there are none."""
        return await _promptly(self._load, _name(key)) or None

    async def list_sessions(self, project_key: str) -> Any:
        """Return the sessions of a project, each with the time of its last entry in milliseconds."""
        return await _promptly(self._sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> Any:
        """Return the summaries that the SDK makes of the sessions of a project, from all of their entries."""
        return await _promptly(self._summaries, project_key)

    async def delete(self, key: Key) -> None:
        """Erase a session with its sub-agents, or one sub-agent."""
        await _promptly(self._delete, key, writes=True)

    async def list_subkeys(self, key: Key) -> list[str]:
        """Return the paths of the sub-agents of a session."""
        return await _promptly(self._subkeys, key)

    def _append(self, key: Key, entries: Sequence[Entry]) -> None:
        name = _name(key)
        self._memory.check_process()
        with self._lock:
            for _ in range(_TRIES - 1):
                try:
                    self._append_fresh(name, entries)
                except VersionConflict:
                    continue  # Another store has appended: its entries are known then.
                return
            self._append_fresh(name, entries)

    def _append_fresh(self, name: str, entries: Sequence[Entry]) -> None:
        """Store the entries that are not known, unless another store appends at the same time."""
        conversation = self._memory.conversation(name)
        version, known = self._uuids(conversation)
        seen, fresh = set[str](), list[Entry]()
        for entry in entries:
            uuid = entry.get("uuid")
            if not isinstance(uuid, str):
                fresh.append(entry)
            elif uuid not in known and uuid not in seen:
                fresh.append(entry)
                seen.add(uuid)
        if fresh:
            self._wait_for_the_next_millisecond()
            try:
                conversation.append_recorded(_messages(fresh), expected_version=version)
            finally:
                self._last_ms = _milliseconds()

    def _uuids(self, conversation: ConversationMemory) -> tuple[int, set[str]]:
        """Return the version of a conversation, and the ids of its entries."""
        name = conversation.thread_id
        version, length = self._memory.place(name)
        # Read last: if the conversation has begun again since, the version is that of the old one.
        begin = self._memory.began_at(name)
        known = self._known.pop(name, None)
        if known is None or known.begin != begin:
            known = _Known(begin, 0, set())
        for entry in _entries(conversation, known.read, length):
            if isinstance(uuid := entry.get("uuid"), str):
                known.uuids.add(uuid)
        self._known[name] = known._replace(read=length)
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return version, known.uuids

    def _wait_for_the_next_millisecond(self) -> None:
        """Wait, so that each append is logged in a later millisecond than the one before."""
        while _milliseconds() == self._last_ms:
            time.sleep(0.0002)

    def _load(self, name: str) -> list[Entry]:
        return [*_entries(self._memory.conversation(name), 0, None)]

    def _sessions(self, project_key: str) -> list[dict[str, Any]]:
        return [
            {"session_id": session_id, "mtime": self._changed(row)}
            for row, session_id, subpath in self._listed(project_key)
            if not subpath
        ]

    def _summaries(self, project_key: str) -> list[dict[str, Any]]:
        return [
            {**self._summary(row, project_key, session_id), "mtime": self._changed(row)}
            for row, session_id, subpath in self._listed(project_key)
            if not subpath
        ]

    def _summary(self, row: ConversationRow, project_key: str, session_id: str) -> Any:
        """Return the SDK's summary of a session. Only messages that are new are read."""
        key = {"project_key": project_key, "session_id": session_id}
        name = row.thread_id
        folded = _Folded(self._memory.began_at(name), row.erased_messages)
        before = self._folded.get(name, folded)
        if before[:2] == folded[:2]:
            folded = before
        if folded.version != row.version:
            fresh = [*self._memory.conversation(name).iter_messages(folded.read)]
            entries = [entry for stored in fresh for entry in _entries_of(stored)]
            folded = folded._replace(
                version=row.version,
                read=folded.read + len(fresh),
                summary=_fold(folded.summary, key, entries),
            )
            self._folded[name] = folded
        return copy.deepcopy(folded.summary)  # The caller may change its own.

    def _delete(self, key: Key) -> None:
        name = _name(key)
        subpath = key.get("subpath")
        under = (
            []
            if subpath
            else [
                row.thread_id
                for row, *_ in self._listed(key["project_key"])
                if row.thread_id.startswith(f"{name}/")
            ]
        )
        for one in (*under, name):  # A session is listed until all of it is erased.
            self._memory.erase_conversation(one, "deleted by the Claude Agent SDK")
            self._known.pop(one, None)
            self._folded.pop(one, None)

    def _subkeys(self, key: Key) -> list[str]:
        found = self._listed(key["project_key"])
        return [path for _, session_id, path in found if path and session_id == key["session_id"]]

    def _listed(self, project_key: str) -> Iterator[tuple[ConversationRow, str, str]]:
        """Yield the conversations of a project, each with its session and the path of its sub-agent."""
        prefix = f"{_project(project_key)}/"
        for row in self._memory.rows(prefix):
            session_id, _, subpath = row.thread_id.removeprefix(prefix).partition("/")
            yield row, unquote(session_id), unquote(subpath)

    def _changed(self, row: ConversationRow) -> int:
        return int(datetime.fromisoformat(self._memory.logged_at(row)).timestamp() * 1000)


async def _promptly(call: Callable[..., Answer], *given: Any, writes: bool = False) -> Answer:
    """Run a call in a thread. The event loop waits for a short one.

    So entries are in the log before the application sees what they say. All but the first calls of a process are short,
    while no other process holds the log. A cancellation takes effect after the end of a call that writes.
    """
    answer = Future[Answer]()

    def run() -> None:
        try:
            answer.set_result(call(*given))
        except BaseException as error:
            answer.set_exception(error)

    try:
        threading.Thread(target=copy_context().run, args=(run,), name="refold-store").start()
    except RuntimeError:  # No thread could start.
        run()
    if not wait((answer,), _PROMPT).done:
        await (_outlast(answer) if writes else _await_end(answer))
    return answer.result()


async def _await_end(answer: Future[Any]) -> None:
    try:
        await to_thread.run_sync(wait, (answer,))
    except RuntimeError:  # No thread could start.
        wait((answer,))


async def _outlast(answer: Future[Any]) -> None:
    """Wait for the end of a call, also if the caller is cancelled."""
    cancelled: BaseException | None = None
    while not answer.done():
        try:
            with CancelScope(shield=True):
                await _await_end(answer)
        except get_cancelled_exc_class() as error:  # asyncio cancels in a shielded scope as well.
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def _project(key: str) -> str:
    named = quote(key, safe="")
    if len(named) <= _LONGEST:
        return named
    return f"{named[: _LONGEST - 13]}-{sha256(key.encode()).hexdigest()[:12]}"


def _name(key: Key) -> str:
    """Return the id of the conversation of a transcript."""
    parts = [_project(key["project_key"]), quote(key["session_id"], safe="")]
    if subpath := key.get("subpath"):
        parts.append(quote(subpath, safe=""))
    return "/".join(parts)


def _messages(entries: Sequence[Entry]) -> list[RecordedMessage]:
    """Return entries as messages: each has what follows it up to the next one."""
    records = tuple(Record(line=line, value=entry) for line, entry in enumerate(entries))
    reading = claude_code.read(Source(stem="session", is_document=False, records=records))
    spoken = sorted(
        (
            message
            for conversation in reading.conversations
            for message in conversation.messages
            if entries[message.line or 0].get("type") != "progress"
        ),
        key=lambda message: message.line or 0,
    )
    silent = RecordedMessage(
        message=Message(role="user", content=(), author="program"), key="", line=0
    )
    if not spoken:
        spoken = [silent]
    begins = [0, *(message.line or 0 for message in spoken[1:]), len(entries)]
    return [
        replace(
            message,
            key=uuid4().hex,
            original=Original(format=FORMAT, data=list(entries[begin:end])),
        )
        for message, begin, end in zip(spoken, begins, begins[1:], strict=False)
    ]


def _entries(conversation: ConversationMemory, start: int, stop: int | None) -> Iterator[Entry]:
    for stored in conversation.iter_messages(start, stop):
        yield from _entries_of(stored)


def _entries_of(stored: StoredMessage) -> Sequence[Entry]:
    original = stored.original
    return original.data if original is not None and original.format == FORMAT else ()
