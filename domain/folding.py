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
    SaidPart,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
    UserContentShortened,
)
from .facts import LiveMessage, Pin
from .fading import REMEMBERED, fading
from .folding_summaries import (
    compacted,
    failed,
    remade,
    requested,
    reverted,
    size,
)
from .frames import RequestFrameChanged, known_frame
from .messages import gist
from .remembering import MemoriesChosen, NotesFlushed
from .thinking import behind_new_prefix, without_thinking

NOTES_REMEMBERED = 64
"""So many of the newest times that notes were taken are compared with."""


def evolve(state: Conversation, event: Event) -> Conversation:
    """Fold one event in. Never refuses: what is in the log has happened."""
    version = state.version + 1
    match event:
        case MessageAppended():
            return _appended(state, (event,))
        case CompactionRequested():
            return requested(state, event, version)
        case CompactionPerformed(trigger="erasure"):
            return remade(state, event, version)
        case CompactionPerformed():
            return compacted(state, event, version)
        case CompactionFailed():
            return failed(state, event, version)
        case CompactionReverted():
            return reverted(state, event, version)
        case ToolContentOffloaded() | MessagesCondensed() | UserContentShortened():
            return _shortened(state, event.parts, version)
        case MessagePinned():
            return _pinned(state, event, version)
        case MessageUnpinned():
            return _unpinned(state, event.pin_id, version)
        case NotesFlushed():
            return _noted(state, event, version)
        case MemoriesChosen():
            return _quoting(state, event, version)
        case SummarySuperseded() | ConversationForked():
            return state.replaced(version=version)
        case RequestFrameChanged():
            return _framed(state, event, version)
        case MessageErased():
            return _erased(state, event, version)
        case ConversationErased():
            return Conversation(version=version, erased=True)
        case EventLost():
            return state.replaced(version=version, length=_length(state, event))
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
    older, older_tokens, owner = state.older_live, state.older_tokens, state.owner
    pending, thinking_from = state.answer_pending, state.thinking_from
    for event in events:
        assert isinstance(event, MessageAppended)
        version += 1
        fact = _fact(event, version)
        if event.stale_thinking:
            tokens -= sum(m.thinking for m in live)
            live[:] = map(without_thinking, live)
        if event.stale_thinking or (pending and fact.role == "assistant"):
            fact, pending, thinking_from = without_thinking(fact), False, event.position + 1
        live.append(fact)
        tokens += fact.tokens
        owner = owner or event.conversation_owner
        if preamble == length:
            if event.message.role == "system":
                preamble += 1
            else:
                first_id = event.message_id
        length = event.position + 1
        if len(live) > REMEMBERED and (gone := fading(live, preamble, state.pinned_positions)):
            # At once, so that a run of messages gives the same state as one by one.
            older, older_tokens = older + len(gone), older_tokens + size(live, gone)
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
        thinking_from=thinking_from,
        answer_pending=pending,
        owner=owner,
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


def _erased(state: Conversation, event: MessageErased, version: int) -> Conversation:
    live = [
        m._replace(tokens=event.tokens, thinking=0, offloads=(version,))
        if m.position == event.position
        else m
        for m in state.live
    ]
    # A message that is only counted is not among them.
    counted = event.tokens_freed and not any(m.position == event.position for m in live)
    older = state.older_tokens - (event.tokens_freed if counted else 0)
    return behind_new_prefix(state, live, version=version, older_tokens=older)


def _framed(state: Conversation, event: RequestFrameChanged, version: int) -> Conversation:
    pending = state.answer_pending
    frame = known_frame(state.frame, event, version)
    state = state.replaced(version=version, frame=frame)
    if not event.binds_thinking:
        return state
    # The answer that follows was asked for with this frame.
    return behind_new_prefix(state, state.live).replaced(answer_pending=pending)


def _shortened(
    state: Conversation, parts: Iterable[ShortenedPart | SaidPart], version: int
) -> Conversation:
    freed: dict[int, int] = {}
    for part in parts:
        freed[part.position] = freed.get(part.position, 0) + part.tokens_freed
    live = [
        _previewed(m, freed[m.position], version) if m.position in freed else m for m in state.live
    ]
    return behind_new_prefix(state, live, version=version)


def _noted(state: Conversation, event: NotesFlushed, version: int) -> Conversation:
    versions = (*state.notes_versions, version)[-NOTES_REMEMBERED:]
    if event.replaces is not None:  # Taken anew: the cycle is where it was.
        return state.replaced(version=version, notes_versions=versions)
    return state.replaced(
        version=version,
        notes_to=max(state.notes_to, event.stop),
        notes_at=state.compactions,
        notes_versions=versions,
    )


def _length(state: Conversation, lost: EventLost) -> int:
    return state.length if lost.position is None else lost.position + 1


def _pinned(state: Conversation, event: MessagePinned, version: int) -> Conversation:
    pin = Pin(event.pin_id, version, event.position, event.tokens)
    return _pins(state, (*state.pins, pin), version, shown=event.tokens > 0)


def _pins(state: Conversation, pins: tuple[Pin, ...], version: int, *, shown: bool) -> Conversation:
    if not shown:
        return state.replaced(version=version, pins=pins)
    # A line more or less in the ledger changes what stands before every message.
    return behind_new_prefix(state, state.live, version=version, pins=pins)


def _quoting(state: Conversation, event: MemoriesChosen, version: int) -> Conversation:
    return behind_new_prefix(
        state,
        state.live,
        version=version,
        memories_tokens=event.tokens,
        memories_at=version if event.tokens else 0,
    )


def _unpinned(state: Conversation, pin_id: str, version: int) -> Conversation:
    left = tuple(pin for pin in state.pins if pin.pin_id != pin_id)
    shown = any(pin.tokens for pin in state.pins if pin.pin_id == pin_id)
    return _pins(state, left, version, shown=shown)


def _previewed(message: LiveMessage, freed: int, version: int) -> LiveMessage:
    return message._replace(tokens=message.tokens - freed, offloads=(*message.offloads, version))
