"""Reading instruction files when a memory is opened: regular files of text, or a clear refusal."""

import stat
from pathlib import Path

from refold.application.core import InstructionSettings
from refold.application.instructions import InstructionFile, budgeted
from refold.domain.errors import InvalidSetting

MOST_BYTES = 16 * 2**20
"""A larger file was not written by anybody for a model to read."""


def read_instructions(settings: InstructionSettings, place: str) -> str:
    """The text that the files make together, within their budget.

    ``place``: where the setting was given, for the refusal.

    Raises:
        InvalidSetting: a file is not there, cannot be read, or is no text in UTF-8; names it.
    """
    files = [InstructionFile(str(path), _text(path, place)) for path in settings.files]
    return budgeted(files, characters=settings.characters, total=settings.total).text


def _text(path: Path, place: str) -> str:
    try:
        found = path.expanduser()
        kind = found.stat()
        if stat.S_ISREG(kind.st_mode) and kind.st_size <= MOST_BYTES:
            return _decoded(found.read_bytes()).replace("\r\n", "\n")
    except OSError as error:
        raise _refused(path, place, f"cannot be read: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # No home, or no name that a file can have.
        raise _refused(path, place, str(error)) from None
    if stat.S_ISDIR(kind.st_mode):
        raise _refused(path, place, "is a folder: name the files in it")
    if not stat.S_ISREG(kind.st_mode):
        raise _refused(path, place, "is no regular file")
    raise _refused(path, place, f"is larger than {MOST_BYTES // 2**20} MiB")


def _decoded(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is no text in UTF-8 (byte {error.start}): save it as such") from None
    if "\0" in text:
        raise ValueError("is no text: it has zeros in it")
    return text


def _refused(path: Path, place: str, why: str) -> InvalidSetting:
    return InvalidSetting(
        f"instruction file {path} ({place}) {why}", setting="instruction_files", value=path
    )
