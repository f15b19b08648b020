"""The messages as people read them, folded from events."""

from datetime import datetime, timedelta, timezone

from refold.application.ports.read_models import MessageRow
from refold.application.projections.message_list import changes_of_run
from refold.application.projections.row_changes import Appended
from refold.domain.value import replace
from tests.support.view_events import appended, failed, logged, performed, requested


def test_a_message_is_one_row_and_nothing_else_is() -> None:
    row = MessageRow(
        thread_id="t",
        position=3,
        version=8,
        message_id="m3",
        role="assistant",
        at="2026-01-02T03:04:05.000000Z",
        tokens=4,
        text="Good morning",
    )
    said = logged(appended(3, "Good morning", tokens=4), version=8)
    others = [logged(e) for e in (requested(1), performed(1), failed(1))]
    (change,) = changes_of_run([others[0], said, *others])
    assert isinstance(change, Appended)
    assert change.utf8 == list(MessageRow.model_fields).index("text")
    values = {**row.model_dump(), "text": b"Good morning"}
    assert change.rows == [tuple(values.values())]
    assert changes_of_run(others) == ()


def test_a_recorded_message_has_the_time_when_it_was_written_in_utc() -> None:
    written = datetime(2025, 6, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    (change,) = changes_of_run([logged(replace(appended(0), written_at=written))])
    assert isinstance(change, Appended)
    assert [row[5] for row in change.rows] == ["2025-06-01T10:00:00.000000Z"]
