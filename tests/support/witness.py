"""A conversation under test with a witness: everything that was done to it, and what came back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import refold
from refold.application.api.results import CompactionResult, Context
from refold.application.conversation.thread_log import ThreadLog
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.rendering.request_blocks import BEGINS_WITH_ASSISTANT
from refold.application.runtime.core import Core
from refold.domain.events import CompactionPerformed, LinesRecalled
from refold.domain.frames import RequestFrameChanged
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.log_place import derived_path
from refold.infrastructure.maintenance.log_keeper import SQLiteKeeper
from refold.infrastructure.observability.log_observer import ignore
from refold.infrastructure.projection_store.read_models import SQLiteViews
from refold.infrastructure.recall.recall_wiring import recall_parts
from refold.infrastructure.summarisers.named_summarisers import retrying
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.history_layout import Message

from .breaking_log import BreakingLog, Disk
from .followed import BoundedSwitchedSummariser, Follower, SwitchedSummariser
from .judged_play import changes_the_prefix
from .retold import Retold
from .surroundings import Numbers, Processes, Setting, Tick, at_once
from .talk import Spoken, is_the_models_turn

THREAD = "talk"
SHM = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is one: thousands of durable commits without a disk."""
SMALL_IMAGE = 60
"""Tokens of an image: windows are small here, so images are too."""
USED = {"input_tokens": 10**7, "output_tokens": 10**6, "cache_read_input_tokens": 10**7}
"""What answers say they used: far more than any window here (invariant 16)."""


def as_bytes(context: Context) -> bytes:
    """The request with its size, as it would go over the wire; the order of keys counts."""
    return json.dumps([context.for_anthropic(), context.tokens], ensure_ascii=True).encode()


