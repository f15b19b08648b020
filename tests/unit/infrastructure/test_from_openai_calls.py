"""Calls and results of the OpenAI API, also one at a time; whole replies; what would be lost is refused."""

# pyright: basic

from typing import Any

import pytest

import refold
from refold.domain.errors import EmptyConversation, InvalidMessage, InvalidSetting
from refold.testing.request_judge import violations

Json = dict[str, Any]
ASKED: Json = {"role": "user", "content": "go"}
FUNCTION: Json = {"name": "look", "arguments": "{}"}
OLDER: Json = {"role": "assistant", "content": None, "function_call": FUNCTION}
RESULT: Json = {"role": "function", "name": "look", "content": "ok"}
REPLY_ID = "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG"


def reply(content: str = "Hi.", *, reply_id: str = REPLY_ID, choices: int = 1) -> Json:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    return {"id": reply_id, "object": "chat.completion", "choices": [choice] * choices}


def calls(*names: str) -> Json:
    made = [{"type": "function", "function": {**FUNCTION, "name": name}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": made}


def one_by_one(*messages: Json) -> list[Json]:
    """Convert and append each message alone; the messages of the request that they become."""
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        for message in messages:
            conversation.append(refold.from_openai(message))
        context = conversation.context()
        assert violations(context.for_anthropic()) == []
        made = context.for_openai()["messages"]
        assert isinstance(made, list)
        return made


def pairs(made: list[Json]) -> list[tuple[str, str]]:
    """The tools that are called, with what each gave back."""
    names = {c["id"]: c["function"]["name"] for m in made for c in m.get("tool_calls", ())}
    return [(names[m["tool_call_id"]], m["content"]) for m in made if m["role"] == "tool"]


def test_a_reply_is_stored_once_by_its_id() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(ASKED)
        for _ in range(2):
            stored = conversation.append(refold.from_openai(reply()))
        assert not stored.messages[0].new
        assert len(conversation.messages()) == 2


def test_an_id_that_a_server_may_give_twice_is_no_key() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        for said in ("one", "two"):
            conversation.append(refold.from_openai(reply(said, reply_id="chatcmpl-123")))
        assert [m.message.content for m in conversation.messages()] == ["one", "two"]


def test_a_call_and_its_result_find_each_other_one_at_a_time() -> None:
    made = one_by_one(ASKED, OLDER, RESULT, OLDER, {**RESULT, "content": "again"})
    assert pairs(made) == [("look", "ok"), ("look", "again")]


def test_a_call_of_an_illegal_name_finds_its_result_as_well() -> None:
    called = {**OLDER, "function_call": {"name": "ns.look", "arguments": "{}"}}
    made = one_by_one(ASKED, called, {**RESULT, "name": "ns.look"})
    assert pairs(made) == [("ns_look", "ok")]


@pytest.mark.parametrize("at_once", [True, False])
def test_calls_without_an_id_are_told_apart_by_name(at_once: bool) -> None:
    talk = [
        ASKED,
        calls("look", "read"),
        {"role": "tool", "name": "read", "content": "a text"},
        {"role": "tool", "name": "look", "content": "a view"},
    ]
    if at_once:
        with refold.open(":memory:") as memory:
            conversation = memory.conversation("t")
            conversation.append(refold.from_openai(talk))
            made = conversation.context().for_openai()["messages"]
    else:
        made = one_by_one(*talk)
    assert sorted(pairs(made)) == [("look", "a view"), ("read", "a text")]


def test_calls_of_one_tool_in_one_message_get_ids_of_their_own() -> None:
    [message] = refold.from_openai(calls("look", "look"))
    assert [block["id"] for block in message["content"]] == ["call_look", "call_look_2"]


def test_a_result_of_another_tool_does_not_answer_an_open_call() -> None:
    [_, called, answer] = refold.from_openai([ASKED, OLDER, {**RESULT, "name": "read"}])
    assert answer["content"][0]["tool_use_id"] != called["content"][0]["id"]


def test_a_result_that_names_nothing_needs_its_call_beside_it() -> None:
    unnamed = {"role": "tool", "content": "ok"}
    [_, called, answer] = refold.from_openai([ASKED, calls("look"), unnamed])
    assert answer["content"][0]["tool_use_id"] == called["content"][0]["id"]
    with pytest.raises(InvalidMessage, match=r"^message\.tool_call_id: is missing"):
        refold.from_openai(unnamed)


def changed(**fields: Any) -> Json:
    call = {"id": "c", "type": "function", "function": FUNCTION, **fields}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"role": "assistant", "tool_calls": {"id": "c"}}, "tool_calls"),
        ({"role": "assistant", "tool_calls": "look"}, "tool_calls"),
        ({"role": "assistant", "tool_calls": [5]}, "tool_calls[0]"),
        (changed(function=None), "tool_calls[0].function"),
        (changed(function="look"), "tool_calls[0].function"),
        (changed(function={"arguments": "{}"}), "tool_calls[0].function.name"),
        (changed(type="custom"), "tool_calls[0].custom"),
        (changed(id=5), "tool_calls[0].id"),
        ({"role": "assistant", "function_call": "look"}, "function_call"),
        ({"role": "assistant", "function_call": {}}, "function_call.name"),
        ({"role": "user", "content": "x", "tool_calls": [5]}, "tool_calls"),
        ({"role": "tool", "tool_call_id": 5, "content": "x"}, "tool_call_id"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "name"),
        (reply(choices=2), "choices"),
        ({"choices": [{"delta": {"content": "H"}}]}, "choices"),
    ],
)
def test_what_would_be_lost_is_refused_by_name(given: Json, field: str) -> None:
    for messages, place in ((given, "message"), ([ASKED, given], "messages[1]")):
        with pytest.raises(InvalidMessage) as caught:
            refold.from_openai(messages)
        assert caught.value.field == f"{place}.{field}"


