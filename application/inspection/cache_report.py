"""The part of each request that a prompt cache can keep, the decisions that broke it, and tokens of replies.

Everything is read from the events: no request is rendered, and sizes are those that decisions used.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.history.moments import At, load_at
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.token_counter import TokenCounter
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.application.runtime.core import Core
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    Event,
    LinesRecalled,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.evolve import evolve, fold
from refold.domain.frames import FramePart, RequestFrameChanged
from refold.domain.notes import MemoriesChosen
from refold.domain.value import Value

from .token_use import TokenUse, UseSums

MOST_EVENTS = 20_000
"""Number of the newest events that a report reads at most."""
NEWEST_BREAKS, NEWEST_REQUESTS = 25, 60

BreakKind = Literal[
    "compaction",
    "compaction reverted",
    "offloading",
    "condensing",
    "shortening",
    "erasure",
    "pin",
    "memories",
    "recalled lines",
    "thinking left out",
    "model",
    "tools",
    "system text",
]
"""Kind of a decision after which a request begins differently."""


class CacheBreak(Value, frozen=True):
    """A decision after which a request did not begin with the whole request before it."""

    kind: BreakKind
    """Kind of the decision that changed the earliest part."""
    also: tuple[BreakKind, ...]
    """Kinds of the other decisions between the two requests."""
    version: int
    at: str
    """Time when it was logged: ISO 8601, UTC."""
    tokens: int
    """Tokens of the request after it."""
    kept: int
    written_again: int
    """Tokens written to the cache because of it, without messages that are new in the request."""


class CachedRequest(Value, frozen=True):
    """One request: the tokens that repeat the request before, and those that do not."""

    position: int
    """Position of the reply."""
    version: int
    """Version of the conversation that was sent."""
    tokens: int
    kept: int
    new: int
    """Tokens of messages that no earlier request had."""

    @property
    def written_again(self) -> int:
        """Tokens that had to be written once more because a decision changed something before them."""
        return self.tokens - self.kept - self.new


class BreakTotal(Value, frozen=True):
    """All decisions of one kind that broke the repeated beginning."""

    kind: BreakKind
    count: int
    written_again: int


class CacheReport(Value, frozen=True):
    """The requests of a conversation as a prompt cache sees them. All sizes are estimated tokens.

    A request is counted for each reply. Expiry of a cache is not known and not considered.
    """

    thread_id: str
    version: int
    first_version: int
    """First version that was read: 1, or later for a conversation with more than 20,000 events."""
    requests: int
    tokens: int
    """Tokens of all requests."""
    kept: int
    """Tokens that repeat the beginning of the request before."""
    new: int
    breaks: int
    """Number of decisions that broke the repeated beginning."""
    totals: tuple[BreakTotal, ...]
    """All these decisions by kind, the most expensive first."""
    newest_breaks: tuple[CacheBreak, ...]
    """The newest decisions, newest first."""
    newest_requests: tuple[CachedRequest, ...]
    """The newest requests, oldest first."""
    use: tuple[TokenUse, ...]
    """Tokens by model, and by whether replies stated them."""

    @property
    def kept_share(self) -> float:
        """Share of all request tokens that repeat the request before, from 0 to 1."""
        return self.kept / self.tokens if self.tokens else 0.0

    @property
    def written_again(self) -> int:
        """Tokens that were written again after decisions."""
        return self.tokens - self.kept - self.new


def cache_report(core: Core, thread_id: str, at: At | None = None) -> CacheReport:
    """Return how much of each request repeats the one before, and what replies used.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: the conversation was erased.
    """
    newest = core.log.load(thread_id).present() if at is None else load_at(core, thread_id, at)
    last = newest.state.version
    begin = max(0, last - MOST_EVENTS)
    walk = _Walk(core, load_at(core, thread_id, begin) if begin else LoadedConversation(thread_id))
    for page in core.log.pages(thread_id, begin + 1, last):
        for logged in page:
            walk.take(logged)
    return walk.report(begin + 1)


class _Frames:
    """Sizes of system text and tools, counted once for each part."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._sizes: dict[str, int] = {}
        self.current: RequestFrameChanged | None = None
        self.tools = self.system = 0

    def load(self, core: Core, loaded: LoadedConversation) -> None:
        """Take the frame of a state, with the parts that earlier events recorded."""
        known = loaded.state.frame
        if known is None:
            return
        versions = {part.version for part in known.parts} | {known.version}
        for logged in core.log.read_at(loaded.thread_id, versions):
            if isinstance(logged.event, RequestFrameChanged):
                self.take(logged.event)

    def take(self, event: RequestFrameChanged) -> None:
        """Take a changed frame."""
        self._sizes |= {part.digest: self._size(part) for part in event.parts}
        self.current = event
        self.tools = sum(self._sizes.get(digest, 0) for digest in event.tools)
        texts = (*(event.system or ()), *event.instructions)
        self.system = sum(self._sizes.get(digest, 0) for digest in texts)

    def _size(self, part: FramePart) -> int:
        value = part.value
        if isinstance(value, str):
            return self._counter.count_text(value)
        if "text" in value:
            return self._counter.count_text(str(value["text"])) + FRAME_TOKENS
        return self._counter.count_tools((value,))


