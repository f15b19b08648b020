"""The compaction attempts, folded from events."""

from refold.application.ports.read_models import CompactionRow
from refold.application.projections.compaction_list import changes
from refold.application.projections.row_changes import Added, Cell, Changed
from refold.domain.events import CompactionReverted, ConversationLabelled
from tests.support.view_events import appended, failed, logged, performed, requested

AT = "2026-01-02T03:04:05.000000Z"
ATTEMPT: dict[str, Cell] = {"thread_id": "t", "attempt_id": "a1"}


def test_a_request_makes_a_row_that_has_not_ended() -> None:
    assert changes(logged(requested(1, stop=4))) == (
        Added(
            CompactionRow(
                attempt_id="a1",
                thread_id="t",
                trigger="size",
                outcome="requested",
                reason=None,
                summariser="fake",
                summary_id=None,
                requested_at=AT,
                ended_at=None,
                tokens_before=100,
                tokens_after=None,
                covered_count=4,
                focus="the tests",
                model_calls=0,
            )
        ),
    )


def test_a_performed_compaction_has_its_summary_and_size() -> None:
    ended: dict[str, Cell] = {
        "ended_at": AT,
        "outcome": "performed",
        "summary_id": "s1",
        "tokens_after": 40,
        "model_calls": 1,
    }
    assert changes(logged(performed(1))) == (Changed(ATTEMPT, ended),)


def test_a_failed_compaction_has_its_reason() -> None:
    ended: dict[str, Cell] = {
        "ended_at": AT,
        "outcome": "failed",
        "reason": "empty",
        "model_calls": 0,
    }
    assert changes(logged(failed(1))) == (Changed(ATTEMPT, ended),)


def test_an_undone_compaction_is_told_as_reverted() -> None:
    undone = CompactionReverted(
        summary_id="s1", restored=None, messages=(), older_live=0, older_tokens=0, live_from=1
    )
    where: dict[str, Cell] = {"thread_id": "t", "summary_id": "s1"}
    assert changes(logged(undone)) == (Changed(where, {"outcome": "reverted"}),)


def test_other_events_change_no_attempt() -> None:
    assert changes(logged(appended(0))) == ()
    assert changes(logged(ConversationLabelled(label="x"))) == ()
