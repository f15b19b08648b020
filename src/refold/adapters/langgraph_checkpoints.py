"""Conversations out of the checkpoints of LangGraph. The checkpoints are only read."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from refold.application.api.argument_checks import invalid_argument
from refold.application.api.memory import Memory
from refold.application.conversation.message_meaning import same_beginning
from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.domain.messages import Author, Message
from refold.domain.originals import Original
from refold.domain.value import is_list, is_object
from refold.infrastructure.transcripts.transcript_source import thread_id as as_thread_id

from .langchain_messages import original_of, to_message

CHANNEL = "messages"
"""Part of a state that has its messages."""


class SavedState(NamedTuple):
    """One checkpoint of a thread."""

    thread_id: str
    checkpoint_id: str
    """Ids grow with time."""
    at: datetime
    messages: list[BaseMessage]
    """Messages of the state, or those that were added to it where the state itself is not saved."""


class Imported(NamedTuple):
    """The messages of one thread of a checkpointer."""

    thread_id: str
    messages: int
    """Number of messages in the checkpoints."""
    new: int
    """Number of them that were not stored before."""


def import_checkpoints(saver: BaseCheckpointSaver[Any], memory: Memory) -> list[Imported]:
    """Store the messages of every thread of a checkpointer, each once, with its id and its time.

    Messages that later checkpoints removed are read from earlier ones; a message that was edited is stored as
    it was last. A summary that LangChain wrote is stored as a message of the program. A second run adds nothing.
    Checkpoints of subgraphs are left out.

    Raises:
        InvalidMessage: a message cannot be represented as JSON.
        LogError: the log cannot be read or written.
        InvalidSetting: an argument is invalid.
    """
    if not callable(getattr(saver, "list", None)):
        raise invalid_argument("saver", saver, "a checkpointer of LangGraph")
    if not isinstance(cast("object", memory), Memory):
        raise invalid_argument("memory", memory, "what refold.open returns")
    done: list[Imported] = []
    for thread in conversations_of(_states(saver)):
        conversation = memory.conversation(thread.thread_id)
        # The middleware may have stored the same messages.
        before = (None if one.erased else one.message for one in conversation.messages())
        known = same_beginning(before, (one.message for one in thread.messages))
        stored = conversation.append_recorded(list(thread.messages[known:]))
        new = sum(one.new for one in stored.messages)
        done.append(Imported(thread.thread_id, len(thread.messages), new))
    return done


def _states(saver: BaseCheckpointSaver[Any]) -> Iterator[SavedState]:
    for one in saver.list(None):
        config = one.config.get("configurable", {})
        if not config.get("checkpoint_ns"):
            written = [
                value for _, channel, value in one.pending_writes or () if channel == CHANNEL
            ]
            yield saved_state(str(config["thread_id"]), one.checkpoint, written)


def saved_state(thread_id: str, checkpoint: Any, written: Iterable[Any]) -> SavedState:
    """Return the messages of a checkpoint, or of what was written after it.

    A channel that saves changes only (``DeltaChannel``) has its messages there.
    """
    values = checkpoint["channel_values"]
    if CHANNEL in values:
        saved = values[CHANNEL]
        # Now and then such a channel saves all it has.
        messages = list(_messages_in(getattr(saved, "value", saved)))
    else:
        # Without an id, one cannot know it again in the next checkpoint.
        messages = [one for value in written for one in _messages_in(value) if one.id]
    return SavedState(
        thread_id, checkpoint["id"], datetime.fromisoformat(checkpoint["ts"]), messages
    )


def _messages_in(value: Any) -> Iterator[BaseMessage]:
    for one in value if is_list(value) else [value]:
        if isinstance(one, BaseMessage) and not isinstance(one, RemoveMessage):
            yield one


def conversations_of(states: Iterable[SavedState]) -> list[RecordedConversation]:
    """Return the messages of each thread in the order in which its checkpoints first have them."""
    threads: dict[str, _Thread] = {}
    for state in states:
        threads.setdefault(state.thread_id, _Thread()).add(state)
    return [
        RecordedConversation(thread_id=as_thread_id(name), messages=tuple(thread.recorded()))
        for name, thread in sorted(threads.items())
    ]


class _Thread:
    """The messages of a thread, collected from its checkpoints in any order."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[datetime, list[str]]] = {}
        self._newest: dict[str, tuple[str, BaseMessage]] = {}

    def add(self, state: SavedState) -> None:
        """Take a checkpoint. A message is kept once, however many checkpoints have it."""
        repeats = Counter[str]()
        keys: list[str] = []
        for message in state.messages:
            key = message.id or _digest(message, repeats)
            known = self._newest.get(key)
            if known is None or known[0] < state.checkpoint_id:
                self._newest[key] = (state.checkpoint_id, message)
            keys.append(key)
        self._keys[state.checkpoint_id] = (state.at, keys)

    def recorded(self) -> Iterator[RecordedMessage]:
        """Yield each message with the time of the first checkpoint that has it."""
        seen = set[str]()
        for _, (at, keys) in sorted(self._keys.items()):
            for key in keys:
                if key not in seen:
                    seen.add(key)
                    yield _recorded(key, self._newest[key][1], at)


def _digest(message: BaseMessage, repeats: Counter[str]) -> str:
    """Return a key for a message without an id: its content, and how often its list had that before."""
    content = f"{message.type}\0{message.content!r}\0{getattr(message, 'tool_call_id', '')}"
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    repeats[digest] += 1
    return f"{digest}#{repeats[digest]}"


def _recorded(key: str, message: BaseMessage, at: datetime) -> RecordedMessage:
    given = to_message(message)
    is_summary = message.additional_kwargs.get("lc_source") == "summarization"
    author: Author | None = "program" if is_summary else None
    original = original_of(message)
    return RecordedMessage(
        message=Message(role=given["role"], content=given["content"], author=author),
        key=f"langchain:{key}",
        message_id=message.id,
        at=at,
        model=message.response_metadata.get("model_name") or None,
        original=None if original is None else Original(**original),
    )


class Decoder:
    """Reads values of a checkpointer's tables. Types of other packages are not made: no code of theirs runs."""

    def __init__(self) -> None:
        self._serializer = JsonPlusSerializer(
            pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None
        )

    def state(
        self, thread_id: str, kind: str, checkpoint: bytes, writes: Iterable[tuple[str, bytes]]
    ) -> SavedState:
        """Return the checkpoint of a row.

        Raises:
            Exception: of many kinds, if it cannot be read.
        """
        value = self._serializer.loads_typed((kind, checkpoint))
        if not is_object(value):
            raise ValueError("it is not an object")
        return saved_state(thread_id, value, map(self._serializer.loads_typed, writes))
