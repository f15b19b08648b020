"""The moves of a conversation, as plain values that Hypothesis can shrink."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Said:
    """A text block; the layout puts a marker before the words."""

    words: str


@dataclass(frozen=True)
class Blank:
    """A text block of white space only, or empty: it carries no marker."""

    space: str


@dataclass(frozen=True)
class Pictured:
    """An image block."""

    source: Literal["base64", "url"]


@dataclass(frozen=True)
class Foreign:
    """A block of a type that nobody knows yet."""

    kind: str


@dataclass(frozen=True)
class Thought:
    """A thinking block."""

    words: str
    seal: Literal["signed", "redacted", "empty", "missing"] = "signed"


@dataclass(frozen=True)
class Searched:
    """A server tool's call and what it returned, in one assistant message."""

    answered: bool = True


Part = Said | Blank | Pictured | Foreign | Thought | Searched


@dataclass(frozen=True)
class Speaks:
    """One message without tool traffic."""

    role: Literal["user", "assistant", "system"]
    parts: tuple[Part, ...]
    as_text: bool = False
    """Content as one string, where it is a single text."""


Outcome = Literal[
    "text", "texts", "picture", "mixed", "nothing", "no content", "no blocks", "blank", "huge"
]


@dataclass(frozen=True)
class Result:
    """What a tool returned."""

    outcome: Outcome
    words: str
    is_error: bool = False


@dataclass(frozen=True)
class Interjection:
    """What the user says while tools run."""

    parts: tuple[Part, ...]
    after: int
    """After how many results; after the last one, if fewer arrive."""
    inside: bool
    """In the same message as results, else in one of its own."""


@dataclass(frozen=True)
class ToolRound:
    """An assistant message with calls, and the results that came for them."""

    thoughts: tuple[Part, ...]
    results: tuple[Result, ...]
    """One per call, in the order of the calls."""
    order: tuple[int, ...]
    """In which order the results arrive; numbers beyond the calls are passed over."""
    withheld: int
    """How many of the last results never arrive: the round was aborted or still runs."""
    apart: frozenset[int]
    """Which arriving results begin a message of their own."""
    interjection: Interjection | None
    id_style: str
    """A format with ``{n}``, the number of the call in the history."""
    together: bool
    """Whether call and results are appended in one step."""
    reuse_id: bool = False
    """Take the first id from an earlier call."""
    streamed: bool = False
    """Each block in a message of its own, as some recorders write a streamed answer."""


@dataclass(frozen=True)
class StrayResult:
    """A result nobody waits for: of an unknown call, for the second time, or much too late."""

    kind: Literal["unknown", "again", "late"]
    result: Result


Move = Speaks | ToolRound | StrayResult
