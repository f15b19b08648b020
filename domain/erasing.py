"""Decisions to erase messages or a whole conversation, and the remaining content of each event."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, assert_never

from .choosing_memories import forget_memories
from .conversation import Conversation, Coverage
from .events import (
    BY_ERASURE,
    ERASED,
    WITHDRAWN,
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
    SummarySuperseded,
    ToolContentOffloaded,
    UserContentShortened,
)
from .frames import RequestFrameChanged
from .messages import SHOWN, Block, Message
from .notes import MemoriesChosen, NotesFlushed, Rewritten
from .value import replace


class ErasedMessage(NamedTuple):
    """A message to erase, with the sizes that change."""

    position: int
    message_id: str
    tokens: int
    """Tokens of the stub."""
    tokens_freed: int
    """Tokens freed in the context, after counting the stub; 0 if a summary covers the message."""


class Withdrawn(NamedTuple):
    """Texts written by people that are removed because they quote an erased message."""

    attempts: frozenset[str] = frozenset()
    """Ids of attempts whose summariser input is withdrawn."""
    pins: frozenset[str] = frozenset()
    edits: frozenset[str] = frozenset()
    """Ids of proposed edits that quote the message or are about it."""
    label: str | None = None
    """Label that replaces the current one, or None if the current one stays."""
    memories: bool = False
    """Whether the quoted memories are withdrawn. If so, no memories are quoted any more."""


NOTHING_WITHDRAWN = Withdrawn()


def make_stub(message: Message, marker: str) -> Message:
    """Return the stub of an erased message: its role, its part in tool rounds, and ``marker`` as its text.

    Providers reject a call without its result and a message without content, so both stay.
    """
    message = replace(message, extra=None)
    if isinstance(message.content, str):
        return replace(message, content=marker)
    kept: list[Block] = []
    for block in message.content:
        stub = _stub(block, message.role, marker)
        if stub is not None and not (stub.get("type") == "text" and stub in kept):
            kept.append(stub)
    return replace(message, content=tuple(kept or [{"type": "text", "text": marker}]))


def _stub(block: Block, role: str, marker: str) -> Block | None:
    kind, marked = block.get("type"), {"type": "text", "text": marker}
    if kind == "text":
        return marked if str(block.get("text") or "").strip() else None
    if kind == "tool_use" and role == "assistant":
        return {**_select_fields(block, "type", "id", "name"), "input": {}}
    if kind == "tool_result" and role == "user":
        kept = _select_fields(block, "type", "tool_use_id")
        failed = {"is_error": True} if block.get("is_error") is True else {}
        return {**kept, "content": marker, **failed}
    return marked if kind in SHOWN and role == "user" else None


def _select_fields(block: Block, *names: str) -> Block:
    return {name: block[name] for name in names if name in block}


def strip_event(event: Event, marker: str) -> Event:
    """Return the event without text from messages. Facts that decisions depend on stay.

    ``marker`` replaces the words of a message. Sizes do not change, so that the totals of the history stay
    correct.
    """
    match event:
        case MessageAppended():
            return replace(event, message=make_stub(event.message, marker), original=None)
        case CompactionRequested():
            return replace(event, source_digest="")
        case CompactionPerformed():
            return _withdraw_summary(event)
        case CompactionFailed():
            return replace(event, detail="")
        case MessagePinned():
            return replace(event, text=marker if event.text else "")
        case EditProposed():
            return replace(event, text=marker if event.text else "")
        case NotesFlushed():
            return replace(event, notes=())
        case MemoriesChosen():
            return replace(event, memories=())
        case LinesRecalled():
            return replace(event, lines=())
        case (
            CompactionReverted()
            | SummarySuperseded()
            | ToolContentOffloaded()
            | MessagesCondensed()
            | UserContentShortened()
            | MessageUnpinned()
            | ConversationLabelled()
            | EditDecided()
            | MessageErased()
            | ConversationErased()
            | ConversationForked()
            | RequestFrameChanged()
            | EventLost()
        ):
            return event
        case _:
            assert_never(event)


def _withdraw_summary(event: CompactionPerformed) -> CompactionPerformed:
    leaf = replace(event.leaf, text=WITHDRAWN) if event.leaf else None
    earlier = tuple(replace(one, text=WITHDRAWN) for one in event.earlier)
    return replace(
        event,
        text=WITHDRAWN,
        source_digest="",
        split_turn_prefix=WITHDRAWN if event.split_turn_prefix else None,
        ledger=(),
        ledger_shown=0,
        leaf=leaf,
        earlier=earlier,
        block=None,
        topics=(),
        topics_shown=0,
        index=(),
        index_shown=0,
    )


def is_made_from(event: Event, positions: frozenset[int], attempts: Mapping[str, Coverage]) -> bool:
    """Return whether an event contains text of messages at these positions, or text derived from it.

    ``attempts`` maps each attempt id to the coverage it requested, because a failure has only the id.
    """
    match event:
        case MessageAppended():
            return event.position in positions
        case CompactionRequested() | CompactionPerformed():
            return covers_any(event.coverage, positions)
        case CompactionFailed():
            coverage = attempts.get(event.attempt_id)
            return coverage is not None and covers_any(coverage, positions)
        case MessagePinned():
            return event.position in positions
        case EditProposed():
            return event.position in positions
        case NotesFlushed():
            return any(event.start <= position < event.stop for position in positions)
        case MemoriesChosen():
            return any(memory.position in positions for memory in event.memories)
        case LinesRecalled():
            # The lines say what the message asked for.
            return not positions.isdisjoint((event.position, *(o.position for o in event.lines)))
        case (
            CompactionReverted()
            | SummarySuperseded()
            | ToolContentOffloaded()
            | MessagesCondensed()
            | UserContentShortened()
            | MessageUnpinned()
            | ConversationLabelled()
            | EditDecided()
            | MessageErased()
            | ConversationErased()
            | ConversationForked()
            | RequestFrameChanged()
            | EventLost()
        ):
            return False
        case _:
            assert_never(event)


def covers_any(coverage: Coverage | None, positions: Iterable[int]) -> bool:
    """Return whether a coverage contains at least one of the positions."""
    return coverage is not None and any(map(coverage.covers, positions))


def erase_messages(
    state: Conversation,
    messages: Sequence[ErasedMessage],
    rewritten: Mapping[int, Sequence[Rewritten]],
    remade: Sequence[Event] = (),
    reason: str = "",
    withdrawn: Withdrawn = NOTHING_WITHDRAWN,
) -> tuple[Event, ...]:
    """Record that these messages are erased, or do nothing if there are none.

    ``rewritten`` maps positions to the events that lost content. ``remade`` are the events that replace
    the active summary. A running attempt that covers an erased message is ended, and pins of erased
    messages are removed. ``withdrawn`` texts quote an erased message and are removed too.
    """
    if not messages:
        return ()
    positions = frozenset(message.position for message in messages)
    return (
        *_end_attempt(state, positions, withdrawn.attempts),
        *(
            MessageUnpinned(pin_id=pin.pin_id)
            for pin in state.pins
            if pin.position in positions or pin.pin_id in withdrawn.pins
        ),
        *(
            EditDecided(edit_id=edit.edit_id, allowed=False, by=BY_ERASURE, reason=ERASED)
            for edit in state.edits
            if edit.edit_id in withdrawn.edits
        ),
        *(
            MessageErased(
                position=message.position,
                message_id=message.message_id,
                tokens=message.tokens,
                tokens_freed=message.tokens_freed,
                rewritten=tuple(rewritten.get(message.position, ())),
                reason=reason,
            )
            for message in messages
        ),
        *remade,
        *(forget_memories(state) if withdrawn.memories else ()),
        *((ConversationLabelled(label=withdrawn.label),) if withdrawn.label else ()),
    )


def _end_attempt(
    state: Conversation, positions: frozenset[int], attempts: frozenset[str]
) -> tuple[CompactionFailed, ...]:
    attempt = state.attempt
    if attempt is None:
        return ()
    if attempt.attempt_id not in attempts and not covers_any(attempt.coverage, positions):
        return ()
    # The attempt must end, because its summary may contain the erased content.
    return (
        CompactionFailed(
            attempt_id=attempt.attempt_id,
            reason=ERASED,
            detail="something that it was to work with was erased",
            live_tokens=state.tokens,
        ),
    )


def erase_conversation(state: Conversation, reason: str = "") -> tuple[ConversationErased, ...]:
    """Record that everything is erased, or do nothing if it already is or the conversation is empty."""
    if state.erased or not state.version:
        return ()
    return (ConversationErased(reason=reason),)
