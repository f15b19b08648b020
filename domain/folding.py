"""Folds the events of a conversation into the state that decisions are made on."""

from collections.abc import Iterable
from itertools import groupby
from typing import assert_never

from .conversation import Conversation
from .events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    Event,
    EventLost,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
)
from .facts import ActiveSummary, Attempt, LiveMessage, Pin, Setbacks
from .fading import REMEMBERED, fading
from .messages import gist


def evolve(state: Conversation, event: Event) -> Conversation:
    """Fold one event in. Never refuses: what is in the log has happened."""
    version = state.version + 1
    match event:
        case MessageAppended():
            return _appended(state, (event,))
        case CompactionRequested():
            attempt = Attempt(
                attempt_id=event.attempt_id,
                requested_at=event.requested_at,
                coverage=event.coverage,
                supersedes=event.supersedes,
                owner=event.owner,
            )
            return state.replaced(version=version, attempt=attempt)
        case CompactionPerformed(trigger="erasure"):
            return _remade(state, event, version)
        case CompactionPerformed():
            return _compacted(state, event, version)
        case CompactionFailed():
            return _failed(state, event, version)
        case CompactionReverted():
            return _reverted(state, event, version)
        case ToolContentOffloaded() | MessagesCondensed():
            return _shortened(state, event.parts, version)
        case MessagePinned():
            pin = Pin(event.pin_id, version, event.position, event.tokens)
            return _pins(state, (*state.pins, pin), version, shown=event.tokens > 0)
        case MessageUnpinned():
            left = tuple(pin for pin in state.pins if pin.pin_id != event.pin_id)
            shown = any(pin.tokens for pin in state.pins if pin.pin_id == event.pin_id)
            return _pins(state, left, version, shown=shown)
        case SummarySuperseded() | ConversationForked():
            return state.replaced(version=version)
        case MessageErased():
            return _erased(state, event, version)
        case ConversationErased():
            return Conversation(version=version, erased=True)
        case EventLost():
            length = state.length if event.position is None else event.position + 1
            return state.replaced(version=version, length=length)
        case ConversationLabelled():
            return state.replaced(version=version, label=event.label)
        case _:
            assert_never(event)


def fold(events: Iterable[Event], state: Conversation | None = None) -> Conversation:
    """Fold events into ``state``, or into a conversation to which nothing has happened."""
    state = state or Conversation()
    for appends, run in groupby(events, _is_append):
        if appends:
            # Most of a history is messages: a run of them in one step gives the same state.
            state = _appended(state, run)
            continue
        for event in run:
            state = evolve(state, event)
    return state


def _is_append(event: Event) -> bool:
    return isinstance(event, MessageAppended)


def _appended(state: Conversation, events: Iterable[Event]) -> Conversation:
    live, version, length = list(state.live), state.version, state.length
    tokens, preamble, first_id = state.live_tokens, state.preamble, state.first_message_id
    pending, pinned = state.answer_pending, state.pinned_positions
    older, older_tokens = state.older_live, state.older_tokens
    for event in events:
        assert isinstance(event, MessageAppended)
        version += 1
        fact = _fact(event, version)
        if pending and fact.role == "assistant":
            fact, pending = _without_thinking(fact), False
        live.append(fact)
        tokens += fact.tokens
        if preamble == length:
            if event.message.role == "system":
                preamble += 1
            else:
                first_id = event.message_id
        length = event.position + 1
        if len(live) > REMEMBERED and (gone := fading(live, preamble, pinned)):
            # At once, so that a run of messages gives the same state as one by one.
            older, older_tokens = older + len(gone), older_tokens + _size(live, gone)
            live = [m for m in live if m.position not in gone]
    return state.replaced(
        version=version,
        length=length,
        preamble=preamble,
        first_message_id=first_id,
        live=tuple(live),
        older_live=older,
        older_tokens=older_tokens,
        live_tokens=tokens,
        answer_pending=pending,
    )


def _fact(event: MessageAppended, version: int) -> LiveMessage:
    calls, results, speaks = gist(event.message)
    return LiveMessage(
        event.position,
        version,
        event.message_id,
        event.message.role,
        event.tokens,
        event.thinking_tokens,
        calls,
        results,
        speaks,
        event.stop_reason == "pause_turn",
    )


def _size(live: Iterable[LiveMessage], positions: frozenset[int]) -> int:
    return sum(message.tokens for message in live if message.position in positions)


