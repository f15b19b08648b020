"""Unites lines of one text into one: it counts how often, and stands in the newest message."""

import re
from collections.abc import Iterable

from .commands import without_trimming
from .line import Kind, LedgerLine, Speaker

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
    return newer.replaced(
        kind=line.kind,
        count=max(1, count),
        note=line.note or known.note,
        said_by=min(known.said_by, line.said_by, key=_SPEAKERS.index),
    )
