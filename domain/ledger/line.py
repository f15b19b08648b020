"""A line of the ledger: a text copied from a message, and where it stands."""

from typing import Literal

from refold.domain.value import Value

Kind = Literal["request", "rule", "decision", "read", "modified", "command", "failure", "value"]
"""An open request; a prohibition, preference or constraint of the user; a decision; a file read or
modified; a command; a failure of a tool; an exact value (identifier, number with its unit, address)."""

Speaker = Literal["user", "assistant", "tool"]


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