class _Head(NamedTuple):
    """A part of a request before its messages."""

    key: tuple[Any, ...]
    """Value that differs if the part differs."""
    tokens: int


class _Sent(NamedTuple):
    """A request: its parts before the messages, and the state with the messages."""

    heads: tuple[_Head, ...]
    state: Conversation
    tokens: int

    def repeats(self, other: "_Sent") -> int:
        """Return the tokens at the beginning that another request has as well."""
        same = 0
        for own, theirs in zip(self.heads, other.heads, strict=True):
            if own.key != theirs.key:
                return same
            same += own.tokens
        if other.state.older_tokens < self.state.older_tokens:
            return same
        there = {message.position: message for message in other.state.live}
        same += self.state.older_tokens
        for message in self.state.live[_preamble(self.state) :]:
            # The state forgets old messages; a message that is not there has not changed.
            if there.get(message.position, message) != message:
                return same
            same += message.tokens
        return same

    def tokens_from(self, position: int) -> int:
        """Return the tokens of the messages from a position on."""
        new = takewhile(lambda message: message.position >= position, reversed(self.state.live))
        return sum(message.tokens for message in new)


def _preamble(state: Conversation) -> int:
    """Return how many of the live messages are system messages at the beginning."""
    return sum(1 for m in state.live[: state.preamble] if m.position < state.preamble)


