"""Write messages as Markdown files for programs that search files, and run such programs."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import IO, NamedTuple

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.domain.events import ConversationErased, MessageAppended, MessageErased
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import readable
from refold.infrastructure.files.private_files import open_private

VERSION = 1
"""Version of file names and contents. Files of another version are rewritten."""
BATCH = 2_000
"""Number of messages to write before the program indexes them."""
STATE = "state.json"
FILES = "messages"

_PLACE = lazy_pattern(r"/(t[0-9a-f]{20})/(\d{9})\.md(?:[?#].*)?$")


class State(NamedTuple):
    """The state of the files."""

    version: int
    number: int
    """Log position of the last event that was read, or 0 before the first."""
    mark: str
    """Mark of the last event that was read. It detects a log that was restored from an older copy."""
    read_from: int
    """Newest log position at the first read. Content that was erased before it was never written."""
    indexed: bool
    """True if the program has indexed all written files."""
    embedded: bool
    """True if the program has computed the vectors of all written files."""
    threads: dict[str, str]
    """Conversations by the names of their folders."""


class Outdated(Exception):
    """Written content was erased, or the log is another one, so all files must be rewritten."""


class MessageFiles:
    """A folder with one file for each message that was not erased."""

    def __init__(self, folder: Path, log: ConversationLog, like: Path) -> None:
        """Create the object. The files get the permissions of ``like``, the log file."""
        self._folder = folder
        self._log = log
        self._like = like

    @property
    def place(self) -> Path:
        """Folder of the files, with a subfolder for each conversation."""
        return self._folder / FILES

    def make(self, *neighbours: str) -> None:
        """Create the folder of the messages, and folders with these names next to it.

        Raises:
            OSError: a folder cannot be created.
        """
        for folder in (self._folder, self.place, *(self._folder / name for name in neighbours)):
            _make_folder(folder, self._like)

    def state(self) -> State:
        """Return the stored state, or that of an empty folder if none exists or it is not valid."""
        try:
            raw = json.loads((self._folder / STATE).read_bytes())
            state = State(**raw)
        except (OSError, ValueError, TypeError):
            return self._nothing()
        return state if state.version == VERSION and self.place.is_dir() else self._nothing()

    def keep(self, state: State) -> None:
        """Store the state."""
        unfinished = self._folder / f"{STATE}.new"
        unfinished.unlink(missing_ok=True)
        with open_private(unfinished, like=self._like) as file:
            file.write(json.dumps(state._asdict()).encode())
        unfinished.replace(self._folder / STATE)

    def write_more(self, state: State, most: int = BATCH) -> tuple[State, int]:
        """Write up to ``most`` missing messages. Return the new state and their number; 0 means complete.

        Raises:
            Outdated: the files contain messages that the log no longer has.
            OSError: the files cannot be written.
        """
        written = 0
        threads = dict(state.threads)
        for logged in self._events_after(state):
            if logged.number > state.read_from and _erases(logged):
                raise Outdated(f"event {logged.number} erased something")
            if text := _text_of(logged):
                threads[folder_of(logged.thread_id)] = logged.thread_id
                self._write(logged, text)
                written += 1
            state = state._replace(number=logged.number, mark=_mark_of(logged))
            if written >= most:
                break
        if written:
            state = state._replace(indexed=False, embedded=False, threads=threads)
        return state, written

    def _nothing(self) -> State:
        return State(VERSION, 0, "", self._log.newest(), True, True, {})

    def _events_after(self, state: State) -> Iterator[LoggedEvent]:
        if not state.number:
            return iter(self._log.scan())
        events = iter(self._log.scan(state.number - 1))
        last = next(events, None)
        if last is None or last.number != state.number or _mark_of(last) != state.mark:
            raise Outdated(f"event {state.number} of the log is not the same any more")
        return events

    def _write(self, logged: LoggedEvent, text: str) -> None:
        assert isinstance(logged.event, MessageAppended)
        folder = self.place / folder_of(logged.thread_id)
        _make_folder(folder, self._like)
        path = folder / f"{logged.event.position:09d}.md"
        path.unlink(missing_ok=True)
        with open_private(path, like=self._like) as file:
            file.write(text.encode(errors="replace"))


def left_of(folder: Path) -> Iterator[Path]:
    """Yield the remains of an interrupted deletion of the folder."""
    return folder.parent.glob(f"{escape(folder.name)}.*.gone")


def delete(folder: Path) -> None:
    """Delete a folder of message files with all its content.

    Raises:
        OSError: some of it is left.
    """
    away = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.gone")
    with suppress(FileNotFoundError):
        # Rename it first, so that a running program cannot write into it.
        folder.rename(away)
    for gone in [*left_of(folder)]:
        shutil.rmtree(gone)


def folder_of(thread_id: str) -> str:
    """Return the folder name of a conversation, which tokenizers treat as one word."""
    return f"t{hashlib.sha256(thread_id.encode(errors='surrogatepass')).hexdigest()[:20]}"


def place_in(name: str) -> tuple[str, int] | None:
    """Return folder and position from the name of a file with any prefix, or None for other files."""
    found = _PLACE.search(name)
    return (found[1], int(found[2])) if found else None


def _make_folder(folder: Path, like: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(OSError):
        # Users who may read the log may read these files.
        mode = like.stat().st_mode & 0o066
        folder.chmod(0o700 | mode | (mode & 0o044) >> 2)


def _text_of(logged: LoggedEvent) -> str:
    event = logged.event
    if logged.erased or not isinstance(event, MessageAppended):
        return ""
    text = readable(event.message).replace("\0", " ")
    if not text or text.isspace():
        return ""
    # The date in words, as people search for it.
    at = event.written_at or datetime.fromisoformat(logged.at)
    return f"{at:%d %B %Y}\n\n{text}\n"


def _erases(logged: LoggedEvent) -> bool:
    return isinstance(logged.event, MessageErased | ConversationErased)


def _mark_of(logged: LoggedEvent) -> str:
    content = zlib.crc32(repr(logged.event).encode("utf-8", "surrogatepass"))
    return f"{logged.thread_id} {logged.version} {logged.at} {content:08x}"


MOST_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes of one stream. A program that writes more is not read further and times out."""
GRACE = 0.5
"""Seconds between the request to terminate and the kill."""


