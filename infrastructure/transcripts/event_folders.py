"""Read conversations of OpenHands from the folders in which it keeps one file for each event."""

import re
from pathlib import Path

from refold.application.conversation.transcripts import Skipped
from refold.application.errors import TranscriptError

from . import openhands
from .transcript_source import Record, Source, parse_source, read_bytes

_NAME = re.compile(r"(?:event-)?(\d+)(?:-[\w-]+)?\.json")
"""``12.json`` of the first version, ``event-00012-ID.json`` of the second."""
_FOLDER = "events"
_COPIES = "event_cache"
"""Folder of the first version with copies of the events, several in a file."""


def possible_folder(path: Path) -> Path | None:
    """Return the folder of events that a file belongs to by its name, or None."""
    if path.parent.name == _COPIES:
        return path.parent.parent / _FOLDER
    return path.parent if path.parent.name == _FOLDER and _NAME.fullmatch(path.name) else None


def is_event_folder(folder: Path) -> bool:
    """Return whether a folder has the events of a conversation."""
    if folder.name != _FOLDER or not folder.is_dir():
        return False
    first = next(iter(_files(folder)), None)
    try:
        return first is not None and openhands.fits(parse_source(first, read_bytes(first)))
    except TranscriptError:
        return False


def read_folder(folder: Path) -> Source:
    """Read the events of a folder in their order. The conversation is named after the folder around it."""
    records: list[Record] = []
    skipped: list[Skipped] = []
    for path in _files(folder):
        line = _number(path)
        try:
            source = parse_source(path, read_bytes(path))
        except TranscriptError as error:
            detail = str(error)[:160]
            skipped.append(Skipped(line=line, reason="broken file", detail=detail, damage=True))
            continue
        records.append(Record(line=line, value=source.document))
    name = folder.absolute().parent.name
    return Source(stem=name, is_document=False, records=tuple(records), skipped=tuple(skipped))


def _files(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (_number(path), path.name))


def _number(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else 0
