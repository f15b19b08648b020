"""The tokens of a conversation as its request shows them, added up from recorded steps."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, compress
from typing import Any, NamedTuple

from refold.application.ports.read_models import RequestSizesRow
from refold.application.projections.decision_index import decisions_of
from refold.application.projections.request_sizes import FINE, extended
from refold.application.runtime.core import Core

NO_MARKS = frozenset({"requested", "stale"})
"""Kinds of decisions that record a size, or only the state of thinking."""
_IS_MESSAGE = bytes(chr(code) in "aeAEml" for code in range(256))
_ANSWER = re.compile("[aeAE]")


class RowSteps:
    """The events of a short row up to some version."""

    def __init__(self, row: RequestSizesRow, last: int) -> None:
        self.begin = row.number * FINE
        """Version before its first event."""
        self.kinds = row.kinds[: last - self.begin]
        self.sizes = read_numbers(row.sizes)[: len(self.kinds)]
        self.messages = self.kinds.encode("latin-1").translate(_IS_MESSAGE)
        """For each event, 1 if it is a message."""

    @property
    def tokens(self) -> list[int]:
        """Tokens of its messages as appended."""
        return list(compress(self.sizes, self.messages))


def read_numbers(text: str) -> list[int]:
    """Return the numbers in a column."""
    numbers: list[int] = json.loads(f"[{text[:-1]}]")
    return numbers


def size_rows(core: Core, thread_id: str, version: int) -> Sequence[RequestSizesRow]:
    """Return the rows of sizes of a conversation. Short rows have all of its events up to a version.

    A reader of a server may be unable to give the newest events their places in the order of the log. The read models
    lack these events, so they are read from the log.
    """
    rows = core.views.request_sizes(thread_id)
    if rows and rows[0].events != FINE:
        return rows
    known = (len(rows) - 1) * FINE + len(rows[-1].kinds) if rows else 0
    return (
        rows if known >= version else extended(rows, core.log.read(thread_id, known + 1, version))
    )


class Decided(NamedTuple):
    """A decision in a sequence of sizes."""

    step: Mapping[str, Any]
    place: int
    """Index of the size after it. The one before it has the size before the decision."""


class ShownTokens:
    """The size of the request after each event: the fixed part, and the tokens that the state has.

    It follows the same rules as the fold of the state, with numbers in place of messages.
    """

    def __init__(self, fixed: int = 0) -> None:
        """``fixed``: tokens of the fixed part until a compaction recorded it."""
        self.totals: list[int] = []
        """Tokens after each event."""
        self.lengths: list[int] = []
        """Number of messages after each event."""
        self.decisions: list[Decided] = []
        self.fixed = fixed
        self._shown: list[int] = []
        """Tokens of each message as shown, or as it was shown before it was covered."""
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
        """Tokens of the request now."""
        pins = sum(self._pins.values())
        return self.fixed + self._live + self._summary + self._memories + pins

    @property
    def length(self) -> int:
        """Number of messages now."""
        return len(self._shown)

    def take(self, row: RequestSizesRow, last: int) -> None:
        """Take the events of a row up to version ``last``."""
        steps, thinking = RowSteps(row, last), iter(read_numbers(row.thinking))
        begin = 0
        for decided in decisions_of(row, last):
            place = decided["version"] - steps.begin - 1
            self._append(steps, begin, place, thinking)
            begin = place + 1
            if decided["kind"] == "stale":
                self._drop_thinking(self.length)
                self._is_answer_pending = True
                self._append(steps, place, begin, thinking)
                continue
            self._decide(decided)
            self.totals.append(self.total)
            self.lengths.append(self.length)
        self._append(steps, begin, len(steps.kinds), thinking)
        if last > steps.begin + FINE and row.stop is not None:
            # The place of a lost message may be unknown.
            self._shown += [0] * (row.stop - self.length)

    def _append(self, steps: RowSteps, begin: int, end: int, thinking: Iterator[int]) -> None:
        """Take events that are no decisions."""
        if begin == end:
            return
        kinds, first, known = steps.kinds[begin:end], len(self.totals), self.length
        sizes, messages = steps.sizes[begin:end], steps.messages[begin:end]
        answer = _ANSWER.search(kinds) if self._is_answer_pending else None
        self._shown += compress(sizes, messages)
        self.lengths += list(accumulate(messages, initial=known))[1:]
        if answer is not None:
            self._is_answer_pending = False
        for place in [place for place, kind in enumerate(kinds) if kind in "AE"]:
            position, amount = self.lengths[first + place] - 1, next(thinking)
            if answer is not None and place == answer.start():
                sizes[place] -= amount
                self._shown[position] -= amount
            else:
                self._thinking[position] = amount
        ended = max(kinds.rfind("e"), kinds.rfind("E"))
        if ended >= 0:
            self._ended = self.lengths[first + ended]
        self.totals += list(accumulate(sizes, initial=self.total))[1:]
        self._live += sum(sizes)

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
                self.fixed += step["before"] - self.total
                return
        if changes_prefix:
            self._change_prefix(keeps_answer=kind == "frame")
        if changes_prefix or kind != "unpinned":
            self.decisions.append(Decided(step, len(self.totals)))

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
        self._live -= coverage.beyond(before, self._shown)
        for position in [p for p in self._thinking if coverage.covers(p)]:
            self._covered_thinking[position] = self._thinking.pop(position)

    def _uncover(self, coverage: "_Coverage") -> None:
        before, self._coverage = self._coverage, coverage
        self._live += before.beyond(coverage, self._shown)
        for position in [p for p in self._covered_thinking if not coverage.covers(p)]:
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

    def beyond(self, other: "_Coverage", shown: Sequence[int]) -> int:
        """Return the tokens of the messages that it covers and an earlier coverage does not."""
        first = max(self.start, other.stop)
        some = {p for p in (*range(self.start, other.start), *other.kept) if p < first}
        some -= self.kept
        kept: int = sum(shown[p] for p in self.kept if first <= p < len(shown))
        before: int = sum(shown[p] for p in some if self.covers(p))
        after: int = sum(shown[first : self.stop])
        return after - kept + before
