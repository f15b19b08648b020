"""Detect the format of a transcript file and read its conversations."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from refold.application.conversation.transcripts import RecordedConversation, Transcript
from refold.application.errors import TranscriptError
from refold.domain.value import Value, replace

from . import (
    agent_tars,
    anthropic,
    claude_code,
    codex,
    gemini_cli,
    inspect_logs,
    langchain_state,
    openai,
    openhands,
    pi,
)
from .chats import ROLES, odd_role
from .event_folders import is_event_folder, read_folder
from .transcript_source import (
    Names,
    Reading,
    Source,
    UnknownFormat,
    as_list,
    as_object,
    parse_source,
    read_bytes,
)


def describe(source: Source) -> str:
    """Describe the shape of a file for an error message: JSON or JSON lines, counts, and keys or types."""
    if source.is_document:
        return f"one JSON value: {_shape(source.document)}"
    count = len(source.records)
    lines = "1 JSON line" if count == 1 else f"{count} JSON lines"
    return f"{lines}; the first is {_shape(source.records[0].value)}"


def _shape(value: Any) -> str:
    if (one := as_object(value)) is not None:
        return f"an object with {_keys(one)}"
    items = as_list(value)
    if items is None:
        return _kind(value)
    if not items:
        return "an empty list"
    first = as_object(items[0])
    shape = _kind(items[0]) if first is None else f"an object with {_keys(first)}"
    return f"a list of {len(items)}; its first is {shape}"


def _keys(value: dict[str, Any]) -> str:
    if not value:
        return "no keys"
    names = ", ".join(ascii(key[:30])[1:-1] for key in list(value)[:6])
    return f"the keys {names}{', …' if len(value) > 6 else ''}"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


class _Format(Value, frozen=True):
    """A transcript format with its detection and its reader."""

    detect: Callable[[Source], bool]
    """Returns whether the content shows that a file has this format."""
    fits: Callable[[Source], bool]
    """Returns whether a file can be read in this format if the user names it."""
    read: Callable[[Source], Reading]


# The order matters: session files are certain, and a plain list of messages is the weakest sign.
_FORMATS = {
    "claude-code": _Format(detect=claude_code.fits, fits=claude_code.fits, read=claude_code.read),
    "codex": _Format(detect=codex.fits, fits=codex.fits, read=codex.read),
    "gemini-cli": _Format(detect=gemini_cli.fits, fits=gemini_cli.fits, read=gemini_cli.read),
    "pi": _Format(detect=pi.fits, fits=pi.fits, read=pi.read),
    "openhands": _Format(detect=openhands.fits, fits=openhands.fits, read=openhands.read),
    "inspect": _Format(detect=inspect_logs.fits, fits=inspect_logs.fits, read=inspect_logs.read),
    "agent-tars": _Format(detect=agent_tars.fits, fits=agent_tars.fits, read=agent_tars.read),
    "langchain": _Format(
        detect=langchain_state.fits, fits=langchain_state.fits, read=langchain_state.read
    ),
    "openai": _Format(detect=openai.detect, fits=openai.fits, read=openai.read),
    "anthropic": _Format(detect=anthropic.detect, fits=anthropic.fits, read=anthropic.read),
}

_CHECKPOINTS = "langgraph"
_DATABASE = b"SQLite format 3\0"

FORMATS: tuple[str, ...] = (*_FORMATS, _CHECKPOINTS)
"""Format names that ``read_transcript`` accepts in addition to ``auto``."""


def read_transcript(path: str | Path, *, format: str = "auto") -> Transcript:
    """Read the conversations of a transcript file, plain or gzip; nothing is stored.

    Each message is one that ``conversation.append_recorded`` takes::

        for recorded in refold.read_transcript("session.jsonl.gz").conversations:
            memory.conversation(recorded.thread_id).append_recorded(recorded.messages)

    ``append_recorded`` keeps times and ids, and stores each message once, however often it is called. The thread id of
    a conversation without an id is the name of its file, with its place if the file has several: a file of one that
    gets more names the first one otherwise. ``refold import`` finds it under the earlier id.

    Args:
        path: the file; at most 1 GiB unpacked. A SQLite file of LangGraph's checkpoints needs ``refold[langchain]``.
            A folder ``events`` of OpenHands, which has a file for each event, is one as well.
        format: one of ``FORMATS``, or ``auto`` to detect it from the content.

    Raises:
        TranscriptError: the file is missing, unreadable, a folder, empty, broken gzip or not text;
            the format is unknown, or the named one does not fit. A partly damaged file
            is read as far as possible, and ``skipped`` lists each damaged place.
    """
    if format != "auto" and format not in FORMATS:
        raise TranscriptError(f"no format {format!r}: use auto, {', '.join(FORMATS)}.")
    if not isinstance(cast("object", path), str | Path):
        raise TranscriptError(f"path: must be a path, not a value of type {type(path).__name__}")
    path = Path(path)
    if format in ("auto", _CHECKPOINTS) and _is_database(path):
        # The adapter of a framework is reached when a file needs it.
        read: Callable[[Path], Transcript] = import_module(
            "refold.adapters.checkpoint_files"
        ).read_checkpoint_file
        return read(path)
    if is_event_folder(path):
        return read_source(path, read_folder(path), format=format)
    begin = _begin_of(path)
    is_archive = begin == inspect_logs.ARCHIVE
    source = inspect_logs.open_archive(path) if is_archive else parse_source(path, read_bytes(path))
    return read_source(path, source, format=format)


def read_source(path: Path, source: Source, *, format: str = "auto") -> Transcript:
    """Read the conversations of a parsed file.

    Raises:
        TranscriptError: no format fits, or not the named one.
    """
    name = _detect_format(path, source) if format == "auto" else _check_format(path, source, format)
    reading = _FORMATS[name].read(source)
    skipped = sorted((*source.skipped, *reading.skipped), key=lambda item: item.line or 0)
    return Transcript(
        source=str(path),
        format=name,
        conversations=_with_unique_ids(reading.conversations),
        skipped=tuple(skipped),
    )


def find_format(source: Source) -> str | None:
    """Return the first format whose signs a file has, or None."""
    return next((name for name, known in _FORMATS.items() if known.detect(source)), None)


def _is_database(path: Path) -> bool:
    return _begin_of(path, len(_DATABASE)) == _DATABASE


def _begin_of(path: Path, size: int = len(inspect_logs.ARCHIVE)) -> bytes:
    """Return the first bytes of a file, or none if it cannot be read or is a pipe.

    What is taken from a pipe is not there any more when the content is read.
    """
    with suppress(OSError, ValueError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(size)
    return b""


def _detect_format(path: Path, source: Source) -> str:
    if (found := find_format(source)) is not None:
        return found
    if (odd := odd_role(source)) is not None:
        raise TranscriptError(
            f"{path} has no known format: it looks like messages, and the first one with a role that cannot "
            f"be read, {odd}. Roles are {', '.join(sorted(ROLES))}."
        )
    raise UnknownFormat(
        f"{path} has no known format. It looks like {describe(source)}. "
        f"Formats that can be read: {', '.join(FORMATS)}. "
        "Convert it to a list of messages with role and content, then import that."
    )


def _check_format(path: Path, source: Source, name: str) -> str:
    if name in _FORMATS and _FORMATS[name].fits(source):
        return name
    others = [other for other, known in _FORMATS.items() if known.detect(source)]
    hint = f"Read it as {others[0]}" if others else "No known format fits"
    raise TranscriptError(
        f"{path} cannot be read as {name}. It looks like {describe(source)}. {hint}."
    )


def _with_unique_ids(
    conversations: tuple[RecordedConversation, ...],
) -> tuple[RecordedConversation, ...]:
    names = Names()
    return tuple(
        replace(conversation, thread_id=names.take(conversation.thread_id))
        for conversation in conversations
    )
