"""Collects exact values: addresses, versions, identifiers, ports, amounts and what was said of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .lines import Line, Section
from .wording import clean, redact, squeeze

_VALUE = re.compile(
    r"(?:https?://[^\s<>\"'`)\]，。）]{4,200})"
    r"|(?:(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,60}\.){1,4}[A-Za-z]{2,10}\b)"
    r"|(?:\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b|\bport\b[^\d\n.,;]{1,12}\d{2,5}\b|端口\s*[:：]?\s*\d{2,5})"
    r"|(?:\bv?\d+\.\d+\.\d+(?:[-+.][\w.]+)?\b|\bv\d+(?:\.\d+)?\b)"
    r"|(?:\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?:[$€£¥]\s?\d[\d,]*(?:\.\d+)?)"
    r"|(?:\b\d{4}-\d{2}-\d{2}\b|\d{1,4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}日)"
    r"|(?:\b[A-Z]{2,10}-\d{1,6}\b|(?<![\w/.-])[A-Z]{1,6}\d[A-Z0-9]{2,10}\b|\b[A-Z][A-Z0-9]+_[A-Z0-9_]{2,40}\b"
    r"|\b[a-z]+(?:_[a-z]+)*_\d{2,12}\b|#\d{2,10}\b|(?<![\w/.-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-]))"
    r"|(?:\b\d[\d,]*(?:\.\d+)?\s?(?:%|ms|s|sec(?:onds)?|min(?:utes)?|h(?:ours)?|days?|KB|MB|GB|TB|kB|"
    r"tokens?|chars?|characters|px|Hz|rows?|km|kg)(?![\w])|(?<!\d)\d{1,12}(?:\.\d+)?\s?(?:元|万|亿|公里|公斤|分钟|小时|天|个月|岁|毫秒|秒))"
)
# What every value holds; the full pattern is slow and is only tried around these.
_SIGN = re.compile(r"[\d@_]|://")
_BLANK = re.compile(r"\s")
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
        for found in _values(text):
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


def _values(text: str) -> Iterator[re.Match[str]]:
    done = 0
    while sign := _SIGN.search(text, done):
        start, end = sign.span()
        for _ in range(2):  # The token that holds the sign, and the one before ("port 80").
            start = max(
                done, text.rfind(" ", max(done, start - 70), max(done, start - 1)) + 1, start - 70
            )
        blank = _BLANK.search(text, end, end + 220)
        stop = min(len(text), (blank.end() if blank else end + 220) + 10)
        for found in _VALUE.finditer(text, start, stop):
            yield found
            end = max(end, found.end())
        done = max(end, blank.start() if blank else stop)
