"""Edits that a model asks for: propose them, carry them out, list the open ones, allow or refuse one."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from refold.application.compaction.pinning import find_pin, pin_content
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import places_in
from refold.application.erasure.erasing import erase, shared_with
from refold.application.erasure.erasure_report import ErasureReport
from refold.application.notes.note_files import write_notes
from refold.application.notes.note_taking import earlier_flushes
from refold.application.runtime.core import Core, Extras
from refold.domain.editing import (
    BY_PROGRAM,
    decide_edit,
    is_open,
    propose_edit,
    remember_note,
    withdraw_note,
)
from refold.domain.errors import EditClosed, InvalidMessage, UnknownEdit
from refold.domain.events import (
    EditAction,
    EditDecided,
    EditProposed,
    Event,
    MessagePinned,
)
from refold.domain.notes import Note, NoteKind
from refold.domain.noting import fitting_notes
from refold.domain.pinning import unpin
from refold.domain.value import Value

from .tool_scope import EditMode

PINNED_SHARE = 10
"""Part of the window that a model may fill with pins, as a divisor: they are in every request."""


class EditProposal(Value, frozen=True):
    """An edit that a model asked for and that waits for a decision."""

    edit_id: str
    action: EditAction
    text: str
    """Text to remember or to pin, without credentials. It is data: a model wrote it."""
    position: int | None
    """Position of the message to pin or to erase, or None."""
    kind: NoteKind | None
    """Kind of the note to remember, or None."""
    target: str | None
    """Id of the pin to remove or of the note to withdraw, or None."""
    author: str
    """Name of the agent, as given to ``conversation.tools``."""
    proposed_at: str
    """Time of the call: ISO 8601, UTC."""


class AllowedEdit(Value, frozen=True):
    """The outcome of allowing an edit."""

    edit_id: str
    """Id of the edit, and of the pin or the note that it made."""
    action: EditAction
    changed: bool
    """False if nothing was left to do: it was allowed before, or the same had been done in another way."""
    erasure: ErasureReport | None = None
    """Report of the erasure, if a message was erased."""


class Wanted(NamedTuple):
    """An edit that a model asks for."""

    action: EditAction
    text: str = ""
    position: int | None = None
    kind: NoteKind | None = None
    target: str | None = None

    def proposed(self, edit_id: str, author: str) -> EditProposed:
        """Return the event that proposes it."""
        return EditProposed(
            edit_id=edit_id,
            action=self.action,
            text=self.text,
            position=self.position,
            kind=self.kind,
            target=self.target,
            author=author,
        )


class Asked(NamedTuple):
    """The outcome of a call."""

    edit_id: str
    """Id of the edit, or of the earlier pin or note with the same content."""
    outcome: Literal["proposed", "waiting", "known", "done"]
    """``waiting``: the same is proposed already. ``known``: the same is pinned or noted already."""


def ask_edit(core: Core, thread_id: str, wanted: Wanted, mode: EditMode, author: str) -> Asked:
    """Record what a model asks for, and carry it out in the same commit if ``mode`` allows that.

    A message that other conversations have as well is only proposed to be erased. May erase: call it from
    a thread without an event loop.

    Raises:
        ConversationGone: the conversation was erased.
        InvalidMessage: nothing was said yet, too many proposals wait, or the pins would take too much room.
        UnknownMessage: there is no message at this position.
    """
    erases = wanted.action == "forget" and wanted.position is not None
    if mode == "allow" and erases and shared_with(core, thread_id, wanted.position):
        mode = "propose"
    made = wanted.proposed(core.new_id(), author)
    asked = fresh = Asked(made.edit_id, "proposed" if mode == "propose" else "done")
    standing = _standing_notes(core, thread_id, wanted.target)

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal asked
        asked = _find_known(core, loaded.present(), made) or fresh
        if asked is not fresh:
            return ()
        proposed = propose_edit(loaded.state, made, waits=mode == "propose")
        effects = () if erases else _effects(core, loaded, made, standing)
        _check_room(core, loaded, made, effects)
        if mode == "propose":
            return proposed
        decided = EditDecided(edit_id=made.edit_id, allowed=True, by=BY_PROGRAM)
        return (*proposed, decided, *effects)

    if mode == "allow" and erases:
        report = erase(core, thread_id, wanted.position or 0, _reason(made), decide)
        return asked if report.positions or asked is not fresh else Asked("", "known")
    core.log.transact(thread_id, decide, at=core.clock())
    if mode == "allow":
        _write_notes(core, made)
    return asked


def list_proposals(core: Core, thread_id: str) -> tuple[EditProposal, ...]:
    """Return the edits that wait for a decision, oldest first."""
    return tuple(_read_proposals(core, core.log.load(thread_id)))


def allow_edit(core: Core, thread_id: str, edit_id: str, by: str) -> AllowedEdit:
    """Carry out a proposed edit. Allowing it again changes nothing.

    May erase: call it from a thread without an event loop.

    Raises:
        UnknownEdit: no edit of this id was proposed.
        EditClosed: it was refused, or a message that it was about was erased.
        ConversationGone: the conversation was erased.
        InvalidMessage: there are too many pins; the proposal still waits.
    """
    loaded = core.log.load(thread_id).present()
    found = next((one for one in _read_proposals(core, loaded) if one.edit_id == edit_id), None)
    if found is None:
        return _allowed_before(core, loaded, edit_id)
    made = EditProposed.model_validate(found.model_dump(exclude={"proposed_at"}))
    standing, changed = _standing_notes(core, thread_id, made.target), False

    def decide(now: LoadedConversation) -> Sequence[Event]:
        nonlocal changed
        decided = decide_edit(now.present().state, edit_id, allowed=True, by=by)
        effects = _effects(core, now, made, standing) if decided else ()
        changed = bool(effects)
        return (*decided, *effects)

    if made.action == "forget" and made.position is not None:
        report = erase(core, thread_id, made.position, _reason(made), decide)
        if report.positions:
            return AllowedEdit(edit_id=edit_id, action="forget", changed=True, erasure=report)
        # Others decided it meanwhile, or damage lost the message: record the decision if it is open.
    loaded, events = core.log.transact(thread_id, decide, at=core.clock())
    if not events:
        return _allowed_before(core, loaded, edit_id)
    _write_notes(core, made)
    return AllowedEdit(edit_id=edit_id, action=made.action, changed=changed)


def refuse_edit(core: Core, thread_id: str, edit_id: str, by: str, reason: str) -> bool:
    """Refuse a proposed edit. Return False if it was refused before.

    Raises:
        UnknownEdit: no edit of this id was proposed.
        EditClosed: it was allowed.
        ConversationGone: the conversation was erased.
    """
    loaded, events = core.log.transact(
        thread_id,
        lambda now: decide_edit(now.present().state, edit_id, allowed=False, by=by, reason=reason),
        at=core.clock(),
    )
    if not events and (decided := _decision(core, loaded, edit_id)[1]).allowed:
        raise EditClosed(edit_id, allowed=True, by=decided.by)
    return bool(events)


def take_note_back(core: Core, thread_id: str, edit_id: str) -> bool:
    """Withdraw a note that a model asked for. Return False if no note has this id.

    Raises:
        ConversationGone: the conversation was erased.
    """
    standing = _standing_notes(core, thread_id, edit_id)

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        state = loaded.present().state
        if edit_id not in standing:
            return ()
        return withdraw_note(state, core.new_id(), edit_id, BY_PROGRAM)

    _, events = core.log.transact(thread_id, decide, at=core.clock())
    if events:
        write_notes(core)
    return bool(events)


def fit_note(kind: NoteKind, text: str) -> str | None:
    """Return a text as a note: one line without credentials. None if nothing is left to note."""
    fitted = fitting_notes((Note(kind=kind, text=text),), (), frozenset())
    return fitted[0].text if fitted else None


def _standing_notes(core: Core, thread_id: str, target: str | None) -> frozenset[str]:
    """Return the ids of the notes that a model asked for and that were not withdrawn, if there is a target.

    Without one they are not needed, and reading them may write read models, after which a cancelled caller waits.
    """
    if target is None:
        return frozenset()
    return frozenset(row.flush_id for row in core.views.notes(thread_id) if row.is_on_demand)


def find_target(core: Core, thread_id: str, target: str) -> bool:
    """Return whether a text is the id of a pin, or of a note that a model asked for."""
    pins = core.log.load(thread_id).state.pins
    return any(pin.pin_id == target for pin in pins) or target in _standing_notes(
        core, thread_id, target
    )


def _find_known(core: Core, loaded: LoadedConversation, made: EditProposed) -> Asked | None:
    """Return the earlier edit with the same content, if there is one."""
    for waiting in _read_proposals(core, loaded):
        same = {**made.model_dump(), "edit_id": waiting.edit_id, "proposed_at": waiting.proposed_at}
        if waiting.model_dump() == same:
            return Asked(waiting.edit_id, "waiting")
    match made.action:
        case "pin":
            known = find_pin(loaded, _pinned(made))
        case "remember":
            known = _find_note(core, loaded, made)
        case "forget":
            known = None
    return None if known is None else Asked(known, "known")


def _find_note(core: Core, loaded: LoadedConversation, made: EditProposed) -> str | None:
    """Return the id of the newest flush that has the same note."""
    wanted = _note(made)
    for flush in reversed(earlier_flushes(core, loaded)):
        if not fitting_notes((wanted,), flush.notes, frozenset()):
            return flush.flush_id
    return None


def _pinned(made: EditProposed) -> int | str:
    """Return the position of the message to pin, or the text."""
    return made.text if made.position is None else made.position


def _note(made: EditProposed) -> Note:
    return Note(kind=made.kind or "fact", text=made.text)


def _effects(
    core: Core, loaded: LoadedConversation, made: EditProposed, standing: frozenset[str]
) -> Sequence[Event]:
    """Return the events of an edit that erases nothing; none if the same was done already."""
    state = loaded.state
    match made:
        case EditProposed(action="remember"):
            known = _find_note(core, loaded, made)
            return () if known else remember_note(state, made.edit_id, _note(made), made.author)
        case EditProposed(action="pin"):
            return pin_content(core, loaded, _pinned(made), made.edit_id)
        case EditProposed(target=str(target)) if target in standing:
            return withdraw_note(state, made.edit_id, target, made.author)
        case EditProposed(target=str(target)):
            return unpin(state, target)
        case _:
            return ()


def _check_room(
    core: Core, loaded: LoadedConversation, made: EditProposed, effects: Sequence[Event]
) -> None:
    """Raise if the pins of the conversation would take too much of every request."""
    if not any(isinstance(event, MessagePinned) for event in effects):
        return
    state = loaded.state
    places = state.pinned_positions | frozenset(() if made.position is None else (made.position,))
    lines = sum(e.tokens for e in effects if isinstance(e, MessagePinned))
    tokens = sum(pin.tokens for pin in state.pins) + lines
    tokens += sum(message.tokens for message in state.live if message.position in places)
    most = core.budget(Extras()).window // PINNED_SHARE
    if tokens > most:
        raise InvalidMessage(
            "pin",
            f"pinned content would take {tokens:,} tokens of every request, and {most:,} are the most: "
            "pin the few words that matter as a text, or forget another pin first",
        )


def _read_proposals(core: Core, loaded: LoadedConversation) -> Iterator[EditProposal]:
    versions = [edit.version for edit in loaded.state.edits]
    for logged in core.log.read_at(loaded.thread_id, versions) if versions else ():
        if isinstance(logged.event, EditProposed) and is_open(loaded.state, logged.event.edit_id):
            yield EditProposal(**logged.event.model_dump(), proposed_at=logged.at)


def _allowed_before(core: Core, loaded: LoadedConversation, edit_id: str) -> AllowedEdit:
    """Return the outcome of allowing an edit again.

    Raises:
        UnknownEdit, EditClosed: it was not allowed.
    """
    proposed, decided = _decision(core, loaded, edit_id)
    if not decided.allowed:
        raise EditClosed(edit_id, allowed=False, by=decided.by)
    return AllowedEdit(edit_id=edit_id, action=proposed.action, changed=False)


def _decision(
    core: Core, loaded: LoadedConversation, edit_id: str
) -> tuple[EditProposed, EditDecided]:
    """Return a decided edit with its decision. The state has only those that wait, so the log is searched.

    Raises:
        UnknownEdit: no edit of this id was decided.
    """
    places = places_in(core, loaded.thread_id, loaded.state.version, loaded.state.length)
    proposed: EditProposed | None = None
    for logged in places.decisions_after(0):
        event = logged.event
        if isinstance(event, EditProposed) and event.edit_id == edit_id:
            proposed = event
        if proposed and isinstance(event, EditDecided) and event.edit_id == edit_id:
            return proposed, event
    waiting = [edit.edit_id for edit in loaded.state.edits]
    raise UnknownEdit(edit_id, loaded.thread_id, waiting)


def _reason(made: EditProposed) -> str:
    return f"edit {made.edit_id}"


def _write_notes(core: Core, made: EditProposed) -> None:
    if made.action == "remember" or made.target is not None:
        write_notes(core)
