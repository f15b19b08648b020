"""Fork a conversation: copy it without the content that was erased since."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar, cast

from refold.application.conversation.entries import held_entries
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.parsing import read_thread_id
from refold.application.erasure.erasing_plan import erased_message, rebuild_notes
from refold.application.erasure.rebuilt_summary import rebuild_summary
from refold.application.errors import LogDamaged
from refold.application.rendering.render import memories_size, memories_text
from refold.application.runtime.core import Core
from refold.domain.choosing_memories import withdraw_memories
from refold.domain.compaction.compacting import abandon_compaction
from refold.domain.conversation import Conversation
from refold.domain.erasing import Withdrawn, erase_messages
from refold.domain.errors import InvalidSetting
from refold.domain.events import WITHDRAWN, ConversationForked, EditProposed, Event, MessageErased
from refold.domain.evolve import fold
from refold.domain.frames import RequestFrameChanged
from refold.domain.messages import is_refused
from refold.domain.notes import MemoriesChosen, NotesFlushed, Rewritten
from refold.domain.value import replace

from .moments import At, load_at

E = TypeVar("E", bound=Event)
AT_ONCE = 200
"""Maximum number of events that are read at once. A statement takes a limited number of values."""


class _LaterErasures(NamedTuple):
    """Content that was erased from a conversation after a given version."""

    messages: Mapping[int, MessageErased] = {}
    """Erasures of messages that the copied version has, by position."""
    rewritten: Mapping[int, tuple[Rewritten, int]] = {}
    """Rewritten events in the copied version, each with the position of the message it was erased for."""


def later_erasures(
    core: Core, then: LoadedConversation, state: Conversation, into: str
) -> tuple[Event, ...]:
    """Return the events that a fork appends after the copied ones to record later erasures.

    ``then`` is the copied conversation and ``state`` its state in the fork. Every copied event that
    lost content is recorded as rewritten. If the active summary was withdrawn, it is rebuilt for
    ``into``.
    """
    later = _find_later_erasures(core, then)
    vouched = _assign_rewrites(core, then, later) if later.rewritten else ()
    gone = [erased_message(then, e.position, e.message_id, e.tokens) for e in vouched]
    pins = frozenset(pin.pin_id for pin in state.pins if pin.version in later.rewritten)
    withdrawn = Withdrawn(
        pins=pins, edits=_withdrawn_edits(core, then, later), memories=then.window.memories is None
    )
    events = erase_messages(
        state, gone, {e.position: e.rewritten for e in vouched}, withdrawn=withdrawn
    )
    reasons = {event.position: event.reason for event in vouched}
    recorded = (
        replace(e, reason=reasons[e.position]) if isinstance(e, MessageErased) else e
        for e in events
    )
    lost = frozenset(later.messages)
    return (
        *recorded,
        *_quotations(core, then, state),
        *_summary(core, then, lost, into),
        *_notes(core, then, later, lost),
    )


def _withdrawn_edits(core: Core, then: LoadedConversation, later: _LaterErasures) -> frozenset[str]:
    """Return the ids of the open proposals that quote a message erased later, or are about it."""
    proposed = core.log.read_at(then.thread_id, [edit.version for edit in then.state.edits])
    return frozenset(
        logged.event.edit_id
        for logged in proposed
        if isinstance(logged.event, EditProposed)
        and (logged.version in later.rewritten or logged.event.position in later.messages)
    )


def _quotations(
    core: Core, then: LoadedConversation, state: Conversation
) -> tuple[MemoriesChosen, ...]:
    """Record memory choices that were withdrawn because other conversations erased messages."""
    version = then.state.version
    rewritten = {
        one.version: one
        for event in _events_after(core, then, version, MemoriesChosen)
        for one in event.rewritten
        if one.version <= version
    }
    if not rewritten:
        return ()
    return withdraw_memories(state, then.window.memories, tuple(rewritten.values()))


def _summary(
    core: Core, then: LoadedConversation, gone: frozenset[int], into: str
) -> tuple[Event, ...]:
    summary = then.window.summary
    if summary is None or summary.text != WITHDRAWN:
        return ()
    return rebuild_summary(core, then, gone, into).events


def _notes(
    core: Core, then: LoadedConversation, later: _LaterErasures, gone: frozenset[int]
) -> tuple[Event, ...]:
    """Rebuild the notes that lost content after the copied version."""
    withdrawn = {
        version: logged.event
        for version in sorted(later.rewritten)
        for logged in core.log.read(then.thread_id, version, version)
        if isinstance(logged.event, NotesFlushed)
    }
    return rebuild_notes(core, then.thread_id, withdrawn, gone, then.state.version).events


def _find_later_erasures(core: Core, then: LoadedConversation) -> _LaterErasures:
    version = then.state.version
    messages: dict[int, MessageErased] = {}
    rewritten: dict[int, tuple[Rewritten, int]] = {}
    for event in _events_after(core, then, version, MessageErased):
        if event.position < then.state.length:
            messages[event.position] = event
        # If an event lost content twice, the newest form is the one in the log.
        here = (one for one in event.rewritten if one.version <= version)
        rewritten.update((one.version, (one, event.position)) for one in here)
    return _LaterErasures(messages, rewritten)


def _assign_rewrites(
    core: Core, then: LoadedConversation, later: _LaterErasures
) -> Sequence[MessageErased]:
    """Return the erasures, each with the rewritten events in the copy that it caused."""
    owners = dict(later.messages)
    by_position: dict[int, list[Rewritten]] = {position: [] for position in owners}
    for _, (one, position) in sorted(later.rewritten.items()):
        if position not in owners:
            # The event quoted a message that the copy does not have, so another erasure explains
            # it. Without any erasure, nothing in the copy mentions one, and the event is treated as
            # unchanged.
            owner = next(iter(owners.values()), None) or _find_erasure(core, then)
            if owner is None:
                continue
            position = owner.position
            owners[position] = owner
        by_position.setdefault(position, []).append(one)
    return [
        replace(event, rewritten=tuple(by_position[position]))
        for position, event in sorted(owners.items())
    ]


def _find_erasure(core: Core, then: LoadedConversation) -> MessageErased | None:
    """Return the first erasure that the copied version has, or None."""
    found = core.log.versions_of(then.thread_id, (MessageErased,), 0)
    first = [version for version in found[:1] if version <= then.state.version]
    return next(_events_at(core, then, first, MessageErased), None)


def _events_after(core: Core, then: LoadedConversation, version: int, kind: type[E]) -> Iterator[E]:
    """Yield the events of a kind after a version. No other events are read."""
    kinds = (cast("type[Event]", kind),)
    return _events_at(core, then, core.log.versions_of(then.thread_id, kinds, version), kind)


def _events_at(
    core: Core, then: LoadedConversation, versions: Sequence[int], kind: type[E]
) -> Iterator[E]:
    for first in range(0, len(versions), AT_ONCE):
        for logged in core.log.read_at(then.thread_id, versions[first : first + AT_ONCE]):
            if isinstance(logged.event, kind):
                yield logged.event


def fork(core: Core, thread_id: str, at: At | None, into: str | None) -> str:
    """Copy the conversation as it was at ``at``, or as it is if None, and return the id of the copy.

    Messages that were erased since are marked as erased in the copy, and a summary made from them
    is rebuilt. Blocks, and may run an event loop of its own: call it from a thread without one.

    Raises:
        ThreadExists: ``into`` is taken.
        InvalidThreadId: ``into`` is not a valid id.
        InvalidSetting: there is no such version, or the conversation was empty then.
        ConversationGone: the conversation was erased.
    """
    target = f"fork-{core.new_id()}" if into is None else read_thread_id(into)
    then = core.log.load(thread_id).present() if at is None else load_at(core, thread_id, at)
    version = then.state.version
    if version == 0:
        when = "" if at is None else f" at {at}"
        raise InvalidSetting(
            f"conversation {thread_id!r} has no events{when}: there is nothing to fork",
            setting="at",
            value=at,
        )

    def decide(copied: LoadedConversation) -> tuple[Event, ...]:
        return tuple(_first_events(core, copied, target))

    core.log.fork(thread_id, version, target, decide, at=core.clock())
    return target


def _first_events(core: Core, copied: LoadedConversation, into: str) -> Iterator[Event]:
    state = copied.state
    forked = ConversationForked(source=copied.thread_id, version=state.version)
    # A running attempt belongs to the other conversation and would never end in the copy.
    ended = abandon_compaction(state, "it was under way where the conversation was forked")
    yield forked
    yield from ended
    with suppress(LogDamaged):  # Events before the damage can still be copied.
        yield from later_erasures(core, copied, fold((forked, *ended), state), into)
        yield from _renew_frame(core, copied)
    yield from _resize_memories(core, copied, into)


def _renew_frame(core: Core, copied: LoadedConversation) -> Iterator[Event]:
    """Yield the newest frame again if messages are shown with addresses, since these name the copy.

    Thinking in the copy was signed for the addresses of its source: recording the frame again drops it.
    """
    frame = copied.state.frame
    if frame is None or not frame.binds_thinking:
        return  # Without a frame, the first one drops all thinking before it.
    if not any(message.thinking for message in copied.state.live) or not _shows_addresses(copied):
        return
    for logged in core.log.read_at(copied.thread_id, [frame.version]):
        if isinstance(logged.event, RequestFrameChanged):
            yield replace(logged.event, asked_at=copied.state.version, parts=())


def _shows_addresses(copied: LoadedConversation) -> bool:
    return bool(copied.window.previews) or any(
        entry.message.unknown or any(map(is_refused, entry.message.blocks()))
        for entry in held_entries(copied.window.entries)
    )


def _resize_memories(core: Core, copied: LoadedConversation, into: str) -> Iterator[Event]:
    """Yield the quoted memories with their size in the copy, since their addresses name the copy."""
    present = copied.window.memories
    if present is not None:
        source = memories_text(copied.thread_id, present.memories)
        if memories_text(into, present.memories) != source:
            # Thinking in the copy was signed for the old text: recording the new one drops it.
            tokens = memories_size(into, present.memories, core.counter.count_text)
            yield replace(present, tokens=tokens)
