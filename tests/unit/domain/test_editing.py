"""Edits that a model asks for: when one waits, who closes it, and what the state keeps of it."""

import pytest

from refold.domain.editing import (
    MOST_OPEN,
    decide_edit,
    is_open,
    propose_edit,
    read_name,
    remember_note,
    withdraw_note,
)
from refold.domain.erasing import (
    ErasedMessage,
    Withdrawn,
    erase_messages,
    is_made_from,
    strip_event,
)
from refold.domain.errors import InvalidMessage, InvalidSetting
from refold.domain.events import (
    BY_ERASURE,
    EditAction,
    EditDecided,
    EditProposed,
    Event,
    MessageErased,
)
from refold.domain.evolve import fold
from refold.domain.notes import Note, NotesFlushed
from refold.domain.quoted_text import is_quoting, quote_checker
from tests.support.builders import history, performed, requested, talk, user

SAID = "the account of the customer is 4711-0815"


def proposed(
    edit_id: str = "e1",
    action: EditAction = "pin",
    text: str = "",
    position: int | None = None,
) -> EditProposed:
    return EditProposed(
        edit_id=edit_id,
        action=action,
        text=text,
        position=position,
        kind=None,
        target=None,
        author="model",
    )


def decided(edit_id: str = "e1", *, allowed: bool = True) -> EditDecided:
    return EditDecided(edit_id=edit_id, allowed=allowed, by="program")


def after(*events: Event) -> list[Event]:
    return [*history(*talk(2)), *events]


def test_a_proposal_waits_until_it_is_decided() -> None:
    state = fold(after(proposed("e1"), proposed("e2")))
    assert [edit.edit_id for edit in state.edits] == ["e1", "e2"]
    assert [edit.version for edit in state.edits] == [state.version - 1, state.version]
    state = fold([decided("e1", allowed=False)], state)
    assert [edit.edit_id for edit in state.edits] == ["e2"]
    assert not is_open(state, "e1")
    assert is_open(state, "e2")


def test_the_state_keeps_no_words_of_a_proposal() -> None:
    assert SAID not in fold(after(proposed(text=SAID))).model_dump_json()


def test_a_proposal_leaves_the_messages_as_they_are() -> None:
    before = fold(after())
    later = fold(after(proposed(position=0), decided()))
    assert later.live == before.live
    assert later.tokens == before.tokens


def test_a_conversation_without_messages_has_nothing_to_edit() -> None:
    with pytest.raises(InvalidMessage, match="no messages yet"):
        propose_edit(fold([]), proposed())


def test_a_bounded_number_of_proposals_waits() -> None:
    some = [proposed(f"e{n}") for n in range(MOST_OPEN)]
    assert propose_edit(fold(after(*some[1:])), some[0]) == (some[0],)
    full = fold(after(*some))
    with pytest.raises(InvalidMessage, match="64 proposals wait"):
        propose_edit(full, proposed("one more"))
    assert propose_edit(full, proposed("at once"), waits=False) == (proposed("at once"),)


def test_an_open_proposal_is_decided_once() -> None:
    state = fold(after(proposed()))
    events = decide_edit(state, "e1", allowed=True, by="program")
    assert events == (decided(),)
    assert decide_edit(fold(events, state), "e1", allowed=False, by="program") == ()
    assert decide_edit(state, "unknown", allowed=True, by="program") == ()


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "x" * 101, "ledger", "erasure"])
def test_a_name_is_one_line_and_none_of_our_own(name: str) -> None:
    with pytest.raises(InvalidSetting, match="author="):
        read_name(name, "author")


@pytest.mark.parametrize("name", [None, 5, b"planner", ["planner"]])
def test_a_name_is_a_text(name: object) -> None:
    with pytest.raises(InvalidSetting, match="author="):
        read_name(name, "author")


def test_a_name_is_kept_without_blanks_around_it() -> None:
    assert read_name(" planner ", "author") == "planner"


def test_a_note_on_demand_is_none_of_a_compaction_cycle() -> None:
    compacted = after(requested(2, supersedes=None), performed(2))
    before = fold(compacted)
    note = Note(kind="fact", text="x is 5")
    (flush,) = remember_note(before, "e1", note, "planner")
    assert (flush.flush_id, flush.taken_by, flush.is_on_demand) == ("e1", "planner", True)
    later = fold([flush], before)
    assert later.has_notes == before.has_notes is False
    assert later.notes_to == before.notes_to
    assert later.notes_versions == (before.version + 1,), "it is not repeated by later notes"
    (withdrawal,) = withdraw_note(later, "e2", "e1", "planner")
    assert (withdrawal.notes, withdrawal.replaces) == ((), "e1")
    assert fold([withdrawal], later).notes_to == before.notes_to


def test_erasing_a_message_closes_the_proposals_about_it() -> None:
    state = fold(after(proposed("e1", position=1), proposed("e2", text="of its own")))
    events = erase_messages(
        state, [ErasedMessage(1, "m1", 5, 5)], {}, withdrawn=Withdrawn(edits=frozenset({"e1"}))
    )
    closed = EditDecided(edit_id="e1", allowed=False, by=BY_ERASURE, reason="erased")
    assert closed in events
    assert [type(event) for event in events] == [EditDecided, MessageErased]
    assert [edit.edit_id for edit in fold(events, state).edits] == ["e2"]


def test_a_proposal_is_made_from_its_message_or_from_what_it_quotes() -> None:
    is_quoted = quote_checker([user(SAID)])
    assert is_made_from(proposed(position=1), frozenset({1}), {})
    assert not is_made_from(proposed(position=1), frozenset({0}), {})
    assert is_quoting(proposed(text=SAID[4:30]), frozenset(), is_quoted)
    assert not is_quoting(proposed(text="something else"), frozenset(), is_quoted)
    assert not is_made_from(decided(), frozenset({0, 1}), {})


@pytest.mark.parametrize(("stop", "expected"), [(3, True), (4, False)])
def test_only_a_note_on_demand_is_compared_with_what_was_said(stop: int, *, expected: bool) -> None:
    flush = NotesFlushed(
        flush_id="n", start=3, stop=stop, notes=(Note(kind="fact", text=SAID),), taken_by="model"
    )
    assert is_quoting(flush, frozenset(), quote_checker([user(SAID)])) == expected


def test_erasing_leaves_of_a_proposal_what_was_asked_for_and_by_whom() -> None:
    assert strip_event(proposed(text=SAID), "[gone]") == proposed(text="[gone]")
    assert strip_event(proposed(position=1), "[gone]") == proposed(position=1)
    assert strip_event(decided(), "[gone]") == decided()
