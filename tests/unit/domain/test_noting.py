"""When durable notes are recorded, what may be in them, and what code notes by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.domain.conversation import Conversation
from refold.domain.evolve import fold
from refold.domain.notes import Note, NotesFlushed
from refold.domain.noting import (
    LONGEST_NOTE,
    MOST_MESSAGES,
    MOST_NOTES,
    fitting_notes,
    flush_notes,
    notes_by_code,
    notes_start,
)
from refold.domain.value import replace
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
    assert noted.has_notes
    assert flush_notes(noted, flush(8, 12, "b")) == ()


def test_the_next_cycle_goes_on_where_the_last_one_ended() -> None:
    state = after(flush(0, 8, "a"), performed(8))
    assert not state.has_notes
    assert notes_start(state, 12) == 8
    assert flush_notes(state, flush(0, 12, "b")) == ()
    assert flush_notes(state, flush(8, 12, "b")) == (flush(8, 12, "b"),)


def test_nothing_is_recorded_of_messages_that_are_not_there() -> None:
    state = conversation(*talk(10))
    assert flush_notes(state, flush(0, 21)) == ()
    assert flush_notes(state, flush(0, 0)) == ()
    assert flush_notes(replace(state, erased=True), flush(0, 8)) == ()


def test_of_a_very_long_history_the_newest_messages_are_noted() -> None:
    state = replace(conversation(*talk(1)), length=MOST_MESSAGES + 500)
    assert notes_start(state, MOST_MESSAGES + 500) == 500


def test_what_is_taken_anew_does_not_end_the_cycle() -> None:
    state = after(flush(0, 8, "a"), performed(8), flush(0, 8, "b", replaces="f0-8"))
    assert not state.has_notes
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


def test_notes_have_no_marks_without_partner() -> None:
    kept = fitting_notes([note("Never:** push **now**"), note("ALWAYS** ask")], (), ALL)
    assert [one.text for one in kept] == ["Never: push **now**", "ALWAYS ask"]


@pytest.mark.parametrize(
    "text", ["INSTEAD:**", "Skipped items (per your request):**", "规则：", "**A:**"]
)
def test_what_ends_before_it_says_something_is_no_note(text: str) -> None:
    assert fitting_notes([note(text)], (), ALL) == ()


def test_headings_are_not_noted_and_orders_in_them_are() -> None:
    rules = (
        "## Forbidden Responses\n\n**You must not:**\n\n**Required Reading**\n\n"
        "## Never push to main\n\n- **You must not** edit generated files"
    )
    found = {text for _, text in kinds(user(rules), assistant(tool_use("c1", command="ls")))}
    assert {"Never push to main", "You must not** edit generated files"} <= found
    assert not found & {"Forbidden Responses", "Required Reading", "You must not:**"}


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        "I like short answers.",
        "I really don't like long answers.",
        "Actually, I love jazz.",
        "I hate meetings before ten.",
        "My favourite colour is blue.",
        "我偏好深色主题。",
        "我很喜欢简短的回答。",
        "我不喜欢长篇大论。",
        "其实我最喜欢的颜色是蓝色。",
        "我叫王芳，我讨厌香菜。",
    ],
)
def test_what_a_user_likes_is_a_preference(said: str, tools: bool) -> None:
    more = [assistant(tool_use("c1", command="ls"))] if tools else []
    assert kinds(user(said), assistant("ok"), *more, user("thanks")) == [("preference", said)]
    assert ("preference", said) not in kinds(user("hi"), assistant(said))


@pytest.mark.parametrize(
    "said",
    [
        "I like it.",
        "I like your idea.",
        "I like the second one.",
        "I like option B.",
        "I love how it looks.",
        "I would like a summary.",
        "Do you think I like tea?",
        "我喜欢你的建议。",
        "我很喜欢这个。",
        "我喜欢看书，你呢？",
        "你知道我喜欢什么吗",
    ],
)
def test_what_is_liked_at_the_moment_is_no_preference(said: str) -> None:
    found = kinds(user(said), assistant("ok"), user("Fix the build, please."))
    assert not [text for kind, text in found if kind == "preference"]


def test_plain_facts_of_a_user_are_noted() -> None:
    for said in "My budget is 40,000 EUR.", "My name is Anna.", "我叫王芳。":
        assert ("fact", said) in kinds(user(said), assistant("ok"), user("thanks"))
    assert kinds(user("Is my budget of 40,000 EUR enough?"), assistant("ok"), user("ok")) == []


def test_what_is_liked_and_forbids_is_a_constraint() -> None:
    said = "I prefer that you never push to main."
    assert kinds(user(said), assistant("ok"), user("thanks")) == [("constraint", said)]


@pytest.mark.parametrize(
    "said",
    [
        "你最爱吃的食物是什么呢？",
        "还有没有其他的书你可以推荐给我吗？",
        "By the way, how many languages can you speak?",
        "What do you usually do?",
    ],
)
def test_questions_are_no_tasks(said: str) -> None:
    assert kinds(user("hi"), assistant("hello"), user(said)) == []


@pytest.mark.parametrize(
    "said", ["Can you run the linter?", "Later, could you fix the docs?", "以后能帮我找菜谱吗？"]
)
def test_an_order_in_the_form_of_a_question_is_a_task(said: str) -> None:
    assert ("task", said) in kinds(user("hi"), assistant("hello"), user(said))


def test_a_file_name_of_which_nothing_is_said_is_no_note() -> None:
    found = kinds(
        user("Now look at file_16.py please. Our ticket is ENT-258."),
        assistant(tool_use("c1", command="ls")),
        user("Also session-2026-02-11.json and src/a.py."),
    )
    texts = [text for kind, text in found if kind == "fact"]
    assert any("ENT-258" in text for text in texts)
    assert not [text for text in texts if text.endswith((".py", ".json"))]


FEEDBACK = (
    'I got this feedback for hooks.go:281 "Truncating the string by byte index can break multi-byte UTF-8 characters. '
    'Ticket OPS-17 asks for it. You should always prefer runes, consider using them instead."\n\n'
    "Can you address this?"
)


@pytest.mark.parametrize(
    "text",
    [
        FEEDBACK,
        "日志如下：\n错误 OPS-17：必须使用符文\n\n能帮我修复吗？",
        "CI says: always use runes, see OPS-17.",
    ],
)
def test_nothing_that_a_user_quotes_is_noted(text: str) -> None:
    found = kinds(user(text), assistant(tool_use("c1", command="ls")), user("thanks"))
    assert not [
        one for kind, one in found if kind in ("preference", "constraint", "fact", "decision")
    ]


def test_a_fact_is_a_whole_sentence() -> None:
    said = "Slicing by byte index was broken until version 4.2.1 came out."
    found = kinds(user(said), assistant(tool_use("c1", command="ls")), user("thanks"))
    assert ("fact", said) in found
