"""The tokens of a conversation as its request shows them, added up from recorded steps."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from refold.application.ports.read_models import RequestSizesRow

Step = int | list[int] | str | Mapping[str, Any] | None
"""One step of a row of sizes: a message, an answer, a lost message, a decision, or any other event."""


def steps_of(row: RequestSizesRow) -> list[Step]:
    """Return the steps of a row in order."""
    steps: list[Step] = json.loads(f"[{row.steps}]")
    return steps


def decisions_of(row: RequestSizesRow, last: int) -> list[Mapping[str, Any]]:
    """Return the decisions of a row up to version ``last``."""
    return [s for s in steps_of(row) if isinstance(s, dict) and s["version"] <= last]


def appended_tokens(step: Step) -> int | None:
    """Return the tokens of the message that a step appended, 0 if it was lost, None for another event."""
    if isinstance(step, int):
        return step
    if isinstance(step, list):
        return step[0]
    return 0 if isinstance(step, str) else None


class Decided(NamedTuple):
    """A decision in a sequence of sizes."""

    step: Mapping[str, Any]
    place: int
    """Index of the size after it. The one before it has the size before the decision."""


class ShownTokens:
    """The sum that the state of the conversation has after each event.

    It follows the same rules as the fold of the state, with numbers in place of messages.
    """

    def __init__(self) -> None:
        self.totals: list[int] = []
        """Tokens of the conversation after each event."""
        self.lengths: list[int] = []
        """Number of messages after each event."""
        self.decisions: list[Decided] = []
        self.fixed: list[tuple[int, int]] = []
        """Recorded tokens of the fixed part of requests, each with the event from which they hold."""
        self._shown: list[int] = []
        self._live = self._summary = self._memories = 0
        self._pins: dict[str, int] = {}
        self._thinking: dict[int, int] = {}
        """Tokens of shown thinking by position."""
        self._covered_thinking: dict[int, int] = {}
        self._coverage = _Coverage(0, 0, frozenset())
        self._is_bound, self._is_answer_pending = True, False
        self._ended = 0
        """Position after the newest answer that ended a turn."""

    @property
    def total(self) -> int:
        """Tokens of the conversation now."""
        return self._live + self._extra

    @property
    def length(self) -> int:
        """Number of messages now."""
        return len(self._shown)

    @property
    def _extra(self) -> int:
        return self._summary + self._memories + sum(self._pins.values())

    def take(self, steps: Iterable[Step]) -> None:
        """Take the next steps."""
        shown, extra = self._shown, self._extra
        total = self._live + extra
        for step in steps:
            if isinstance(step, int):
                shown.append(step)
                total += step
            elif isinstance(step, str):
                shown.append(0)
            elif step is not None:
                self._live = total - extra
                if isinstance(step, list):
                    self._take_answer(*step)
                else:
                    self._decide(step)
                    extra = self._extra
                total = self._live + extra
            self.totals.append(total)
            self.lengths.append(len(shown))
        self._live = total - extra

    def _take_answer(self, tokens: int, thinking: int, ended: int, stale: int = 0) -> None:
        position = len(self._shown)
        if stale:
            self._drop_thinking(position)
        if stale or self._is_answer_pending:
            tokens, thinking, self._is_answer_pending = tokens - thinking, 0, False
        if thinking:
            self._thinking[position] = thinking
        if ended:
            self._ended = position + 1
        self._shown.append(tokens)
        self._live += tokens

    def _decide(self, step: Mapping[str, Any]) -> None:
        kind, changes_prefix = step["kind"], True
        match kind:
            case "compacted":
                self._cover(_Coverage.of(step))
                self._summary = step["tokens"]
            case "rebuilt":
                self._summary = step["tokens"]
            case "reverted":
                self._uncover(_Coverage.of(step))
                self._summary = step.get("tokens", 0)
            case "offloaded" | "condensed" | "shortened":
                for position, freed in step["parts"]:
                    self._grow(position, -freed)
            case "erased":
                self._erase(step["position"], step["tokens"])
            case "recalled":
                self._grow(step["position"], step["tokens"])
                changes_prefix = step["position"] < self.length - 1
            case "pinned":
                self._pins[step["id"]] = step["tokens"]
            case "unpinned":
                changes_prefix = self._pins.pop(step["id"], None) is not None
            case "memories":
                self._memories = step["tokens"]
            case "frame":
                self._is_bound = changes_prefix = step["binds"]
            case _:
                self.fixed.append((len(self.totals), step["before"] - self.total))
                return
        if changes_prefix:
            self._change_prefix(keeps_answer=kind == "frame")
        if changes_prefix or kind != "unpinned":
            self.decisions.append(Decided(step, len(self.totals)))

    def pad(self, length: int | None) -> None:
        """Add lost messages whose position was unknown."""
        self._shown += [0] * ((length or 0) - self.length)

    def _grow(self, position: int, tokens: int) -> None:
        if position < self.length and not self._coverage.covers(position):
            self._shown[position] += tokens
            self._live += tokens

    def _erase(self, position: int, tokens: int) -> None:
        if position < self.length:
            self._grow(position, tokens - self._shown[position])
            self._shown[position] = tokens
        self._thinking.pop(position, None)
        self._covered_thinking.pop(position, None)

    def _change_prefix(self, *, keeps_answer: bool) -> None:
        self._drop_thinking(self.length if self._is_bound else self._ended)
        if self._is_bound and not keeps_answer:
            self._is_answer_pending = True

    def _drop_thinking(self, stop: int) -> None:
        for position in [position for position in self._thinking if position < stop]:
            self._grow(position, -self._thinking.pop(position))

    def _cover(self, coverage: "_Coverage") -> None:
        before, self._coverage = self._coverage, coverage
        for position in coverage.beyond(before, self.length):
            self._live -= self._shown[position]
            if position in self._thinking:
                self._covered_thinking[position] = self._thinking.pop(position)

    def _uncover(self, coverage: "_Coverage") -> None:
        before, self._coverage = self._coverage, coverage
        for position in before.beyond(coverage, self.length):
            self._live += self._shown[position]
            if position in self._covered_thinking:
                self._thinking[position] = self._covered_thinking.pop(position)


class _Coverage(NamedTuple):
    """Messages that a summary covers."""

    start: int
    stop: int
    kept: frozenset[int]

    @classmethod
    def of(cls, step: Mapping[str, Any]) -> "_Coverage":
        """Return the coverage in a step; it covers nothing if the step has none."""
        return cls(step.get("start", 0), step.get("stop", 0), frozenset(step.get("kept", ())))

    def covers(self, position: int) -> bool:
        """Return whether the message at this position is covered."""
        return self.start <= position < self.stop and position not in self.kept

    def beyond(self, other: "_Coverage", length: int) -> Iterable[int]:
        """Return the positions that it covers and an earlier one does not."""
        first = max(self.start, other.stop)
        some = chain(range(self.start, other.start), sorted(other.kept), range(first, self.stop))
        return [p for p in some if p < length and self.covers(p) and not other.covers(p)]
