"""The decisions about edits that a model asks for: propose one, allow or refuse it, note or withdraw a text."""

from .conversation import Conversation
from .errors import InvalidMessage, InvalidSetting
from .events import BY_ERASURE, EditDecided, EditProposed
from .notes import Note, NotesFlushed

MOST_OPEN = 64
"""Maximum number of open proposals. Each is read when they are listed."""
LONGEST_NAME = 100
"""Maximum number of characters of the name of an author."""
BY_PROGRAM = "program"
_TAKEN = ("ledger", BY_ERASURE)
"""Names that say that code took notes, or that an erasure closed a proposal."""


def read_name(name: object, setting: str) -> str:
    """Return the name of who asks or decides, from the argument ``setting``.

    Raises:
        InvalidSetting: the name is blank, has several lines, is too long, or is one that refold uses itself.
    """
    given, found = str(name), name.strip() if isinstance(name, str) else ""
    if not found or len(found) > LONGEST_NAME or not found.isprintable() or found in _TAKEN:
        raise InvalidSetting(
            f"{setting}={given[:40]!r} is invalid: give a name in one line of at most {LONGEST_NAME} "
            f"characters, such as 'planner', and not {' or '.join(_TAKEN)}",
            setting=setting,
            value=given,
        )
    return found


def propose_edit(
    state: Conversation, proposal: EditProposed, *, waits: bool = True
) -> tuple[EditProposed, ...]:
    """Record a proposal; ``waits`` unless its decision follows at once.

    Raises:
        InvalidMessage: nothing was said yet, or there are 64 open proposals already.
    """
    if not state.length:
        raise InvalidMessage("conversation", "has no messages yet: there is nothing to edit")
    if waits and len(state.edits) >= MOST_OPEN:
        raise InvalidMessage(
            "edit",
            f"{MOST_OPEN} proposals wait for a decision already: no more can be made until then",
        )
    return (proposal,)


def decide_edit(
    state: Conversation, edit_id: str, *, allowed: bool, by: str, reason: str = ""
) -> tuple[EditDecided, ...]:
    """Decide an open proposal, or do nothing if it is not open."""
    if not is_open(state, edit_id):
        return ()
    return (EditDecided(edit_id=edit_id, allowed=allowed, by=by, reason=reason),)


def is_open(state: Conversation, edit_id: str) -> bool:
    """Return whether a proposal waits for its decision."""
    return any(edit.edit_id == edit_id for edit in state.edits)


def remember_note(
    state: Conversation, edit_id: str, note: Note, author: str
) -> tuple[NotesFlushed, ...]:
    """Take a note on demand. Its range is empty, because no messages were read for it."""
    now = state.length
    return (NotesFlushed(flush_id=edit_id, start=now, stop=now, notes=(note,), taken_by=author),)


def withdraw_note(
    state: Conversation, edit_id: str, target: str, author: str
) -> tuple[NotesFlushed, ...]:
    """Withdraw the note that has the id ``target``."""
    now = state.length
    return (
        NotesFlushed(
            flush_id=edit_id, start=now, stop=now, notes=(), taken_by=author, replaces=target
        ),
    )
