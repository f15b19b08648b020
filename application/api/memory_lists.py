"""Lists and notes over all conversations of a memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from refold.application.runtime.core import Core

from .argument_checks import checked, invalid_argument, read_owner

if TYPE_CHECKING:
    from refold.application.notes.markdown_search import NotesFound, NotesStatus
    from refold.application.ports.read_models import (
        ConversationOrder,
        ConversationRow,
        ConversationsPage,
        NoteRow,
    )
    from refold.application.runtime.memory_settings import RecallMode


LARGEST_PAGE = 1_000
_NO_LIST = 1 << 62
"""Length that no list reaches; a store accepts no larger number."""
ORDERS: tuple[ConversationOrder, ...] = (
    "activity",
    "messages",
    "size",
    "age",
    "compactions",
    "failures",
    "compacted",
)


@checked
class MemoryLists:
    """Lists and notes over all conversations of a memory."""

    def __init__(self, core: Core) -> None:
        self._opened = core

    @property
    def _core(self) -> Core:
        self._opened.process.check()
        return self._opened

    def conversations(self, *, owner: str | None = None) -> Sequence[ConversationRow]:
        """Return all conversations, latest activity first; with ``owner`` only those of that owner.

        Raises:
            InvalidOwner: the owner is blank or invalid.
        """
        views, owner = self._core.views, read_owner(owner)
        return views.conversations() if owner is None else views.conversations_of(owner)

    def conversations_page(
        self,
        start: int = 0,
        count: int = 100,
        *,
        owner: str | None = None,
        order: ConversationOrder = "activity",
    ) -> ConversationsPage:
        """Return a part of the list of conversations, however long it is, with the outcome of compactions.

        ``start``: index of the first one in the sorted list. ``count``: most conversations, up to 1,000.
        ``owner``: list only the conversations of this owner.
        ``order``: ``activity`` (the latest first), ``messages`` (the most first), ``size`` (the most tokens
        first), ``age`` (the oldest first), ``compactions`` or ``failures`` (the most first) or ``compacted``
        (the latest attempt of a compaction first).

        Raises:
            InvalidSetting: an option is invalid; the message says what is allowed.
            InvalidOwner: the owner is blank or invalid.
        """
        whose = read_owner(owner)
        _check_page(start, count, order)
        return self._core.views.conversations_page(start, count, whose, order)

    def iter_conversations(self) -> Iterator[ConversationRow]:
        """Iterate over all conversations in the order of their ids, with a few hundred in memory at a time.

        A conversation that begins in the meantime may be omitted.
        """
        return self._core.views.iter_conversations()

    def notes(self, *, owner: str | None = None) -> Sequence[NoteRow]:
        """Return the durable notes of all conversations, in the order in which they were taken.

        ``owner``: return only notes from conversations of this owner, without notes about other owners'
        messages.

        Raises:
            InvalidOwner: the owner is blank or invalid.
        """
        from refold.application.notes.note_files import without_others

        views, owner = self._core.views, read_owner(owner)
        if owner is None:
            return views.all_notes()
        guests = views.guests_of(owner)
        return list(without_others(views.notes_of(owner), lambda thread: guests.get(thread, {})))

    def search_notes(
        self,
        query: str,
        *,
        owner: str | None = None,
        limit: int = 5,
        min_score: float = 0.0,
        mode: RecallMode | None = None,
    ) -> NotesFound:
        """Search the Markdown notes of the workspace, including manual edits.

        The files are ``MEMORY.md`` and ``memory/*.md`` in ``markdown_folder``, or else in ``notes_folder``.
        Their content is not stored.

        ``owner``: search only the folder of this owner; by default the notes without an owner.
        ``min_score``: minimum score relative to the best hit. ``mode``: as for ``search``.

        Raises:
            InvalidSetting: an option is invalid; the message says what is allowed.
            InvalidOwner: the owner is blank or invalid.
        """
        from refold.application.notes.markdown_search import search_notes

        whose = read_owner(owner)
        return search_notes(self._core, query, whose, limit=limit, min_score=min_score, mode=mode)

    def notes_status(self, *, owner: str | None = None) -> NotesStatus:
        """Return which files ``search_notes`` searches and which it skips.

        Raises:
            InvalidOwner: the owner is blank or invalid.
        """
        from refold.application.notes.markdown_search import notes_status

        return notes_status(self._core, read_owner(owner))

    def write_notes(self) -> bool:
        """Update ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` in the folder of the settings.

        This happens automatically after every change. Return whether it worked; True if no folder is set.
        """
        from refold.application.notes.note_files import write_notes

        return write_notes(self._core)


def _check_page(start: int, count: object, order: str) -> None:
    """Raise if a part of a list cannot be given.

    Raises:
        InvalidSetting: an option is invalid.
    """
    if not 0 <= start < _NO_LIST:
        raise invalid_argument("start", start, "a number from 0, and no more than any list has")
    if not isinstance(count, int) or not 1 <= count <= LARGEST_PAGE:
        raise invalid_argument("count", count, f"a number from 1 to {LARGEST_PAGE:,}")
    if order not in ORDERS:
        raise invalid_argument("order", order, f"one of {', '.join(ORDERS)}")
