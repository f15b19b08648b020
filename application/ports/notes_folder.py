"""The port of the folder that notes are written into for people, and for agents that read files."""

from collections.abc import Callable, Mapping
from typing import Protocol

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
