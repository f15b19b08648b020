"""Names and times that stay the same at every reading: thread ids, message keys, moments."""

import hashlib
import unicodedata
from datetime import UTC, datetime
from typing import Any

MAX_THREAD_ID = 180
"""Characters of a suggested thread id: under the 200 that are allowed, with room for ``#2``."""

_MAX_ID = 200
_UNPRINTABLE = {"Cc", "Cs", "Cn", "Zl", "Zp"}
_FIRST_MILLISECONDS = 100_000_000_000  # as seconds this is the year 5138, as milliseconds 1973


def usable_id(value: Any) -> str | None:
    """An id as a file gave it, if it can be used as a name; else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_ID:
        return None
    return None if any(unicodedata.category(c) in _UNPRINTABLE for c in value) else value


def thread_id(*parts: str) -> str:
    """A thread id made of ``parts``: printable as ids must be, at most ``MAX_THREAD_ID`` characters.

    What had to be changed or cut is told apart by a digest of the original.
    """
    wanted = ":".join(parts)
    clean = "".join(c if c.isprintable() else "_" for c in wanted).strip()
    if clean == wanted and 0 < len(clean) <= MAX_THREAD_ID:
        return clean
    digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{clean[: MAX_THREAD_ID - 13].strip() or 'transcript'}-{digest}"


class Names:
    """Hands out names that are unique among themselves: the second ``x`` is ``x#2``.

    The same sequence of wishes always gets the same names.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """The wished name, or the first free one made from it."""
        name = wanted
        while name in self._taken:
            self._repeats[wanted] = self._repeats.get(wanted, 1) + 1
            name = f"{wanted}#{self._repeats[wanted]}"
        self._taken.add(name)
        return name


def moment(value: Any) -> datetime | None:
    """A recorded time: ISO 8601, seconds or milliseconds since 1970; UTC where no zone is said."""
    try:
        match value:
            case bool():
                return None
            case str():
                at = datetime.fromisoformat(value)
                return at if at.utcoffset() is not None else at.replace(tzinfo=UTC)
            case int() | float():
                seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
                return datetime.fromtimestamp(seconds, UTC)
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None
