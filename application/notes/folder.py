"""The folder that notes are written into for people and for agents that read files (requirement C2)."""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from refold.application.core import Core
from refold.domain.errors import RefoldError

from .files import files_of

logger = logging.getLogger(__name__)

Files = Mapping[str, str]
"""By path below the folder, with ``/`` between its parts: what a file says of the notes."""


class NotesFolder(Protocol):
    """A folder with ``MEMORY.md`` and ``memory/YYYY-MM-DD.md``. Only a part of each file is ours: what a
    person wrote around it stays as it is.
    """

    def write(self, files: Callable[[], Files]) -> None:
        """Bring every file up to date; of one that is not among ``files`` our part is taken out.

        ``files`` is asked while no other process writes there. May raise ``OSError``.
        """
        ...


def write_notes(core: Core, into: NotesFolder | None = None) -> bool:
    """Bring the files of the folder that is configured, or of ``into``, up to date with the log.

    Whether it worked; where it did not a warning is logged, and the next time makes up for it.
    """
    folder = into or core.notes_folder
    if folder is None:
        return True
    try:
        folder.write(lambda: files_of(core.views.all_notes()))
    except (OSError, RefoldError) as error:
        logger.warning("the files of notes cannot be written: %s", error)
        return False
    return True
