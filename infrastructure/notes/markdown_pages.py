"""Read Markdown pages and instruction files of a workspace: regular text files inside it only."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from refold.application.conversation.instructions import InstructionFile, Instructions, join_files
from refold.application.notes.note_files import DAILY, MEMORY, OWNERS, owner_folder
from refold.application.ports.markdown_pages import MarkdownFile, PagesRead, SkippedFile
from refold.application.runtime.memory_settings import InstructionSettings

MOST_BYTES = 16 * 2**20
"""Maximum number of bytes of an instruction file. A larger file was not written as instructions."""


def read_instructions(settings: InstructionSettings) -> Instructions:
    """Read instruction files within their budget, and return their text and the status of each file.

    A file that is missing, unreadable or not UTF-8 text is skipped with a warning, so that a standard
    list of files can be configured.
    """
    files = [_read(path) for path in settings.files]
    return join_files(files, characters=settings.characters, total=settings.total)


def _read(path: Path) -> InstructionFile:
    try:
        return InstructionFile(str(path), _text(path))
    except OSError as error:
        return InstructionFile(str(path), "", f"cannot be read: {error.strerror or error}")
    except (
        RuntimeError,
        ValueError,
    ) as error:  # No home folder, an invalid file name, or not text.
        return InstructionFile(str(path), "", str(error))


def _text(path: Path) -> str:
    found = path.expanduser()
    kind = found.stat()
    if stat.S_ISDIR(kind.st_mode):
        raise ValueError("is a folder: name the files in it")
    if not stat.S_ISREG(kind.st_mode):
        raise ValueError("is not a regular file")
    if kind.st_size > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES // 2**20} MiB")
    return _decode(found.read_bytes()).replace("\r\n", "\n")


def _decode(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    if "\0" in text:
        raise ValueError("is not text: it contains zero bytes")
    return text


MOST_PAGE_BYTES = 1 << 20
"""Maximum number of bytes of a page. A larger file is not a note."""
MOST_FILES = 5_000


class MarkdownReader:
    """A reader of ``MEMORY.md`` and ``memory/*.md`` that reads the files for each query."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser().absolute()

    def read(self, owner: str | None) -> PagesRead:
        """Return the pages of an owner."""
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
        """Return the text of a file.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file must not be read; the message says why.
        """
        base = Path(os.path.realpath(self._folder)) / before.rstrip("/")
        real = Path(os.path.realpath(self._folder / name))
        others = Path(os.path.realpath(self._folder)) / OWNERS
        if not real.is_relative_to(base) or (not before and real.is_relative_to(others)):
            raise ValueError("it leads out of the folder")
        # Do not follow a link that was created in the meantime, and do not wait for a pipe.
        number = os.open(
            real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with os.fdopen(number, "rb") as file:
            kind = os.fstat(file.fileno())
            if not stat.S_ISREG(kind.st_mode):
                raise ValueError("it is not a regular file")
            if kind.st_size > MOST_PAGE_BYTES:
                raise ValueError(f"it is larger than {MOST_PAGE_BYTES >> 20} MiB")
            content = file.read(MOST_PAGE_BYTES)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8 text") from None
