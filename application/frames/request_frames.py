"""Frames of requests: system text, tools and model. Changes are recorded with the next event."""

import json
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
from refold.domain.events import Event, LinesRecalled, MessageAppended
from refold.domain.frames import FramePart, RequestFrameChanged, SummaryPlace
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Block
from refold.domain.value import build_in_order

System = str | Sequence[Block] | None
"""System prompt as accepted by the Messages API."""
SHORTEST_PIECE = 1_000
"""Minimum characters of a piece. Of a long text, only pieces that changed are recorded again."""
DIGITS = 32
"""Hexadecimal digits of a digest: 128 bits."""
_PARAGRAPH = lazy_pattern(r"(?<=\n\n)(?!\n)")


class Frame(NamedTuple):
    """The parts of one request apart from the conversation."""

    system: System = None
    instructions: str = ""
    """Text of the instruction files."""
    tools: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    place: SummaryPlace = "user"
    signed: bool = False
    """True if the model accepts its provider's own compaction block."""
    binds_thinking: bool = True
    """True if the model refuses thinking after a different prefix than the one it was signed for."""

    @property
    def is_bare(self) -> bool:
        """True if the frame has nothing worth recording."""
        given = self.system, self.instructions, self.tools, self.model
        return not any(given) and self.place == "user"

    def copied(self) -> "Frame":
        """Return a copy of the frame as it is sent, independent of the caller's objects."""
        system = self.system
        return self._replace(
            system=system
            if system is None
            else copied(system if isinstance(system, str) else [*system]),
            instructions=copied(self.instructions),
            tools=tuple(copied(dict(tool)) for tool in self.tools),
        )


