"""Reading instruction files when a memory is opened: regular files of text, or a clear refusal."""

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
    found = path.expanduser()
    try:
        if found.exists() and not found.is_file():
            raise _refused(
                path, place, "is no file of text" if not found.is_dir() else "is a folder"
            )
        if found.stat().st_size > MOST_BYTES:
            raise _refused(path, place, f"is larger than {MOST_BYTES // 2**20} MiB")
        text = found.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"is no text in UTF-8 (byte {error.start}): save it as such"
        raise _refused(path, place, why) from None
    except (OSError, ValueError) as error:  # A name with a zero in it is no name of a file.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _refused(path, place, f"cannot be read: {reason}") from None
    if "\0" in text:
        raise _refused(path, place, f"is no text (byte {text.index(chr(0))} is 0)")
    return text.replace("\r\n", "\n")


def _refused(path: Path, place: str, why: str) -> InvalidSetting:
    return InvalidSetting(
        f"instruction file {path} ({place}) {why}", setting="instruction_files", value=path
    )
