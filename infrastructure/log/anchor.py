"""The anchor: what the newest event of each conversation was, kept in a file outside of the log.

A log that was cut, put back to an earlier day or lost its write-ahead log is whole in itself; only what
lies outside of it can tell. The file is a row of lines of 128 bytes, a first one that names the format
and then one for each conversation::

    FINGERPRINT VERSION NUMBER LINK CHECKSUM

A writer puts its line in place right after the commit, without a sync: an anchor may be behind its log,
never ahead of it. A line that is damaged counts as absent.
"""

import logging
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

from refold.infrastructure.private_files import open_private

SIZE = 128
_TITLE = b"refold anchor 1".ljust(SIZE - 1) + b"\n"
_FINGERPRINT = 24
_CHECKED = SIZE - 9

logger = logging.getLogger(__name__)


class Anchored(NamedTuple):
    """The newest event of a conversation, as far as the anchor knows."""

    fingerprint: bytes
    """What stands for the thread id."""
    version: int
    link: str
    number: int
    """Its position in the whole log."""


class Mark(NamedTuple):
    """The newest event of a conversation, as the log has it."""

    thread_id: str
    version: int
    link: str
    number: int


def fingerprint(thread_id: str) -> bytes:
    """What stands for a thread id in the file: ids may be too long, or too private, for it."""
    digest = sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:_FINGERPRINT].encode()


def anchor_path(log: Path) -> Path:
    """Where the anchor of a log lies: ``agent.anchor`` beside ``agent.db``."""
    return log.with_name(f"{log.stem}.anchor")


class Anchor:
    """The file of one log. Written under the write lock of the log only; read by anybody."""

    def __init__(self, path: Path | None) -> None:
        """``path`` None is no anchor: it knows nothing and keeps nothing."""
        self.path = path
        self._file: IO[bytes] | None = None
        self._slots: dict[bytes, int] = {}
        self._known = 0
        """How many lines of the file ``_slots`` was made from."""
        self._fails = False

    def find(self, thread_id: str) -> Anchored | None:
        """What is known of a conversation. Read it before the log that it is compared with."""
        data, wanted = self._content(), fingerprint(thread_id)
        found: Anchored | None = None
        start = data.find(wanted)
        while start >= 0:
            if start % SIZE == 0 and (line := _read(data[start : start + SIZE])):
                found = line if found is None or line.version > found.version else found
            start = data.find(wanted, start + 1)
        return found

    def lines(self) -> tuple[dict[bytes, Anchored], int]:
        """Everything that is known, and how many lines are damaged."""
        data = self._content()
        found: dict[bytes, Anchored] = {}
        damaged = int(bool(data) and data[:SIZE] != _TITLE)
        for start in range(SIZE, len(data), SIZE):
            line = _read(data[start : start + SIZE])
            if line is None:
                damaged += 1
            elif line.fingerprint not in found or found[line.fingerprint].version < line.version:
                found[line.fingerprint] = line
        return found, damaged

    def changed(self, since: bytes) -> tuple[list[Anchored], bytes]:
        """The lines that are not as they were in a content that was read before, and the content now."""
        data = self._content()
        if data == since:
            return [], data
        parts = (slice(start, start + SIZE) for start in range(SIZE, len(data), SIZE))
        new = (_read(data[part]) for part in parts if data[part] != since[part])
        return [line for line in new if line is not None], data

    def keep(self, mark: Mark, everything: Callable[[], Iterable[Mark]]) -> None:
        """Note the newest event of a conversation. A failure is only logged: the event is stored.

        ``everything``: what a file that is not there yet begins with.
        """
        if self.path is None:
            return
        try:
            file = self._opened(everything)
            name = fingerprint(mark.thread_id)
            slot = self._slot(file, name)
            file.seek(slot * SIZE)
            file.write(_line(name, mark))
            self._fails = False
        except OSError as error:
            self._tell("written", error)

    def renew(self, marks: Iterable[Mark]) -> None:
        """Write the file anew; what it knew before is forgotten.

        Raises:
            OSError: it cannot be written.
        """
        if self.path is None:
            return
        self.close()
        place = self.path.with_name(f"{self.path.name}.new")
        place.unlink(missing_ok=True)
        write_anchor(place, marks)
        place.replace(self.path)

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._known, self._slots = None, 0, {}

    def _content(self) -> bytes:
        if self.path is None:
            return b""
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            self._tell("read", error)
            return b""

    def _tell(self, what: str, error: OSError) -> None:
        if not self._fails:
            logger.warning("the anchor %s cannot be %s (%s)", self.path, what, error)
        self._fails = True

    def _opened(self, everything: Callable[[], Iterable[Mark]]) -> IO[bytes]:
        assert self.path is not None
        if self._file is not None and not self._is_here(self._file):
            self.close()
        if self._file is None:
            if not self.path.exists() or not self.path.stat().st_size:
                self.renew(everything())
            # Without a buffer: every write is one call of the system, and whole or nothing in practice.
            self._file = self.path.open("r+b", buffering=0)
        return self._file

    def _is_here(self, file: IO[bytes]) -> bool:
        # Renewed or deleted by another process, in which case nobody would read what is written.
        return os.fstat(file.fileno()).st_nlink > 0

    def _slot(self, file: IO[bytes], name: bytes) -> int:
        slot = self._slots.get(name)
        if slot is not None:
            return slot
        # Others may have added lines since the last look.
        file.seek(self._known * SIZE)
        while data := file.read(SIZE * 8_192):
            for start in range(0, len(data), SIZE):
                self._slots[data[start : start + _FINGERPRINT]] = self._known + start // SIZE
            self._known += -(-len(data) // SIZE)
        slot = self._slots.setdefault(name, self._known)
        self._known = max(self._known, slot + 1)
        return slot


def write_anchor(path: Path, marks: Iterable[Mark]) -> None:
    """Write an anchor into a new file.

    Raises:
        OSError: it is there already, or cannot be written.
    """
    with open_private(path, "xb") as file:
        file.write(_TITLE)
        file.writelines(_line(fingerprint(mark.thread_id), mark) for mark in marks)


def _line(name: bytes, mark: Mark) -> bytes:
    head = b"%b %012d %015d %b " % (name, mark.version, mark.number, mark.link.encode("ascii"))
    return head + b"%08x\n" % zlib.crc32(head)


def _read(line: bytes) -> Anchored | None:
    head = line[:_CHECKED]
    if len(line) != SIZE or line[_CHECKED:] != b"%08x\n" % zlib.crc32(head):
        return None
    try:
        name, version, number, link = head.split()
        return Anchored(name, int(version), link.decode("ascii"), int(number))
    except ValueError:
        return None


def read_exported(path: Path) -> Iterator[Anchored]:
    """The lines of an anchor that was exported; damaged ones are left out.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no anchor.
    """
    found, _ = Anchor(path).lines()
    if not path.read_bytes().startswith(b"refold anchor") and not found:
        raise ValueError(f"{path} is no anchor of refold; `refold anchor --out FILE` makes one")
    yield from found.values()