class RecordedFrame:
    """A frame in its recorded form: its parts with their digests. Computed once for many requests."""

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
        """Return the event that records the frame, with the parts whose digests are not ``known``."""
        frame = self.frame
        system, instructions, tools = self._digests()
        parts = {p.digest: p for p in (*(self._system or ()), *self._instructions, *self._tools)}
        return build_in_order(
            RequestFrameChanged,
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
    return tuple(build_in_order(FramePart, digest=_digest(value), value=value) for value in values)


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


REMEMBERED = 10_000
"""Number of conversations whose newest requests are remembered."""
_position = attrgetter("position")


@dataclass(slots=True, eq=False, repr=False)
class _ThreadRequests:
    """The newest requests of one conversation."""

    recorded: RecordedFrame
    version: int | None = None
    """Version that the first request since the newest frame change showed, or None without such a request."""
    newest: int = 0
    """Version that the newest request showed."""
    length: int = 0
    """Number of messages that the newest request showed."""
    open: int = 0
    """Number of requests without an answer."""
    answered: bool = False
    """True if one of the newest requests has an answer."""
    spoken: bool = False
    """True if the user spoke after the newest answer. Requests that had none by then were abandoned."""
    unclear: bool = False
    """True if the requests without an answer differ, so that the next answer cannot be assigned."""
    overtaken: bool = False
    """True if another process stored an answer before this one. Answers to older requests may still come."""
    end: int = -1
    """Position after the newest answer and its tool results."""
    certain: bool = False
    """True if the newest answer certainly belongs to its request, as does what continues it."""
    changed: bool = False
    """True if the frame may have changed and reverted since it was recorded."""
    chose: bool = False
    """True if memories were chosen for the first request; it is then recorded even if it is bare."""
    looked: tuple[int, int] = (-1, 0)
    """Position of the message that lines were last looked up for, and the compactions until then."""
    lines: LinesRecalled | None = None
    """Lines that the newest request shows and that are not recorded yet, or None."""
    thoughtless: tuple[str, int, int] = ("", 0, 0)
    """The first message of a conversation, and the range of positions of which no live message has thinking."""

    def has_thinking(self, state: Conversation) -> bool:
        """Return whether a live message has thinking. Those that were looked at before are skipped."""
        live, (first_message, first, stop) = state.live, self.thoughtless
        # An undo may bring older messages back, and another conversation may have the same name now.
        is_same = live and live[0].position >= first and state.first_message_id == first_message
        seen = bisect_left(live, stop, key=_position) if is_same else 0
        if any(map(attrgetter("thinking"), islice(live, seen, None))):
            return True
        if live:
            self.thoughtless = state.first_message_id, live[0].position, live[-1].position + 1
        return False

    def look(self, state: Conversation) -> bool:
        """Find answers that another process stored. Return whether there are any."""
        seen = max(self.length, self.end)
        newer = islice(state.live, bisect_left(state.live, seen, key=_position), None)
        found = next((m.position for m in newer if m.role == "assistant" and m.thinking), None)
        if found is not None:
            # Only an answer that directly follows the request can be assigned to it.
            if self.unclear or found != self.length:
                self.changed, self.version = True, None
            self.open, self.unclear, self.overtaken = 0, False, True
        return found is not None

    def set_frame(self, frame: Frame) -> None:
        """Replace the frame."""
        self.open = 0 if self.spoken else self.open
        self.unclear = self.open > 0
        self.recorded, self.version = RecordedFrame(frame), None

    def made(self, version: int, length: int) -> None:
        """Record that a request was made."""
        self.overtaken = self.overtaken and not self.spoken
        if self.spoken or not self.open:
            self.open, self.unclear = 0, False
            self.answered = self.spoken = False
        elif length != self.length:
            self.unclear = True
        self.open, self.length = self.open + 1, length
        if self.version is None:
            self.version = version

    def is_answer(self, position: int) -> bool:
        """Return whether an answer at this position certainly answers the messages before it."""
        if self.open or self.overtaken:
            return not self.unclear and not self.overtaken and position == self.length
        return self.certain and position == self.end

    def answer(self, position: int, end: int, *, stale: bool) -> None:
        """Record that an answer was stored."""
        self.certain, self.end = not stale and self.is_answer(position), end
        self.open, self.answered, self.spoken = max(0, self.open - 1), True, False


class NewestRequests:
    """The newest requests of each conversation. Safe to share between threads."""

    def __init__(self) -> None:
        self.threads: OrderedDict[str, _ThreadRequests] = OrderedDict()
        """Newest requests of each conversation that has any."""
        self._lock = threading.Lock()

    def expect(self, thread_id: str, frame: Frame, state: Conversation) -> None:
        """Record that a request with this frame is about to be made."""
        with self._lock:
            known = self.threads.get(thread_id)
            if known is None:
                self.threads[thread_id] = _ThreadRequests(
                    RecordedFrame(frame), newest=state.version
                )
                while len(self.threads) > REMEMBERED:
                    self.threads.popitem(last=False)
                return
            self.threads.move_to_end(thread_id)
            if state.frame is not None and state.frame.version > known.newest:
                known.version = None  # Another process has recorded a frame since.
            if known.lines is not None and state.version > known.lines.asked_at:
                known.lines = None  # Another process has stored something since: its requests show no such lines.
            known.newest = state.version
            answered_elsewhere = known.open > 0 and known.look(state)
            if known.recorded.frame != frame and known.recorded.frame != frame.copied():
                known.set_frame(frame)
                # If this frame equals the one before, no event has the frame of that answer.
                known.changed = known.changed or answered_elsewhere

    def newest(self, thread_id: str) -> Frame | None:
        """Return the frame of the newest request of this process, or None if unknown."""
        known = self.threads.get(thread_id)
        return None if known is None else known.recorded.frame

    def chose(self, thread_id: str) -> None:
        """Record that memories were chosen for the first request: its frame is recorded even if it is bare."""
        with self._lock:
            if (known := self.threads.get(thread_id)) is not None:
                known.chose = True

    def has_chosen(self, thread_id: str) -> bool:
        """Return whether this process chose memories for the first request."""
        known = self.threads.get(thread_id)
        return known is not None and known.chose

    def looks_up(self, thread_id: str, position: int, state: Conversation) -> bool:
        """Return whether lines were not looked up yet for a message, and record that they are now."""
        with self._lock:
            known = self.threads.get(thread_id)
            now = position, state.compactions
            if known is None or known.looked == now:
                return False
            known.looked = now
            return True

    def recall(self, thread_id: str, lines: LinesRecalled | None) -> None:
        """Keep lines that the next request shows until they are recorded. None forgets them."""
        with self._lock:
            if (known := self.threads.get(thread_id)) is not None:
                known.lines = lines

    def made(self, thread_id: str, version: int, length: int) -> None:
        """Record that a request shows this version with ``length`` messages."""
        with self._lock:
            if (known := self.threads.get(thread_id)) is not None:
                known.made(version, length)

    def is_answer(self, thread_id: str, state: Conversation) -> bool:
        """Return whether an answer that is stored next certainly answers the messages before it."""
        known = self.threads.get(thread_id)
        if known is None:
            return state.frame is None  # The first frame drops all thinking before it.
        # With another frame, another process made a newer request.
        is_newest = state.frame is None or state.frame.digest == known.recorded.digest
        return is_newest and known.is_answer(state.length)

    def answered(self, thread_id: str, position: int, end: int, *, stale: bool) -> None:
        """Record that an answer, stale or not, and its continuation were stored, up to ``end``."""
        with self._lock:
            if (known := self.threads.get(thread_id)) is not None:
                known.answer(position, end, stale=stale)

    def said(self, thread_id: str, position: int, end: int, *, speaks: bool) -> None:
        """Record that messages other than answers were stored, from ``position`` up to ``end``.

        ``speaks``: whether the user says something; otherwise they are results that continue an answer.
        """
        with self._lock:
            known = self.threads.get(thread_id)
            if known is None:
                return
            if speaks:
                known.spoken = known.answered
            elif position == known.end:
                known.end = end

    def changes(
        self, thread_id: str, state: Conversation, *, thinks: bool = False
    ) -> tuple[Event, ...]:
        """Return the events for what the newest request shows and the log does not have yet."""
        found = self.change(thread_id, state, thinks=thinks), self.lines(thread_id, state)
        return tuple(filter(None, found))

    def lines(self, thread_id: str, state: Conversation) -> LinesRecalled | None:
        """Return the lines that the newest request shows and that are not recorded yet, or None."""
        known = self.threads.get(thread_id)
        lines = None if known is None else known.lines
        if lines is None or state.erased:
            return None
        at = bisect_left(state.live, lines.position, key=_position)
        message = state.live[at] if at < len(state.live) else None
        # A summary may cover the message now, or the conversation began again.
        is_there = message is not None and message.message_id == lines.message_id
        return lines if is_there and message and not message.recalled_at else None

    def change(
        self, thread_id: str, state: Conversation, *, thinks: bool = False
    ) -> RequestFrameChanged | None:
        """Return the event for a changed frame of the newest request, or None if it has not changed.

        ``thinks``: whether an answer with thinking is about to be stored. A bare frame is recorded only
        then, or for a first request that could have quoted memories.
        """
        known = self.threads.get(thread_id)
        if known is None or state.erased:
            return None
        recorded, before = known.recorded, state.frame
        if before is not None:
            is_recorded = before.digest == recorded.digest and not known.changed
            if is_recorded or before.version > known.newest:
                return None  # In the second case another process made a newer request.
        is_plain = before is None and recorded.frame.is_bare and not (thinks or known.chose)
        if is_plain and not known.has_thinking(state):
            return None
        digests = {part.digest for part in before.parts} if before is not None else set[str]()
        asked_at = state.version if known.version is None else known.version
        return recorded.changed(digests, asked_at)

    def made_at(self, thread_id: str, state: Conversation) -> RequestFrameChanged | None:
        """Return the event for the frame of the request at this version, or None if no such event is missing."""
        known = self.threads.get(thread_id)
        # A frame whose request did not fit was never sent.
        is_made = known is not None and known.version == state.version
        return self.change(thread_id, state) if is_made else None

    def waiting(self) -> list[str]:
        """Return the conversations whose newest request has no answer yet."""
        with self._lock:
            return [thread_id for thread_id, known in self.threads.items() if known.open]

    def framed(self, loaded: LoadedConversation) -> LoadedConversation:
        """Return the conversation with the frame change and the lines that are not recorded yet."""
        changes = self.changes(loaded.thread_id, loaded.state)
        return loaded.after(changes) if changes else loaded

    def mark_recorded(self, thread_id: str, changes: Sequence[Event]) -> None:
        """Mark a frame change and lines as recorded."""
        if (known := self.threads.get(thread_id)) is not None:
            known.changed &= not any(isinstance(event, RequestFrameChanged) for event in changes)
            known.lines = None if known.lines in changes else known.lines

    def extend(self, thread_id: str, decide: Decision) -> "_WithChange | None":
        """Return the decision with the frame change before it, or None if it is that change."""
        is_change = decide in (self.record_change, self.record_frame)
        return None if is_change else _WithChange(self, thread_id, decide)

    def record_frame(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the event for a changed frame of the newest request, also for the first request."""
        change = self.change(loaded.thread_id, loaded.state)
        return () if change is None else (change,)

    def record_change(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the events that have to be recorded now.

        A frame has to be recorded if an earlier one is, or if memories were chosen for the first request.
        """
        changes = self.changes(loaded.thread_id, loaded.state)
        if loaded.state.frame is None and not self.has_chosen(loaded.thread_id):
            return [event for event in changes if isinstance(event, LinesRecalled)]
        return changes

    def forget(self, thread_id: str) -> None:
        """Forget the requests of a conversation that was erased."""
        self.threads.pop(thread_id, None)


def record_waiting(
    log: ConversationLog, asked: NewestRequests, *, at: datetime, wait: float
) -> None:
    """Record the frames of requests without an answer before the memory is closed.

    Another process may store the answer without knowing the request. The wait for a busy log is short; a
    frame that cannot be recorded is lost.
    """
    for thread_id in asked.waiting():
        try:
            with waiting_at_most(min(wait, BRIEFLY)):
                log.transact(thread_id, asked.record_change, at=at)
        except LogError:
            return


class _WithChange:
    """A decision with what the newest request shows, a frame change or lines, before it."""

    def __init__(self, asked: NewestRequests, thread_id: str, decide: Decision) -> None:
        self._asked = asked
        self._thread_id = thread_id
        self._decide = decide
        self._changes: tuple[Event, ...] = ()

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the changes and the events of the decision, to be stored together."""
        changes = self._asked.changes(self._thread_id, loaded.state)
        events = self._decide(loaded.after(changes) if changes else loaded)
        if any(isinstance(e, MessageAppended) and e.thinking_tokens > 0 for e in events):
            more = self._asked.changes(self._thread_id, loaded.state, thinks=True)
            if more != changes:
                changes, events = more, self._decide(loaded.after(more))
        self._changes = changes if events else ()
        return (*self._changes, *events)

    def stored(self, loaded: LoadedConversation, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Mark the changes as recorded, and return the events of the decision."""
        if self._changes:
            self._asked.mark_recorded(self._thread_id, self._changes)
        return events
