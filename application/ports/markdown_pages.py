"""The port of the Markdown files of a workspace folder: read only, never outside of the folder."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from refold.domain.value import Value


class MarkdownFile(NamedTuple):
    """A file with its current content."""

    path: str
    """Path relative to the folder, with ``/`` between its parts."""
    text: str


class SkippedFile(Value, frozen=True):
    """A file that is not searched."""

    path: str
    why: str


class PagesRead(NamedTuple):
    """The files of the folder, ordered by path."""

    files: Sequence[MarkdownFile] = ()
    skipped: Sequence[SkippedFile] = ()


class MarkdownPages(Protocol):
    """``MEMORY.md`` and ``memory/*.md`` of a folder, or of an owner's subfolder."""

    def read(self, owner: str | None) -> PagesRead:
        """Read the files; unreadable files are listed, not raised."""
        ...
