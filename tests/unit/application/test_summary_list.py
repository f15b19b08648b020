"""The summaries ever made, folded from events."""

from refold.application.ports.read_models import SummaryRow
from refold.application.projections.row_changes import Added, Changed
from refold.application.projections.summary_list import changes
from refold.domain.events import SummarySuperseded
from refold.domain.value import replace
from tests.support.view_events import appended, failed, logged, performed, requested


def test_a_new_summary_is_active_and_every_earlier_one_is_not() -> None:
    event = replace(
        performed(1, stop=4, text="They met."),
        is_split_turn=True,
        split_turn_prefix="It began.",
        message_count=6,
    )
    at = "2026-01-02T03:04:05.000000Z"
    assert changes(logged(event, version=9)) == (
        Changed({"thread_id": "t", "is_active": 1}, {"is_active": 0}),
        Added(
            SummaryRow(
                summary_id="s1",
                thread_id="t",
                summary_text="They met.",
                compact_up_to_index=3,
                first_kept_index=4,
                compacted_at=at,
                message_count=6,
                is_split_turn=True,
                split_turn_prefix="It began.",
                is_active=True,
                created_at=at,
                covered_from=0,
                covered_count=4,
                exclusions="[]",
                first_message_id="m0",
                last_message_id="m1",
                version=9,
                tokens=5,
                model="fake-1",
                superseded_by=None,
                is_reverted=False,
            )
        ),
    )


def test_positions_that_are_not_covered_are_a_json_list() -> None:
    event = performed(1, stop=6)
    excluding = replace(event, coverage=replace(event.coverage, exclusions=(2, 4)))
    _, added = changes(logged(excluding))
    assert isinstance(added, Added)
    assert isinstance(added.row, SummaryRow)
    assert added.row.exclusions == "[2, 4]"


def test_a_superseded_summary_names_the_one_that_took_over() -> None:
    (changed,) = changes(logged(SummarySuperseded(summary_id="s1", by="s2")))
    assert changed == Changed({"thread_id": "t", "summary_id": "s1"}, {"superseded_by": "s2"})


def test_other_events_change_no_summary() -> None:
    assert [changes(logged(e)) for e in (appended(0), requested(1), failed(1))] == [(), (), ()]
