"""The moves of a conversation, as plain values that Hypothesis can shrink."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Said:
    """A text block. The layout adds a marker before the words."""

    words: str


@dataclass(frozen=True)
class Blank:
    """An empty or blank text block without a marker."""

    space: str


@dataclass(frozen=True)
class Pictured:
    """An image block."""

    source: Literal["base64", "url"]


@dataclass(frozen=True)
class Foreign:
    """A block of an unknown type."""

    kind: str


@dataclass(frozen=True)
class Thought:
    """A thinking block."""

    words: str
    seal: Literal["signed", "redacted", "empty", "missing"] = "signed"


@dataclass(frozen=True)
class Searched:
    """A call of a server tool and its result, in one assistant message."""

    answered: bool = True


Part = Said | Blank | Pictured | Foreign | Thought | Searched


@dataclass(frozen=True)
class Speaks:
    """One message without tool calls."""

    role: Literal["user", "assistant", "system"]
    parts: tuple[Part, ...]
    as_text: bool = False
    """True to give a single text as a string instead of a block."""


Outcome = Literal[
    "text", "texts", "picture", "mixed", "nothing", "no content", "no blocks", "blank", "huge"
]


@dataclass(frozen=True)
class Result:
    """The result of a tool call."""

    outcome: Outcome
    words: str
    is_error: bool = False


@dataclass(frozen=True)
class Interjection:
    """A user message during a tool round."""

    parts: tuple[Part, ...]
    after: int
    """Number of results before the interjection, which comes last if fewer results arrive."""
    inside: bool
    """True if the interjection is in the same message as results, False if it is a message of its own."""


@dataclass(frozen=True)
class ToolRound:
    """An assistant message with calls, and the results that arrived."""

    thoughts: tuple[Part, ...]
    results: tuple[Result, ...]
    """Results in the order of the calls, one for each."""
    order: tuple[int, ...]
    """Order in which the results arrive. Numbers beyond the calls are ignored."""
    withheld: int
    """Number of last results that never arrive, because the round was aborted or is running."""
    apart: frozenset[int]
    """Arriving results that begin a message of their own."""
    interjection: Interjection | None
    id_style: str
    """Format string with ``{n}``, the number of the call in the history."""
    together: bool
    """True if call and results are appended in one step."""
    reuse_id: bool = False
    """True to reuse the first id of an earlier call."""
    streamed: bool = False
    """True if each block is a message of its own, as some recorders write a streamed answer."""


@dataclass(frozen=True)
class StrayResult:
    """An unexpected result: of an unknown call, repeated, or much too late."""

    kind: Literal["unknown", "again", "late"]
    result: Result


Move = Speaks | ToolRound | StrayResult
