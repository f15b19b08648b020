"""Days that are named in a text, in English, Chinese or ISO 8601, and their tokens."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .tokens import tokens_of

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in MONTHS)
_DAY = r"(?P<{0}d>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<{0}y>(?:19|20)\d\d)"
_FORMS = (
    rf"\b(?P<am>{_MONTH})\.?\s+{_DAY.format('a')}\b(?:,?\s*{_YEAR.format('a')}\b)?",
    rf"\b{_DAY.format('b')}\s+(?:of\s+)?(?P<bm>{_MONTH})\b\.?(?:,?\s*{_YEAR.format('b')}\b)?",
    rf"\b(?P<cm>{_MONTH})\.?,?\s+{_YEAR.format('c')}\b",
    r"(?<!\d)(?:(?P<ey>(?:19|20)\d\d)\s*年\s*)?(?P<em>[01]?\d)\s*月(?:\s*(?P<ed>[0-3]?\d)\s*[日号])?",
    r"(?<!\d)(?P<fy>(?:19|20)\d\d)[-/.](?P<fm>[01]?\d)(?:[-/.](?P<fd>[0-3]?\d))?(?!\d)",
)
_NAMED = re.compile("|".join(_FORMS), re.IGNORECASE)
_NUMBERS = {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)}


class Day(NamedTuple):
    """A day, or a whole month; the year where it is given."""

    year: int | None
    month: int
    day: int | None

    def fits(self, at: str) -> bool:
        """Whether a time in ISO 8601 lies in it."""
        return (
            (self.year is None or at[:4] == f"{self.year:04}")
            and at[5:7] == f"{self.month:02}"
            and (self.day is None or at[8:10] == f"{self.day:02}")
        )

    def tokens(self) -> list[str]:
        """As the index holds the day of a passage."""
        return tokens_of(f"{self.year or ''} {MONTHS[self.month - 1]} {self.day or ''}")


def days_in(text: str) -> Iterator[Day]:
    """The days and months that a text names by number; what cannot be a date is none."""
    for found in _NAMED.finditer(text):
        parts = {name[1]: value for name, value in found.groupdict().items() if value}
        month = _NUMBERS.get(parts["m"][:3].lower()) or _number(parts["m"])
        day = _number(parts["d"]) if "d" in parts else None
        year = _number(parts["y"]) if "y" in parts else None
        if 1 <= month <= 12 and (day is None or 1 <= day <= 31):
            yield Day(year, month, day)


def _number(digits: str) -> int:
    return int(digits) if digits.isdecimal() else 0
