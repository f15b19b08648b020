"""The port of the Markdown files of a workspace: read, never written, and nothing outside of the folder."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from refold.domain.value import Value


class MarkdownFile(NamedTuple):
    """A file as it is now."""

    path: str
    """Below the folder, with ``/`` between its parts."""
    text: str


class SkippedFile(Value, frozen=True):
    """A file that is not searched."""

    path: str
    why: str


class PagesRead(NamedTuple):
    """What there is, in the order of the paths."""

    files: Sequence[MarkdownFile] = ()
    skipped: Sequence[SkippedFile] = ()


class MarkdownPages(Protocol):
    """``MEMORY.md`` and ``memory/*.md`` of a folder, or of the part of it that is an owner's alone."""

    def read(self, owner: str | None) -> PagesRead:
        """Read the files; what cannot be read is named, not raised."""
        ...
