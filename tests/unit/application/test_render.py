"""Rendering: whatever the log holds, the request is legal, and what was said is in it as it came."""

import copy
from typing import Any, cast

import pytest

from refold.application.conversation.loaded import LoadedConversation
from refold.application.rendering import request_blocks as texts
from refold.application.rendering.render import Rendered, System, render
from refold.domain.events import Event
from refold.domain.messages import Block, Message
from refold.testing.request_judge import violations
from tests.support.builders import (
    appended,
    assistant,
    calls,
    coverage,
    history,
    performed,
    results,
    system,
    text,
    thinking,
    tool_result,
    tool_use,
    user,
)
from tests.support.fake_ports import PlainCounter

COUNTER = PlainCounter()


def rendered(*events: Event, prompt: System = None) -> Rendered:
    """The request of these events, which the judge finds nothing wrong with."""
    window = LoadedConversation("t").after(events).window
    made = render("t", window, prompt, COUNTER.count_text)
    request: dict[str, Any] = {"messages": made.messages}
    if made.system:
        request["system"] = made.system
    assert violations(request) == []
    return made


def turns(*messages: Message) -> list[tuple[str, object]]:
    """Role and content of each turn."""
    return [(turn["role"], turn["content"]) for turn in rendered(*history(*messages)).messages]


def blocks_of(content: object) -> list[Block]:
    assert isinstance(content, list)
    return cast("list[Block]", content)


HELLO = user("hello")
DONE = user("thanks")


def test_strings_stay_strings_and_blocks_stay_blocks() -> None:
    assert turns(HELLO, assistant("hi"), user(text("more"))) == [
        ("user", "hello"),
        ("assistant", "hi"),
        ("user", [text("more")]),
    ]


def test_consecutive_messages_of_the_user_become_one_turn() -> None:
    assert turns(user("a"), user("b"), user(text("c"))) == [
        ("user", [text("a"), text("b"), text("c")])
    ]


def test_results_lead_the_turn_after_their_calls_whatever_came_between() -> None:
    made = turns(HELLO, calls("a", "b"), user("wait"), results("b"), results("a"))
    assert made[2] == ("user", [tool_result("b"), tool_result("a"), text("wait")])


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    [*_, (role, content)] = turns(HELLO, calls("a", "b"), results("b"))
    missing = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": texts.NO_RESULT,
        "is_error": True,
    }
    assert (role, content) == ("user", [tool_result("b"), missing])


def test_a_result_without_its_call_becomes_text() -> None:
    [(_, content)] = turns(user(tool_result("gone", "42 files"), text("so?")))
    head = texts.ORPHAN.format(call_id="gone")
    assert content == [text(head + "42 files"), text("so?")]


def test_a_second_result_of_one_call_becomes_text() -> None:
    made = turns(HELLO, calls("a"), results("a"), user(tool_result("a", "again")))
    shown = blocks_of(made[2][1])
    assert shown[0] == tool_result("a")
    assert shown[1] == text(texts.ORPHAN.format(call_id="a") + "again")


def test_a_result_after_the_models_next_words_becomes_text() -> None:
    made = turns(HELLO, calls("a"), assistant("on"), results("a"))
    assert blocks_of(made[2][1])[0]["content"] == texts.NO_RESULT
    assert blocks_of(made[4][1]) == [text(texts.ORPHAN.format(call_id="a") + "ok")]


def test_an_orphan_keeps_its_white_space() -> None:
    [(_, content)] = turns(user(tool_result("gone", "    - indented:\n      yes\n")))
    assert blocks_of(content) == [
        text(texts.ORPHAN.format(call_id="gone") + "    - indented:\n      yes\n")
    ]


def test_an_orphan_without_content_still_says_something() -> None:
    [(_, content)] = turns(user(tool_result("gone", None), text("so?")))
    assert texts.EMPTY_RESULT in blocks_of(content)[0]["text"]


def test_an_id_that_comes_again_is_rendered_anew_with_its_result() -> None:
    made = turns(HELLO, calls("a"), results("a"), calls("a"), user(tool_result("a", "second")))
    again = blocks_of(made[3][1])[0]["id"]
    assert again != "a"
    assert made[4] == ("user", [tool_result(again, "second")])


def test_two_calls_with_one_id_in_one_message_are_told_apart() -> None:
    made = turns(HELLO, calls("a", "a"), results("a", "a"))
    call_ids = [b["id"] for b in blocks_of(made[1][1])]
    assert len(set(call_ids)) == 2
    assert {b.get("tool_use_id") for b in blocks_of(made[2][1])} >= set(call_ids)


def test_an_id_that_the_provider_refuses_is_made_legal_with_its_result() -> None:
    made = turns(HELLO, calls("functions.bash:0"), results("functions.bash:0"))
    assert blocks_of(made[1][1])[0]["id"] == "functions_bash_0"
    assert blocks_of(made[2][1])[0]["tool_use_id"] == "functions_bash_0"