class _Walk:
    """Follows the events and compares each request with the one before."""

    def __init__(self, core: Core, loaded: LoadedConversation) -> None:
        self._default_model = core.settings.model
        self._thread_id, self._state = loaded.thread_id, loaded.state
        self._frames = _Frames(core.counter)
        self._frames.load(core, loaded)
        self._guidance: dict[str, tuple[bool, bool]] = {}
        if summary := loaded.window.summary:
            self._guidance[summary.summary_id] = _guidance(summary)
        self._run: list[MessageAppended] = []
        """Messages after the state. They are folded in when a decision follows."""
        self._run_sent = 0
        """Number of these messages that were in the newest request."""
        self._tokens_now = self._last = 0
        """Tokens of a request now, and those of the newest request."""
        self._before: _Sent | None = None
        """The newest request, if a decision followed it."""
        self._least = 0
        """Tokens that it shares with the conversation at its most different moment."""
        self._deepest: tuple[BreakKind, LoggedEvent] | None = None
        self._kinds: list[BreakKind] = []
        """Kinds of the decisions since the newest request."""
        self._requests = self._tokens = self._kept = self._new = 0
        self._count, self._again = Counter[BreakKind](), Counter[BreakKind]()
        self._newest_breaks = deque[CacheBreak](maxlen=NEWEST_BREAKS)
        self._newest_requests = deque[CachedRequest](maxlen=NEWEST_REQUESTS)
        self._use = UseSums()
        self._tokens_now = self._sent().tokens

    def take(self, logged: LoggedEvent) -> None:
        """Take the next event."""
        event = logged.event
        if isinstance(event, MessageAppended):
            if event.message.role == "assistant" and (self._run or self._state.length):
                self._request(logged, event)
            if not (event.stale_thinking or self._state.answer_pending):
                self._run.append(event)
                self._tokens_now += event.tokens
                return
        self._settle()
        kind = self._kind(event)
        if isinstance(event, RequestFrameChanged):
            self._frames.take(event)
        if isinstance(event, CompactionPerformed):
            self._guidance[event.summary_id] = _guidance(event)
        self._state = evolve(self._state, event)
        sent = self._sent()
        self._tokens_now = sent.tokens
        if kind is not None and self._before is not None:
            self._decide(kind, logged, self._before.repeats(sent), self._before)

    def _settle(self) -> None:
        """Fold the waiting messages into the state, and remember the newest request on the way."""
        sent, others = tuple(self._run[: self._run_sent]), tuple(self._run[self._run_sent :])
        self._run, self._run_sent = [], 0
        if self._requests and self._before is None:
            self._state = fold(sent, self._state)
            self._before, sent = self._sent(), ()
            self._least = self._before.tokens
        self._state = fold(sent + others, self._state)

    def _decide(self, kind: BreakKind, logged: LoggedEvent, same: int, before: _Sent) -> None:
        if same < before.tokens:
            self._kinds.append(kind)
        if same < self._least:
            self._least = same
            self._deepest = kind, logged

    def _request(self, logged: LoggedEvent, event: MessageAppended) -> None:
        kept, new = self._last, self._tokens_now - self._last
        if self._kinds and self._before is not None:
            first = self._before.state.length
            self._settle()
            sent = self._sent()
            kept = min(self._before.repeats(sent), sent.tokens)
            new = min(sent.tokens_from(first), sent.tokens - kept)
        request = CachedRequest(
            position=event.position,
            version=logged.version - 1,
            tokens=self._tokens_now,
            kept=kept,
            new=new,
        )
        self._newest_requests.append(request)
        self._requests += 1
        self._tokens += request.tokens
        self._kept += kept
        self._new += new
        if kept < self._last and self._deepest:
            self._break(request, *self._deepest)
        frame = self._frames.current
        model = event.model or (frame.model if frame else None) or self._default_model
        self._use.add(event, model, read=kept, written=request.tokens - kept)
        self._before, self._last, self._run_sent = None, request.tokens, len(self._run)
        self._deepest, self._kinds = None, []

    def _break(self, request: CachedRequest, kind: BreakKind, logged: LoggedEvent) -> None:
        self._count[kind] += 1
        self._again[kind] += request.written_again
        self._newest_breaks.append(
            CacheBreak(
                kind=kind,
                also=tuple(dict.fromkeys(other for other in self._kinds if other != kind)),
                version=logged.version,
                at=logged.at,
                tokens=request.tokens,
                kept=request.kept,
                written_again=request.written_again,
            )
        )

    def _sent(self) -> _Sent:
        """Return the request of the state as it is now."""
        state, frames = self._state, self._frames
        frame, summary = frames.current, state.summary
        pins = tuple(pin for pin in state.pins if pin.tokens)
        memory_tokens = sum(pin.tokens for pin in pins) + (summary.tokens if summary else 0)
        memory = (summary.version if summary else 0, tuple(pin.version for pin in pins))
        texts = (frame.system, frame.system_is_text, frame.instructions) if frame else ()
        guidance = self._guidance.get(summary.summary_id) if summary else None
        first = state.live[: _preamble(state)]
        in_system = frame is not None and frame.place == "system"
        system = (texts, guidance, bool(pins), state.memories_at, first)
        system_tokens = frames.system + state.memories_tokens + sum(m.tokens for m in first)
        heads = (
            _Head((frame.model if frame else None,), 0),
            _Head((frame.tools if frame else (),), frames.tools),
            _Head((*system, memory if in_system else ()), system_tokens),
            _Head((memory, frame.signed if frame else False), memory_tokens),
        )
        return _Sent(heads, state, frames.tools + frames.system + state.tokens)

    def _kind(self, event: Event) -> BreakKind | None:
        """Return the kind of a decision that may change the beginning of the request, else None."""
        match event:
            case CompactionPerformed():
                return "erasure" if event.trigger == "erasure" else "compaction"
            case RequestFrameChanged():
                return self._frame_kind(event)
            case MessageAppended():
                return "thinking left out" if event.stale_thinking else None
            case _:
                return _KINDS.get(type(event))

    def _frame_kind(self, event: RequestFrameChanged) -> BreakKind:
        before = self._frames.current
        if before is not None and before.model != event.model:
            return "model"
        if before is not None and before.tools != event.tools:
            return "tools"
        return "system text"

    def report(self, first_version: int) -> CacheReport:
        """Return the sums over all events that were taken."""
        return CacheReport(
            thread_id=self._thread_id,
            version=self._state.version + len(self._run),
            first_version=first_version,
            requests=self._requests,
            tokens=self._tokens,
            kept=self._kept,
            new=self._new,
            breaks=self._count.total(),
            totals=tuple(self._totals()),
            newest_breaks=tuple(reversed(self._newest_breaks)),
            newest_requests=tuple(self._newest_requests),
            use=self._use.sums(),
        )

    def _totals(self) -> Iterator[BreakTotal]:
        for kind, again in self._again.most_common():
            yield BreakTotal(kind=kind, count=self._count[kind], written_again=again)


_KINDS: Mapping[type[Event], BreakKind] = {
    CompactionReverted: "compaction reverted",
    ToolContentOffloaded: "offloading",
    MessagesCondensed: "condensing",
    UserContentShortened: "shortening",
    LinesRecalled: "recalled lines",
    MessagePinned: "pin",
    MessageUnpinned: "pin",
    MemoriesChosen: "memories",
    MessageErased: "erasure",
}


def _guidance(summary: CompactionPerformed) -> tuple[bool, bool]:
    """Return which sentences about a summary are in the system text: those on topics, those on the ledger."""
    return summary.topics_shown > 0, bool(summary.ledger_shown or summary.index_shown)
