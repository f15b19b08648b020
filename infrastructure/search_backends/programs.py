"""Messages as markdown files, one for each, for programs that search files."""

import hashlib
import json
import os
import re
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
from refold.application.projections.message_list import readable
from refold.domain.events import ConversationErased, MessageAppended, MessageErased
from refold.infrastructure.files.private_files import open_private

VERSION = 1
"""Grows when files are named or written otherwise: those of another version are made anew."""
BATCH = 2_000
"""Messages that are written before the program takes them in."""
STATE = "state.json"
FILES = "messages"

_PLACE = re.compile(r"/(t[0-9a-f]{20})/(\d{9})\.md(?:[?#].*)?$")


class State(NamedTuple):
    """How far the files are."""

    version: int
    number: int
    """Of the last event in the log that was looked at; 0 before the first."""
    mark: str
    """What that event was; the log may have been put back to an earlier day since."""
    read_from: int
    """The newest event when the first was read: what was erased up to there was never written."""
    indexed: bool
    """Whether the program has taken in what was written."""
    embedded: bool
    """Whether it has made its vectors of all of it."""
    threads: dict[str, str]
    """The conversations by the names of their folders."""


class Outdated(Exception):
    """Something that was written was erased since, or the log is another: all is to be made anew."""


class MessageFiles:
    """A folder with one file for each message that was not erased."""

    def __init__(self, folder: Path, log: ConversationLog, like: Path) -> None:
        """``like`` is the file of the log: whoever may use that one may use these."""
        self._folder = folder
        self._log = log
        self._like = like

    @property
    def place(self) -> Path:
        """Where the files are, in a folder for each conversation."""
        return self._folder / FILES

    def make(self, *beside: str) -> None:
        """Make the folders: of the messages, and with these names beside it.

        Raises:
            OSError: that is not possible.
        """
        for folder in (self._folder, self.place, *(self._folder / name for name in beside)):
            _make_folder(folder, self._like)

    def state(self) -> State:
        """What is there; of an empty folder where nothing is, or something else."""
        try:
            raw = json.loads((self._folder / STATE).read_bytes())
            state = State(**raw)
        except (OSError, ValueError, TypeError):
            return self._nothing()
        return state if state.version == VERSION and self.place.is_dir() else self._nothing()

    def keep(self, state: State) -> None:
        """Note how far the files are."""
        unfinished = self._folder / f"{STATE}.new"
        unfinished.unlink(missing_ok=True)
        with open_private(unfinished, like=self._like) as file:
            file.write(json.dumps(state._asdict()).encode())
        unfinished.replace(self._folder / STATE)

    def write_more(self, state: State, most: int = BATCH) -> tuple[State, int]:
        """Write at most so many of the messages that are missing, and say how many; 0: all are there.

        Raises:
            Outdated: the files hold what the log does not hold any more.
            OSError: they cannot be written.
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
            raise Outdated(f"event {state.number} of the log is another one now")
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
    """What an interrupted deletion of the folder left."""
    return folder.parent.glob(f"{escape(folder.name)}.*.gone")


def delete(folder: Path) -> None:
    """Delete a folder of message files, with everything in it.

    Raises:
        OSError: something of it is left.
    """
    away = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.gone")
    with suppress(FileNotFoundError):
        # Moved away first: what still writes into it finds it nowhere.
        folder.rename(away)
    for gone in [*left_of(folder)]:
        shutil.rmtree(gone)


def folder_of(thread_id: str) -> str:
    """The name of a conversation's folder: one word for whoever cuts it into words."""
    return f"t{hashlib.sha256(thread_id.encode(errors='surrogatepass')).hexdigest()[:20]}"


def place_in(name: str) -> tuple[str, int] | None:
    """The folder and the position in the name of a file, however it begins; None: it is not ours."""
    found = _PLACE.search(name)
    return (found[1], int(found[2])) if found else None


def _make_folder(folder: Path, like: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(OSError):
        # Whoever may read the log may look into it.
        mode = like.stat().st_mode & 0o066
        folder.chmod(0o700 | mode | (mode & 0o044) >> 2)


def _text_of(logged: LoggedEvent) -> str:
    event = logged.event
    if logged.erased or not isinstance(event, MessageAppended):
        return ""
    text = readable(event.message).replace("\0", " ")
    if not text or text.isspace():
        return ""
    # The day in words, as people ask for it.
    at = event.written_at or datetime.fromisoformat(logged.at)
    return f"{at:%d %B %Y}\n\n{text}\n"


def _erases(logged: LoggedEvent) -> bool:
    return isinstance(logged.event, MessageErased | ConversationErased)


def _mark_of(logged: LoggedEvent) -> str:
    content = zlib.crc32(repr(logged.event).encode("utf-8", "surrogatepass"))
    return f"{logged.thread_id} {logged.version} {logged.at} {content:08x}"


MOST_BYTES = 32 * 1024 * 1024
"""Of one stream; whoever writes more is not read on, and runs into the time-out."""
GRACE = 0.5
"""Seconds between the request to end and the end."""


class Ran(NamedTuple):
    """What a program said, and how it ended."""

    status: int
    """Negative: the number of the signal that ended it."""
    out: str
    err: str


class NotStarted(Exception):
    """The program is not there, or is none that this system can run."""


class TimedOut(Exception):
    """It did not end in time, and was ended with everything that it had started."""


class _Said(threading.Thread):
    """Reads a stream to its end, so that the program never waits for a reader."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True, name="refold-program-output")
        self._stream = stream
        self.content = b""
        self.start()

    def run(self) -> None:
        with suppress(OSError, ValueError), self._stream:
            self.content = self._stream.read(MOST_BYTES)
            if len(self.content) == MOST_BYTES:
                # Left unread, so that the program stops there; the time-out ends it.
                threading.Event().wait(3_600)

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


def run(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], timeout: float
) -> Ran:
    """Run ``command`` in ``folder`` and return what it said; each argument reaches it as it is.

    Raises:
        TimedOut: it took longer than ``timeout`` seconds.
        NotStarted: the program cannot be started.
        OSError: nothing can be started there.
    """
    deadline = time.monotonic() + timeout
    process = _started(command, folder, environment)
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


def _started(
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
            # A group of its own: the program may have started others, which end with it.
            start_new_session=True,
        )
    except OSError as error:
        # Of a folder or of the system as a whole it says something else.
        if error.filename != command[0]:
            raise
        there = isinstance(error, FileNotFoundError) and Path(command[0]).exists()
        why = "the interpreter that it names is missing" if there else error.strerror
        raise NotStarted(f"{command[0]}: {why}") from error


def _end(process: "subprocess.Popen[bytes]", still_open: bool) -> None:
    """End what is left of the group: ask first, so that locks are given back, then do not ask."""
    if process.poll() is not None and not still_open:
        return
    _ask_to_end(process)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _kill(process)
    process.wait()


if sys.platform == "win32":  # There are no groups that signals reach.

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
