"""The size of the request after each event, as steps that are put into few narrow rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.application.ports.read_models import RequestSizesRow
from refold.domain.conversation import Coverage
from refold.domain.events import (
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    Event,
    EventLost,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    Shortening,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import MemoriesChosen
from refold.domain.value import build_in_order

from .row_changes import Added, Cell, Change, Changed, listed_time

VERSION = 2
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""

FINE, COARSE = 256, 8_192
"""Numbers of successive events in a row. Each event is in one row of each kind."""

ANSWER, LAST_ANSWER, MESSAGE, LOST, DECISION, OTHER = "aemld."
"""Letters of the kinds of events; those of answers with thinking are large."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Add a row with the first of its events, and add to it with every other."""
    return changes_of_run((logged,))


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """Return the changes of the rows that a run of events of one conversation falls into."""
    found: list[Change] = []
    start = 0
    while start < len(run):
        stop = start + FINE - (run[start].version - 1) % FINE  # Versions have no gaps.
        found += _add_steps(run[start:stop])
        start = stop
    return found


def _add_steps(run: Sequence[LoggedEvent]) -> Iterator[Change]:
    """Yield the changes for events of one short row."""
    first, sums = run[0], _Sums()
    for logged in run:
        sums.take(logged)
    for events in (FINE, COARSE):
        number, offset = divmod(first.version - 1, events)
        if not offset:
            yield Added(_new_row(first, events, number))
        key: dict[str, Cell] = {"thread_id": first.thread_id, "events": events, "number": number}
        yield sums.change(key, is_short=events == FINE)


def _new_row(first: LoggedEvent, events: int, number: int) -> RequestSizesRow:
    return build_in_order(
        RequestSizesRow,
        thread_id=first.thread_id,
        events=events,
        number=number,
        stop=None,
        at=first.at,
        tokens=0,
        later_tokens=0,
        sizes="",
        kinds="",
        thinking="",
        decisions="",
    )


def extended(
    rows: Sequence[RequestSizesRow], run: Sequence[LoggedEvent]
) -> Sequence[RequestSizesRow]:
    """Return the short rows of a conversation with its next events."""
    found: dict[Any, RequestSizesRow] = {row.number: row for row in rows}
    for change in changes_of_run(run):
        match change:
            case Added(RequestSizesRow(events=events) as row) if events == FINE:
                found[row.number] = row
            case Changed(where) if where["events"] == FINE:
                cells: dict[str, Any] = {**found[where["number"]].__dict__, **change.to}
                for name, more in (*change.more.items(), *change.joined.items()):
                    cells[name] += more
                found[where["number"]] = RequestSizesRow(**cells)
            case _:
                pass
    return [*found.values()]