def _bounded(state: Conversation) -> Conversation:
    gone = fading(state.live, state.preamble, state.pinned_positions)
    return state.replaced(
        live=tuple(m for m in state.live if m.position not in gone),
        older_live=state.older_live + len(gone),
        older_tokens=state.older_tokens + _size(state.live, gone),
    )


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
            at_tokens=live_tokens + event.tokens + sum(pin.tokens for pin in state.pins),
            generation=event.generation,
            text_tokens=event.text_tokens,
            leaves=_leaves(state, event, version),
            effective=event.effective,
        ),
        answer_pending=True,
        attempt=None,
        setbacks=Setbacks(),
        compactions=state.compactions + 1,
    )


def _remade(state: Conversation, event: CompactionPerformed, version: int) -> Conversation:
    # In the place of the summary before: what is live stays so, and the guard counts as before.
    before = state.summary
    live = tuple(map(_without_thinking, state.live))
    return state.replaced(
        version=version,
        live=live,
        live_tokens=state.older_tokens + sum(m.tokens for m in live),
        summary=ActiveSummary(
            summary_id=event.summary_id,
            version=version,
            coverage=event.coverage,
            tokens=event.tokens,
            at_length=before.at_length if before else state.length,
            at_tokens=before.at_tokens if before else state.tokens,
            generation=event.generation,
            text_tokens=event.text_tokens,
            leaves=(version,) if event.leaf else (),
            effective=event.effective,
        ),
        answer_pending=True,
        attempt=None,
    )


def _erased(state: Conversation, event: MessageErased, version: int) -> Conversation:
    live = tuple(
        m._replace(tokens=event.tokens, thinking=0, offloads=(version,))
        if m.position == event.position
        else _without_thinking(m)
        for m in state.live
    )
    # A message that is only counted is not among them.
    counted = event.tokens_freed and not any(m.position == event.position for m in live)
    older = state.older_tokens - (event.tokens_freed if counted else 0)
    return state.replaced(
        version=version,
        live=live,
        older_tokens=older,
        live_tokens=older + sum(m.tokens for m in live),
        answer_pending=True,
    )


def _failed(state: Conversation, event: CompactionFailed, version: int) -> Conversation:
    setbacks = Setbacks(count=state.setbacks.count + 1, live_tokens=event.live_tokens)
    return state.replaced(version=version, attempt=None, setbacks=setbacks)


def _leaves(state: Conversation, event: CompactionPerformed, version: int) -> tuple[int, ...]:
    # A summary of an older refold has no leaf: what it covers is known from its own text alone.
    before = state.summary.leaves if state.summary else ()
    if event.leaf is None or (state.summary is not None and not before):
        return ()
    return (*before, version)


def _reverted(state: Conversation, event: CompactionReverted, version: int) -> Conversation:
    back = (*event.messages, *state.live)
    live = tuple(_without_thinking(m) for m in sorted(back, key=lambda m: m.position))
    live_tokens = event.older_tokens + sum(m.tokens for m in live)
    state = state.replaced(
        version=version,
        live=live,
        older_live=event.older_live,
        older_tokens=event.older_tokens,
        live_from=event.live_from,
        live_tokens=live_tokens,
        summary=event.restored,
        answer_pending=True,
    )
    # The next compaction by size must not come at once and make the same summary again.
    setbacks = Setbacks(count=state.setbacks.count + 1, live_tokens=state.tokens)
    state = state.replaced(setbacks=setbacks)
    return _bounded(state) if len(live) > REMEMBERED else state


def _shortened(state: Conversation, parts: Iterable[ShortenedPart], version: int) -> Conversation:
    freed: dict[int, int] = {}
    for part in parts:
        freed[part.position] = freed.get(part.position, 0) + part.tokens_freed
    live = tuple(
        _previewed(m, freed[m.position], version) if m.position in freed else m
        for m in map(_without_thinking, state.live)
    )
    return state.replaced(
        version=version,
        live=live,
        live_tokens=state.older_tokens + sum(m.tokens for m in live),
        answer_pending=True,
    )


def _pins(state: Conversation, pins: tuple[Pin, ...], version: int, *, shown: bool) -> Conversation:
    if not shown:
        return state.replaced(version=version, pins=pins)
    # A line more or less in the ledger changes what stands before every message.
    live = tuple(map(_without_thinking, state.live))
    return state.replaced(
        version=version,
        pins=pins,
        live=live,
        live_tokens=state.older_tokens + sum(m.tokens for m in live),
        answer_pending=True,
    )


def _previewed(message: LiveMessage, freed: int, version: int) -> LiveMessage:
    return message._replace(tokens=message.tokens - freed, offloads=(*message.offloads, version))


def _without_thinking(message: LiveMessage) -> LiveMessage:
    # Signed thinking is valid only behind the very prefix it was made with; the prefix has changed.
    return message._replace(tokens=message.tokens - message.thinking, thinking=0)
