"""Frames of requests: system text, tools and model, and the changes that are recorded with the next event."""

import json
import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.conversation_log import ConversationLog, Decision
from refold.application.rendering.request_blocks import copied
from refold.application.runtime.opening_process import BRIEFLY, waiting_at_most
from refold.domain.conversation import Conversation
from refold.domain.events import Event, MessageAppended
from refold.domain.frames import FramePart, RequestFrameChanged, SummaryPlace
from refold.domain.messages import Block

System = str | Sequence[Block] | None
"""A system prompt as the Messages API takes it."""
SHORTEST_PIECE = 1_000
"""Characters. A long text is recorded in pieces, so that a new date does not record all of it again."""
DIGITS = 32
"""Of a digest: 128 bits, in hexadecimal."""
_PARAGRAPH = re.compile(r"(?<=\n\n)(?!\n)")


class Frame(NamedTuple):
    """What one request carries besides the conversation."""

    system: System = None
    instructions: str = ""
    """The text of the instruction files."""
    tools: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    place: SummaryPlace = "user"
    signed: bool = False
    """Whether the model takes its provider's own compaction block."""
    binds_thinking: bool = True
    """Whether the model refuses thinking behind another prefix than the one that it was signed for."""

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing that anybody would look up."""
        given = self.system, self.instructions, self.tools, self.model
        return not any(given) and self.place == "user"

    def copied(self) -> "Frame":
        """The frame, which callers cannot change any more, as it is sent."""
        system = self.system
        return self._replace(
            system=system
            if system is None
            else copied(system if isinstance(system, str) else [*system]),
            instructions=copied(self.instructions),
            tools=tuple(copied(dict(tool)) for tool in self.tools),
        )


class RecordedFrame:
    """A frame as it is recorded: its parts with their digests. Made once for many requests."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame = frame.copied()
        self._system = None if frame.system is None else _parts(_pieces(frame.system))
        self._instructions = _parts(_pieces(frame.instructions))
        self._tools = _parts(dict(tool) for tool in frame.tools)
        self.digest = _digest([*frame[3:], isinstance(frame.system, str), *self._digests()])

    def _digests(self) -> list[list[str] | None]:
        groups = self._system, self._instructions, self._tools
        return [None if group is None else [p.digest for p in group] for group in groups]

    def changed(self, known: Collection[str], asked_at: int) -> RequestFrameChanged:
        """The event that records it, with the parts whose digests are not ``known``."""
        frame = self.frame
        system, instructions, tools = self._digests()
        parts = {p.digest: p for p in (*(self._system or ()), *self._instructions, *self._tools)}
        return RequestFrameChanged(
            digest=self.digest,
            model=frame.model,
            place=frame.place,
            signed=frame.signed,
            binds_thinking=frame.binds_thinking,
            asked_at=asked_at,
            system=None if system is None else tuple(system),
            system_is_text=isinstance(frame.system, str),
            instructions=tuple(instructions or ()),
            tools=tuple(tools or ()),
            parts=tuple(part for digest, part in parts.items() if digest not in known),
        )


def frame_of(event: RequestFrameChanged, parts: Mapping[str, FramePart], lost: str) -> Frame:
    """The frame that an event recorded. ``lost`` stands for a piece of text that is not there any more."""

    def texts(digests: Sequence[str]) -> str:
        return "".join(str(parts[digest].value) if digest in parts else lost for digest in digests)

    def objects(digests: Sequence[str]) -> Iterator[dict[str, Any]]:
        for digest in digests:
            value = parts[digest].value if digest in parts else lost
            if isinstance(value, Mapping):
                yield copied(value)

    system: System = None
    if event.system is not None:
        system = texts(event.system) if event.system_is_text else list(objects(event.system))
    return Frame(
        system,
        texts(event.instructions),
        tuple(objects(event.tools)),
        event.model,
        event.place,
        event.signed,
        event.binds_thinking,
    )


def _pieces(given: str | Sequence[Block]) -> Iterator[str | dict[str, Any]]:
    if not isinstance(given, str):
        yield from map(dict, given)
        return
    piece = ""
    for paragraph in _PARAGRAPH.split(given):
        piece += paragraph
        if len(piece) >= SHORTEST_PIECE:
            yield piece
            piece = ""
    if piece:
        yield piece


