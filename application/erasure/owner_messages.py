"""Which messages are an owner's, with their copies, and what other conversations quote of them."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import StreamPlaces
from refold.application.ports.conversation_log import Erasure, Loading
from refold.application.runtime.core import Core
from refold.domain.choosing_memories import withdraw_memories
from refold.domain.erasing import remains_of
from refold.domain.events import Event
from refold.domain.notes import MemoriesChosen
from refold.domain.value import Rewritten

from .erasing_plan import Done
from .erasure_report import Removed
from .lineage import copies


def messages_of_owner(core: Core, load: Loading, owner: str) -> Mapping[str, frozenset[int]]:
    """The positions of the messages of an owner, by conversation.

    Those that name the owner as their own, and in the owner's conversations those that name nobody else;
    and what was copied from such a conversation before the log said whose it is.
    """
    named = core.views.messages_of(owner)
    found: dict[str, frozenset[int]] = {}
    for row in core.views.conversations():
        state = load(row.thread_id).state if row.owner == owner else None
        if state is not None:
            # Every row is read: what is somebody else's must not go by mistake.
            rows = core.views.messages(row.thread_id, 0, state.length)
            found[row.thread_id] = frozenset(
                message.position for message in rows if message.owner in (None, owner)
            )
        elif row.thread_id in named:
            found[row.thread_id] = named[row.thread_id]
    related = {thread for fork in core.log.forks() for thread in (fork.source, fork.thread_id)}
    for thread_id in sorted(found.keys() & related):
        loaded = load(thread_id)
        for other, positions in copies(
            core, thread_id, _versions(core, loaded, found[thread_id])
        ).items():
            if not load(other).state.erased:
                found[other] = found.get(other, frozenset()) | positions
    return {thread_id: positions for thread_id, positions in found.items() if positions}


def is_known(core: Core, owner: str) -> bool:
    """Whether a conversation or a message is of an owner, erased messages as well."""
    has_own = any(row.owner == owner for row in core.views.conversations())
    return has_own or bool(core.views.messages_of(owner))


def _versions(
    core: Core, loaded: LoadedConversation, positions: frozenset[int]
) -> Mapping[int, int]:
    """The versions of messages, by position; those that were lost are left out."""
    rows = core.views.messages(loaded.thread_id, min(positions, default=0), loaded.state.length)
    return {row.position: row.version for row in rows if row.position in positions}


Positions = Mapping[str, Collection[int]]
"""Messages, by conversation."""
Choices = Mapping[int, MemoriesChosen]
"""Choices of memories, by version."""


class _Read(NamedTuple):
    """What a conversation quotes of others, as far as it was read."""

    version: int = 0
    choices: Choices = MappingProxyType({})


class Quotations:
    """The choices of memories that quote other conversations; what was read once is not read again."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[str, _Read] = {}

    def of(self, load: Loading, gone: Positions) -> Mapping[str, Choices]:
        """By conversation: the choices that quote one of these messages of another one."""
        owners = {load(thread_id).state.owner for thread_id in gone} - {None}
        if not owners:
            return {}  # Only conversations of the same owner quote each other.
        found: dict[str, Choices] = {}
        for row in self._core.views.conversations():
            if row.owner not in owners:
                continue
            quoting = {
                version: event
                for version, event in self._choices(load(row.thread_id)).items()
                if any(m.is_made_of(t, ps) for m in event.memories for t, ps in gone.items())
            }
            if quoting:
                found[row.thread_id] = quoting
        return found

    def _choices(self, loaded: LoadedConversation) -> Choices:
        thread_id, version = loaded.thread_id, loaded.state.version
        known = self._known.get(thread_id, _Read())
        if version > known.version:
            places = StreamPlaces(
                partial(self._core.log.read, thread_id), version, loaded.state.length
            )
            newer = {
                logged.version: logged.event
                for logged in places.decisions_after(known.version)
                if isinstance(logged.event, MemoriesChosen)
                and any(memory.thread_id for memory in logged.event.memories)
            }
            known = self._known[thread_id] = _Read(version, {**known.choices, **newer})
        return known.choices


def withdrawal(now: LoadedConversation, choices: Choices) -> tuple[Erasure, Done]:
    """Take these choices out of a conversation that loses nothing else, and record that."""
    remains = {version: remains_of(event, "") for version, event in choices.items()}

    def happened(rewritten: Sequence[Rewritten]) -> Sequence[Event]:
        present = now.window.memories
        kept = None if present in choices.values() else present
        return withdraw_memories(now.state, kept, rewritten)

    return Erasure(remains, happened), Done((), removed_quotations(now.thread_id, choices))


def removed_quotations(thread_id: str, choices: Choices) -> tuple[Removed, ...]:
    """What the report says of them."""
    return tuple(
        Removed(
            thread_id=thread_id,
            place="quoted memory",
            version=version,
            count=len(event.memories),
        )
        for version, event in sorted(choices.items())
    )
