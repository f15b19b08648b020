"""Times as people write and read them: in their own zone, unless they name another."""

import re
from datetime import UTC, date, datetime, timedelta

import typer

TO_MINUTES, TO_SECONDS = 16, 19
"""Characters of a time that is shown."""

_DATE_AND_TIME = re.compile(r"[^T ]+[T ](.*?)(?:Z|[+-]\d\d.*)?", re.IGNORECASE)
_STANDS_FOR = {2: timedelta(hours=1), 4: timedelta(minutes=1), 6: timedelta(seconds=1)}
"""How long a time lasts that has so many digits."""


def shown_time(at: str, length: int = TO_MINUTES) -> str:
    """A time of the log, ISO 8601 in UTC, as it is shown: in the zone of whoever reads it."""
    try:
        local = datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError, OSError):  # What no calendar here has is shown as it is.
        return at[:length].replace("T", " ")
    return local.isoformat(" ")[:length]


def read_at(text: str) -> int | datetime:
    """The version or the time that somebody wrote; of a time the end of what it names.

    All that is shown under a minute was said by its end.

    Raises:
        BadParameter: it is neither.
    """
    text = text.strip()
    if text.isdecimal():
        return int(text)
    begin = _moment(text, f"{text!r} is neither a version, 12 say, nor a time such as {_LIKE}")
    try:
        return begin + _lasts(text) - timedelta(microseconds=1) if _lasts(text) else begin
    except OverflowError:
        return begin


def read_time(text: str) -> str:
    """A day or a time that somebody wrote, as rows have times: ISO 8601, UTC.

    Raises:
        BadParameter: it is neither.
    """
    text = text.strip()
    begin = _moment(text, f"{text!r} is no time such as {_LIKE}")
    return begin.isoformat(timespec="microseconds").replace("+00:00", "Z")


_LIKE = '2026-01-02, "2026-01-02 03:04" (your time) or 2026-01-02T03:04:05Z'


def _moment(text: str, problem: str) -> datetime:
    """The beginning of what is written, in UTC; a time without a zone is one of this machine's."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise typer.BadParameter(problem) from error


def _lasts(text: str) -> timedelta:
    """How long the time lasts that is written: a day, an hour, a minute, a second, or no time at all."""
    try:
        date.fromisoformat(text)
    except ValueError:
        found = _DATE_AND_TIME.fullmatch(text)
        digits = sum(map(str.isdecimal, found[1])) if found is not None else 0
        return _STANDS_FOR.get(digits, timedelta())
    return timedelta(days=1)
