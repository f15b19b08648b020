"""What a memory lists of all conversations: which there are, what was noted of them, and files of notes."""

from collections.abc import Sequence

from .argument_checks import checked
from .core import Core
from .markdown.searching import NotesFound, NotesStatus, notes_status, search_notes
from .notes.files import without_others
from .notes.writing import write_notes
from .owners.parsing import read_owner
from .read_models import ConversationRow, NoteRow
from .recall.results import RecallMode


@checked
class MemoryLists:
    """The lists of a memory, which need no conversation."""

    def __init__(self, core: Core) -> None:
        self._opened = core

    @property
    def _core(self) -> Core:
        return self._opened.here()

    def conversations(self, *, owner: str | None = None) -> Sequence[ConversationRow]:
        """All conversations, the latest activity first; with an owner only theirs.

        Raises:
            InvalidOwner: the owner is blank or unusable.
        """
        rows, owner = self._core.views.conversations(), read_owner(owner)
        return rows if owner is None else [row for row in rows if row.owner == owner]

    def notes(self, *, owner: str | None = None) -> Sequence[NoteRow]:
        """The durable notes of all conversations, in the order in which they were taken; with an owner
        those of their conversations alone, without what was noted of somebody else's messages there.

        Raises:
            InvalidOwner: the owner is blank or unusable.
        """
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
        """Search the Markdown notes of the workspace, hand edits included: ``MEMORY.md`` and ``memory/*.md``
        in ``markdown_folder``, or else in ``notes_folder``. Nothing of them is stored.

        ``owner``: those of this owner alone, which lie in a folder of their own; without one those that
        are nobody's. ``min_score``: relative to the best hit. ``mode``: as for ``search``.

        Raises:
            InvalidSetting: an option cannot be; says what is allowed.
            InvalidOwner: the owner is blank or unusable.
        """
        whose = read_owner(owner)
        return search_notes(self._core, query, whose, limit=limit, min_score=min_score, mode=mode)

    def notes_status(self, *, owner: str | None = None) -> NotesStatus:
        """Say which files ``search_notes`` searches, and which it leaves out.

        Raises:
            InvalidOwner: the owner is blank or unusable.
        """
        return notes_status(self._core, read_owner(owner))

    def write_notes(self) -> bool:
        """Bring ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` in the folder of the settings up to date.

        That is done by itself after every change. Whether it worked; True where no folder is set.
        """
        return write_notes(self._core)
