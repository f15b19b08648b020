"""When durable notes are recorded, what may be in them, and what code notes by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.domain.conversation import Conversation
from refold.domain.folding import fold
from refold.domain.noting import (
    LONGEST_NOTE,
    MOST_MESSAGES,
    MOST_NOTES,
    fitting_notes,
    flush_notes,
    is_noted,
    notes_by_code,
    notes_start,
)
from refold.domain.remembering import Note, NotesFlushed
from tests.support.builders import (
    assistant,
    conversation,
    history,
    performed,
    talk,
    tool_result,
    tool_use,
    user,
)


def flush(start: int, stop: int, *notes: str, **more: object) -> NotesFlushed:
    fields: dict[str, object] = {
        "flush_id": f"f{start}-{stop}",
        "start": start,
        "stop": stop,
        "notes": tuple(Note(kind="fact", text=text) for text in notes),
        "taken_by": "ledger",
    }
    return NotesFlushed.model_validate({**fields, **more})


def after(*events: object) -> Conversation:
    return fold([*history(*talk(10)), *events])  # type: ignore[list-item]


def test_notes_are_recorded_once_a_cycle() -> None:
    state = conversation(*talk(10))
    first = flush(0, 8, "a")
    assert flush_notes(state, first) == (first,)
    noted = after(first)
    assert is_noted(noted)
    assert flush_notes(noted, flush(8, 12, "b")) == ()


def test_the_next_cycle_goes_on_where_the_last_one_ended() -> None:
    state = after(flush(0, 8, "a"), performed(8))
    assert not is_noted(state)
    assert notes_start(state, 12) == 8
    assert flush_notes(state, flush(0, 12, "b")) == ()
    assert flush_notes(state, flush(8, 12, "b")) == (flush(8, 12, "b"),)


def test_nothing_is_recorded_of_messages_that_are_not_there() -> None:
    state = conversation(*talk(10))
    assert flush_notes(state, flush(0, 21)) == ()
    assert flush_notes(state, flush(0, 0)) == ()
    assert flush_notes(state.replaced(erased=True), flush(0, 8)) == ()


def test_of_a_very_long_history_the_newest_messages_are_noted() -> None:
    state = conversation(*talk(1)).replaced(length=MOST_MESSAGES + 500)
    assert notes_start(state, MOST_MESSAGES + 500) == 500


def test_what_is_taken_anew_does_not_end_the_cycle() -> None:
    state = after(flush(0, 8, "a"), performed(8), flush(0, 8, "b", replaces="f0-8"))
    assert not is_noted(state)
    assert state.notes_to == 8
    assert state.notes_versions == (21, 23)


def note(text: str, *positions: int) -> Note:
    return Note(kind="fact", text=text, positions=positions)


ALL = frozenset(range(100))


def test_the_same_line_is_not_noted_twice() -> None:
    kept = fitting_notes(
        [note("Port is 5433."), note("port is  5433"), note("New")], [note("new!")], ALL
    )
    assert [one.text for one in kept] == ["Port is 5433."]


def test_a_position_that_was_not_read_is_dropped() -> None:
    [kept] = fitting_notes([note("x y", 3, 99, 3)], (), frozenset({3}))
    assert kept.positions == (3,)


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=600), max_size=40))
def test_whatever_a_model_writes_a_note_is_a_short_line(texts: list[str]) -> None:
    kept = fitting_notes([note(text) for text in texts], (), ALL)
    assert len(kept) <= MOST_NOTES
    for one in kept:
        assert 0 < len(one.text) <= LONGEST_NOTE
        assert one.text.splitlines() == [one.text]


def test_credentials_are_not_noted() -> None:
    [kept] = fitting_notes([note("The key is sk-abcdefghijklmnop1234, use it")], (), ALL)
    assert "abcdefghijklmnop" not in kept.text


def kinds(*messages: object) -> list[tuple[str, str]]:
    found = notes_by_code(enumerate(messages))  # type: ignore[arg-type]
    return [(one.kind, one.text) for one in found]


def test_code_notes_rules_decisions_what_is_left_to_do_and_values() -> None:
    found = kinds(
        user("Never push to the main branch."),
        assistant("Understood. We decided to keep the port at 5433 for the tests."),
        user("I prefer short answers in German."),
        user("Later, when this works, please update the changelog."),
        assistant(tool_use("c1", command="ls")),
        user(tool_result("c1", "never delete /srv/data")),
    )
    assert ("constraint", "Never push to the main branch.") in found
    assert ("preference", "I prefer short answers in German.") in found
    assert any(kind == "decision" and "5433" in text for kind, text in found)
    assert any(kind == "task" and "changelog" in text for kind, text in found)
    assert not any("/srv/data" in text for _, text in found)


def test_each_note_by_code_stands_in_its_message() -> None:
    said = ["Always run ruff first.", "We decided to use tabs.", "Never touch vendor/."]
    for one in notes_by_code([(n, user(text)) for n, text in enumerate(said)]):
        assert one.text in said[one.positions[0]]


@pytest.mark.parametrize("content", ["", "thanks", "ok 👍", "\x00\ud800"])
def test_small_talk_is_not_noted(content: str) -> None:
    assert notes_by_code([(0, user(content))]) == ()


def test_notes_by_code_are_few_however_much_was_said() -> None:
    said = [
        (n, user(f"Never use tool number {n}. I prefer {n}. Fix item_{n}.")) for n in range(300)
    ]
    assert len(notes_by_code(said)) <= MOST_NOTES
