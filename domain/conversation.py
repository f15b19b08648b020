"""The Conversation aggregate: what decisions need to know of a history, folded from its events."""

from collections.abc import Iterable
from datetime import datetime
from functools import reduce
from typing import NamedTuple, assert_never

from .coverage import Coverage
from .events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    Event,
    MessageAppended,
    SummarySuperseded,
    ToolContentOffloaded,
)
from .messages import Role, gist
from .value import Value

# The state remembers at most this many live messages one by one, so that folding an append costs
# the same at any length. Older live ones are only counted: every cut lies among the newer ones.
REMEMBERED = 4_096


class LiveMessage(NamedTuple):
    """What decisions need to know of a message that no summary covers: never its text."""

    position: int
    version: int
    message_id: str
    role: Role
    tokens: int
    """As rendered now: without thinking that was dropped, with previews for offloaded results."""
    thinking: int = 0
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    speaks: bool = False
    """Whether it says something in words (tool traffic alone does not)."""
    paused: bool = False
    """Whether the model's response goes on in the next message."""


class ActiveSummary(Value, frozen=True):
    """The summary that stands for the covered messages."""

    summary_id: str
    version: int
    coverage: Coverage
    tokens: int
    at_length: int
    """How many messages the conversation had when it was made."""
    at_tokens: int
    """The size of the conversation right after."""


class Attempt(Value, frozen=True):
    """A compaction that was requested and has not ended."""

    attempt_id: str
    requested_at: datetime
    coverage: Coverage
    supersedes: str | None


class Setbacks(Value, frozen=True):
    """Failed compactions since the last one that worked."""

    count: int = 0
    live_tokens: int = 0


class Conversation(Value, frozen=True):
    """The state that decisions are made on; its size is bounded whatever the length of the history."""

    version: int = 0
    """How many events were folded in."""
    length: int = 0
    """How many messages were ever appended; the next one gets this position."""
    live: tuple[LiveMessage, ...] = ()
    preamble: int = 0
    """How many messages of the system stand before the first of anybody else; never covered."""
    first_message_id: str = ""
    """The id of the first message after the preamble."""
    older_live: int = 0
    """How many live messages there are between preamble and ``live``, which are only counted."""
    older_tokens: int = 0
    live_from: int = 1
    """The version of the first event that the context is rendered from (exclusions apart)."""
    live_tokens: int = 0
    """The size of all live messages as rendered."""
    summary: ActiveSummary | None = None
    attempt: Attempt | None = None
    setbacks: Setbacks = Setbacks()
    compactions: int = 0
    label: str | None = None

    @property
    def covered_to(self) -> int:
        """The position that the active summary reaches to; 0 without a summary."""
        return self.summary.coverage.stop if self.summary else 0

    @property
    def tokens(self) -> int:
        """The size of the conversation as rendered: summary and live messages."""
        return self.live_tokens + (self.summary.tokens if self.summary else 0)


def evolve(state: Conversation, event: Event) -> Conversation:
    """Fold one event in. Never refuses: what is in the log has happened."""
    version = state.version + 1
    match event:
        case MessageAppended():
            return _appended(state, event, version)
        case CompactionRequested():
            attempt = Attempt(
                attempt_id=event.attempt_id,
                requested_at=event.requested_at,
                coverage=event.coverage,
                supersedes=event.supersedes,
            )
            return state.replaced(version=version, attempt=attempt)
        case CompactionPerformed():
            return _compacted(state, event, version)
        case CompactionFailed():
            return _failed(state, event, version)
        case ToolContentOffloaded():
            return _offloaded(state, event, version)
        case SummarySuperseded():
            return state.replaced(version=version)
        case ConversationLabelled():
            return state.replaced(version=version, label=event.label)
        case _:
            assert_never(event)


def fold(events: Iterable[Event], state: Conversation | None = None) -> Conversation:
    """Fold events into ``state``, or into a conversation to which nothing has happened."""
    return reduce(evolve, events, state or Conversation())


def _appended(state: Conversation, event: MessageAppended, version: int) -> Conversation:
    message = event.message
    calls, results, speaks = gist(message)
    fact = LiveMessage(
        position=event.position,
        version=version,
        message_id=event.message_id,
        role=message.role,
        tokens=event.tokens,
        thinking=event.thinking_tokens,
        calls=calls,
        results=results,
        speaks=speaks,
        paused=event.stop_reason == "pause_turn",
    )
    live = (*state.live, fact)
    update: dict[str, object] = {
        "version": version,
        "length": event.position + 1,
        "live_tokens": state.live_tokens + event.tokens,
    }
    if state.preamble == state.length:
        if message.role == "system":
            update["preamble"] = state.length + 1
        else:
            update["first_message_id"] = event.message_id
    if len(live) > REMEMBERED:
        first = sum(1 for m in live[: state.preamble] if m.position < state.preamble)
        last = first + REMEMBERED // 4
        faded, live = live[first:last], (*live[:first], *live[last:])
        update["older_live"] = state.older_live + len(faded)
        update["older_tokens"] = state.older_tokens + sum(m.tokens for m in faded)
    update["live"] = live
    return state.replaced(**update)


def _compacted(state: Conversation, event: CompactionPerformed, version: int) -> Conversation:
    live = tuple(_without_thinking(m) for m in state.live if not event.coverage.covers(m.position))
    live_tokens = sum(m.tokens for m in live)
    after = [m.version for m in live if m.position >= event.coverage.stop]
    return state.replaced(
        version=version,
        live=live,
        older_live=0,
        older_tokens=0,
        live_from=after[0] if after else version,
        live_tokens=live_tokens,
        summary=ActiveSummary(
            summary_id=event.summary_id,
            version=version,
            coverage=event.coverage,
            tokens=event.tokens,
            at_length=state.length,
            at_tokens=live_tokens + event.tokens,
        ),
        attempt=None,
        setbacks=Setbacks(),
        compactions=state.compactions + 1,
    )


def _failed(state: Conversation, event: CompactionFailed, version: int) -> Conversation:
    setbacks = Setbacks(count=state.setbacks.count + 1, live_tokens=event.live_tokens)
    return state.replaced(version=version, attempt=None, setbacks=setbacks)


def _offloaded(state: Conversation, event: ToolContentOffloaded, version: int) -> Conversation:
    freed: dict[int, int] = {}
    for part in event.parts:
        freed[part.position] = freed.get(part.position, 0) + part.tokens_freed
    live = tuple(
        m._replace(tokens=m.tokens - freed.get(m.position, 0))
        for m in map(_without_thinking, state.live)
    )
    return state.replaced(
        version=version,
        live=live,
        live_tokens=state.older_tokens + sum(m.tokens for m in live),
    )


def _without_thinking(message: LiveMessage) -> LiveMessage:
    # Signed thinking is valid only behind the very prefix it was made with; the prefix has changed.
    return message._replace(tokens=message.tokens - message.thinking, thinking=0)
