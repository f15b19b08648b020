"""Write refold's part of a file that people edit as well. The part is between two marks."""

import os
import re
import threading
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from refold.application.notes.note_files import DAILY, MEMORY, OWNERS
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import PRIVATE, sync_descriptor, sync_names

BEGIN = b"<!-- refold:notes:begin - written anew each time, so write above or below -->"
END = b"<!-- refold:notes:end -->"
_BEGINS, _ENDS = b"<!-- refold:notes:begin", b"<!-- refold:notes:end"

_CODECS = {BOM_UTF16_LE: "utf-16-le", BOM_UTF16_BE: "utf-16-be"}

# Lines of refold's part, to recognise it in a file with broken marks. All other lines are the
# user's.
_OURS = re.compile(
    rb"- .*\((?:from )?refold://\S+/[0-9]+(?:(?:, | to )refold://\S+/[0-9]+)*\)"
    rb"|- .*\(remembered by .+\)|# Memory|# Notes of [0-9-]{10}|## (?:Decisions|Preferences|Constraints)|### \S+"
)


def with_block(content: bytes, text: str) -> bytes:
    """Return the file with ``text`` as refold's part, or without that part if ``text`` is empty.

    All bytes outside the marks stay the same. Without marks, the part is added at the end. If marks are
    broken (one is missing, or there are more than two), lines that are certainly refold's are removed
    together with them. All other lines stay. A file of UTF-16 stays one.
    """
    if (codec := _CODECS.get(content[:2])) and not _has_marks(content):
        with suppress(UnicodeDecodeError):
            made = with_block(content[2:].decode(codec).encode(), text)
            return content[:2] + made.decode().encode(codec) if made else b""
    before, after = _around(content)
    if not text:
        return before + after
    block = BEGIN + b"\n" + text.encode("utf-8", "replace") + b"\n" + END + b"\n"
    if not after and before.strip() and not _has_marks(content):
        before += b"\n" if before.endswith(b"\n") else b"\n\n"
    elif before and not before.endswith((b"\n", b"\r")):
        before += b"\n"  # A mark is the first text of its line; spaces may precede it.
    return before + block + after


def _has_marks(content: bytes) -> bool:
    return any(map(_mark, content.splitlines()))


def _around(content: bytes) -> tuple[bytes, bytes]:
    """Return the bytes before and after refold's part."""
    lines = content.splitlines(keepends=True)
    marks = [(at, kind) for at, line in enumerate(lines) if (kind := _mark(line))]
    if not marks:
        return content, b""
    first, kind = marks[0]
    if [found for _, found in marks] == ["begin", "end"]:
        return b"".join(lines[:first]), b"".join(lines[marks[1][0] + 1 :])
    before = _drop_marks(lines[:first]) if kind == "end" else iter(lines[:first])
    return b"".join(before), b"".join(_user_lines(lines[first:]))


def _user_lines(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines from the first mark on that are not refold's."""
    part: list[bytes] = []
    last = ""
    for line in lines:
        kind = _mark(line)
        if not kind:
            part.append(line)
            continue
        if (last, kind) != ("begin", "end"):  # Everything between these marks is refold's.
            yield from part if last == "end" and kind == "begin" else _drop_marks(part)
        part, last = [], kind
    yield from part if last == "end" else _drop_marks(part)


def _drop_marks(lines: Sequence[bytes]) -> Iterator[bytes]:
    return (line for line in lines if not _OURS.fullmatch(line.strip()))


def _mark(line: bytes) -> str:
    text = line.removeprefix(BOM_UTF8).strip()  # An editor may have put one before our part.
    if text.startswith(_BEGINS) and text.endswith(b"-->"):
        return "begin"
    return "end" if text.startswith(_ENDS) and text.endswith(b"-->") else ""


PATIENCE = 10.0
"""Seconds to wait for another process that writes the folder."""
TRIES = 5
"""Maximum number of reads of a file that a user saves at the same moment."""
_DAY = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")


class MarkdownFolder:
    """The notes of one log in a folder. The folder is created if necessary; only the owner can read new
    files.
    """

    def __init__(self, folder: Path, log: Path | None) -> None:
        """Create a writer. A lock next to ``log`` orders processes; None means that no other process
        writes.
        """
        self._folder = folder.expanduser().absolute()
        self._log = log
        self._threads = threading.Lock()

    def write(self, files: Callable[[], Mapping[str, str]]) -> None:
        """Write the files.

        Raises:
            OSError: a file cannot be read or written; all others are up to date.
            LogBusy: another process writes the folder for too long.
        """
        with self._alone():
            wanted = {**dict.fromkeys(self._ours(), ""), **files()}
            problems: list[OSError] = []
            for name, text in sorted(wanted.items()):
                try:
                    self._bring(self._folder / name, text)
                except OSError as error:
                    problems.append(error)
            if problems:
                raise problems[0]

    @contextmanager
    def _alone(self) -> Generator[None]:
        place = None if self._log is None else Path(f"{self._log.absolute()}.notes.lock")
        with self._threads, closing(WriteLock(place, PATIENCE, of=self._log)) as lock, lock.held():
            yield

    def _ours(self) -> Iterator[str]:
        """Yield the files that may contain a part of refold."""
        owners = self._folder / OWNERS
        places = sorted(owners.iterdir()) if owners.is_dir() else []
        for before in ("", *(f"{OWNERS}/{place.name}/" for place in places if place.is_dir())):
            yield f"{before}{MEMORY}"
            folder = self._folder / before / DAILY
            days = sorted(folder.iterdir()) if folder.is_dir() else []
            yield from (f"{before}{DAILY}/{day.name}" for day in days if _DAY.fullmatch(day.name))

    def _bring(self, path: Path, text: str) -> None:
        for _ in range(TRIES):
            found = _content(path)
            made = with_block(found or b"", text)
            if found == made or (found is None and not made):
                return
            if found is not None and not made.strip():
                # A link of the user stays: notes may come again, and the file behind it holds them.
                Path(os.path.realpath(path)).unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            if _replace(path, found, made):
                return
        raise TimeoutError(f"{path} is changed by another program again and again")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _replace(path: Path, found: bytes | None, made: bytes) -> bool:
    """Replace the content ``found`` with ``made``. Return False if the file has changed since."""
    real = Path(os.path.realpath(path))
    mode = real.stat().st_mode & 0o777 if found is not None else PRIVATE
    with NamedTemporaryFile(dir=real.parent, prefix=f".{real.name}.", delete=False) as file:
        place = Path(file.name)
        try:
            file.write(made)
            file.flush()
            sync_descriptor(file.fileno())
            place.chmod(mode)
            if _content(path) != found:
                return False
            place.replace(real)
        finally:
            place.unlink(missing_ok=True)
    sync_names(real.parent)
    return True
