"""A line of the ledger: a text copied from a message, and where it stands."""

from typing import Literal

from refold.domain.value import Value

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
