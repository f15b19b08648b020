"""Notes as files for people: ``MEMORY.md`` for what lasts, one file a day for everything."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from refold.application.addresses import SCHEME, address_of
from refold.application.read_models import ConversationRow, NoteRow

MEMORY = "MEMORY.md"
DAILY = "memory"
"""The folder of the files by day."""
_LASTING: Mapping[str, str] = {
    "decision": "Decisions",
    "preference": "Preferences",
    "constraint": "Constraints",
}
_SHOWN_SOURCES = 3


def files_of(
    notes: Iterable[NoteRow], conversations: Iterable[ConversationRow] = ()
) -> Mapping[str, str]:
    """By path: what each file says. ``MEMORY.md`` has decisions, preferences and constraints, by kind and
    conversation; a day's file all that was noted on it, by the date of ``taken_at``. Every line ends with its sources.

    ``notes`` are in the order of the log; those that one of ``conversations`` copied when it was forked
    stand under the one that they were taken in.
    """
    notes = _without_copies(notes, conversations)
    files: dict[str, str] = {}
    if lasting := _memory(notes):
        files[MEMORY] = lasting
    for day, of_day in groupby(sorted(notes, key=_day), _day):
        files[f"{DAILY}/{day}.md"] = _daily(day, list(of_day))
    return files


def _without_copies(
    notes: Iterable[NoteRow], conversations: Iterable[ConversationRow]
) -> Sequence[NoteRow]:
    sources = {c.thread_id: c.forked_from for c in conversations if c.forked_from is not None}
    kept: dict[object, tuple[int, NoteRow]] = {}
    for note in notes:
        origin, steps = _origin(note.thread_id, sources)
        # Not by its id: what an erasure noted anew has another one in each of them.
        key = (origin, note.taken_at, note.kind, note.text, note.positions)
        if key not in kept or steps < kept[key][0]:
            kept[key] = steps, note
    return [note for _, note in kept.values()]


def _origin(thread_id: str, sources: Mapping[str, str]) -> tuple[str, int]:
    """The conversation that this one began as a copy of, or as a copy of a copy; in how many steps."""
    seen = set[str]()
    while thread_id in sources and thread_id not in seen:
        seen.add(thread_id)
        thread_id = sources[thread_id]
    return thread_id, len(seen)


def _memory(notes: Sequence[NoteRow]) -> str:
    parts = [
        f"## {title}\n\n" + _by_conversation(own)
        for kind, title in _LASTING.items()
        if (own := [note for note in notes if note.kind == kind])
    ]
    return "\n\n".join(["# Memory", *parts]) if parts else ""


def _daily(day: str, notes: Sequence[NoteRow]) -> str:
    return f"# Notes of {day}\n\n" + _by_conversation(notes, named=True)


def _by_conversation(notes: Iterable[NoteRow], *, named: bool = False) -> str:
    ordered = sorted(notes, key=attrgetter("thread_id"))
    parts = [
        f"{_heading(thread)}\n\n" + "\n".join(_line(note, named=named) for note in own)
        for thread, own in groupby(ordered, attrgetter("thread_id"))
    ]
    return "\n\n".join(parts)


def _heading(thread_id: str) -> str:
    # As in an address: nothing in an id can end the line, or begin a comment.
    return "### " + address_of(thread_id, 0).removeprefix(SCHEME).removesuffix("/0")


def _line(note: NoteRow, *, named: bool) -> str:
    kind = f"{note.kind}: " if named else ""
    return f"- {kind}{_plain(note.text)} ({_sources(note)})"


def _sources(note: NoteRow) -> str:
    positions = note.source_positions
    if not positions:
        first, last = (address_of(note.thread_id, p) for p in (note.start, note.stop - 1))
        return first if first == last else f"from {first} to {last}"
    return ", ".join(address_of(note.thread_id, p) for p in positions[:_SHOWN_SOURCES])


def _plain(text: str) -> str:
    """A text that cannot pass for a mark of ours, nor hide what follows it."""
    return " ".join(text.split()).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def _day(note: NoteRow) -> str:
    return note.taken_at[:10]
