"""Takes notes anew, by code, of what remains where some of the messages that they came from are erased."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from refold.application.core import Core
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.domain.noting import LEDGER, fitting_notes, notes_by_code
from refold.domain.remembering import Note, NotesFlushed

from .lineage import read

REASON = "erased"


class Renoted(NamedTuple):
    """Notes in the place of some that must go."""

    replaces: frozenset[str] = frozenset()
    """The ids of the others."""
    events: tuple[NotesFlushed, ...] = ()


def renoted(
    core: Core,
    thread_id: str,
    withdrawn: Mapping[int, NotesFlushed],
    gone: frozenset[int],
    version: int,
    known: Sequence[Note] = (),
) -> Renoted:
    """New notes for each of ``withdrawn``, by version: of the same messages, but for those that are
    ``gone``, and of the time at which those were taken.

    ``version``: of the conversation. ``known``: what stays noted elsewhere, and is not noted twice. Needs
    no model; with notes turned off, nothing takes their place.
    """
    replaces = frozenset(flush.flush_id for flush in withdrawn.values())
    if core.settings.notes.by == "off" or not withdrawn:
        return Renoted(replaces)
    left = _left(core, thread_id, list(withdrawn.values()), gone, version)
    logged_at = {one.version: one.at for one in core.log.read_at(thread_id, withdrawn)}
    noted, events = list(known), list[NotesFlushed]()
    for at, flush in withdrawn.items():
        own = {p: m for p, m in left.items() if flush.start <= p < flush.stop}
        notes = fitting_notes(notes_by_code(own.items()), noted, frozenset(own))
        noted += notes
        events.append(_anew(core, flush, notes, flush.taken_at or logged_at[at]))
    return Renoted(replaces, tuple(events))


def _anew(core: Core, flush: NotesFlushed, notes: tuple[Note, ...], taken_at: str) -> NotesFlushed:
    return NotesFlushed(
        flush_id=core.new_id(),
        start=flush.start,
        stop=flush.stop,
        notes=notes,
        taken_by=LEDGER,
        reason=REASON,
        replaces=flush.flush_id,
        taken_at=taken_at,
    )


def _left(
    core: Core,
    thread_id: str,
    withdrawn: Sequence[NotesFlushed],
    gone: frozenset[int],
    version: int,
) -> Mapping[int, Message]:
    """The messages of all of them that are left, by position, oldest first."""
    stop = max(flush.stop for flush in withdrawn)
    found: dict[int, Message] = {}
    # A message never has a smaller version than the number of messages up to it.
    for logged in read(core, thread_id, 1 + min(flush.start for flush in withdrawn), version):
        event = logged.event
        if not isinstance(event, MessageAppended):
            continue
        if event.position >= stop:
            break
        if not logged.erased and event.position not in gone:
            found[event.position] = event.message
    return found