class _Sums:
    """The amounts and texts that some events of one short row add to it, and to the long row."""

    def __init__(self) -> None:
        self._to: dict[str, Cell] = {}
        self._tokens = self._later_tokens = 0
        self._sizes: list[int] = []
        self._kinds: list[str] = []
        self._thinking = self._decisions = ""
        self._newest: tuple[LoggedEvent, MessageFields] | None = None

    def take(self, logged: LoggedEvent) -> None:
        """Take the next event."""
        message = logged.message
        if message is None:
            self._sizes.append(0)
            self._kinds.append(self._take_other(logged))
            return
        tokens = message["tokens"]
        self._sizes.append(tokens)
        self._tokens += tokens
        self._later_tokens += tokens
        is_answer = message["message"]["role"] == "assistant"
        self._kinds.append(self._take_answer(logged, message) if is_answer else MESSAGE)
        self._newest = logged, message

    def _take_answer(self, logged: LoggedEvent, message: MessageFields) -> str:
        content = message["message"]["content"]
        kinds = () if isinstance(content, str) else [block.get("type") for block in content]
        goes_on = "tool_use" in kinds or message.get("stop_reason") == "pause_turn"
        if message.get("stale_thinking"):
            self._note_decision(logged, {"kind": "stale"})
        letter = ANSWER if goes_on else LAST_ANSWER
        if thinking := message.get("thinking_tokens", 0):
            self._thinking += f"{thinking},"
            return letter.upper()
        return letter

    def _take_other(self, logged: LoggedEvent) -> str:
        event = logged.event
        if isinstance(event, EventLost):
            if event.position is None:
                return OTHER
            self._note_newest()
            self._to["stop"] = event.position + 1
            return LOST
        decided = _decision(event)
        if decided is None:
            return OTHER
        if decided["kind"] == "compacted":
            self._later_tokens = self._to["later_tokens"] = 0
        self._note_decision(logged, decided)
        return DECISION

    def _note_decision(self, logged: LoggedEvent, decided: Mapping[str, Any]) -> None:
        made = {"version": logged.version, "at": logged.at, **decided}
        self._decisions += json.dumps(made, separators=(",", ":")) + ","

    def _note_newest(self) -> None:
        if self._newest is not None:
            logged, message = self._newest
            self._to |= {"stop": message["position"] + 1, "at": listed_time(logged, message)}
            self._newest = None

    def change(self, key: Mapping[str, Cell], *, is_short: bool) -> Changed:
        """Return the change of one row."""
        self._note_newest()
        more = {"tokens": self._tokens, "later_tokens": self._later_tokens}
        texts = {"decisions": self._decisions}
        if is_short:
            texts["sizes"] = "".join([f"{size}," for size in self._sizes])
            texts |= {"kinds": "".join(self._kinds), "thinking": self._thinking}
        return Changed(key, self._to, more, joined=texts)


def _decision(event: Event) -> Mapping[str, Any] | None:
    """Return what an event changes besides adding a message, or None if nothing."""
    match event:
        case CompactionRequested():
            return {"kind": "requested", "before": event.tokens_before}
        case CompactionPerformed():
            return {
                "kind": "rebuilt" if event.trigger == "erasure" else "compacted",
                "id": event.summary_id,
                **_summary(event.coverage, event.tokens),
                "before": event.tokens_before,
                "after": event.tokens_after,
                **(
                    {"part": [one.position for one in event.given_in_part]}
                    if event.given_in_part
                    else {}
                ),
            }
        case CompactionReverted():
            back = event.restored
            reverted = {"kind": "reverted", "id": event.summary_id}
            return {**reverted, **_summary(back.coverage, back.tokens)} if back else reverted
        case ToolContentOffloaded() | MessagesCondensed() | UserContentShortened():
            return {"kind": _SHORTENED[type(event)], "parts": _freed(event)}
        case MessagePinned() if event.tokens:
            return {"kind": "pinned", "id": event.pin_id, "tokens": event.tokens}
        case MessageUnpinned():
            return {"kind": "unpinned", "id": event.pin_id}
        case MessageErased():
            return {"kind": "erased", "position": event.position, "tokens": event.tokens}
        case LinesRecalled():
            return {"kind": "recalled", "position": event.position, "tokens": event.tokens}
        case MemoriesChosen():
            return {"kind": "memories", "tokens": event.tokens}
        case RequestFrameChanged():
            return {"kind": "frame", "binds": event.binds_thinking}
        case _:
            return None


_SHORTENED: Mapping[type[Shortening], str] = {
    ToolContentOffloaded: "offloaded",
    MessagesCondensed: "condensed",
    UserContentShortened: "shortened",
}


def _summary(coverage: Coverage, tokens: int) -> Mapping[str, Any]:
    kept = {"kept": coverage.exclusions} if coverage.exclusions else {}
    return {"start": coverage.start, "stop": coverage.stop, **kept, "tokens": tokens}


def _freed(event: Shortening) -> Sequence[tuple[int, int]]:
    freed: dict[int, int] = {}
    for part in event.parts:
        freed[part.position] = freed.get(part.position, 0) + part.tokens_freed
    return list(freed.items())
