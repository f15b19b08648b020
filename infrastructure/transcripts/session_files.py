"""Find the session files of coding agents on this machine, and scan them one at a time."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from refold.application.conversation.transcripts import Transcript
from refold.application.errors import TranscriptError
from refold.application.lab.session_scan import ScannedSession, scan_session
from refold.application.ports.token_counter import TokenCounter
from refold.domain.value import Value, replace

from .event_folders import is_event_folder, possible_folder
from .read_transcript import find_format, read_source
from .transcript_source import Record, Source, as_object, parse_run, parse_source, read_bytes

TOOLS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "pi": "pi",
}
"""Names of the tools whose sessions are scanned, by format."""
RECORD_NO_COMPACTIONS = ("gemini-cli",)
"""Formats that do not say where a session was compacted."""
_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
IMPORTED_ENDINGS = (*_ENDINGS, ".eval", ".traj", ".traj.gz")
"""Endings of all files that may have conversations: also logs of Inspect and trajectories of SWE-agent."""
_COMPACTION = re.compile(rb'"isCompactSummary"\s*:\s*true|"type"\s*:\s*"(?:compacted|compaction)"')
"""A sign of a compaction. In a quoted record each quotation mark has a backslash before it."""
_SAID = re.compile(rb'"(?:role|type)"\s*:\s*"(?:user|assistant|gemini)"')
_SIDECHAIN = re.compile(rb'"isSidechain"\s*:\s*true')
_FIRST_LINES = 40
"""Lines that are read to recognise the format of a file without compactions."""


class SessionFile(NamedTuple):
    """A file that may have sessions."""

    path: Path
    size: int
    changed: float
    """Time of the last change, in seconds since 1970."""


class FoundFiles(NamedTuple):
    """Files that may have sessions, newest first, and folders that could not be listed."""

    files: tuple[SessionFile, ...]
    unreadable: tuple[str, ...]


class FileScan(Value, frozen=True):
    """The scan of one file."""

    path: str
    changed: float
    format: str | None = None
    """Format of one of ``TOOLS``, or None if the file has no session of these tools."""
    sessions: tuple[ScannedSession, ...] = ()
    """Sessions and sub-agents with compactions."""
    is_agent: bool = False
    """True if the file has only the messages of a sub-agent."""
    has_messages: bool = False
    damaged: int = 0
    """Lines that could not be read in a file that was read in full."""
    problem: str = ""
    """Reason why the file could not be read, or an empty text."""


def default_places(home: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders where the tools keep their sessions, whether or not they exist."""
    claude = env.get("CLAUDE_CONFIG_DIR")
    claudes = [Path(claude)] if claude else [home / ".claude", home / ".config" / "claude"]
    codex = Path(env.get("CODEX_HOME") or home / ".codex")
    gemini = Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"
    agent = Path(env.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
    pi = Path(env.get("PI_CODING_AGENT_SESSION_DIR") or agent / "sessions")
    folders = [*(folder / "projects" for folder in claudes), codex / "sessions"]
    found = (*folders, codex / "archived_sessions", gemini, pi)
    return tuple(place.expanduser() for place in found)


def find_files(places: Sequence[Path], endings: tuple[str, ...] = _ENDINGS) -> FoundFiles:
    """Find files with these endings in folders, each once. A given file is taken as it is."""
    found: dict[Path, SessionFile] = {}
    unreadable: list[str] = []
    for place in places:
        for path in _files_in(place, endings, unreadable):
            with suppress(OSError):
                stat = path.stat()
                file = SessionFile(path, stat.st_size, stat.st_mtime)
                found.setdefault(path.resolve(), file)
    newest = sorted(found.values(), key=lambda file: (-file.changed, str(file.path)))
    return FoundFiles(tuple(newest), tuple(unreadable))


def join_events(files: Sequence[SessionFile]) -> list[SessionFile]:
    """Replace the files of events by their folder, in which they are one conversation. The order stays."""
    joined: dict[Path, SessionFile] = {}
    known: dict[Path, bool] = {}
    for file in files:
        place, folder = file.path, possible_folder(file.path)
        if folder is not None:
            if folder not in known:
                known[folder] = is_event_folder(folder)
            place = folder if known[folder] else place
        newest = joined.get(place, file._replace(size=0))
        joined[place] = SessionFile(place, newest.size + file.size, newest.changed)
    return list(joined.values())


def _files_in(place: Path, endings: tuple[str, ...], unreadable: list[str]) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    in_chats = place.name == "tmp" and place.parent.name == ".gemini"
    for folder, names, files in os.walk(
        place, onerror=lambda e: unreadable.append(str(e.filename))
    ):
        names.sort()
        # The Gemini CLI keeps other JSON files of a project next to the folder of its sessions.
        if in_chats and "chats" not in Path(folder).parts[len(place.parts) :]:
            continue
        yield from (Path(folder, name) for name in files if name.lower().endswith(endings))


def scan_file(file: SessionFile, counter: TokenCounter) -> FileScan:
    """Scan one file. A file without signs of a compaction is only recognised, not read in full."""
    scan = FileScan(path=str(file.path), changed=file.changed)
    try:
        data = read_bytes(file.path)
        if not _COMPACTION.search(data) and (quick := _recognise(scan, data)) is not None:
            return quick
        source = parse_source(file.path, data)
        if find_format(source) not in TOOLS:
            return scan
        return _scan(scan, read_source(file.path, source), counter)
    except TranscriptError as error:
        return replace(scan, problem=str(error))
    except Exception as error:  # One odd file must not end the scan of all the others.
        return replace(scan, problem=f"{type(error).__name__}: {error}")


def read_session_file(path: Path) -> Transcript:
    """Read a file that was scanned before.

    Raises:
        TranscriptError: the file is gone or was replaced.
    """
    return read_source(path, parse_source(path, read_bytes(path)))


def _scan(scan: FileScan, transcript: Transcript, counter: TokenCounter) -> FileScan:
    sessions = [scan_session(c, counter) for c in transcript.conversations if c.summaries]
    threads = [conversation.thread_id for conversation in transcript.conversations]
    return FileScan(
        path=scan.path,
        changed=scan.changed,
        format=transcript.format,
        sessions=tuple(sessions),
        is_agent=transcript.format == "claude-code" and all(":" in thread for thread in threads),
        has_messages=bool(threads),
        damaged=sum(skipped.damage for skipped in transcript.skipped),
    )


def _recognise(scan: FileScan, data: bytes) -> FileScan | None:
    """Recognise a file of JSON lines by its first lines, or return None if all of it must be read."""
    records: list[Record] = []
    for number, line in enumerate(data[: 1 << 20].split(b"\n", _FIRST_LINES)[:_FIRST_LINES], 1):
        with suppress(UnicodeDecodeError):
            values, _ = parse_run(line.decode("utf-8", "surrogatepass"))
            records += [Record(line=number, value=value) for value in values]
    if not any(as_object(record.value) is not None for record in records):
        return None
    source = Source(stem=Path(scan.path).stem, is_document=False, records=tuple(records))
    found = find_format(source)
    if found not in TOOLS:
        return None
    said = _SAID.search(data) is not None
    agent = found == "claude-code" and _SIDECHAIN.search(data, 0, 1 << 16) is not None
    if agent:
        return None  # A file can have a main conversation and sub-agents.
    return replace(scan, format=found, has_messages=said)