def test_a_reply_among_messages_is_taken() -> None:
    assert [m["content"] for m in refold.from_openai([ASKED, reply()])] == ["go", "Hi."]


def test_of_several_answers_it_is_said_how_to_choose() -> None:
    with pytest.raises(InvalidMessage, match=r"reply\.choices\[0\]\.message"):
        refold.from_openai(reply(choices=2))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (reply(), r"choices: this is a whole reply .*refold\.from_openai\(reply\)"),
        (
            {"object": "chat.completion.chunk", "choices": [{"delta": {}}]},
            r"choices: this is a chunk .*whole reply",
        ),
        ({"type": "content_block_delta", "index": 0}, r"type: .*event of a stream"),
    ],
)
def test_a_reply_that_is_appended_as_it_is_names_its_converter(given: Json, told: str) -> None:
    with refold.open(":memory:") as memory, pytest.raises(InvalidMessage, match=told):
        memory.conversation("t").append(given)


def test_a_message_that_contains_itself_is_refused_with_a_short_path() -> None:
    inside: Json = {}
    inside["again"] = inside
    call = {"type": "tool_use", "id": "a", "name": "n", "input": inside}
    with refold.open(":memory:") as memory, pytest.raises(InvalidMessage) as caught:
        memory.conversation("t").append({"role": "assistant", "content": [call]})
    assert "contains itself" in caught.value.problem
    assert caught.value.field.startswith("message.content[0].input.again")
    assert len(caught.value.field) <= 160


def test_a_request_of_nothing_is_refused_in_both_forms() -> None:
    with refold.open(":memory:") as memory:
        context = memory.conversation("t").context()
        for form in (context.for_openai, context.for_anthropic):
            with pytest.raises(EmptyConversation):
                form()


def test_a_single_beta_is_one() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(ASKED)
        request = conversation.context().for_anthropic(betas="files-api-2025-04-14")
        assert request["extra_headers"] == {"anthropic-beta": "files-api-2025-04-14"}


def test_a_format_that_no_export_has_is_refused() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(ASKED)
        with pytest.raises(
            InvalidSetting, match="must be one of jsonl, anthropic, events"
        ) as caught:
            conversation.export("xml")  # type: ignore[arg-type]
        assert caught.value.setting == "format"


def test_two_calls_with_one_id_in_a_message_are_refused_at_once() -> None:
    asked = calls("look", "go", "look")
    for one, call_id in zip(asked["tool_calls"], ("c0", "c1", "c0"), strict=True):
        one["id"] = call_id
    with pytest.raises(InvalidMessage) as caught:
        refold.from_openai([ASKED, asked])
    assert caught.value.field == "messages[1].tool_calls[2].id"
    assert "'c0'" in caught.value.problem
    assert "messages[1].tool_calls[0].id" in caught.value.problem


EMPTY = {"type": "text", "text": ""}


@pytest.mark.parametrize("content", ["", []])
@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_a_message_without_content_is_stored_and_left_out_of_requests(
    role: str, content: object
) -> None:
    said = [ASKED, {"role": "assistant", "content": "Hm?"}, {"role": role, "content": content}]
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(refold.from_openai([*said, {"role": "user", "content": "on"}]))
        context = conversation.context()
        stored = [list(message.message.blocks()) for message in conversation.messages()]
    assert violations(context.for_anthropic()) == []
    assert [m["content"] for m in context.for_anthropic()["messages"]] == ["go", "Hm?", "on"]
    assert stored[2] == [EMPTY]


@pytest.mark.parametrize("content", ["", []])
def test_a_conversation_of_nothing_but_an_empty_message_makes_a_legal_request(
    content: object,
) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(refold.from_openai({"role": "user", "content": content}))
        assert violations(conversation.context().for_anthropic()) == []
