"""A line of the ledger: a text copied from a message, and where it stands."""

import re
from collections.abc import Iterable
from typing import Literal

from refold.domain.value import Value, replace

from .exact_values import without_trimming

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
"""An open request; a rule of the user, which says by itself what it demands or forbids; what stands under
a heading that forbids it; a decision; a file read or modified; a command; a failure of a tool; an exact
value (identifier, number with its unit, address)."""

WORDS: frozenset[Kind] = frozenset({"request", "rule", "prohibition", "decision"})
"""The kinds that quote what somebody says; the others quote what was done, and values."""

Speaker = Literal["user", "assistant", "tool"]

Writer = Literal["person", "unknown", "quoted"]
"""Who wrote the words of the role user that a line quotes: the person; nobody knows, since that was not said
when the message was appended; somebody else, whom the message quotes."""


class LedgerLine(Value, frozen=True):
    """``text`` stands character for character in the message at ``position`` (invariant 14)."""

    kind: Kind
    text: str
    """Never with a line break or another control character, so that it cannot leave its line."""
    position: int
    """The newest message that it stands in."""
    count: int = 1
    """In how many messages it was used."""
    note: str = ""
    """What code says about it: an outcome, or the words that it stood among."""
    said_by: Speaker = "tool"
    """Who said it: of several the user before the model before a tool, whose output says much."""
    under: tuple[str, ...] = ()
    """The headings that it stands under in its message, the nearest last. Of a long one the end, behind
    an ellipsis."""
    author: Writer | None = None
    """Of a request, rule, prohibition or decision in a message of the role user. None for all else, and for
    lines of a log of 0.1."""
    cut: int = 0
    """How many characters of the passage follow in the message and are not in ``text``."""


Key = tuple[Kind, str, tuple[str, ...], str | None]
"""Kind, text, headings and author."""

LATER_OK = "; later ok"
"""Ends the note of a failure whose call succeeded since."""
# What differs each time that the same thing fails: times, durations, places in a file, numbers of processes.
_PASSING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b|(?<=:)\d+\b|(?<=line )\d+\b"
    r"|\b\d+(?:\.\d+)? ?(?:[mµn]?s|secs?|seconds?|minutes?)\b|\b0x[0-9a-fA-F]+\b|(?<=pid )\d+\b|(?<=pid=)\d+\b"
    r"|(?<=\[)\d+(?=\])",
)
_SPEAKERS: tuple[Speaker, ...] = ("user", "assistant", "tool")
_STRONGER: dict[Kind, tuple[Kind, ...]] = {"modified": ("read", "value"), "read": ("value",)}


def united(lines: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
    """Each kind and text once, in the order of the newest use. A file that was modified is no longer
    only read.
    """
    kept: dict[Key, LedgerLine] = {}
    for line in lines:
        key = key_of(line)
        known = kept.pop(key, None)
        kept[key] = together(known, line) if known else line
    for kind, others in _STRONGER.items():
        for text in [key[1] for key in kept if key[0] == kind]:
            for other in others:
                same = kept.pop((other, text, (), None), None)
                if same is not None:
                    kept[kind, text, (), None] = together(same, kept[kind, text, (), None])
    return tuple(kept.values())


def key_of(line: LedgerLine) -> Key:
    """What makes two lines the same."""
    text = line.text
    if line.kind == "command":
        text = without_trimming(text)
    elif line.kind == "failure":
        text = _PASSING.sub("…", text)
    return line.kind, text, line.under, line.author


def together(known: LedgerLine, line: LedgerLine) -> LedgerLine:
    """One line for both, of the kind of ``line``, as the newer one stands in its message; two in one message
    count once.
    """
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