class Pinned(NamedTuple):
    """What was pinned, and what must be kept of it."""

    position: int | None
    words: tuple[str, ...]


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
    setting: Setting = field(default_factory=Setting)
    clock: Tick = field(default_factory=Tick)
    new_id: Numbers = field(default_factory=Numbers)
    process: Processes = field(default_factory=Processes)
    disk: Disk = field(default_factory=Disk)
    follower: Follower = field(default_factory=Follower)
    spoken: list[Spoken] = field(default_factory=list[Spoken])
    asked: list[Asked] = field(default_factory=list[Asked])
    looked: list[Asked] = field(default_factory=list[Asked])
    """What an agent would have got at each version that was judged."""
    erased: dict[int, Spoken] = field(default_factory=dict[int, Spoken])
    """What was said where only a stub is left in ``spoken``."""
    forks: dict[str, int] = field(default_factory=dict[str, int])
    """The conversations that began as copies of this one, each with the version that was copied."""
    pins: dict[str, Pinned] = field(default_factory=dict[str, Pinned])
    seen: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """What was rendered at each version when it was the newest."""
    judged: dict[str, int] = field(default_factory=dict[str, int])
    """How far each judge has looked already."""
    read_back: set[str] = field(default_factory=set[str])
    """The addresses that were found to lead to the original."""
    with_usage: set[int] = field(default_factory=set[int])
    """The positions of answers that came with the usage of their reply."""

    unclear: list[tuple[int, int | None]] = field(default_factory=list[tuple[int, int | None]])
    """From which version on, and up to which, a memory showed what others cannot know yet: it sent another
    system text, or waited for another answer, and has not recorded that. None: until it is recorded."""

    def __post_init__(self) -> None:
        own = self.setting.summariser_window
        self.summariser = BoundedSwitchedSummariser(own) if own else SwitchedSummariser()
        self.counter = EstimatingTokenCounter(image_tokens=SMALL_IMAGE)
        self._cores: dict[int, Core] = {}
        self.memory = self.open()
        self.other: refold.Memory | None = None
        self.reader = SQLiteLog(self.path)
        self.is_stale = True
        """Whether there may be events that were not read yet."""
        self._events: list[LoggedEvent] = []
        self._story = Retold()

    @property
    def path(self) -> Path:
        return self.folder / "talk.db"

    @property
    def conversation(self) -> refold.ConversationMemory:
        return self.memory.conversation(THREAD)

    @property
    def extras(self) -> Mapping[str, Any]:
        """What every request carries besides the conversation."""
        return {"system": self.setting.system, "tools": self.setting.tools}

    def core(self, *, background: bool = False) -> Core:
        """A core of its own on the file, as another memory has it; its log breaks on demand."""
        core = open_core(
            self.path,
            window=self.window,
            model=self.setting.model,
            summary_place=self.setting.place,
            memories=self.setting.memories,
            policy=self.policy,
            summariser=retrying(
                self.summariser, self.policy.summary_tries, backoff=lambda _: 0.0, sleep=at_once
            ),
            counter=self.counter,
            clock=self.clock,
            new_id=self.new_id,
            observers=(self.follower,),
            background=background,
            compaction_wait=0.0,
            scrub_megabytes=0,
        )
        core.close_derived()
        core.log.close()
        log = BreakingLog(self.path, self.disk)
        views = SQLiteViews(derived_path(self.path, "views"), log)
        recall = recall_parts(self.path, log, None, None, encrypted=False, notify=ignore)
        return replace(
            core,
            log=ThreadLog(log, core.asked, core.unwritten),
            keeper=SQLiteKeeper(log),
            views=views,
            recall=recall,
            owner=replace(self.process),
        )

    def open(self) -> refold.Memory:
        """Another memory on the same file, as another process would open it."""
        core = self.core()
        memory = refold.Memory(core)
        self._cores[id(memory)] = core
        return memory

    def restart(self) -> None:
        """Close everything and open it again."""
        self.is_stale = True
        version = self.conversation.version
        unclear = [*self.unclear, *((since, None) for since in self._unrecorded())]
        self.unclear = [(since, version if end is None else end) for since, end in unclear]
        self.close()
        self.memory, self.other = self.open(), None
        self.reader = SQLiteLog(self.path)

    def change_places(self) -> None:
        """Go on with another memory on the same file, and with this one again the next time."""
        self.unclear += [(since, None) for since in self._unrecorded()]
        self.memory, self.other = self.other or self.open(), self.memory

    @property
    def is_recorded(self) -> bool:
        """Whether this memory shows what every other one shows."""
        return not list(self._unrecorded())

    def _unrecorded(self) -> Iterator[int]:
        """The version since which this memory sends what is not recorded, if it does."""
        core = self._cores[id(self.memory)]
        for change in core.asked.changes(THREAD, core.log.load(THREAD).state):
            assert isinstance(change, RequestFrameChanged | LinesRecalled)
            yield change.asked_at

    def is_clear(self, version: int) -> bool:
        """Whether every memory shows this version in the same way."""
        shown = RequestFrameChanged | LinesRecalled
        frames = [e.version for e in self.events() if isinstance(e.event, shown)]
        for since, end in self.unclear:
            recorded = next((v for v in frames if v > since), version + 1)
            if since <= version <= (recorded if end is None else end):
                return False
        return True

    def is_reframed(self, version: int) -> bool:
        """Whether a request with another frame showed this version: it may have been looked at before."""
        return any(
            logged.event.asked_at <= version < logged.version
            for logged in self.events()
            if isinstance(logged.event, RequestFrameChanged | LinesRecalled)
        )

    def close(self) -> None:
        for memory in (self.memory, self.other):
            if memory is not None:
                memory.close()
        self.reader.close()

    def append(self, messages: Sequence[Message], *, key: str | None = None) -> refold.Appended:
        """Append live messages, all or none; a key is for the first of them."""
        # What is empty altogether is refused at the edge; white space is the nearest to it.
        messages = [{**m, "content": m["content"] or " "} for m in messages]
        keys = [key, *[None] * (len(messages) - 1)]
        appended = self.conversation.append([_with_usage(m) for m in messages], key=keys)
        self.note(messages, appended)
        answers = zip(messages, appended.messages, strict=True)
        self.with_usage |= {at.position for m, at in answers if at.new and m["role"] == "assistant"}
        return appended

    def append_recorded(self, messages: Sequence[Message]) -> None:
        """Append what a transcript holds, oddities included."""
        recorded = [
            RecordedMessage(message=as_message(message), key=f"line-{len(self.spoken) + n}")
            for n, message in enumerate(messages)
        ]
        self.note(messages, self.conversation.append_recorded(recorded))

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
            context = self.conversation.context(**self.extras)
        except refold.ContextWindowExceeded as error:
            self.is_stale = True
            return Answer(None, error, len(self.summariser.calls) - before)
        self.is_stale = True
        self.asked.append(self.as_asked(context))
        return Answer(context, None, len(self.summariser.calls) - before)

    def as_asked(self, context: Context) -> Asked:
        """A context as an agent would send it."""
        return Asked(
            context.version,
            len(self.decisions(context.version)),
            len(self.spoken),
            context.for_anthropic(),
            as_bytes(context),
            is_the_models_turn(self.spoken),
        )

    def compact(
        self, focus: str | None = None, *, force: bool = False
    ) -> tuple[CompactionResult, int]:
        """Compact on demand; returns the result and how many model calls it took."""
        self.is_stale = True
        before = len(self.summariser.calls)
        result = self.conversation.compact(focus=focus, force=force, **self.extras)
        self.is_stale = True
        return result, len(self.summariser.calls) - before

    def shown(self, at: int | None = None) -> Context:
        """The conversation as it is rendered now, or was at a version; decides nothing."""
        return self.conversation.context(
            at=self.conversation.version if at is None else at, **self.extras
        )

    def size_of(self, shown: Context) -> int:
        """What a request takes up, without the turn of ours that leads where an assistant begins."""
        first = shown.messages[:1]
        ours = first == [{"role": "user", "content": BEGINS_WITH_ASSISTANT}]
        lead = self.counter.count_message(as_message(first[0])).total if ours else 0
        return shown.tokens - lead

    def events(self) -> Sequence[LoggedEvent]:
        """All events so far, read from the log by its own reader."""
        if self.is_stale:
            more = self.reader.read(THREAD, len(self._events) + 1, 1 << 40)
            self._events.extend(more)
            for logged in more:
                self._story.tell(logged)
            self.is_stale = False
        return self._events

    @property
    def story(self) -> Retold:
        """What happened so far."""
        self.events()
        return self._story

    def read_again(self) -> None:
        """Events may have been rewritten: read all of them once more."""
        self._events, self._story, self.is_stale = [], Retold(), True

    def spoken_at(self, version: int) -> list[Spoken]:
        """The messages of a version, as they could be read then."""
        erased, length = self.story.erased, self.story.states[version].length
        return [
            self.erased[s.position] if erased.get(s.position, 0) > version else s
            for s in self.spoken[:length]
        ]

    def performed(self) -> list[tuple[int, CompactionPerformed]]:
        """Every compaction that was performed, with its version."""
        return [(a.ended_at, a.performed) for a in self.story.performed]

    def decisions(self, version: int) -> list[int]:
        """The versions, up to this one, of decisions that change what was rendered before."""
        return [
            e.version for e in self.events() if e.version <= version and changes_the_prefix(e.event)
        ]

    def grown(self, since: int) -> int:
        """How many events were recorded since a version, besides what requests carried."""
        newer = (e.event for e in self.events() if e.version > since)
        return sum(not isinstance(event, RequestFrameChanged) for event in newer)

    def news(self, judge: str, length: int) -> range:
        """Which of so many things a judge has not looked at yet; it looks at them now."""
        first, self.judged[judge] = self.judged.get(judge, 0), length
        return range(first, length)


def as_message(message: Message) -> refold.Message:
    """The message as a value."""
    content = message["content"]
    content = content if isinstance(content, str) else tuple(content)
    return refold.Message(role=message["role"], content=content)


def in_words(message: refold.Message) -> refold.Message:
    """Role and content of a message that was read, without what is kept beside them."""
    return refold.Message(role=message.role, content=message.content)


def _with_usage(message: Message) -> Message:
    return {**message, "usage": USED} if message["role"] == "assistant" else message