class Ran(NamedTuple):
    """The output of a program and its exit status."""

    status: int
    """Exit status, or the negative number of the signal that ended the program."""
    out: str
    err: str


class NotStarted(Exception):
    """The program does not exist, or this system cannot run it."""


class TimedOut(Exception):
    """The program timed out. It was killed together with its child processes."""


class _Said(threading.Thread):
    """A thread that reads a stream to its end, so that the program never waits for a reader."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True, name="refold-program-output")
        self._stream = stream
        self.content = b""
        self.start()

    def run(self) -> None:
        with suppress(OSError, ValueError), self._stream:
            self.content = self._stream.read(MOST_BYTES)
            if len(self.content) == MOST_BYTES:
                # The rest is not read, which blocks the program until the timeout.
                threading.Event().wait(3_600)

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


def run(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], timeout: float
) -> Ran:
    """Run ``command`` in ``folder`` and return its output. Arguments are passed unchanged.

    Raises:
        TimedOut: the program ran longer than ``timeout`` seconds.
        NotStarted: the program cannot be started.
        OSError: no program can be started in the folder.
    """
    deadline = time.monotonic() + timeout
    process = _start(command, folder, environment)
    assert process.stdout is not None
    assert process.stderr is not None
    said = _Said(process.stdout), _Said(process.stderr)
    try:
        status = process.wait(timeout)
        for stream in said:
            stream.join(max(deadline - time.monotonic(), 0.1))
        if any(stream.is_alive() for stream in said):
            raise TimedOut
    except subprocess.TimeoutExpired as error:
        raise TimedOut from error
    finally:
        _end(process, any(stream.is_alive() for stream in said))
    return Ran(status, *(stream.text for stream in said))


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A process group of its own, so that child processes are killed as well.
            start_new_session=True,
        )
    except OSError as error:
        # Errors about a folder or the whole system are different.
        if error.filename != command[0]:
            raise
        there = isinstance(error, FileNotFoundError) and Path(command[0]).exists()
        why = "the interpreter that it names is missing" if there else error.strerror
        raise NotStarted(f"{command[0]}: {why}") from error


def _end(process: "subprocess.Popen[bytes]", still_open: bool) -> None:
    """Terminate the rest of the process group, so that locks are released, and then kill it."""
    if process.poll() is not None and not still_open:
        return
    _ask_to_end(process)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _kill(process)
    process.wait()


if sys.platform == "win32":  # This system has no process groups for signals.

    def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
        process.terminate()

    def _kill(process: "subprocess.Popen[bytes]") -> None:
        process.kill()

else:

    def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
        _signal(process.pid, signal.SIGTERM)

    def _kill(process: "subprocess.Popen[bytes]") -> None:
        _signal(process.pid, signal.SIGKILL)

    def _signal(group: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