def _parts(values: Iterator[str | dict[str, Any]]) -> tuple[FramePart, ...]:
    return tuple(FramePart(digest=_digest(value), value=value) for value in values)


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


REMEMBERED = 10_000
"""Of so many conversations it is known what was asked last."""


_position = attrgetter("position")


@dataclass(slots=True)
class _Asked:
    """The newest requests of one conversation."""

    recorded: RecordedFrame
    version: int | None = None
    """What the first request since the newest change showed; None before one was made."""
    newest: int = 0
    """The version that the newest request showed."""
    length: int = 0
    """How many messages the newest request showed."""
    open: int = 0
    """How many requests have no answer."""
    answered: bool = False
    """Whether one of the newest has."""
    spoken: bool = False
    """Whether somebody spoke after that answer: what has none by then was given up."""
    unclear: bool = False
    """Whether those without an answer differ: nobody knows which one the next answer belongs to."""
    end: int = -1
    """The position that goes on with the newest answer."""
    changed: bool = False
    """Whether the frame may have changed and back since it was recorded."""
    chose: bool = False
    """Whether memories were chosen for the first request: then that request is recorded even if it is bare."""

    def look(self, state: Conversation) -> bool:
        """Find answers that another process stored; return whether there are any."""
        seen = max(self.length, self.end)
        newer = islice(state.live, bisect_left(state.live, seen, key=_position), None)
        found = next((m.position for m in newer if m.role == "assistant" and m.thinking), None)
        if found is not None:
            # Theirs is the first if it stands behind the request; of others nobody knows what they answer.
            if self.unclear or found != self.length:
                self.changed, self.version = True, None
            self.open, self.unclear = 0, False
        return found is not None

    def with_frame(self, frame: Frame) -> None:
        """Take another frame."""
        if self.spoken:
            self.open, self.unclear = 0, False
        self.unclear = self.open > 0
        self.recorded, self.version = RecordedFrame(frame), None

    def made(self, version: int, length: int) -> None:
        """A request was made."""
        if self.spoken or not self.open:
            self.open, self.unclear = 0, False
            self.answered = self.spoken = False
        elif length != self.length:
            self.unclear = True
        self.open, self.length = self.open + 1, length
        if self.version is None:
            self.version = version

    def is_answer(self, position: int) -> bool:
        """Whether what the model says at this position surely answers what stands before it."""
        if not self.recorded.frame.binds_thinking:
            return True
        if self.open:
            return not self.unclear and position == self.length
        return not self.answered or position == self.end


