"""A fact: something exact that a message states or a tool call did, and where."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal[
    "request",
    "rule",
    "prohibition",
    "preference",
    "decision",
    "said",
    "path",
    "command",
    "outcome",
    "error",
    "number",
    "version",
    "id",
    "name",
    "address",
]
"""Kind of a fact.

What a person asks for, demands, forbids or prefers, what was decided, and each sentence that a person typed, or that
recommends something in a chat; a path, a command, what became of a tool call or of a request, and the line that tells
why a call failed; a number with its unit, a version, an identifier, a name composed of several words, and an address.
"""

Source = Literal["person", "unknown", "quoted", "program", "model", "call", "result"]
"""Where a fact stands.

In words of a person, or of a user message whose author was not given; in text of others that such a message quotes;
in text that the program around the agent wrote; in words of the model, in the input of a tool call, or in its result.
"""

State = Literal["", "edited", "read", "ok", "failed", "open", "done", "withdrawn", "overridden"]
"""State of a path, ``edited`` or ``read``; of a command or a call that ran, ``ok`` or ``failed``; and, said in words,
of the request before: ``open`` again, ``done``, ``withdrawn`` or ``overridden``."""

STATEMENTS: frozenset[Kind] = frozenset(
    {"request", "rule", "prohibition", "preference", "decision"}
)
VALUES: frozenset[Kind] = frozenset({"number", "version", "id", "address"})
"""Kinds of values that are neither paths nor names."""


class Fact(NamedTuple):
    """A text that is copied character by character from the message at ``position``."""

    kind: Kind
    text: str
    """Copied text. Only that of a command may have several lines. An outcome has the last line of the result."""
    position: int
    by: Source
    state: State = ""
    note: str = ""
    """The call, for an outcome or an error; the words before it, for a value that does not explain itself."""
    under: tuple[str, ...] = ()
    """Headings above a statement in its message, nearest last."""
    cut: int = 0
    """Number of characters of a statement that follow ``text`` in the message."""
    is_main: bool = True
    """False for a value outside the beginning of what is said, a command, and the end of a result; for a statement
    that is not one of the strongest of its message."""
    called_at: int = -1
    """Position of the call, for an outcome."""
    reason: str = ""
    """Reason for a decision, copied from its sentence or the one next to it, or empty if none was found."""
    rejected: tuple[str, ...] = ()
    """Alternatives that a decision rejects, copied from the same place."""


class ResultNames(NamedTuple):
    """The composed names of the results in a message, with whether each is in a main part.

    Most of what is read are such names. One object for all of a message takes a fraction of the time.
    """

    position: int
    names: Mapping[str, bool]
