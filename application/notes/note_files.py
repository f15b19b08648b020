"""Write notes as files for people: MEMORY.md for lasting notes, and one file a day."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from refold.application.conversation.addresses import SCHEME, address_of
from refold.application.ports.read_models import ConversationRow, NoteRow
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.errors import RefoldError
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.noting import LEDGER
from refold.domain.value import replace

_OFFSET = lazy_pattern(r"([+-])(\d{2}):(\d{2})")
_MOST_HOURS, _MINUTES = 24, 60


def time_zone(name: str) -> tzinfo:
    """Return the time zone with an IANA name (``Europe/Berlin``, ``UTC``) or an offset (``+08:00``).

    Raises:
        ValueError: there is no such time zone.
    """
    if name == "UTC":
        return UTC
    if offset := _OFFSET.fullmatch(name):
        hours, minutes = int(offset[2]), int(offset[3])
        if hours >= _MOST_HOURS or minutes >= _MINUTES:
            raise ValueError(f"{name} is not a valid offset")
        east = timedelta(hours=hours, minutes=minutes)
        return timezone(east if offset[1] == "+" else -east)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}") from error


def localise_times(notes: Iterable[NoteRow], zone: str | None) -> Iterator[NoteRow]:
    """Yield the notes with their times in this zone, or in the zone of this machine if None."""
    there = None if zone is None else time_zone(zone)
    for note in notes:
        yield replace(note, taken_at=_localise(note.taken_at, there))


def _localise(taken_at: str, zone: tzinfo | None) -> str:
    try:
        return datetime.fromisoformat(taken_at).astimezone(zone).isoformat()
    except (ValueError, OverflowError, OSError):
        return taken_at  # The time is outside the calendar or outside the range of the machine's clock.


MEMORY = "MEMORY.md"
DAILY = "memory"
"""Folder of the files by day."""
OWNERS = "owners"
"""Folder that contains one folder for each owner."""
_LASTING: Mapping[str, str] = {
    "decision": "Decisions",
    "preference": "Preferences",
    "constraint": "Constraints",
}
_SHOWN_SOURCES = 3


def files_of(
    notes: Iterable[NoteRow],
    conversations: Iterable[ConversationRow] = (),
    owners_of: Callable[[str], Mapping[int, str]] = lambda _: {},
) -> Mapping[str, str]:
    """Return the content of each file, by path.

    Notes of conversations with an owner are in the owner's folder (``owner_folder``). Notes of
    messages that name another owner (``owners_of``: by position) are in no file. ``MEMORY.md`` has
    decisions, preferences and constraints by kind and conversation; the file of a day has all notes
    taken on that day. Every line ends with its sources.

    ``notes`` must be in the order of the log. A note that a fork copied is listed under the
    conversation where it was taken.
    """
    rows = list(conversations)
    owners = {row.thread_id: row.owner for row in rows}
    by_owner: dict[str | None, list[NoteRow]] = {}
    for note in _remove_copies(without_others(notes, owners_of), rows):
        by_owner.setdefault(owners.get(note.thread_id), []).append(note)
    files: dict[str, str] = {}
    for owner, own in by_owner.items():
        before = "" if owner is None else f"{owner_folder(owner)}/"
        files.update({before + name: text for name, text in _files_of(own).items()})
    return files


def owner_folder(owner: str) -> str:
    """Return the folder name of an owner's notes, readable and distinct on every file system."""
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in owner.lower())[:40]
    return f"{OWNERS}/{readable}-{blake2b(owner.encode(), digest_size=8).hexdigest()}"


def _files_of(notes: Sequence[NoteRow]) -> Mapping[str, str]:
    files: dict[str, str] = {}
    if lasting := _memory(notes):
        files[MEMORY] = lasting
    for day, of_day in groupby(sorted(notes, key=_day), _day):
        files[f"{DAILY}/{day}.md"] = _daily(day, list(of_day))
    return files


