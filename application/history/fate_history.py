"""Tell what happened to one message, from its append on."""

from collections.abc import Iterator, Sequence
from typing import Literal

from refold.application.conversation.stream_places import places_in
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.decision_index import Step, steps_about
from refold.application.projections.fates import When
from refold.application.projections.row_changes import message_time
from refold.application.runtime.core import Core
from refold.domain.conversation import Coverage
from refold.domain.errors import UnknownMessage
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    LinesRecalled,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.messages import Message, gist
from refold.domain.notes import MemoriesChosen
from refold.domain.value import Value

from .explain import DISTANT
from .moments import check_position

FateEvent = Literal[
    "appended",
    "offloaded",
    "condensed",
    "shortened",
    "covered",
    "summarised again",
    "restored",
    "pinned",
    "unpinned",
    "recalled",
    "quoted",
    "erased",
]
"""An event about one message.

``offloaded``, ``condensed``: tool content was replaced by previews, or cut. ``shortened``: content of a user
was cut or left out. ``covered``: a summary replaced it in the context. ``summarised again``: another summary took
the place of that one. ``restored``: it is in the context again, because the compaction was reverted.
``recalled``: a line of it was added to a later message. ``quoted``: it was quoted in the system text.
"""


class FateChange(Value, frozen=True):
    """An event that changed how the context shows one message."""

    version: int
    at: str
    """Time of the event in ISO 8601, UTC."""
    kind: FateEvent
    what: str
    """The event in words."""
    summary_id: str | None = None
    """Id of the summary that covers it or did until then."""
    pin_id: str | None = None
    after: int | None = None
    """Position of the message to which a line of it was added."""
    tokens_freed: int = 0
    """Tokens that a shortening freed."""


def fate_history(core: Core, thread_id: str, position: int) -> tuple[FateChange, ...]:
    """Return everything that happened to the message at a position, oldest first.

    Raises:
        UnknownMessage: there is no such message, or damage destroyed it.
        InvalidSetting: ``position`` is not an integer.
        ConversationGone: the whole conversation was erased.
    """
    state = core.log.load(thread_id).present().state
    check_position(position, state.length)
    places = places_in(core, thread_id, state.version, state.length)
    version = places.version_of(position)
    if version is None:
        raise UnknownMessage(position, state.length, lost=True)
    found = _FateHistory(position)
    changes = [
        change for logged in core.log.read_at(thread_id, [version]) for change in found.fold(logged)
    ]
    if state.version - version > DISTANT:
        steps = steps_about(core.views.request_sizes(thread_id), position, version, state.version)
        if steps is not None:
            changes += _changes_in(core, thread_id, found, steps)
            return tuple(changes)
    for logged in places.decisions_after(version):
        changes += found.fold(logged)
    return tuple(changes)


def _changes_in(
    core: Core, thread_id: str, found: "_FateHistory", steps: Sequence[int | Step]
) -> Iterator[FateChange]:
    """Yield the changes of events that are given by their version, and of compactions as the read models know them."""
    versions = [step for step in steps if isinstance(step, int)]
    events = {one.version: one for one in core.log.read_at(thread_id, versions)}
    for step in steps:
        if isinstance(step, int):
            yield from found.fold(events[step])
        elif found.is_covered_again(step):
            yield from found.take_over(step)
        else:
            for logged in core.log.read_at(thread_id, [step["version"]]):
                yield from found.fold(logged)


def _author_of(message: Message) -> str:
    does = gist(message)
    is_result = does.results and not does.speaks
    return "as the result of a tool" if is_result else f"by the {message.role}"


