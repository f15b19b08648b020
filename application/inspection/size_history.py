"""The size of the request over time, with a mark for each decision that changed it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from refold.application.frames.sent_request import load_sent
from refold.application.projections.decision_index import decisions_of
from refold.application.projections.request_sizes import COARSE, FINE
from refold.application.recall.recall_query import whole_number
from refold.application.runtime.core import Core, Extras
from refold.domain.value import Value

from .shown_tokens import NO_MARKS, Decided, ShownTokens, size_rows

if TYPE_CHECKING:
    from refold.application.ports.read_models import RequestSizesRow

MOST_POINTS = 600
MOST_ASKED = 1_000_000
LEAST_POINTS = 4
TIMED = 500
"""Number of messages up to which each point has the time of its own message."""


class SizePoint(Value, frozen=True):
    """The size of the request at one version."""

    version: int
    position: int
    """Number of messages at this version."""
    tokens: int
    at: str
    """Time of its newest message, ISO 8601, UTC. In a conversation of more than 500 messages, and for messages that a
    reader of a server cannot list yet, that of a message at most 256 versions later.
    """


class SizeMark(Value, frozen=True):
    """A decision that changed the request other than by a new message."""

    kind: str
    """``compacted``, ``rebuilt`` (after an erasure), ``reverted``, ``offloaded``, ``condensed``,
    ``shortened``, ``pinned``, ``unpinned``, ``erased``, ``recalled``, ``memories`` or ``frame``.
    """
    version: int
    position: int
    """Number of messages before it."""
    at: str
    """Time of the decision: ISO 8601, UTC."""
    tokens_before: int
    tokens_after: int
    changed_from: int
    """Position of the first message that is shown otherwise; 0 if text before the messages changed."""
    summary_id: str | None = None
    """Id of the summary that was made, rebuilt or reverted, or None."""


class SizeHistory(Value, frozen=True):
    """The size of the request of one conversation over time."""

    thread_id: str
    version: int
    """Newest version that it shows."""
    points: tuple[SizePoint, ...]
    marks: tuple[SizeMark, ...]
    window: int
    """Context window of the model, in tokens."""
    limit: int
    """Largest request that may be sent."""
    trigger: int
    """Size of a request that makes a compaction due."""
    is_estimate: bool
    """True for a conversation of more than 300,000 events, in which only compactions have exact sizes."""


def size_history(
    core: Core, thread_id: str, *, at: int | None = None, most: int = MOST_POINTS
) -> SizeHistory:
    """Return the size of the request over time, up to version ``at``, without rendering a request.

    There are at most ``most`` points, with the highest peaks. Every mark is there.
    """
    whole_number("most", most, LEAST_POINTS, MOST_ASKED)
    loaded = core.log.load(thread_id, at=at)
    version = loaded.state.version
    rows: Sequence[RequestSizesRow] = ()
    if not loaded.state.erased:
        rows = size_rows(core, thread_id, version)
    _, extras = load_sent(core, loaded, Extras())
    budget = core.budget(extras)
    is_estimate = bool(rows) and rows[0].events == COARSE
    make_curve = _estimate if is_estimate else _add_up
    curve = make_curve(rows, version, budget.fixed)
    time_of = _times(core, thread_id, rows, loaded.state.length)
    return SizeHistory(
        thread_id=thread_id,
        version=version,
        points=tuple(
            SizePoint(
                version=curve.versions[place],
                position=curve.lengths[place],
                tokens=curve.tokens[place],
                at=time_of(curve.versions[place], curve.lengths[place]),
            )
            for place in _chosen(curve.tokens, most)
        ),
        marks=tuple(_mark(decided, curve) for decided in curve.decisions),
        window=budget.window,
        limit=budget.limit,
        trigger=budget.trigger,
        is_estimate=is_estimate,
    )


class _Curve(NamedTuple):
    """Tokens of the request at some versions, in order."""

    versions: Sequence[int]
    lengths: Sequence[int]
    tokens: Sequence[int]
    decisions: Sequence[Decided]


def _add_up(rows: Sequence[RequestSizesRow], version: int, fixed: int) -> _Curve:
    """Return the curve with a size for each event."""
    shown = ShownTokens(fixed)
    for row in rows[: -(-version // FINE)]:
        shown.take(row, version)
    return _Curve(range(1, version + 1), shown.lengths, shown.totals, shown.decisions)


def _estimate(rows: Sequence[RequestSizesRow], version: int, fixed: int) -> _Curve:
    """Return the curve of a very long conversation from its long rows, with straight lines between sizes.

    Sizes are known at compactions, and nearly at the end of each row.
    """
    sizes, lengths = [(0, fixed)], [(0, 0)]
    decisions: list[Mapping[str, Any]] = []
    for row in rows[: -(-version // COARSE)]:
        begin, last = row.number * COARSE, min(version, (row.number + 1) * COARSE)
        cut = 1.0 if row is rows[-1] else (last - begin) / COARSE
        grown = row.later_tokens if cut == 1 else int(row.tokens * cut)
        for step in decisions_of(row, last):
            decisions += [step] if step["kind"] not in NO_MARKS else []
            if step["kind"] == "compacted":
                sizes.append((step["version"] - 1, step["before"]))
                sizes.append((step["version"], step["after"]))
        sizes.append((last, sizes[-1][1] + grown))
        known = lengths[-1][1]
        lengths.append((last, known + int(((row.stop or known) - known) * cut)))
    shown = sorted({v for v, _ in sizes} | {s["version"] - n for s in decisions for n in (0, 1)})
    return _Curve(
        shown,
        [_between(lengths, one) for one in shown],
        [_between(sizes, one) for one in shown],
        [Decided(step, bisect_left(shown, step["version"])) for step in decisions],
    )


def _between(known: Sequence[tuple[int, int]], version: int) -> int:
    """Return the value at a version on the straight line between known values."""
    place = bisect_left(known, (version, 0))
    if place == len(known) or known[place][0] == version or not place:
        return known[min(place, len(known) - 1)][1]
    (begin, low), (end, high) = known[place - 1], known[place]
    return low + (high - low) * (version - begin) // (end - begin)


def _chosen(tokens: Sequence[int], most: int) -> Iterable[int]:
    """Return the places of at most ``most`` sizes: the highest and the lowest of each part, and both ends."""
    if len(tokens) <= most:
        return range(len(tokens))
    parts = (most - 2) // 2
    ends = [part * len(tokens) // parts for part in range(parts + 1)]
    chosen = {0, len(tokens) - 1}
    for begin, end in pairwise(ends):
        part = tokens[begin:end]
        chosen |= {begin + part.index(max(part)), begin + part.index(min(part))}
    return sorted(chosen)


def _mark(decided: Decided, curve: _Curve) -> SizeMark:
    step, place = decided
    return SizeMark(
        kind=step["kind"],
        version=step["version"],
        position=curve.lengths[place],
        at=step["at"],
        tokens_before=curve.tokens[place - 1] if place else 0,
        tokens_after=curve.tokens[place],
        changed_from=_changed_from(step),
        summary_id=step["id"] if step["kind"] in _OF_SUMMARY else None,
    )


_OF_SUMMARY = frozenset({"compacted", "rebuilt", "reverted"})


def _changed_from(step: Mapping[str, Any]) -> int:
    parts = [position for position, _ in step.get("parts", ())]
    return min(parts) if parts else int(step.get("position", 0))


def _times(
    core: Core, thread_id: str, rows: Sequence[RequestSizesRow], length: int
) -> Callable[[int, int], str]:
    """Return a function that gives the time of a version and number of messages."""
    messages = core.views.messages(thread_id, 0, length) if 0 < length <= TIMED else ()
    positions = [row.position for row in messages]

    def time_of(version: int, position: int) -> str:
        place = bisect_left(positions, position) - 1
        if place >= 0 and position <= positions[-1] + 1:
            return messages[place].at
        return rows[(version - 1) // rows[0].events].at

    return time_of