class Asked:
    """The newest requests of each conversation. Threads may share it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Asked] = OrderedDict()
        self._lock = threading.Lock()

    def expect(self, thread_id: str, frame: Frame, state: Conversation) -> None:
        """A request with this frame is about to be made."""
        with self._lock:
            known = self._known.get(thread_id)
            if known is None:
                self._known[thread_id] = _Asked(RecordedFrame(frame), newest=state.version)
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
                return
            self._known.move_to_end(thread_id)
            if state.frame is not None and state.frame.version > known.newest:
                known.version = None  # Another process recorded a frame since.
            known.newest = state.version
            answered_elsewhere = known.open > 0 and known.look(state)
            if known.recorded.frame != frame and known.recorded.frame != frame.copied():
                known.with_frame(frame)
                # The frame of that answer is in no event if this one is the one before it again.
                known.changed = known.changed or answered_elsewhere

    def newest(self, thread_id: str) -> Frame | None:
        """What the newest request of this process carried, if one is known."""
        known = self._known.get(thread_id)
        return None if known is None else known.recorded.frame

    def chose(self, thread_id: str) -> None:
        """Note that memories were chosen for the first request: it is recorded, whatever it carries."""
        with self._lock:
            if (known := self._known.get(thread_id)) is not None:
                known.chose = True

    def has_chosen(self, thread_id: str) -> bool:
        """Return whether this process chose memories for the first request."""
        known = self._known.get(thread_id)
        return known is not None and known.chose

    def made(self, thread_id: str, version: int, length: int) -> None:
        """A request was made that shows this version, which has so many messages."""
        with self._lock:
            if (known := self._known.get(thread_id)) is not None:
                known.made(version, length)

    def is_answer(self, thread_id: str, position: int) -> bool:
        """Whether an answer at this position is to what stands before it, as far as is known here."""
        known = self._known.get(thread_id)
        return known is None or known.is_answer(position)

    def answered(self, thread_id: str, end: int) -> None:
        """An answer was stored, and what goes on with it: up to the position ``end``."""
        with self._lock:
            if (known := self._known.get(thread_id)) is not None:
                known.open, known.end = max(0, known.open - 1), end
                known.answered, known.spoken = True, False

    def said(self, thread_id: str, position: int, end: int, *, speaks: bool) -> None:
        """Messages from ``position`` up to ``end`` were stored that are no answer.

        ``speaks``: somebody says something; else they are results, which go on with an answer.
        """
        with self._lock:
            known = self._known.get(thread_id)
            if known is None:
                return
            if speaks:
                known.spoken = known.answered
            elif position == known.end:
                known.end = end

    def change(
        self, thread_id: str, state: Conversation, *, thinks: bool = False
    ) -> RequestFrameChanged | None:
        """The event that the frame of the newest request has changed; None if it has not.

        ``thinks``: whether an answer with thinking is about to be stored. A request that carries nothing is
        not worth an event before that, but for the first one where something might have been quoted.
        """
        known = self._known.get(thread_id)
        if known is None or state.erased:
            return None
        recorded, before = known.recorded, state.frame
        if before is not None:
            is_recorded = before.digest == recorded.digest and not known.changed
            if is_recorded or before.version > known.newest:
                return None  # In the second case another process made a newer request.
        thinks = thinks or any(message.thinking for message in state.live)
        if before is None and recorded.frame.is_bare and not (thinks or known.chose):
            return None
        digests = {part.digest for part in before.parts} if before is not None else set[str]()
        asked_at = state.version if known.version is None else known.version
        return recorded.changed(digests, asked_at)

    def waiting(self) -> list[str]:
        """Return the conversations whose newest request has no answer yet."""
        with self._lock:
            return [thread_id for thread_id, known in self._known.items() if known.open]

    def framed(self, loaded: LoadedConversation) -> LoadedConversation:
        """The conversation as the newest request shows it: after the change that is not recorded yet."""
        change = self.change(loaded.thread_id, loaded.state)
        return loaded if change is None else loaded.after((change,))

    def recorded(self, thread_id: str) -> None:
        """The change was recorded."""
        known = self._known.get(thread_id)
        if known is not None:
            known.changed = False

    def extend(self, thread_id: str, decide: Decision) -> "_WithChange | None":
        """Return the decision behind the change of the frame, or None if no request is known."""
        if thread_id not in self._known or decide == self.record_change:
            return None
        return _WithChange(self, thread_id, decide)

    def record_change(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the change of the frame, if an earlier frame or a first choice of memories makes it matter."""
        if loaded.state.frame is None and not self.has_chosen(loaded.thread_id):
            return ()
        change = self.change(loaded.thread_id, loaded.state)
        return () if change is None else (change,)

    def forget(self, thread_id: str) -> None:
        """Forget what was asked: the conversation was erased."""
        self._known.pop(thread_id, None)


def record_waiting(log: ConversationLog, asked: Asked, *, at: datetime, wait: float) -> None:
    """Record the frames of requests without an answer, before the memory is closed.

    Another process may store the answer without knowing the request. A busy log is waited for only
    briefly; a frame that cannot be recorded is lost.
    """
    for thread_id in asked.waiting():
        try:
            with waiting_at_most(min(wait, BRIEFLY)):
                log.transact(thread_id, asked.record_change, at=at)
        except LogError:
            return


class _WithChange:
    """A decision behind a frame that has changed."""

    def __init__(self, asked: Asked, thread_id: str, decide: Decision) -> None:
        self._asked = asked
        self._thread_id = thread_id
        self._decide = decide
        self._is_noted = False

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Decide behind the change, and store both or nothing."""
        change = self._asked.change(self._thread_id, loaded.state)
        events = self._decide(loaded if change is None else loaded.after((change,)))
        if change is None and any(map(_thinks, events)):
            change = self._asked.change(self._thread_id, loaded.state, thinks=True)
            events = events if change is None else self._decide(loaded.after((change,)))
        self._is_noted = change is not None and bool(events)
        return (change, *events) if change is not None and events else events

    def stored(self, loaded: LoadedConversation, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Take note that the change was recorded."""
        if self._is_noted:
            self._asked.recorded(self._thread_id)
        return events


def _thinks(event: Event) -> bool:
    return isinstance(event, MessageAppended) and event.thinking_tokens > 0