def without_others(
    notes: Iterable[NoteRow], owners_of: Callable[[str], Mapping[int, str]]
) -> Iterator[NoteRow]:
    """Yield the notes without those of messages that name another owner (``owners_of``: by position)."""
    known: dict[str, frozenset[int]] = {}
    for note in notes:
        if note.thread_id not in known:
            known[note.thread_id] = frozenset(owners_of(note.thread_id))
        # Code records the source messages of a note; a model may have used any message it received.
        exact = note.source_positions if note.taken_by == LEDGER else ()
        if known[note.thread_id].isdisjoint(exact or note.possible_sources):
            yield note


def _remove_copies(
    notes: Iterable[NoteRow], conversations: Iterable[ConversationRow]
) -> Sequence[NoteRow]:
    sources = {c.thread_id: c.forked_from for c in conversations if c.forked_from is not None}
    kept: dict[object, tuple[int, NoteRow]] = {}
    for note in notes:
        origin, steps = _origin(note.thread_id, sources)
        # Ids are not compared, because notes rebuilt by an erasure have another id in each copy.
        key = (origin, note.taken_at, note.kind, note.text, note.positions)
        if key not in kept or steps < kept[key][0]:
            kept[key] = steps, note
    return [note for _, note in kept.values()]


def _origin(thread_id: str, sources: Mapping[str, str]) -> tuple[str, int]:
    """Return the conversation that this one was forked from originally, and the number of forks."""
    seen = set[str]()
    while thread_id in sources and thread_id not in seen:
        seen.add(thread_id)
        thread_id = sources[thread_id]
    return thread_id, len(seen)


def _memory(notes: Sequence[NoteRow]) -> str:
    parts = [
        f"## {title}\n\n" + _group_by_conversation(own)
        for kind, title in _LASTING.items()
        if (own := [note for note in notes if note.kind == kind])
    ]
    return "\n\n".join(["# Memory", *parts]) if parts else ""


def _daily(day: str, notes: Sequence[NoteRow]) -> str:
    return f"# Notes of {day}\n\n" + _group_by_conversation(notes, named=True)


def _group_by_conversation(notes: Iterable[NoteRow], *, named: bool = False) -> str:
    ordered = sorted(notes, key=attrgetter("thread_id"))
    parts = [
        f"{_heading(thread)}\n\n" + "\n".join(_line(note, named=named) for note in own)
        for thread, own in groupby(ordered, attrgetter("thread_id"))
    ]
    return "\n\n".join(parts)


def _heading(thread_id: str) -> str:
    # Escaped as in an address, so that an id can neither end the line nor begin a comment.
    return "### " + address_of(thread_id, 0).removeprefix(SCHEME).removesuffix("/0")


def _line(note: NoteRow, *, named: bool) -> str:
    kind = f"{note.kind}: " if named else ""
    return f"- {kind}{_plain(note.text)} ({_sources(note)})"


def _sources(note: NoteRow) -> str:
    positions = note.source_positions
    if note.is_on_demand:
        return f"remembered by {_plain(note.taken_by)}"
    if not positions:
        first, last = (address_of(note.thread_id, p) for p in (note.start, note.stop - 1))
        return first if first == last else f"from {first} to {last}"
    return ", ".join(address_of(note.thread_id, p) for p in positions[:_SHOWN_SOURCES])


def _plain(text: str) -> str:
    """Return a text that cannot imitate the marks of refold or hide the text after it."""
    return " ".join(text.split()).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def _day(note: NoteRow) -> str:
    return note.taken_at[:10]


logger = plain_logger(__name__)


def write_notes(core: Core) -> bool:
    """Update the files in the configured notes folder, and return whether that succeeded.

    A failure is logged as a warning; the next update writes everything.
    """
    if core.notes_folder is None:
        return True
    try:
        core.notes_folder.write(
            lambda: files_of(
                localise_times(core.views.all_notes(), core.settings.notes.timezone),
                core.views.conversations(),
                core.views.owners_of,
            )
        )
    except (OSError, RefoldError) as error:
        logger.warning("the notes files cannot be written: %s", error)
        return False
    return True