def test_two_ids_that_become_legal_alike_stay_apart() -> None:
    made = turns(HELLO, calls("a.b", "a:b"), results("a:b", "a.b"))
    first, second = [b["id"] for b in blocks_of(made[1][1])]
    assert [b["tool_use_id"] for b in blocks_of(made[2][1])] == [second, first]


SILENT = [("user", "a"), ("assistant", texts.SILENCE), ("user", "b")]


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_blocks_of_white_space_are_left_out(blank: str) -> None:
    made = turns(HELLO, assistant(text(blank), text("hi")), user(text(blank), text("more")))
    assert made[1:] == [("assistant", [text("hi")]), ("user", [text("more")])]


@pytest.mark.parametrize(
    "blank", [assistant(""), assistant(" "), assistant(text("\n")), assistant()]
)
def test_an_answer_of_white_space_keeps_its_place_between_two_users_turns(blank: Message) -> None:
    assert turns(user("a"), blank, user("b")) == SILENT


@pytest.mark.parametrize("blank", [assistant(""), assistant(thinking())])
def test_a_silent_answer_that_the_model_tried_again_is_left_out(blank: Message) -> None:
    assert turns(user("a"), blank) == [("user", "a")]
    assert turns(user("a"), blank, assistant("b"), DONE)[:2] == [("user", "a"), ("assistant", "b")]


def test_a_message_of_white_space_is_left_out() -> None:
    assert turns(user("a"), assistant("b"), user(" "), user("c")) == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]


def test_thinking_stays_where_nothing_before_it_changed() -> None:
    answer = assistant(thinking("deep", "sig1"), text("hi"))
    assert turns(HELLO, answer, DONE)[1] == ("assistant", list(answer.blocks()))


def test_thinking_at_the_end_of_an_answer_is_left_out() -> None:
    made = turns(HELLO, assistant(text("hi"), thinking(), thinking()), DONE)
    assert made[1] == ("assistant", [text("hi")])


def test_an_answer_of_thinking_alone_keeps_its_place_without_the_thinking() -> None:
    assert turns(user("a"), assistant(thinking()), user("b")) == SILENT


@pytest.mark.parametrize(
    "unsigned",
    [
        {"type": "thinking", "thinking": "x"},
        thinking("x", ""),
        {"type": "redacted_thinking"},
        {"type": "redacted_thinking", "data": ""},
    ],
)
def test_unsigned_thinking_is_left_out(unsigned: Block) -> None:
    made = turns(HELLO, assistant(unsigned, text("hi")), DONE)
    assert made[1] == ("assistant", [text("hi")])


def test_no_thinking_stays_behind_a_changed_prefix_and_new_thinking_does() -> None:
    answer = assistant(thinking(), text("hi"))
    events = [*history(user("a"), assistant("b"), user("c"), answer), performed(2)]
    later = history(user("d"), answer, user("e"), answer, DONE, start=4)
    made = rendered(*events, *later).messages
    assert made[1]["content"] == [text("hi")]
    # The next answer may have been asked for with the prefix from before.
    assert made[3]["content"] == [text("hi")]
    assert made[5]["content"] == list(answer.blocks())


def test_two_answers_in_a_row_are_parted_by_a_word_of_the_user() -> None:
    assert turns(HELLO, assistant("a"), assistant("b"), DONE) == [
        ("user", "hello"),
        ("assistant", "a"),
        ("user", texts.CONTINUE),
        ("assistant", "b"),
        ("user", "thanks"),
    ]


def test_a_paused_answer_and_its_continuation_are_one() -> None:
    events = [
        appended(0, HELLO),
        appended(1, assistant("one"), stop_reason="pause_turn"),
        appended(2, assistant(text("two"))),
        appended(3, DONE),
    ]
    assert rendered(*events).messages[1]["content"] == [text("one"), text("two")]


