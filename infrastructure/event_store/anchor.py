"""The anchor: a file outside the log that records the newest event of each conversation.

A log that was truncated, restored from an older copy or separated from its write-ahead log looks
complete. Only a record outside the log can reveal the loss. The file consists of lines of 128 bytes,
one for each conversation. The first line is a copy of the line that was written last, with the name of
the format instead of the fingerprint::

    FINGERPRINT VERSION NUMBER LINK CHECKSUM

A writer updates its line right after the commit, without a sync. So an anchor may be behind its log,
but never ahead of it. A damaged line counts as missing.
"""

import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

from refold.application.errors import LogError
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.private_files import open_private, sync_names
from refold.infrastructure.files.private_files import sync as sync_file
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS

SIZE = 128
_FINGERPRINT = 24
_TITLE = b"refold-anchor-1".ljust(_FINGERPRINT, b"-")
"""Start of the file, where the lines of conversations have a fingerprint."""
_CHECKED = SIZE - 9

logger = plain_logger(__name__)


class Anchored(NamedTuple):
    """The newest event of a conversation according to the anchor."""

    fingerprint: bytes
    """Fingerprint of the thread id."""
    version: int
    link: str
    number: int
    """Log position of the event."""


class Mark(NamedTuple):
    """The newest event of a conversation according to the log."""

    thread_id: str
    version: int
    link: str
    number: int


@lru_cache(maxsize=1_024)
def fingerprint(thread_id: str) -> bytes:
    """Return the fingerprint of a thread id. The id itself may be too long or too private for the file."""
    digest = sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:_FINGERPRINT].encode()


def anchor_path(log: Path) -> Path:
    """Return the path of a log's anchor: ``agent.db.anchor`` next to ``agent.db``."""
    return log.with_name(f"{log.name}.anchor")