class _FateHistory:
    """State of one message while its events are read."""

    def __init__(self, position: int) -> None:
        self._position = position
        self._standing: list[tuple[str, Coverage]] = []
        """The compactions that were not reverted, with what they cover."""
        self._pins = set[str]()

    def fold(self, logged: LoggedEvent) -> Iterator[FateChange]:
        """Yield what an event changed about the message."""
        event, position = logged.event, self._position
        match event:
            case MessageAppended():
                what = f"appended {_author_of(event.message)}, {event.tokens:,} tokens"
                yield _change(logged, "appended", what, at=message_time(logged, event))
            case ToolContentOffloaded() | MessagesCondensed() | UserContentShortened():
                parts = [part for part in event.parts if part.position == position]
                if parts:
                    yield _shortened(logged, event, sum(part.tokens_freed for part in parts))
            case CompactionPerformed():
                yield from self._compacted(logged, event)
            case CompactionReverted():
                yield from self._reverted(logged, event)
            case MessagePinned(position=pinned) if pinned == position:
                self._pins.add(event.pin_id)
                how = (
                    "its words were pinned in the ledger" if event.tokens else "pinned in its place"
                )
                yield _change(logged, "pinned", how, pin_id=event.pin_id)
            case MessageUnpinned(pin_id=pin_id) if pin_id in self._pins:
                self._pins.discard(pin_id)
                yield _change(logged, "unpinned", "no longer pinned", pin_id=pin_id)
            case LinesRecalled():
                if lines := sum(line.position == position for line in event.lines):
                    count = "a line of it was" if lines == 1 else f"{lines} lines of it were"
                    what = f"{count} recalled after message {event.position}"
                    yield _change(logged, "recalled", what, after=event.position)
            case MemoriesChosen():
                if any(m.position == position and m.thread_id is None for m in event.memories):
                    yield _change(logged, "quoted", "quoted in the system text")
            case MessageErased(position=erased) if erased == position:
                why = f": {event.reason}" if event.reason else ""
                yield _change(logged, "erased", f"its content was erased{why}")
            case _:
                pass

    def _compacted(self, logged: LoggedEvent, event: CompactionPerformed) -> Iterator[FateChange]:
        known = self._covering()
        self._standing.append((event.summary_id, event.coverage))
        if not event.coverage.covers(self._position):
            return
        if known is not None:
            yield _summarised_again(When(logged.version, logged.at), event.summary_id, known)
            return
        what = f"covered by summary {event.summary_id}, made by a compaction ({event.trigger})"
        if any(one.position == self._position for one in event.omitted):
            what += "; too large to be summarised, only named by it"
        part = next((g for g in event.given_in_part if g.position == self._position), None)
        if part is not None:
            what += f"; made from {part.given:,} of its {part.characters:,} characters"
        yield _change(logged, "covered", what, summary_id=event.summary_id)

    def is_covered_again(self, step: Step) -> bool:
        """Return whether a compaction only put another summary of the message in the place of one."""
        return self._covering() is not None and _coverage(step).covers(self._position)

    def take_over(self, step: Step) -> Iterator[FateChange]:
        """Yield the change of such a compaction."""
        known = self._covering()
        assert known is not None
        self._standing.append((step["id"], _coverage(step)))
        yield _summarised_again(When(step["version"], step["at"]), step["id"], known)

    def _reverted(self, logged: LoggedEvent, event: CompactionReverted) -> Iterator[FateChange]:
        before = self._covering()
        self._standing = [one for one in self._standing if one[0] != event.summary_id]
        now = self._covering()
        if before is None or before == now:
            return
        if now is None:
            what = f"back in the context: summary {event.summary_id} was reverted"
            yield _change(logged, "restored", what, summary_id=event.summary_id)
        else:
            what = f"summary {event.summary_id} was reverted; summary {now} covers it again"
            yield _change(logged, "summarised again", what, summary_id=now)

    def _covering(self) -> str | None:
        """Return the id of the active summary if it covers the message, or None."""
        if not self._standing:
            return None
        summary_id, coverage = self._standing[-1]
        return summary_id if coverage.covers(self._position) else None


def _coverage(step: Step) -> Coverage:
    kept = tuple(step.get("kept", ()))
    return Coverage(
        start=step["start"],
        stop=step["stop"],
        count=step["stop"] - step["start"] - len(kept),
        first_message_id="",
        last_message_id="",
        exclusions=kept,
    )


def _summarised_again(when: When, summary_id: str, known: str) -> FateChange:
    what = f"summary {summary_id} took the place of summary {known}"
    return _change(when, "summarised again", what, summary_id=summary_id)


def _shortened(
    logged: LoggedEvent,
    event: ToolContentOffloaded | MessagesCondensed | UserContentShortened,
    freed: int,
) -> FateChange:
    match event:
        case ToolContentOffloaded():
            what = f"its tool content is shown as previews, {freed:,} tokens less"
            return _change(logged, "offloaded", what, tokens_freed=freed)
        case MessagesCondensed():
            what = f"its tool results were cut, {freed:,} tokens less"
            return _change(logged, "condensed", what, tokens_freed=freed)
        case UserContentShortened():
            how = "left out" if event.left_out else "cut"
            what = f"content of the user was {how}, {freed:,} tokens less"
            return _change(logged, "shortened", what, tokens_freed=freed)


def _change(
    logged: LoggedEvent | When,
    kind: FateEvent,
    what: str,
    *,
    at: str | None = None,
    summary_id: str | None = None,
    pin_id: str | None = None,
    after: int | None = None,
    tokens_freed: int = 0,
) -> FateChange:
    return FateChange(
        version=logged.version,
        at=at or logged.at,
        kind=kind,
        what=what,
        summary_id=summary_id,
        pin_id=pin_id,
        after=after,
        tokens_freed=tokens_freed,
    )
