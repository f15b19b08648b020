"""The file beside a log that says how far it was scrubbed, and what was found to be damaged."""

import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from refold.application.errors import LogBusy
from refold.application.plain_lines import plain_logger
from refold.domain.value import Value
from refold.infrastructure.log.file.lock import WriteLock
from refold.infrastructure.private_files import open_private

_TITLE = b"refold-checked-1"
LOCK_TIMEOUT = 1.0
"""Seconds: who writes holds it for less than a thousandth of one."""
MOST = 10_000
"""Findings that are kept."""

logger = plain_logger(__name__)


class Finding(Value, frozen=True):
    """A damaged row. The conversation is named by its fingerprint: ids may be private."""

    number: int
    fingerprint: str
    version: int
    problem: str


class ScrubRecord(Value, frozen=True):
    """What the file says."""

    log: str = ""
    """The first event of the log that it is of."""
    after: int = 0
    """The row after which the next opening goes on; 0: from the start."""
    words: str = ""
    """The index of words that was checked last."""
    findings: tuple[Finding, ...] = ()


def checked_path(log: Path) -> Path:
    """Where it lies: ``agent.db.checked`` beside ``agent.db``."""
    return log.with_name(f"{log.name}.checked")


class ScrubFile:
    """The file of one log. A lost or damaged one costs only time: everything is read from the start."""

    def __init__(self, path: Path | None, *, of: Path, writable: bool) -> None:
        """``path`` None: of a log in memory, which has none. ``writable``: whether its folder is."""
        self._path = path
        self._of = of
        self._writable = writable and path is not None
        self._lock = WriteLock(path if self._writable else None, LOCK_TIMEOUT, of=of)
        self._fails = False

    @property
    def stamp(self) -> tuple[int, int] | None:
        """What tells one content from the next; None where there is no file."""
        try:
            status = self._path.stat() if self._path else None
        except OSError:
            return None
        return None if status is None else (status.st_ino, status.st_mtime_ns)

    def read(self) -> ScrubRecord:
        """What it says; nothing, where it is not there, cannot be read or is damaged."""
        if self._path is None:
            return ScrubRecord()
        try:
            title, checksum, content = self._path.read_bytes().split(b"\n", 2)
            if title == _TITLE and checksum == b"%08x" % zlib.crc32(content):
                return ScrubRecord.model_validate_json(content)
        except (OSError, ValueError, ValidationError):
            pass
        return ScrubRecord()

    def write(self, record: ScrubRecord, *, lifted: Mapping[int, str]) -> None:
        """Put the file in place; findings of other processes stay, but for those that are ``lifted``."""
        if self._path is None or not self._writable:
            return
        try:
            with self._lock.held():
                self._replace(self._path, _joined(record, self.read(), lifted))
            self._fails = False
        except (OSError, LogBusy) as error:
            if not self._fails:
                logger.warning("%s cannot be written: %s", self._path, error)
            self._fails = True
        finally:
            self._lock.close()

    def _replace(self, path: Path, record: ScrubRecord) -> None:
        content = json.dumps(record.model_dump(), separators=(",", ":")).encode()
        place = path.with_name(f"{path.name}.new")
        with suppress(FileNotFoundError):
            place.unlink()
        with open_private(place, "xb", like=self._of) as file:
            file.write(b"%b\n%08x\n%b" % (_TITLE, zlib.crc32(content), content))
        place.replace(path)


def _joined(record: ScrubRecord, found: ScrubRecord, lifted: Mapping[int, str]) -> ScrubRecord:
    others = found.findings if found.log == record.log else ()
    kept = {one.number: one for one in others if lifted.get(one.number) != one.problem}
    kept |= {one.number: one for one in record.findings}
    return record.replaced(findings=tuple(kept.values())[:MOST])
