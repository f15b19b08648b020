"""The kinds of blocks and texts in a generated history, and a filter for the others."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from refold.testing.history_moves import (
    Blank,
    Interjection,
    Move,
    Part,
    Pictured,
    Result,
    Said,
    Speaks,
    StrayResult,
    Thought,
    ToolRound,
)


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
