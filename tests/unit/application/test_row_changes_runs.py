"""A run of events folded at once gives the same rows as its events one by one."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections import compaction_list as compactions
from refold.application.projections import conversation_list as conversations
from refold.application.projections import message_list as messages
from refold.application.projections import summary_list as summaries
from refold.application.projections.row_changes import (
    Added,
    Appended,
    Cell,
    Change,
    Changed,
    Removed,
    Replaced,
    RunChanges,
)
from refold.domain.events import ConversationLabelled, Event, SummarySuperseded
from refold.domain.value import Value
from tests.support.view_events import appended, failed, logged, performed, requested

FOLDS = {
    "compactions": compactions.changes_of_run,
    "conversations": conversations.changes_of_run,
    "messages": messages.changes_of_run,
    "summaries": summaries.changes_of_run,
}
EVENTS: Sequence[Event] = (
    appended(0),
    appended(1, "", 0),
    requested(1),
    performed(1),
    performed(2),
    SummarySuperseded(summary_id="s1", by="s2"),
    failed(1),
    ConversationLabelled(label="a"),
    ConversationLabelled(label="b"),
)


def rows_of(changes: Sequence[Change]) -> tuple[list[dict[str, Cell]], list[object]]:
    """What becomes of a table that has the row of a conversation already."""
    rows: list[dict[str, Cell]] = [
        {"thread_id": "t", "is_active": 1, "messages": 3, "tokens": 9, "compactions": 0}
    ]
    complete: list[object] = []
    for change in changes:
        match change:
            case Added(row):
                rows.append(_cells(row))
            case Appended(said):
                complete.extend(said)
            case Removed() | Replaced():
                raise AssertionError("only an erasure takes rows away")
            case Changed(where, to, more):
                for cells in rows:
                    if where.items() <= cells.items():
                        cells.update(to)
                        for name, growth in more.items():
                            cells[name] = int(cells[name] or 0) + growth
    return rows, complete


def _cells(row: Value) -> dict[str, Cell]:
    return dict(row.model_dump())


@pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS.keys())
@given(events=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=12), first=st.integers(1, 3))
def test_a_run_at_once_is_its_events_one_by_one(
    fold: RunChanges, events: list[Event], first: int
) -> None:
    run: list[LoggedEvent] = [logged(e, first + n) for n, e in enumerate(events)]
    single = [change for one in run for change in fold((one,))]
    assert rows_of(fold(run)) == rows_of(single)


@pytest.mark.parametrize("name", ["compactions", "summaries"])
def test_no_event_that_changes_a_row_is_passed_over(name: str) -> None:
    one_event = {"compactions": compactions.changes, "summaries": summaries.changes}[name]
    for event in EVENTS:
        assert list(FOLDS[name]([logged(event)])) == list(one_event(logged(event)))
