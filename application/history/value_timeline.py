"""When a value was in the request: evaluated at the decisions in the log, without rendering requests."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.rendering.render import ledger_text, topics_line
from refold.domain.conversation import Coverage
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    RecalledLine,
    ToolContentOffloaded,
    Trigger,
    UserContentShortened,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.messages import strings_in
from refold.domain.notes import MemoriesChosen

from .value_match import ValueMatch

Standing = Literal["message", "memory", "nowhere"]
"""The best way in which a request has a value.

``message``: word for word in a message. ``memory``: only in a text before the messages or added to one, such as the
summary, its ledger, a pinned text or the system text. ``nowhere``: not at all.
"""
Cause = Literal[
    "appended",
    "compaction",
    "reverted",
    "offloaded",
    "condensed",
    "shortened",
    "pinned",
    "unpinned",
    "quoted",
    "recalled",
    "erased",
    "system text",
]
"""The kind of event that changed it. ``compaction`` includes a summary that an erasure rebuilt."""

MOST_LOOKS = 40
"""Number of versions at which shortened messages are read, at most."""
MOST_READ = 200
"""Number of shortened messages that are looked at before the answer is uncertain."""


class Occurrences(NamedTuple):
    """The messages that have a value, in order, in arrays that are small for a long conversation."""

    positions: "array[int]"
    versions: "array[int]"

    def has(self, position: int) -> bool:
        """Return whether the message at a position has the value."""
        at = bisect_left(self.positions, position)
        return at < len(self.positions) and self.positions[at] == position

    def add(self, position: int, version: int) -> None:
        """Add the next message."""
        self.positions.append(position)
        self.versions.append(version)


def no_occurrences() -> Occurrences:
    """Return an empty list of messages."""
    return Occurrences(array("q"), array("q"))


class Summarised(NamedTuple):
    """A summary, and whether it has the value."""

    summary_id: str
    coverage: Coverage
    has_value: bool


class Point(NamedTuple):
    """The standing of a value right after an event."""

    version: int
    at: str
    cause: Cause
    standing: Standing | None
    """The standing, or None if only a look at shortened messages can tell."""
    otherwise: Standing
    """The standing if the shortened messages do not show it."""
    key: int
    """Version of the event that decided about the shortened messages. With the same key the look is the same."""
    summary_id: str | None = None
    trigger: Trigger | None = None
    position: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None


class Change(NamedTuple):
    """A change of the standing: the point before it, if any, and the one after it."""

    before: Standing
    after: Standing
    point: Point


class Timeline:
    """A fold of decisions that knows whether a request of each version has a value."""

    def __init__(
        self,
        match: ValueMatch,
        found: Occurrences,
        words_of: Callable[[RecalledLine], str],
    ) -> None:
        """``words_of`` returns the words of a recalled line."""
        self._match, self._found, self._words_of = match, found, words_of
        self.summaries: list[Summarised] = []
        """Summaries that were not reverted; the last one is active."""
        self.erased = set[int]()
        """Positions of all erased messages."""
        self.points: list[Point] = []
        self._shortened = set[int]()
        self._pins = dict[str, bool]()
        self._recalled = dict[int, bool]()
        self._parts = dict[str, bool]()
        self._quoted = self._in_system = False
        self._key = 0

    def fold(self, logged: LoggedEvent) -> None:
        """Take the next decision, and note the standing after it."""
        self._note_append(logged.version)
        cause = self._take(logged)
        if cause is None:
            return
        point = self._point(logged.version, logged.at, cause)
        event = logged.event
        if isinstance(event, CompactionPerformed):
            point = point._replace(
                summary_id=event.summary_id,
                trigger=event.trigger,
                tokens_before=event.tokens_before,
                tokens_after=event.tokens_after,
            )
        elif isinstance(event, CompactionReverted):
            point = point._replace(summary_id=event.summary_id)
        elif isinstance(event, LinesRecalled):
            point = point._replace(position=event.position)
        self.points.append(point)

    def finish(self, version: int) -> None:
        """Note the messages up to the last version."""
        self._note_append(version + 1)

    def changes(self, look: Callable[[int], bool]) -> tuple[list[Change], bool]:
        """Return the changes of the standing, oldest first, and whether all of them are certain.

        ``look`` returns whether the shortened messages of a version show the value. The newest versions are looked
        at first, ``MOST_LOOKS`` at most.
        """
        seen = dict[int, bool]()
        for point in reversed(self.points):
            if point.standing is None and point.key not in seen and len(seen) < MOST_LOOKS:
                seen[point.key] = look(point.version)
        now: list[tuple[Standing, Point]] = [(_standing(p, seen), p) for p in self.points]
        certain = all(p.standing is not None or p.key in seen for p in self.points)
        first = [Change("nowhere", *now[0])] if now else []
        steps = (Change(a[0], b[0], b[1]) for a, b in pairwise(now))
        return [one for one in (*first, *steps) if one.before != one.after], certain

    def _note_append(self, before: int) -> None:
        """Note the first message with the value since the last point, if the value was not in a message."""
        last = self.points[-1] if self.points else None
        if last is not None and last.standing == "message":
            return
        at = bisect_left(self._found.versions, last.version + 1 if last else 0)
        if at < len(self._found.versions) and self._found.versions[at] < before:
            point = self._point(self._found.versions[at], "", "appended")
            self.points.append(point._replace(position=self._found.positions[at]))

    def _point(self, version: int, at: str, cause: Cause) -> Point:
        otherwise: Standing = "memory" if self._is_kept() else "nowhere"
        standing: Standing | None = otherwise
        for position in self._live(version):
            if position not in self._shortened:
                standing = "message"
                break
            standing = None
        return Point(version, at, cause, standing, otherwise, self._key)

    def _is_kept(self) -> bool:
        """Return whether a text apart from the messages has the value."""
        summary = self.summaries[-1] if self.summaries else None
        if self._quoted or self._in_system or (summary is not None and summary.has_value):
            return True
        recalled = (at for at, has in self._recalled.items() if has)
        live = (at for at in recalled if summary is None or not summary.coverage.covers(at))
        return any(self._pins.values()) or any(True for _ in live)

    def _live(self, version: int) -> Iterator[int]:
        """Yield positions with the value that no summary covers, the newest first, a limited number of them."""
        positions = self._found.positions
        end = bisect_left(self._found.versions, version + 1)
        coverage = self.summaries[-1].coverage if self.summaries else None
        first = bisect_left(positions, coverage.stop) if coverage else 0
        for at in range(end - 1, max(first, end - MOST_READ) - 1, -1):
            yield positions[at]
        if coverage is None:
            return
        for position in reversed(coverage.exclusions):
            if self._found.has(position):
                yield position
        before = min(bisect_left(positions, coverage.start), end)
        for at in range(before - 1, max(0, before - MOST_READ) - 1, -1):
            yield positions[at]

    def _take(self, logged: LoggedEvent) -> Cause | None:
        """Fold an event. Return its kind if it may have changed the standing."""
        event = logged.event
        match event:
            case CompactionPerformed():
                return self._compact(event, logged.version)
            case CompactionReverted():
                self.summaries = [s for s in self.summaries if s.summary_id != event.summary_id]
                self._key = logged.version
                return "reverted"
            case ToolContentOffloaded() | MessagesCondensed() | UserContentShortened():
                own = {p.position for p in event.parts if self._found.has(p.position)}
                if not own:
                    return None
                self._shortened |= own
                self._key = logged.version
                return _cause_of(event)
            case MessagePinned() if event.tokens:
                self._pins[event.pin_id] = event.text in self._match
                return "pinned"
            case MessageUnpinned():
                return "unpinned" if self._pins.pop(event.pin_id, False) else None
            case MemoriesChosen():
                self._quoted = any(one.text in self._match for one in event.memories)
                return "quoted"
            case LinesRecalled():
                return self._recall(event)
            case MessageErased():
                self.erased.add(event.position)
                self._shortened.discard(event.position)
                self._recalled.pop(event.position, None)
                return "erased"
            case RequestFrameChanged():
                self._parts |= {p.digest: self._has(p.value) for p in event.parts}
                used = (*(event.system or ()), *event.instructions)
                self._in_system = any(self._parts.get(digest, False) for digest in used)
                return "system text"
            case _:
                return None

    def _compact(self, event: CompactionPerformed, version: int) -> Cause:
        # A summary that an erasure rebuilt has another id, and takes the place of the one before.
        self.summaries.append(
            Summarised(event.summary_id, event.coverage, summary_has(event, self._match))
        )
        self._key = version
        return "compaction"

    def _recall(self, event: LinesRecalled) -> Cause:
        own = (line for line in event.lines if self._found.has(line.position))
        self._recalled[event.position] = any(self._words_of(line) in self._match for line in own)
        return "recalled"

    def _has(self, value: object) -> bool:
        return any(text in self._match for text in strings_in(value, deepest=6))


def _cause_of(event: ToolContentOffloaded | MessagesCondensed | UserContentShortened) -> Cause:
    match event:
        case ToolContentOffloaded():
            return "offloaded"
        case MessagesCondensed():
            return "condensed"
        case UserContentShortened():
            return "shortened"


def _standing(point: Point, seen: dict[int, bool]) -> Standing:
    if point.standing is not None:
        return point.standing
    return "message" if seen.get(point.key, False) else point.otherwise


def summary_has(event: CompactionPerformed, match: ValueMatch) -> bool:
    """Return whether a summary shows the value, with its topics, its ledger and its index."""
    topics = topics_line(event.topics[: event.topics_shown], ask=event.topics_ask)
    lines, index = event.ledger[: event.ledger_shown], event.index[: event.index_shown]
    return any(text in match for text in (event.text, topics, ledger_text(lines, (), index)))
