"""The ledger: lines that code copies word for word from messages, rendered with the summary.

Here are the lines, and the entries of the index, as they are stored.
"""

from typing import Literal, NamedTuple

from refold.domain.value import Value

LineKind = Literal[
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

Speaker = Literal["user", "assistant", "tool"]

Writer = Literal["person", "unknown", "quoted"]
"""Writer of quoted words with the role ``user``.

``person`` wrote them. ``unknown``: the author was not given when the message was appended. ``quoted``:
another person, whom the message quotes.
"""


class LedgerLine(Value, frozen=True):
    """A text that is copied character by character from the message at ``position``."""

    kind: LineKind
    text: str
    """Copied text. It has no line breaks or control characters, so it stays on one line."""
    position: int
    """Position of the newest message that contains the text."""
    count: int = 1
    """Number of messages that contain the text."""
    note: str = ""
    """Remark by code: an outcome, what became of a request and where, or the words around the text."""
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
    was: str = ""
    """Value that the same words gave before, or empty."""
    reason: str = ""
    """Reason for a decision, if it stands in its message outside of ``text``."""
    rejected: tuple[str, ...] = ()
    """Alternatives that a decision rejects, if they stand in its message outside of ``text``."""


EntryKind = Literal["decision", "ran", "result", "file", "said", "path", "command", "name", "value"]
"""Kind of an entry.

The last decisions of the model, the last command that ran, the end of its result, and the file that was edited last
say where the work stood. ``said`` is a sentence that a person typed. A path, a shell command or one of its steps, a
name composed of several words, and a number, version, id or address are exact values.
"""

STANDING: dict[EntryKind, int] = {"decision": 2, "ran": 1, "result": 1, "file": 1}
"""Kinds that say where the work stood, and how many of the newest entries are kept of each."""

EntrySource = Literal["person", "unknown", "model", "call", "result"]
"""Where a value stood.

In words of a person, of a user message whose author was not given, or of the model, in the input of a tool call, or
in the result of one.
"""


class IndexEntry(NamedTuple):
    """An exact value with its uses. It is stored as a list, because there are many of them."""

    kind: EntryKind
    text: str
    """Text as it stood in the message, on one line. Line breaks of a command are spaces."""
    position: int
    """Position of the newest covered message with the text."""
    messages: int = 1
    """Number of covered messages with the text."""
    calls: int = 0
    """Number of these messages that have it in the input of a tool call."""
    last_call: int = -1
    """Position of the newest of these calls, or -1."""
    by: EntrySource = "result"
    """Where it stood. Of several, a person counts before the model, then a call, then a result."""
    edited: bool = False
    """Whether a tool call wrote the file at this path."""
