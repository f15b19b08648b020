"""The port of the folder where notes are written for people and for agents that read files."""

from collections.abc import Callable, Mapping
from typing import Protocol

Files = Mapping[str, str]
"""Text of the notes for each file, by path relative to the folder, with ``/`` between its parts."""


class NotesFolder(Protocol):
    """A folder with ``MEMORY.md`` and ``memory/YYYY-MM-DD.md``.

    refold writes one section of each file and keeps the text around it.
    """

    def write(self, files: Callable[[], Files]) -> None:
        """Update every file, and remove refold's section from files that are not in ``files``.

        ``files`` is called while no other process writes to the folder. May raise ``OSError``.
        """
        ...
