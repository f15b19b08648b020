"""The moves of a conversation, as plain values that Hypothesis can shrink, and a filter for kinds of content."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Kinds:
    """The allowed kinds. ``filter`` removes all others from a move."""

    multilingual: bool = True
    """Texts in several scripts with emoji, or ASCII only."""
    tools: bool = True
    thinking: bool = True
    images: bool = True

    def filter(self, move: Move) -> Move:
        """Return the move with allowed kinds only, or the move itself if nothing is removed."""
        if self == EVERY_KIND:
            return move
        match move:
            case Speaks():
                return replace(move, parts=self._parts(move.parts))
            case ToolRound() if self.tools:
                return self._round(move)
            case ToolRound():
                return Speaks("assistant", self._parts(move.thoughts) or (Said("Done."),))
            case StrayResult() if self.tools:
                return replace(move, result=self._result(move.result))
            case StrayResult():
                return Speaks("user", (Said(self._words(move.result.words)),))

    def _round(self, move: ToolRound) -> ToolRound:
        spoken = move.interjection
        return replace(
            move,
            thoughts=self._parts(move.thoughts),
            results=tuple(map(self._result, move.results)),
            interjection=spoken and self._interjection(spoken),
            id_style=move.id_style if self.multilingual or move.id_style.isascii() else "call_{n}",
        )

    def _interjection(self, spoken: Interjection) -> Interjection:
        return replace(spoken, parts=self._parts(spoken.parts))

    def _result(self, result: Result) -> Result:
        drawn = result.outcome in ("picture", "mixed") and not self.images
        is_foreign = result.outcome == "huge" and not self.multilingual
        outcome = "text" if drawn or is_foreign else result.outcome
        return replace(result, outcome=outcome, words=self._words(result.words))

    def _parts(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        kept: list[Part] = []
        for part in parts:
            if isinstance(part, Thought):
                if self.thinking:
                    kept.append(replace(part, words=self._words(part.words)))
            elif isinstance(part, Said):
                kept.append(Said(self._words(part.words)))
            elif isinstance(part, Blank):
                kept.append(Blank(part.space if part.space.isascii() or self.multilingual else " "))
            elif isinstance(part, Pictured) and not self.images:
                kept.append(Said("A picture would be here."))
            else:
                kept.append(part)
        return tuple(kept)

    def _words(self, words: str) -> str:
        if self.multilingual or words.isascii():
            return words
        return words.encode("ascii", "ignore").decode() or "ok"


EVERY_KIND = Kinds()
