"""What a copy of an old version lacks: the record of what was erased of it since, and a summary of it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.domain.choosing_memories import withdraw_memories
from refold.domain.conversation import Conversation
from refold.domain.erasing import WITHDRAWN, Withdrawn, erase_messages
from refold.domain.events import Event, MessageErased, Rewritten
from refold.domain.remembering import MemoriesChosen, NotesFlushed

from .erasing_plan import erased_message
from .lineage import read
from .remaking import remade
from .renoting import renoted


class _Later(NamedTuple):
    """What was erased of a conversation after a version of it."""

    messages: Mapping[int, MessageErased] = {}
    """Of the messages that it had by then, by position."""
    rewritten: Mapping[int, tuple[Rewritten, int]] = {}
    """By version, up to that one: what is left of the event, and the message that it was erased for."""


def erased_since(
    core: Core, then: LoadedConversation, state: Conversation, into: str
) -> tuple[Event, ...]:
    """What must follow a copy of the conversation as it was ``then``, which has come to ``state`` since.

    Each event of it that has lost content is vouched for, and the active summary is made anew for
    ``into`` if it was withdrawn.
    """
    later = _erased_later(core, then)
    vouched = _vouched(core, then, later) if later.rewritten else ()
    gone = [erased_message(then, e.position, e.message_id, e.tokens) for e in vouched]
    pins = frozenset(pin.pin_id for pin in state.pins if pin.version in later.rewritten)
    withdrawn = Withdrawn(pins=pins, memories=then.window.memories is None)
    events = erase_messages(
        state, gone, {e.position: e.rewritten for e in vouched}, withdrawn=withdrawn
    )
    reasons = {event.position: event.reason for event in vouched}
    recorded = (
        e.replaced(reason=reasons[e.position]) if isinstance(e, MessageErased) else e
        for e in events
    )
    lost = frozenset(later.messages)
    return (
        *recorded,
        *_quotations(core, then, state),
        *_summary(core, then, lost, into),
        *_notes(core, then, later, lost),
    )


def _quotations(
    core: Core, then: LoadedConversation, state: Conversation
) -> tuple[MemoriesChosen, ...]:
    """Vouch for choices of memories that were withdrawn since, for what other conversations lost."""
    version, newest = then.state.version, core.log.load(then.thread_id).state.version
    rewritten = {
        one.version: one
        for logged in read(core, then.thread_id, version + 1, newest)
        if isinstance(logged.event, MemoriesChosen)
        for one in logged.event.rewritten
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
    return remade(core, then, gone, into).events


def _notes(
    core: Core, then: LoadedConversation, later: _Later, gone: frozenset[int]
) -> tuple[Event, ...]:
    """What is noted anew in the place of notes that lost their content since."""
    withdrawn = {
        version: logged.event
        for version in sorted(later.rewritten)
        for logged in core.log.read(then.thread_id, version, version)
        if isinstance(logged.event, NotesFlushed)
    }
    return renoted(core, then.thread_id, withdrawn, gone, then.state.version).events


def _erased_later(core: Core, then: LoadedConversation) -> _Later:
    version, newest = then.state.version, core.log.load(then.thread_id).state.version
    messages: dict[int, MessageErased] = {}
    rewritten: dict[int, tuple[Rewritten, int]] = {}
    for logged in read(core, then.thread_id, version + 1, newest):
        event = logged.event
        if not isinstance(event, MessageErased):
            continue
        if event.position < then.state.length:
            messages[event.position] = event
        # Of an event that lost content twice, what the second time left is there.
        here = (one for one in event.rewritten if one.version <= version)
        rewritten.update((one.version, (one, event.position)) for one in here)
    return _Later(messages, rewritten)


def _vouched(core: Core, then: LoadedConversation, later: _Later) -> Sequence[MessageErased]:
    """The erasures, each with those events of the copy that it vouches for."""
    owners = dict(later.messages)
    by_position: dict[int, list[Rewritten]] = {position: [] for position in owners}
    for _, (one, position) in sorted(later.rewritten.items()):
        if position not in owners:
            # It quoted a message that the copy does not have. Another erasure can vouch for it; without
            # one, nothing in the copy tells of an erasure, and it is an event like any other.
            owner = next(iter(owners.values()), None) or _any_before(core, then)
            if owner is None:
                continue
            position = owner.position
            owners[position] = owner
        by_position.setdefault(position, []).append(one)
    return [
        event.replaced(rewritten=tuple(by_position[position]))
        for position, event in sorted(owners.items())
    ]


def _any_before(core: Core, then: LoadedConversation) -> MessageErased | None:
    events = (logged.event for logged in read(core, then.thread_id, 1, then.state.version))
    return next((event for event in events if isinstance(event, MessageErased)), None)
