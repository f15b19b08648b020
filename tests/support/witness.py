"""A conversation under test with a witness: everything that was done to it, and what came back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import refold
from refold.application.context import Context
from refold.application.event_log import LoggedEvent
from refold.application.ports import Summariser, SummaryDraft, SummaryRequest
from refold.application.results import CompactionResult
from refold.application.transcripts import RecordedMessage
from refold.domain.events import CompactionPerformed
from refold.infrastructure.log.store import SQLiteLog
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

from .fake_summarisers import GoodSummariser
from .histories import Message
from .judged_play import CHANGES_THE_PREFIX
from .talk import Spoken, is_the_models_turn

THREAD = "talk"
SHM = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is one: thousands of durable commits without a disk."""
SMALL_IMAGE = 60
"""Tokens of an image: windows are small here, so images are too."""


def as_bytes(context: Context) -> bytes:
    """The request with its size, as it would go over the wire; the order of keys counts."""
    return json.dumps([context.for_anthropic(), context.tokens], ensure_ascii=True).encode()


class Call(NamedTuple):
    """One call of the summariser."""

    by: str
    request: SummaryRequest


class SwitchedSummariser:
    """Passes each call on to the summariser that is plugged in, and remembers it."""

    def __init__(self) -> None:
        self.current: Summariser = GoodSummariser()
        self.calls: list[Call] = []

    @property
    def name(self) -> str:
        return self.current.name

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.calls.append(Call(self.current.name, request))
        return await self.current.summarise(request)


class Tick:
    """A clock that moves a second at every look, and further on request."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Numbers:
    """Identities that count, so that a failing example is the same at every run."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self) -> str:
        self.last += 1
        return f"id-{self.last:05d}"


class Asked(NamedTuple):
    """A request that an agent got, and when."""

    version: int
    decisions: int
    """How many recorded decisions there were that may change a prefix."""
    spoken: int
    """How many messages the conversation had."""
    request: dict[str, Any]
    sent: bytes
    sendable: bool
    """Whether it was the model's turn."""


class Answer(NamedTuple):
    """What ``context()`` did: a context, or the error that says why there is none."""

    context: Context | None
    error: refold.ContextWindowExceeded | None
    model_calls: int


@dataclass
class Witness:
    """Drives one conversation in a file and keeps what invariants are judged by."""

    folder: Path
    window: int
    policy: refold.CompactionPolicy
    summariser: SwitchedSummariser = field(default_factory=SwitchedSummariser)
    clock: Tick = field(default_factory=Tick)
    new_id: Numbers = field(default_factory=Numbers)
    spoken: list[Spoken] = field(default_factory=list[Spoken])
    asked: list[Asked] = field(default_factory=list[Asked])
    seen: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """What was rendered at each version when it was the newest."""

    judged: int = 0
    """How many compactions were looked at already."""

    def __post_init__(self) -> None:
        self.counter = EstimatingTokenCounter(image_tokens=SMALL_IMAGE)
        self.memory = self.open()
        self.reader = SQLiteLog(self.path)
        self.is_stale = True
        """Whether there may be events that were not read yet."""
        self._events: list[LoggedEvent] = []

    @property
    def path(self) -> Path:
        return self.folder / "talk.db"

    @property
    def chat(self) -> refold.Chat:
        return self.memory.conversation(THREAD)

    def open(self) -> refold.Memory:
        """Another memory on the same file, as another process would open it."""
        return refold.open(
            self.path,
            window=self.window,
            policy=self.policy,
            summariser=self.summariser,
            counter=self.counter,
            clock=self.clock,
            new_id=self.new_id,
        )

    def restart(self) -> None:
        """Close everything and open it again."""
        self.is_stale = True
        self.close()
        self.memory = self.open()
        self.reader = SQLiteLog(self.path)

    def close(self) -> None:
        self.memory.close()
        self.reader.close()

    def append(self, messages: Sequence[Message], *, key: str | None = None) -> refold.Appended:
        """Append live messages, all or none; a key is for the first of them."""
        # What is empty altogether is refused at the edge; white space is the nearest to it.
        messages = [{**m, "content": m["content"] or " "} for m in messages]
        keys = [key, *[None] * (len(messages) - 1)]
        appended = self.chat.append(list(messages), key=keys)
        self.note(messages, appended)
        return appended

    def append_recorded(self, messages: Sequence[Message]) -> None:
        """Append what a transcript holds, oddities included."""
        recorded = [
            RecordedMessage(message=as_message(message), key=f"line-{len(self.spoken) + n}")
            for n, message in enumerate(messages)
        ]
        self.note(messages, self.chat.append_recorded(recorded))

    def note(self, messages: Sequence[Message], appended: refold.Appended) -> None:
        """Remember messages that were acknowledged as new."""
        self.is_stale = True
        for message, at in zip(messages, appended.messages, strict=True):
            if at.new:
                assert at.position == len(self.spoken), "an append got a position out of order"
                self.spoken.append(Spoken(at.position, message))

    def ask(self) -> Answer:
        """Get the request to send next, as an agent does before each model call."""
        self.is_stale = True
        before = len(self.summariser.calls)
        try:
            context = self.chat.context()
        except refold.ContextWindowExceeded as error:
            return Answer(None, error, len(self.summariser.calls) - before)
        asked = Asked(
            context.version,
            len(self.decisions(context.version)),
            len(self.spoken),
            context.for_anthropic(),
            as_bytes(context),
            is_the_models_turn(self.spoken),
        )
        self.asked.append(asked)
        return Answer(context, None, len(self.summariser.calls) - before)

    def compact(self, focus: str | None = None) -> tuple[CompactionResult, int]:
        """Compact on demand; returns the result and how many model calls it took."""
        self.is_stale = True
        before = len(self.summariser.calls)
        return self.chat.compact(focus=focus), len(self.summariser.calls) - before

    def shown(self) -> Context:
        """The conversation as it is rendered now; decides nothing."""
        return self.chat.context(at=self.chat.version)

    def events(self) -> Sequence[LoggedEvent]:
        """All events so far, read from the log by its own reader."""
        if self.is_stale:
            more = self.reader.read(THREAD, len(self._events) + 1, 1 << 40)
            self._events.extend(more)
            self.is_stale = False
        return self._events

    def performed(self) -> list[tuple[int, CompactionPerformed]]:
        """Every compaction that was performed, with its version."""
        events = self.events()
        return [(e.version, e.event) for e in events if isinstance(e.event, CompactionPerformed)]

    def decisions(self, version: int) -> list[int]:
        """The versions, up to this one, of decisions that change what was rendered before."""
        return [
            e.version
            for e in self.events()
            if isinstance(e.event, CHANGES_THE_PREFIX) and e.version <= version
        ]


def as_message(message: Message) -> refold.Message:
    """The message as a value."""
    content = message["content"]
    content = content if isinstance(content, str) else tuple(content)
    return refold.Message(role=message["role"], content=content)
