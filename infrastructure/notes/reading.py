"""``MarkdownPages`` on a disk: regular files of text below the folder, whatever links lead elsewhere."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from refold.application.markdown.pages import MarkdownFile, PagesRead, SkippedFile
from refold.application.notes.files import DAILY, MEMORY, OWNERS, owner_folder

MOST_BYTES = 1 << 20
"""A larger file is no note."""
MOST_FILES = 5_000


class MarkdownReader:
    """Reads ``MEMORY.md`` and ``memory/*.md`` with each question: there is nothing to keep up to date."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser().absolute()

    def read(self, owner: str | None) -> PagesRead:
        """See ``MarkdownPages``."""
        before = "" if owner is None else f"{owner_folder(owner)}/"
        files: list[MarkdownFile] = []
        skipped: list[SkippedFile] = []
        for name in self._names(before):
            try:
                files.append(MarkdownFile(name, self._text(name, before)))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                why = (error.strerror if isinstance(error, OSError) else None) or str(error)
                skipped.append(SkippedFile(path=name, why=why))
        return PagesRead(files, skipped)

    def _names(self, before: str) -> Iterator[str]:
        yield f"{before}{MEMORY}"
        folder = self._folder / before / DAILY
        try:
            found = sorted(path.name for path in folder.iterdir() if path.suffix == ".md")
        except OSError:
            return
        yield from (f"{before}{DAILY}/{name}" for name in found[:MOST_FILES])

    def _text(self, name: str, before: str) -> str:
        """The text of a file.

        Raises:
            OSError: it cannot be read.
            ValueError: it is not to be read; says why.
        """
        base = Path(os.path.realpath(self._folder)) / before.rstrip("/")
        real = Path(os.path.realpath(self._folder / name))
        others = Path(os.path.realpath(self._folder)) / OWNERS
        if not real.is_relative_to(base) or (not before and real.is_relative_to(others)):
            raise ValueError("it leads out of the folder")
        # Not through a link that was put there meanwhile, and without waiting for a pipe.
        number = os.open(
            real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with os.fdopen(number, "rb") as file:
            kind = os.fstat(file.fileno())
            if not stat.S_ISREG(kind.st_mode):
                raise ValueError("it is no regular file")
            if kind.st_size > MOST_BYTES:
                raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
            content = file.read(MOST_BYTES)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("it is no text in UTF-8") from None