def test_the_user_has_the_first_and_the_last_word() -> None:
    assert turns(assistant("hi"), user("a"), assistant("b")) == [
        ("user", texts.BEGINS_WITH_ASSISTANT),
        ("assistant", "hi"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", texts.CONTINUE),
    ]


def test_system_messages_at_the_beginning_join_the_system_prompt() -> None:
    made = rendered(*history(system("be brief"), system("be kind"), HELLO), prompt="You help.")
    assert made.system == "You help.\n\nbe brief\n\nbe kind"
    assert made.messages == [{"role": "user", "content": "hello"}]


def test_a_system_prompt_of_blocks_is_extended_by_blocks() -> None:
    prompt = [{**text("You help."), "cache_control": {"type": "ephemeral"}}, text(" ")]
    made = rendered(*history(system("be brief"), HELLO), prompt=prompt)
    assert made.system == [prompt[0], text("be brief")]


@pytest.mark.parametrize("nothing", [None, "", "  ", [], [text(" ")]])
def test_no_system_prompt_is_an_empty_one(nothing: System) -> None:
    assert not rendered(*history(HELLO), prompt=nothing).system


def test_a_system_message_later_on_is_a_note_to_the_user_turn() -> None:
    assert turns(HELLO, system("it is noon"), assistant("hi"), DONE)[0] == (
        "user",
        [text("hello"), text(texts.SYSTEM_NOTE + "it is noon")],
    )


def test_cache_marks_of_old_requests_are_taken_off() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    made = turns(
        user({**text("a"), **mark}),
        assistant({**tool_use("x"), **mark}),
        user({**tool_result("x", [{**text("y"), **mark}]), **mark}),
    )
    assert made == [
        ("user", [text("a")]),
        ("assistant", [tool_use("x")]),
        ("user", [tool_result("x", [text("y")])]),
    ]


def test_cache_marks_inside_documents_and_on_server_tools_are_taken_off() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    document: Block = {
        "type": "document",
        "source": {"type": "content", "content": [text("page")]},
    }
    found: Block = {"type": "search_result", "source": "s", "title": "t", "content": [text("line")]}
    marked = copy.deepcopy([document, found])
    marked[0]["source"]["content"][0] |= mark
    marked[1]["content"][0] |= mark
    call: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result: Block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    made = turns(
        user(*marked),
        assistant({**call, **mark}, {**result, **mark}, tool_use("x")),
        user(tool_result("x", copy.deepcopy(marked))),
    )
    assert made == [
        ("user", [document, found]),
        ("assistant", [call, result, tool_use("x")]),
        ("user", [tool_result("x", [document, found])]),
    ]


@pytest.mark.parametrize("content", ["", " ", None, [], [text("")]])
def test_an_error_without_a_message_gets_one(content: object) -> None:
    made = turns(HELLO, calls("a"), user(tool_result("a", content, is_error=True)))
    assert blocks_of(made[2][1])[0]["content"] == texts.EMPTY_ERROR


def test_a_failed_result_with_a_picture_says_so_in_words() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    failed = tool_result("a", [text("timed out"), picture], is_error=True)
    made = turns(HELLO, calls("a"), user(failed))
    shown = [text(texts.FAILED), text("timed out"), picture]
    assert made[2][1] == [tool_result("a", shown)]
    as_text = tool_result("a", [text("timed out")], is_error=True)
    assert turns(HELLO, calls("a"), user(as_text))[2][1] == [as_text]


def test_blocks_in_the_wrong_role_are_told_and_break_nothing() -> None:
    made = turns(
        user(tool_use("x"), text("hi")),
        assistant(tool_result("y", "found"), {"type": "image", "source": {}}, text("so")),
        DONE,
    )
    assert blocks_of(made[0][1])[0] == text(texts.MISPLACED.format(kind="tool_use"))
    assert blocks_of(made[1][1])[0] == text("found")
    assert blocks_of(made[1][1])[1] == text(texts.MISPLACED.format(kind="image"))


def test_unknown_blocks_go_through_as_they_came() -> None:
    odd = {"type": "new_in_2030", "payload": {"deep": [1, None, "字"]}}
    assert blocks_of(turns(user(odd, text("x")))[0][1])[0] == odd


@pytest.mark.parametrize("role", [user, assistant])
def test_lone_surrogates_are_replaced(role: Any) -> None:
    made = turns(HELLO, assistant("ok"), role("half \ud83d"), DONE)
    assert "half \ufffd" in str(made)
    assert "\ud83d" not in str(made)


def test_changing_a_request_leaves_the_log_as_it_was() -> None:
    events = history(user(text("a")), calls("x"), user(tool_result("x", [text("y")])))
    before = copy.deepcopy(events)
    for turn in rendered(*events).messages:
        for block in turn["content"]:
            block.clear()
    assert events == before


def test_a_summary_opens_the_first_turn_of_the_user_with_its_guidance_in_the_system_text() -> None:
    made = rendered(*history(HELLO, assistant("hi"), DONE), performed(2), prompt="You help.")
    assert made.system == f"You help.\n\n{texts.SUMMARY_GUIDANCE}"
    assert made.messages == [
        {
            "role": "user",
            "content": [text("[Conversation Summary]\nwhat was said"), text("thanks")],
        }
    ]


def test_kept_requests_stand_between_the_summary_and_the_rest() -> None:
    kept = performed(3, coverage=coverage(3, exclusions=(0,)))
    made = rendered(*history(HELLO, calls("a"), results("a"), calls("b"), results("b")), kept)
    assert [b.get("text", "")[:22] for b in made.messages[0]["content"]] == [
        texts.SUMMARY_HEADING,
        "hello",
    ]


def test_the_size_is_that_of_messages_and_of_what_rendering_adds() -> None:
    plain = rendered(*history(HELLO, assistant("hi"), DONE))
    assert plain.tokens == 300
    parted = rendered(*history(HELLO, assistant("a"), assistant("b"), DONE))
    assert parted.tokens > 400


def test_the_same_events_give_the_same_bytes() -> None:
    events = [*history(HELLO, calls("a", "b"), results("a"), DONE), performed(1)]
    assert rendered(*events) == rendered(*events)
