"""The days of daily notes: those of the user, whose time zone is a setting."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from refold.application.read_models import NoteRow

_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})")
_MOST_HOURS, _MINUTES = 24, 60


def time_zone(name: str) -> tzinfo:
    """Return the time zone with an IANA name (``Europe/Berlin``, ``UTC``) or an offset (``+08:00``).

    Raises:
        ValueError: there is none.
    """
    if name == "UTC":
        return UTC
    if offset := _OFFSET.fullmatch(name):
        hours, minutes = int(offset[2]), int(offset[3])
        if hours >= _MOST_HOURS or minutes >= _MINUTES:
            raise ValueError(f"{name} is no offset")
        east = timedelta(hours=hours, minutes=minutes)
        return timezone(east if offset[1] == "+" else -east)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}") from error


def dated(notes: Iterable[NoteRow], zone: str | None) -> Iterator[NoteRow]:
    """Return the notes with the times at which they were taken as clocks in this zone show them.

    None: the zone of this machine, as it was at each time.
    """
    there = None if zone is None else time_zone(zone)
    for note in notes:
        yield note.replaced(taken_at=_as_there(note.taken_at, there))


def _as_there(taken_at: str, zone: tzinfo | None) -> str:
    try:
        return datetime.fromisoformat(taken_at).astimezone(zone).isoformat()
    except (ValueError, OverflowError, OSError):
        return taken_at  # Beyond the calendar, or before what the machine's clock knows.