class Anchor:
    """The anchor file of one log. Writers need the write lock of the log; readers need no lock."""

    def __init__(self, path: Path | None, *, of: Path | None = None) -> None:
        """Create an anchor for the file at ``path``, or one that stores nothing if ``path`` is None.

        ``of`` is the log; a new anchor file gets its permissions.
        """
        self.path = path
        self._name = str(path)
        self._of = of
        self._file: IO[bytes] | None = None
        self._slots: dict[bytes, int] = {}
        """Offsets of lines by fingerprint: of some conversations, or of all among the first ``_known``
        lines.
        """
        self._known = 0
        self._threads = threading.Lock()
        self._fails = False
        self.unread: OSError | None = None
        """Error of the last read, or None if it succeeded."""

    def find(self, thread_id: str) -> Anchored | None:
        """Return the anchored event of a conversation, or None. Call it before you read the log."""
        name = fingerprint(thread_id)
        with self._threads:
            if self._file is not None and self._is_here(self._file):
                slot = self._slots.get(name)
                if slot is None and self._known:
                    slot = self._look_up(self._file, name)
                if slot is not None:
                    self._file.seek(slot * SIZE)
                    return _read(self._file.read(SIZE))
                if self._known:
                    return None
        data = self._content()
        if not data:
            return None
        lines = (_read(data[slot * SIZE : (slot + 1) * SIZE]) for slot in _places(data, name))
        return max((x for x in lines if x), key=lambda line: line.version, default=None)

    def newest(self) -> Anchored | None:
        """Return the event that was stored last in any conversation. Its fingerprint is unknown."""
        if self.path is None:
            return None
        first = self._first()
        if not first:
            return None
        line = _read(first)
        if line is None:
            # If this line is damaged, the check of the lines reports it as well.
            lines, _ = self.lines()
            line = max(lines.values(), key=lambda line: line.number, default=None)
        return line

    def lines(self) -> tuple[dict[bytes, Anchored], int]:
        """Return all intact lines by fingerprint, and the number of damaged lines."""
        return _lines_of(self._content())

    def changed(self, since: bytes) -> tuple[list[Anchored], bytes]:
        """Return the lines that differ from the content ``since``, and the content now."""
        if since and self._first() == since[:SIZE]:
            return [], since
        data = self._content()
        parts = (slice(start, start + SIZE) for start in range(SIZE, len(data), SIZE))
        new = (_read(data[part]) for part in parts if data[part] != since[part])
        return [line for line in new if line is not None], data

    def keep(self, mark: Mark, everything: Callable[[], Iterable[Mark]]) -> None:
        """Record the newest event of a conversation. A failure is only logged, because the event is
        stored.

        ``everything`` gives the content of a file that does not exist yet, with this event.
        """
        if self.path is None:
            return
        try:
            file = self._open()
            if file is None:
                self.renew(everything(), sync=False)
            else:
                self._write(file, mark)
            self._fails = False
        except STORE_ERRORS as error:  # Includes errors of the log, which a new file is built from.
            self._tell("written", error)

    def begin(self) -> bool:
        """Create the file, without lines. Return False if it exists.

        Raises:
            OSError: the file cannot be created.
        """
        try:
            file = open_private(self._name, "x+b", like=self._of, buffering=0)
        except FileExistsError:
            return False
        file.write(anchor_of(()))
        self._file, self._known = file, 1
        return True

    def _write(self, file: IO[bytes], mark: Mark) -> None:
        name = fingerprint(mark.thread_id)
        rest = _rest(mark)
        with self._threads:
            slot = self._slots.get(name)
            file.seek((self._slot(file, name) if slot is None else slot) * SIZE)
            file.write(_checked(name + rest))
            file.seek(0)
            file.write(_checked(_TITLE + rest))

    def renew(self, marks: Iterable[Mark], *, sync: bool = True) -> None:
        """Rewrite the file with these lines only, safely even if power is lost.

        ``sync=False`` is for the first anchor of a log that is being written: if it is lost, the next
        writer rebuilds it from the log.

        Raises:
            OSError: the file cannot be written.
        """
        if self.path is None:
            return
        self.close()
        place = f"{self._name}.new"
        with self._new_file(place) as file:
            file.write(anchor_of(marks))
        if sync:
            sync_file(Path(place))
        os.replace(place, self._name)  # noqa: PTH105 (a path object is twice as slow)
        if sync:
            sync_names(self.path.parent)

    def _new_file(self, place: str) -> IO[bytes]:
        try:
            return open_private(place, "xb", like=self._of, buffering=0)
        except FileExistsError:  # A writer stopped before it moved its file.
            os.unlink(place)  # noqa: PTH108
            return open_private(place, "xb", like=self._of, buffering=0)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._known, self._slots = None, 0, {}

    def _first(self) -> bytes:
        return self._content(SIZE)

    def _content(self, size: int = -1) -> bytes:
        if self.path is None:
            return b""
        self.unread = None
        try:
            with open(self._name, "rb", buffering=0) as file:  # noqa: PTH123 (a path object is slower)
                return file.read(size)
        except FileNotFoundError:
            return b""
        except OSError as error:
            self.unread = error
            self._tell("read", error)
            return b""

    def _tell(self, what: str, error: Exception) -> None:
        if not self._fails:
            logger.warning("the anchor %s cannot be %s (%s)", self.path, what, error)
        self._fails = True

    def _open(self) -> IO[bytes] | None:
        """Return the open file, or None if it is missing or empty."""
        if self._file is not None and not self._is_here(self._file):
            self.close()
        if self._file is None:
            try:
                # Unbuffered: each write is one system call, which in practice succeeds completely or
                # not at all.
                file = open(self._name, "r+b", buffering=0)  # noqa: PTH123, SIM115 (faster)
            except FileNotFoundError:
                return None
            if not os.fstat(file.fileno()).st_size:
                file.close()
                return None
            self._file = file
        return self._file

    def _is_here(self, file: IO[bytes]) -> bool:
        # Another process replaced or deleted the file, so that no reader would see a write to it.
        return os.fstat(file.fileno()).st_nlink > 0

    def _slot(self, file: IO[bytes], name: bytes) -> int:
        slot = self._slots.get(name)
        if slot is None and not self._known:
            # Most processes continue existing conversations: finding one line is faster than
            # reading all.
            file.seek(0)
            slot = next(_places(file.read(), name), None)
        if slot is None:
            slot = self._look_up(file, name)
        if slot is None:
            slot, self._known = self._known, self._known + 1
        self._slots[name] = slot
        return slot

    def _look_up(self, file: IO[bytes], name: bytes) -> int | None:
        # Other processes may have added lines since the last read.
        if os.fstat(file.fileno()).st_size <= self._known * SIZE:
            return self._slots.get(name)
        file.seek(self._known * SIZE)
        while data := file.read(SIZE * 8_192):
            for start in range(0, len(data), SIZE):
                self._slots[data[start : start + _FINGERPRINT]] = self._known + start // SIZE
            self._known += -(-len(data) // SIZE)
        return self._slots.get(name)


def _places(data: bytes, name: bytes) -> Iterator[int]:
    start = data.find(name)
    while start >= 0:
        if start % SIZE == 0:
            yield start // SIZE
        start = data.find(name, start + 1)


def anchor_of(marks: Iterable[Mark]) -> bytes:
    """Return the content of an anchor with these lines."""
    newest = Mark("", 0, "-" * 64, 0)
    lines = [b""]
    for mark in marks:
        lines.append(_line(fingerprint(mark.thread_id), mark))
        if mark.number > newest.number:
            newest = mark
    lines[0] = _line(_TITLE, newest)
    return b"".join(lines)


def _line(name: bytes, mark: Mark) -> bytes:
    return _checked(name + _rest(mark))


def _rest(mark: Mark) -> bytes:
    return b" %012d %015d %b " % (mark.version, mark.number, mark.link.encode("ascii"))


def _checked(head: bytes) -> bytes:
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


def _lines_of(data: bytes) -> tuple[dict[bytes, Anchored], int]:
    found: dict[bytes, Anchored] = {}
    first = _read(data[:SIZE])
    damaged = int(bool(data) and (first is None or first.fingerprint != _TITLE))
    for start in range(SIZE, len(data), SIZE):
        line = _read(data[start : start + SIZE])
        if line is None:
            damaged += 1
        elif line.fingerprint not in found or found[line.fingerprint].version < line.version:
            found[line.fingerprint] = line
    return found, damaged


def read_exported(path: Path) -> dict[bytes, Anchored]:
    """Return the intact lines of an exported anchor by fingerprint. The file is read once: it may be a pipe.

    Raises:
        LogError: the file cannot be read, or it is not an anchor.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LogError(f"the anchor {path} cannot be read: {error.strerror}") from error
    found, _ = _lines_of(data)
    if not data.startswith(_TITLE) and not found:
        raise LogError(f"{path} is not an anchor of refold; `refold anchor --out FILE` makes one")
    return found
