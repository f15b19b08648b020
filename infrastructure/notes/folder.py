"""``NotesFolder`` on a disk: each file is replaced whole, and only our part of it ever changes."""

import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from refold.application.notes.files import DAILY, MEMORY, OWNERS
from refold.infrastructure.log.file.lock import WriteLock
from refold.infrastructure.new_files import sync_descriptor, sync_names
from refold.infrastructure.private_files import PRIVATE

from .block import with_block

PATIENCE = 10.0
"""Seconds that another process that writes there is waited for."""
TRIES = 5
"""A file that a person saves in the very moment is read again, so often at most."""
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")


class MarkdownFolder:
    """The notes of one log in a folder. Made if it is missing; new files are for their owner alone."""

    def __init__(self, folder: Path, log: Path | None) -> None:
        """``log``: its file, beside which a lock orders processes; None where no other one can write."""
        self._folder = folder.expanduser().absolute()
        self._log = log
        self._threads = threading.Lock()

    def write(self, files: Callable[[], Mapping[str, str]]) -> None:
        """See ``NotesFolder``.

        Raises:
            OSError: a file cannot be read or written; those before it are up to date.
            LogBusy: another process writes there for too long.
        """
        with self._alone():
            wanted = {**dict.fromkeys(self._ours(), ""), **files()}
            for name, text in sorted(wanted.items()):
                self._bring(self._folder / name, text)

    @contextmanager
    def _alone(self) -> Generator[None]:
        place = None if self._log is None else Path(f"{self._log.absolute()}.notes.lock")
        with self._threads, closing(WriteLock(place, PATIENCE, of=self._log)) as lock, lock.held():
            yield

    def _ours(self) -> Iterator[str]:
        """The files that may hold a part of ours."""
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
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            if _replaced(path, found, made):
                return
        raise TimeoutError(f"{path} is written by somebody else all the time")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _replaced(path: Path, found: bytes | None, made: bytes) -> bool:
    """Put ``made`` in the place of ``found``; False if something else stands there by now."""
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
