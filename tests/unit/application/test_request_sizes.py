"""Rows of sizes, folded from events: the same rows from single events and from runs."""

import json
from collections.abc import Sequence
from typing import Any

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.request_sizes import (
    COARSE,
    FINE,
    changes,
    changes_of_run,
)
from refold.application.projections.row_changes import Added, Change, Changed
from refold.domain.events import (
    CompactionReverted,
    ConversationLabelled,
    Event,
    EventLost,
    GivenInPart,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    SaidPart,
    ShortenedPart,
    UserContentShortened,
)
from refold.domain.messages import Message
from refold.domain.notes import MemoriesChosen
from refold.domain.value import replace
from tests.support.view_events import appended, logged, performed, requested

Rows = dict[tuple[Any, Any], dict[str, Any]]


def folded(parts: Sequence[Sequence[Change]]) -> Rows:
    """The rows after all changes."""
    rows: Rows = {}
    for change in (one for part in parts for one in part):
        match change:
            case Added(row):
                values = dict(row)
                rows[values["events"], values["number"]] = values
            case Changed(where, to, more, joined=joined):
                found = rows[where["events"], where["number"]]
                found |= to
                found |= {name: found[name] + amount for name, amount in more.items()}
                found |= {name: found[name] + text for name, text in joined.items()}
            case _:
                raise AssertionError(change)
    return rows


def stream(*events: Event) -> list[LoggedEvent]:
    return [logged(event, version) for version, event in enumerate(events, 1)]


def row_of(*events: Event, length: int = FINE) -> dict[str, Any]:
    return folded([changes_of_run(stream(*events))])[length, 0]


def decided(event: Event) -> dict[str, Any]:
    """What a row has of a decision, without version and time."""
    (found,) = json.loads(f"[{row_of(event)['decisions'][:-1]}]")
    assert found.pop("version") == 1
    assert found.pop("at") == "2026-01-02T03:04:05.000000Z"
    return dict(found)


def test_each_message_is_a_size_and_a_letter() -> None:
    calling = replace(
        appended(1),
        message=Message(role="assistant", content=({"type": "tool_use", "id": "c", "name": "n"},)),
    )
    thinking = replace(appended(3), thinking_tokens=4)
    row = row_of(appended(0), calling, appended(2), thinking, EventLost(position=4))
    assert (row["sizes"], row["kinds"], row["thinking"]) == ("7,7,7,7,0,", "mamEl", "4,")
    assert (row["stop"], row["tokens"], row["decisions"]) == (5, 28, "")


def test_a_paused_answer_ends_no_turn() -> None:
    assert row_of(replace(appended(1), stop_reason="pause_turn"))["kinds"] == "a"


def test_stale_thinking_is_noted_at_its_answer() -> None:
    row = row_of(replace(appended(1), stale_thinking=True))
    assert row["kinds"] == "e"
    assert json.loads(row["decisions"][:-1])["kind"] == "stale"


def test_events_that_change_no_size_are_dots() -> None:
    row = row_of(ConversationLabelled(label="a"), EventLost())
    assert (row["kinds"], row["stop"], row["decisions"]) == ("..", None, "")


def test_a_compaction_has_its_coverage_and_the_sizes_around_it() -> None:
    assert decided(performed(1, stop=2)) == {
        "kind": "compacted",
        "id": "s1",
        "start": 0,
        "stop": 2,
        "tokens": 5,
        "before": 100,
        "after": 40,
    }
    part = GivenInPart(position=1, given=5, characters=10)
    assert decided(replace(performed(1), given_in_part=(part,)))["part"] == [1]
    assert decided(requested(1)) == {"kind": "requested", "before": 100}
    assert decided(replace(performed(1), trigger="erasure"))["kind"] == "rebuilt"


def test_only_messages_after_the_newest_compaction_are_later_tokens() -> None:
    row = row_of(appended(0), performed(1), appended(1), appended(2))
    assert (row["tokens"], row["later_tokens"]) == (21, 14)
    row = row_of(appended(0), replace(performed(1), trigger="erasure"), appended(1))
    assert row["later_tokens"] == 14


def test_every_decision_about_the_request_is_kept() -> None:
    said = SaidPart(position=2, block=0, tokens_freed=3)
    part = ShortenedPart(position=1, call_id="c", side="result", tokens_freed=5)
    shown: dict[str, Any] = {"messages": (), "older_live": 0, "older_tokens": 0, "live_from": 1}
    assert decided(CompactionReverted(summary_id="s", restored=None, **shown)) == {
        "kind": "reverted",
        "id": "s",
    }
    condensed = MessagesCondensed(parts=(part, part), characters=9)
    assert decided(condensed) == {"kind": "condensed", "parts": [[1, 10]]}
    shortened = UserContentShortened(parts=(said,), head=1, tail=1)
    assert decided(shortened) == {"kind": "shortened", "parts": [[2, 3]]}
    pinned = MessagePinned(pin_id="p", position=None, text="a", tokens=8)
    assert decided(pinned) == {"kind": "pinned", "id": "p", "tokens": 8}
    assert decided(MessageUnpinned(pin_id="p")) == {"kind": "unpinned", "id": "p"}
    erased = MessageErased(position=1, message_id="m", tokens=2, tokens_freed=5, rewritten=())
    assert decided(erased) == {"kind": "erased", "position": 1, "tokens": 2}
    recalled = LinesRecalled(position=3, message_id="m", lines=(), tokens=6, asked_at=1)
    assert decided(recalled) == {"kind": "recalled", "position": 3, "tokens": 6}
    memories = MemoriesChosen(query_position=0, memories=(), tokens=9)
    assert decided(memories) == {"kind": "memories", "tokens": 9}


def test_a_pinned_message_that_stays_in_the_context_changes_no_size() -> None:
    assert row_of(MessagePinned(pin_id="p", position=0, text="", tokens=0))["kinds"] == "."


def test_long_rows_have_decisions_and_sums_only() -> None:
    row = row_of(appended(0), performed(1), appended(1), length=COARSE)
    assert (row["sizes"], row["kinds"], row["thinking"]) == ("", "", "")
    assert (row["tokens"], row["later_tokens"], row["stop"]) == (14, 7, 2)
    assert '"compacted"' in row["decisions"]


def test_single_events_give_the_rows_of_runs_of_any_length() -> None:
    events: list[Event] = [appended(n, tokens=n) for n in range(FINE + 40)]
    events[30:30] = [performed(1), MessageUnpinned(pin_id="p")]
    run = stream(*events)
    whole = folded([changes_of_run(run)])
    assert folded([changes(one) for one in run]) == whole
    assert folded([changes_of_run(run[n : n + 64]) for n in range(0, len(run), 64)]) == whole
    assert whole.keys() == {(FINE, 0), (FINE, 1), (COARSE, 0)}
    assert len(whole[FINE, 0]["kinds"]) == FINE
