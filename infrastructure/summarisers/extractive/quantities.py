"""Collects exact values: addresses, versions, identifiers, ports, amounts and what was said of them."""

from dataclasses import dataclass, field

from refold.domain.ledger.values import exact_values
from refold.domain.ledger.wording import clean, redact, squeeze

from .lines import Line, Section

_SCANNED = 12_000
_TYPED = 1_500  # A longer text is pasted: its values count when they recur.


@dataclass(slots=True)
class _Seen:
    position: int
    about: str
    count: int = 0
    by_user: bool = False


@dataclass(slots=True)
class Quantities:
    """A tally of the values seen so far."""

    _seen: dict[str, _Seen] = field(default_factory=dict[str, _Seen])

    def note(self, position: int, text: str, *, by_user: bool) -> None:
        """Takes in what somebody said."""
        by_user = by_user and len(text) < _TYPED
        text = text[:_SCANNED]
        for found in exact_values(text):
            value = clean(found[0]).rstrip(".,;:")
            if len(value) < 2 or redact(value) != value or "`" in value:
                continue
            if value not in self._seen:
                self._seen[value] = _Seen(position, _around(text, found.start(), found.end()))
            seen = self._seen[value]
            seen.count += 1
            seen.by_user = seen.by_user or by_user

    def lines(self) -> list[Line]:
        """The values that the user named or that recur."""
        return [
            Line(Section.VALUES, s.position, f"`{value}` — {s.about}", s.count)
            for value, s in self._seen.items()
            if s.by_user or s.count > 1
        ]


def _around(text: str, start: int, end: int) -> str:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    left, right = max(line_start, start - 60), min(line_end, end + 40)
    # Cut between words only: half a credential would not be recognised.
    if left > line_start:
        left = text.find(" ", left, start) + 1 or start
    if right < line_end:
        right = max(end, text.rfind(" ", end, right))
    return squeeze(redact(clean(text[left:right])), 130)
