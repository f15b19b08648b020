"""The index of decisions names what concerns some messages, and leaves out the large events that do not."""

from refold.application.ports.read_models import RequestSizesRow
from refold.application.projections.decision_index import versions_about
from refold.application.projections.request_sizes import COARSE, FINE, changes_of_run
from refold.application.projections.row_changes import Added, Changed
from refold.domain.events import (
    CompactionReverted,
    ConversationLabelled,
    Event,
    GivenInPart,
    MessagesCondensed,
    ShortenedPart,
)
from refold.domain.value import from_stored, replace
from tests.support.view_events import appended, logged, performed, requested


def rows_of(*events: Event, length: int = FINE) -> list[RequestSizesRow]:
    run = [logged(event, version) for version, event in enumerate(events, 1)]
    found: dict[object, dict[str, object]] = {}
    for change in changes_of_run(run):
        match change:
            case Added(row=RequestSizesRow() as row) if row.events == length:
                found[row.number] = dict(row)
            case Changed(where={"events": events_of_row, "number": number}) if (
                events_of_row == length
            ):
                texts = {k: f"{found[number][k]}{text}" for k, text in change.joined.items()}
                found[number] |= {**change.to, **texts}
            case _:
                pass
    return [from_stored(RequestSizesRow, row) for row in found.values()]


def condensed(position: int) -> Event:
    part = ShortenedPart(position=position, call_id="c", side="result", tokens_freed=5)
    return MessagesCondensed(parts=(part,), characters=9)


TALK = [appended(n) for n in range(6)]


def versions(*decisions: Event, first: int = 0, last: int = 2) -> list[int] | None:
    """The versions of the chosen decisions, counted from 1 after the messages."""
    rows = rows_of(*TALK, *decisions)
    newest = len(TALK) + len(decisions)
    found = versions_about(rows, range(first, last), len(TALK), newest)
    return None if found is None else [version - len(TALK) for version in found]


def test_of_many_compactions_the_first_that_covers_a_message_and_the_last_are_named() -> None:
    compactions = [performed(number, stop=4) for number in range(1, 6)]
    assert versions(*compactions) == [1, 5]


def test_a_message_that_is_covered_later_names_that_compaction() -> None:
    compactions = [performed(number, stop=number) for number in range(1, 6)]
    assert versions(*compactions, first=2, last=3) == [1, 3, 5]


def test_a_compaction_that_read_a_message_in_part_is_named() -> None:
    part = GivenInPart(position=1, given=5, characters=10)
    partly = replace(performed(3), given_in_part=(part,))
    compactions = performed(1), performed(2), partly, performed(4)
    assert versions(*compactions) == [1, 3, 4]
    assert versions(*compactions, first=0, last=1) == [1, 4]


def test_reverted_compactions_and_their_reversals_are_named() -> None:
    back = CompactionReverted(
        summary_id="s2", restored=None, messages=(), older_live=0, older_tokens=0, live_from=0
    )
    assert versions(performed(1), performed(2), back, performed(3), performed(4)) == [1, 2, 3, 5]


def test_shortenings_of_other_messages_are_left_out_but_the_first() -> None:
    assert versions(condensed(4), condensed(1), condensed(5)) == [1, 2]


def test_events_without_a_size_are_named_and_requests_are_not() -> None:
    assert versions(requested(1), ConversationLabelled(label="a")) == [2]


def test_only_decisions_of_the_asked_versions_are_named() -> None:
    rows = rows_of(*TALK, condensed(0), condensed(0), condensed(0))
    assert versions_about(rows, range(2), 7, 8) == [8]


def test_rows_that_do_not_tell_give_nothing() -> None:
    assert versions_about([], range(2), 0, 5) is None
    assert versions_about(rows_of(*TALK, length=COARSE), range(2), 0, 6) is None
    assert versions_about(rows_of(*TALK), range(2), 0, FINE + 1) is None
