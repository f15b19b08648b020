"""Reading instruction files when a memory is opened: regular files of text; what is none is skipped."""

import stat
from pathlib import Path

from refold.application.core import InstructionSettings
from refold.application.instructions import InstructionFile, Instructions, budgeted

MOST_BYTES = 16 * 2**20
"""A larger file was not written by anybody for a model to read."""


def read_instructions(settings: InstructionSettings) -> Instructions:
    """The text that the files make together, within their budget, and what became of each.

    A file that is not there, cannot be read or is no text in UTF-8 is skipped with a warning, so that a
    standard list of files can be given.
    """
    files = [_read(path) for path in settings.files]
    return budgeted(files, characters=settings.characters, total=settings.total)


def _read(path: Path) -> InstructionFile:
    try:
        return InstructionFile(str(path), _text(path))
    except OSError as error:
        return InstructionFile(str(path), "", f"cannot be read: {error.strerror or error}")
    except (
        RuntimeError,
        ValueError,
    ) as error:  # No home, no name that a file can have, or no text.
        return InstructionFile(str(path), "", str(error))


def _text(path: Path) -> str:
    found = path.expanduser()
    kind = found.stat()
    if stat.S_ISDIR(kind.st_mode):
        raise ValueError("is a folder: name the files in it")
    if not stat.S_ISREG(kind.st_mode):
        raise ValueError("is no regular file")
    if kind.st_size > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES // 2**20} MiB")
    return _decoded(found.read_bytes()).replace("\r\n", "\n")


def _decoded(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is no text in UTF-8 (byte {error.start}): save it as such") from None
    if "\0" in text:
        raise ValueError("is no text: it has zeros in it")
    return text
