"""Fold the events of a conversation into the state that decisions are based on."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeGuard, assert_never, cast

from refold.domain.compaction.summary_rules import add_length

from .conversation import ActiveSummary, Attempt, Conversation, LiveMessage, Pin, Setbacks
from .events import (
    ERASED,
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    EditDecided,
    EditProposed,
    Event,
    EventLost,
    LinesRecalled,
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
from .frames import RequestFrameChanged, known_frame
from .messages import gist
from .notes import MemoriesChosen, NotesFlushed
from .turns import add_companions, change_prefix, drop_thinking
from .value import build_in_order, replace

# Maximum number of remembered messages, so that folding an append costs the same at any length.
# Older messages are only counted: every cut is among the newer ones.
REMEMBERED = 4_096


def _choose_old(
    live: Sequence[LiveMessage], preamble: int, pinned: frozenset[int]
) -> frozenset[int]:
    """Return the positions to forget, often none. Pinned messages and running requests stay remembered."""
    # Forget many at once, so that most appends do not pay for it.
    some = REMEMBERED // 4
    first = sum(1 for m in live[:preamble] if m.position < preamble)
    fixed = add_companions(live, pinned)
    rest = [m for m in live[first:] if m.position not in fixed]
    excess = max(0, first + len(rest) - REMEMBERED)
    if not excess:
        return frozenset()
    asked = add_companions(live, _request_positions(live))
    older = [m.position for m in rest if m.position not in asked]
    return frozenset(older[: some * -(-excess // some)])


def _request_positions(live: Sequence[LiveMessage]) -> frozenset[int]:
    """Return the positions of the first and the newest request since the model last ended a turn."""
    said: list[int] = []
    for message in reversed(live):
        if message.ends_turn:
            break
        if message.role == "user" and message.speaks:
            said.append(message.position)
    return frozenset((said[0], said[-1]) if said else ())


def _start_attempt(state: Conversation, event: CompactionRequested, version: int) -> Conversation:
    """Fold in the start of a compaction."""
    attempt = build_in_order(
        Attempt,
        attempt_id=event.attempt_id,
        requested_at=event.requested_at,
        coverage=event.coverage,
        supersedes=event.supersedes,
        owner=event.owner,
    )
    return replace(state, version=version, attempt=attempt)


def _apply_summary(state: Conversation, event: CompactionPerformed, version: int) -> Conversation:
    """Fold in a new summary."""
    left = [m for m in state.live if not event.coverage.covers(m.position)]
    state = change_prefix(replace(state, older_live=0, older_tokens=0), left)
    after = [m.version for m in left if m.position >= event.coverage.stop]
    return replace(
        state,
        version=version,
        live_from=after[0] if after else version,
        summary=build_in_order(
            ActiveSummary,
            summary_id=event.summary_id,
            version=version,
            coverage=event.coverage,
            tokens=event.tokens,
            at_length=state.length,
            at_tokens=state.live_tokens
            + event.tokens
            + sum(pin.tokens for pin in state.pins)
            + state.memories_tokens,
            generation=event.generation,
            text_tokens=event.text_tokens,
            leaves=_leaves(state, event, version),
            effective=event.effective,
        ),
        attempt=None,
        setbacks=build_in_order(Setbacks),
        lengths=add_length(state.lengths, event),
        compactions=state.compactions + 1,
    )


def _replace_summary(state: Conversation, event: CompactionPerformed, version: int) -> Conversation:
    """Fold in a summary that was rebuilt after an erasure."""
    # The coverage is unchanged: live messages stay live, and the next compaction is due at the same
    # size.
    before, tokens = state.summary, state.tokens
    state = change_prefix(state, state.live)
    return replace(
        state,
        version=version,
        summary=build_in_order(
            ActiveSummary,
            summary_id=event.summary_id,
            version=version,
            coverage=event.coverage,
            tokens=event.tokens,
            at_length=before.at_length if before else state.length,
            at_tokens=before.at_tokens if before else tokens,
            generation=event.generation,
            text_tokens=event.text_tokens,
            leaves=(version,) if event.leaf else (),
            effective=event.effective,
        ),
        attempt=None,
    )


def _fail_attempt(state: Conversation, event: CompactionFailed, version: int) -> Conversation:
    """Fold in the failure of a compaction."""
    if event.reason == ERASED:  # An erasure stopped the attempt, so it does not count as a setback.
        return replace(state, version=version, attempt=None)
    setbacks = build_in_order(
        Setbacks, count=state.setbacks.count + 1, live_tokens=event.live_tokens, length=state.length
    )
    return replace(state, version=version, attempt=None, setbacks=setbacks)


def _leaves(state: Conversation, event: CompactionPerformed, version: int) -> tuple[int, ...]:
    # Old versions of refold stored no leaf: only the text itself covers those messages.
    before = state.summary.leaves if state.summary else ()
    if event.leaf is None or (state.summary is not None and not before):
        return ()
    if state.summary is not None and state.summary.coverage == event.coverage:
        return (*before[:-1], version)  # The same messages were summarised again.
    return (*(before[-1:] if event.earlier else before), version)


def _revert_summary(state: Conversation, event: CompactionReverted, version: int) -> Conversation:
    """Fold in the reversal of the newest compaction."""
    back = (*event.messages, *state.live)
    state = replace(
        state,
        version=version,
        older_live=event.older_live,
        older_tokens=event.older_tokens,
        live_from=event.live_from,
        summary=event.restored,
    )
    state = change_prefix(state, sorted(back, key=lambda m: m.position))
    # Without this setback the next compaction by size would start at once and make the same
    # summary.
    setbacks = build_in_order(
        Setbacks, count=state.setbacks.count + 1, live_tokens=state.tokens, length=state.length
    )
    state = replace(state, setbacks=setbacks)
    return _forget_old(state) if len(state.live) > REMEMBERED else state


def _forget_old(state: Conversation) -> Conversation:
    gone = _choose_old(state.live, state.preamble, state.pinned_positions)
    return replace(
        state,
        live=tuple(m for m in state.live if m.position not in gone),
        older_live=state.older_live + len(gone),
        older_tokens=state.older_tokens + _total_tokens(state.live, gone),
    )


def _total_tokens(live: Iterable[LiveMessage], positions: frozenset[int]) -> int:
    """Return the total tokens of the messages at some positions."""
    return sum(message.tokens for message in live if message.position in positions)


NOTES_REMEMBERED = 64
"""Number of the newest note events that new notes are compared with."""


def evolve(state: Conversation, event: Event) -> Conversation:
    """Return the state after one event. Never raises, because logged events have already happened."""
    version = state.version + 1
    match event:
        case MessageAppended():
            return _append(state, (event,))
        case (
            CompactionRequested()
            | CompactionPerformed()
            | CompactionFailed()
            | CompactionReverted()
        ):
            return _compact(state, event, version)
        case ToolContentOffloaded() | MessagesCondensed() | UserContentShortened():
            return _shorten(state, event.parts, version)
        case LinesRecalled():
            return _add_lines(state, event, version)
        case MessagePinned() | MessageUnpinned():
            return _change_pins(state, event, version)
        case NotesFlushed():
            return _record_notes(state, event, version)
        case MemoriesChosen():
            return _quote_memories(state, event, version)
        case (
            SummarySuperseded()  # The state has no more than the version of these events.
            | ConversationForked()
        ):
            return replace(state, version=version)
        case EditProposed():
            return replace(state, version=version, edits=state.edits_with(event.edit_id, version))
        case EditDecided():
            return replace(state, version=version, edits=state.edits_without(event.edit_id))
        case RequestFrameChanged():
            return _change_frame(state, event, version)
        case MessageErased() | ConversationErased() | EventLost():
            return _remove(state, event, version)
        case ConversationLabelled():
            return replace(state, version=version, label=event.label)
        case _:
            assert_never(event)


def _compact(
    state: Conversation,
    event: CompactionRequested | CompactionPerformed | CompactionFailed | CompactionReverted,
    version: int,
) -> Conversation:
    match event:
        case CompactionRequested():
            return _start_attempt(state, event, version)
        case CompactionPerformed(trigger="erasure"):
            return _replace_summary(state, event, version)
        case CompactionPerformed():
            return _apply_summary(state, event, version)
        case CompactionFailed():
            return _fail_attempt(state, event, version)
        case CompactionReverted():
            return _revert_summary(state, event, version)


def are_messages(events: Sequence[Event]) -> TypeGuard[Sequence[MessageAppended]]:
    """Return whether all events append a message, as most do."""
    for event in events:  # noqa: SIM110 (a generator takes three times as long)
        if type(event) is not MessageAppended:
            return False
    return True


def fold(events: Iterable[Event], state: Conversation | None = None) -> Conversation:
    """Return the state after some events, starting from ``state`` or from an empty conversation."""
    state = build_in_order(Conversation) if state is None else state
    if isinstance(events, tuple) and are_messages(events):
        return _append(state, events)
    for appends, run in groupby(events, _is_append):
        if appends:
            # Most of a history is messages; folding a run of them in one step gives the same state.
            state = _append(state, cast("Iterable[MessageAppended]", run))
            continue
        for event in run:
            state = evolve(state, event)
    return state


def _is_append(event: Event) -> bool:
    return isinstance(event, MessageAppended)


def _append(state: Conversation, events: Iterable[MessageAppended]) -> Conversation:
    live, version, length = state.live, state.version, state.length
    tokens, preamble, first_id = state.live_tokens, state.preamble, state.first_message_id
    older, older_tokens, owner = state.older_live, state.older_tokens, state.owner
    pending, thinking_from, added = state.answer_pending, state.thinking_from, list[LiveMessage]()
    for event in events:
        version += 1
        fact = _live_message(event, version)
        if event.stale_thinking:
            tokens -= sum(m.thinking for m in (*live, *added))
            live, added = tuple(map(drop_thinking, (*live, *added))), []
        if event.stale_thinking or (pending and fact.role == "assistant"):
            fact, pending, thinking_from = drop_thinking(fact), False, event.position + 1
        added.append(fact)
        tokens += fact.tokens
        owner = owner or event.conversation_owner
        if preamble == length:
            is_system = event.message.role == "system"
            preamble, first_id = preamble + is_system, first_id if is_system else event.message_id
        length = event.position + 1
        if len(live) + len(added) > REMEMBERED:
            # Checked inside the loop, so that a run gives the same state as single appends.
            live, added = live + tuple(added), []
            if gone := _choose_old(live, preamble, state.pinned_positions):
                older, older_tokens = older + len(gone), older_tokens + _total_tokens(live, gone)
                live = tuple(m for m in live if m.position not in gone)
    return replace(
        state,
        version=version,
        length=length,
        preamble=preamble,
        first_message_id=first_id,
        live=live + tuple(added),
        older_live=older,
        older_tokens=older_tokens,
        live_tokens=tokens,
        thinking_from=thinking_from,
        answer_pending=pending,
        owner=owner,
    )


def _live_message(event: MessageAppended, version: int) -> LiveMessage:
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


def _remove(
    state: Conversation, event: MessageErased | ConversationErased | EventLost, version: int
) -> Conversation:
    match event:
        case MessageErased():
            return _erase(state, event, version)
        case ConversationErased():
            return build_in_order(Conversation, version=version, erased=True)
        case EventLost():
            length = state.length if event.position is None else event.position + 1
            return replace(state, version=version, length=length)


def _erase(state: Conversation, event: MessageErased, version: int) -> Conversation:
    live = [
        m._replace(tokens=event.tokens, thinking=0, offloads=(version,), recalled_at=0)
        if m.position == event.position
        else m
        for m in state.live
    ]
    # A message that is only counted is not in ``live``.
    counted = event.tokens_freed and not any(m.position == event.position for m in live)
    older = state.older_tokens - (event.tokens_freed if counted else 0)
    return change_prefix(replace(state, version=version, older_tokens=older), live)


def _change_frame(state: Conversation, event: RequestFrameChanged, version: int) -> Conversation:
    pending = state.answer_pending
    frame = known_frame(state.frame, event, version)
    state = replace(state, version=version, frame=frame)
    if not event.binds_thinking:
        return state
    # The answer that follows was requested with this frame.
    return replace(change_prefix(state, state.live), answer_pending=pending)


def _shorten(
    state: Conversation, parts: Iterable[ShortenedPart | SaidPart], version: int
) -> Conversation:
    freed: dict[int, int] = {}
    for part in parts:
        freed[part.position] = freed.get(part.position, 0) + part.tokens_freed
    live = [
        _shorten_message(m, freed[m.position], version) if m.position in freed else m
        for m in state.live
    ]
    return change_prefix(replace(state, version=version), live)


def _record_notes(state: Conversation, event: NotesFlushed, version: int) -> Conversation:
    versions = (*state.notes_versions, version)[-NOTES_REMEMBERED:]
    # Notes that replace others, and notes on demand, do not start a new cycle.
    if event.replaces is not None or event.is_on_demand:
        return replace(state, version=version, notes_versions=versions)
    return replace(
        state,
        version=version,
        notes_to=max(state.notes_to, event.stop),
        notes_at=state.compactions,
        notes_versions=versions,
    )


def _change_pins(
    state: Conversation, event: MessagePinned | MessageUnpinned, version: int
) -> Conversation:
    if isinstance(event, MessagePinned):
        pin = Pin(event.pin_id, version, event.position, event.tokens)
        pins, shown = (*state.pins, pin), event.tokens > 0
    else:
        pins = tuple(pin for pin in state.pins if pin.pin_id != event.pin_id)
        shown = any(pin.tokens for pin in state.pins if pin.pin_id == event.pin_id)
    if not shown:
        return replace(state, version=version, pins=pins)
    # Adding or removing a line of the ledger changes the prefix of every message.
    return change_prefix(replace(state, version=version, pins=pins), state.live)


def _quote_memories(state: Conversation, event: MemoriesChosen, version: int) -> Conversation:
    quoted_at = version if event.tokens else 0
    state = replace(state, version=version, memories_tokens=event.tokens, memories_at=quoted_at)
    return change_prefix(state, state.live)


def _shorten_message(message: LiveMessage, freed: int, version: int) -> LiveMessage:
    return message._replace(tokens=message.tokens - freed, offloads=(*message.offloads, version))


def _add_lines(state: Conversation, event: LinesRecalled, version: int) -> Conversation:
    live, tokens = state.live, state.live_tokens
    newest_first = reversed(range(len(live)))
    at = next((at for at in newest_first if live[at].position == event.position), None)
    if at is not None:
        tokens += event.tokens
        shown = live[at]._replace(tokens=live[at].tokens + event.tokens, recalled_at=version)
        live = (*live[:at], shown, *live[at + 1 :])
    state = replace(state, version=version)
    if event.position < state.length - 1:
        # An answer was stored before the lines were recorded. It may not have been asked with them.
        return change_prefix(state, live)
    return replace(state, live=live, live_tokens=tokens)
