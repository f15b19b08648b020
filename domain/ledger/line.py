"""A line of the ledger: a text copied from a message, and its position."""

import re
from collections.abc import Iterable
from typing import Literal

from refold.domain.facts.exact_values import strip_trimming
from refold.domain.value import Value, replace

Kind = Literal[
    "request",
    "rule",
    "prohibition",
    "decision",
    "read",
    "modified",
    "command",
    "failure",
    "value",
]
"""Kind of a ledger line.

An open request, a rule of the user that states by itself what it demands or forbids, a text under a
heading that forbids it, a decision, a file read or modified, a command, a failure of a tool, or an exact
value (identifier, number with its unit, address).
"""

WORDS: frozenset[Kind] = frozenset({"request", "rule", "prohibition", "decision"})
"""Kinds that quote speech. The other kinds record actions and values."""

Speaker = Literal["user", "assistant", "tool"]

Writer = Literal["person", "unknown", "quoted"]
"""Writer of quoted words with the role ``user``.

``person`` wrote them. ``unknown``: the author was not given when the message was appended. ``quoted``:
another person, whom the message quotes.
"""


class LedgerLine(Value, frozen=True):
    """A text that is copied character by character from the message at ``position``."""

    kind: Kind
    text: str
    """Copied text. It has no line breaks or control characters, so it stays on one line."""
    position: int
    """Position of the newest message that contains the text."""
    count: int = 1
    """Number of messages that contain the text."""
    note: str = ""
    """Remark by code: an outcome, or the words around the text."""
    said_by: Speaker = "tool"
    """Speaker of the text. Of several, the user counts before the model, and the model before a tool."""
    under: tuple[str, ...] = ()
    """Headings above the text in its message, nearest last. Long ones are cut at the start, after an
    ellipsis."""
    author: Writer | None = None
    """Writer of a request, rule, prohibition or decision in a message with the role ``user``.

    None for other lines, and for lines that were logged by version 0.1.
    """
    cut: int = 0
    """Number of characters of the passage that follow ``text`` in the message."""


Key = tuple[Kind, str, tuple[str, ...], str | None]
"""Key of a line: kind, text, headings and author. Lines with equal keys are merged."""

LATER_OK = "; later ok"
"""End of the note of a failure whose call has succeeded since."""
# Parts that differ each time the same thing fails: times, durations, line numbers, process ids.
_PASSING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b|(?<=:)\d+\b|(?<=line )\d+\b"
    r"|\b\d+(?:\.\d+)? ?(?:[mµn]?s|secs?|seconds?|minutes?)\b|\b0x[0-9a-fA-F]+\b|(?<=pid )\d+\b|(?<=pid=)\d+\b"
    r"|(?<=\[)\d+(?=\])",
)
_SPEAKERS: tuple[Speaker, ...] = ("user", "assistant", "tool")
_STRONGER: dict[Kind, tuple[Kind, ...]] = {"modified": ("read", "value"), "read": ("value",)}


def merge_lines(lines: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
    """Merge equal lines, in the order of their newest use. A modified file is not also listed as read."""
    kept: dict[Key, LedgerLine] = {}
    for line in lines:
        key = key_of(line)
        known = kept.pop(key, None)
        kept[key] = merge_pair(known, line) if known else line
    for kind, others in _STRONGER.items():
        for text in [key[1] for key in kept if key[0] == kind]:
            for other in others:
                same = kept.pop((other, text, (), None), None)
                if same is not None:
                    kept[kind, text, (), None] = merge_pair(same, kept[kind, text, (), None])
    return tuple(kept.values())


def key_of(line: LedgerLine) -> Key:
    """Return the key under which two lines are equal."""
    text = line.text
    if line.kind == "command":
        text = strip_trimming(text)
    elif line.kind == "failure":
        text = _PASSING.sub("…", text)
    return line.kind, text, line.under, line.author


def merge_pair(known: LedgerLine, line: LedgerLine) -> LedgerLine:
    """Merge two equal lines into one with the kind of ``line``. Two in one message count once."""
    count = known.count + line.count - (1 if line.position == known.position else 0)
    newer = line if line.position >= known.position else known
    said_by: Speaker = next(by for by in _SPEAKERS if by in (known.said_by, line.said_by))
    return replace(
        newer,
        kind=line.kind,
        count=max(1, count),
        note=line.note or known.note,
        said_by=said_by,
    )
