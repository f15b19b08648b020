"""The list of conversations, folded from events."""

from refold.application.ports.read_models import ConversationRow
from refold.application.projections.conversation_list import changes
from refold.application.projections.row_changes import Added, Changed
from refold.domain.events import ConversationForked, ConversationLabelled, SummarySuperseded
from refold.domain.value import replace
from tests.support.view_events import appended, failed, logged, performed, requested

AT = "2026-01-02T03:04:05.000000Z"


def test_the_first_event_of_a_conversation_makes_its_row() -> None:
    added, counted = changes(logged(appended(0), version=1))
    assert added == Added(
        ConversationRow(
            thread_id="t",
            label=None,
            messages=0,
            tokens=0,
            compactions=0,
            created_at="2026-01-02T03:04:05.000000Z",
            last_activity="2026-01-02T03:04:05.000000Z",
            version=1,
            erased=False,
            forked_from=None,
            forked_at=None,
            first_words=None,
            first_words_at=None,
        )
    )
    assert isinstance(counted, Changed)


def test_a_message_counts_and_is_activity() -> None:
    assert changes(logged(appended(1, tokens=9), version=2)) == (
        Changed(
            {"thread_id": "t"},
            {"version": 2},
            {"messages": 1, "tokens": 9},
            {},
            {"created_at": AT, "last_activity": AT},
        ),
    )


def test_a_label_is_kept_and_is_no_activity() -> None:
    (changed,) = changes(logged(ConversationLabelled(label="Parser work")))
    assert changed == Changed({"thread_id": "t"}, {"version": 2, "label": "Parser work"}, {})


def test_a_copy_says_of_what_it_is_one() -> None:
    (changed,) = changes(logged(ConversationForked(source="s", version=7)))
    assert changed == Changed(
        {"thread_id": "t"}, {"version": 2, "forked_from": "s", "forked_at": 7}, {}
    )


def test_only_a_performed_compaction_counts() -> None:
    (done,) = changes(logged(performed(1)))
    assert done == Changed({"thread_id": "t"}, {"version": 2}, {"compactions": 1})
    for event in (requested(1), failed(1), SummarySuperseded(summary_id="s1", by="s2")):
        assert changes(logged(event)) == (Changed({"thread_id": "t"}, {"version": 2}, {}),)


def test_a_summary_that_an_erasure_made_anew_is_no_compaction() -> None:
    (changed,) = changes(logged(replace(performed(1), trigger="erasure")))
    assert changed == Changed({"thread_id": "t"}, {"version": 2}, {})
