"""OpenAI messages go in and come out; what cannot be converted is named."""

# pyright: basic

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

import refold
from refold.domain.errors import InvalidMessage
from refold.testing.request_judge import violations
from tests.architecture.rules import ROOT

Json = dict[str, Any]
PICTURE = "data:image/png;base64,aGk="
PDF = "data:application/pdf;base64,aGk="
TOOL: Json = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}


def call(call_id: str, arguments: str = '{"at": "x"}') -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


TALK: list[Json] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Look there.", "name": "Bob"},
    {"role": "assistant", "content": "I look.", "tool_calls": [call("c1"), call("c2")]},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
    {"role": "tool", "tool_call_id": "c2", "content": "two"},
    {"role": "assistant", "content": "Done."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": PICTURE}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
        ],
    },
]


class Object(BaseModel):
    """An object as the SDK has them: what was never set is not sent."""

    model_config = ConfigDict(extra="allow")
    refusal: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "model_dump":
            raise AttributeError(name)
        return as_object((self.__pydantic_extra__ or {}).get(name))


def as_object(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Object(**value)
    return [as_object(v) for v in value] if isinstance(value, list) else value


def there_and_back(messages: list[Json]) -> Json:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(refold.from_openai(messages))
        context = conversation.context(tools=refold.tools_from_openai([TOOL]))
        assert violations(context.for_anthropic()) == []
        return context.for_openai()


def test_a_talk_comes_back_as_it_went_in() -> None:
    named = {"role": "user", "content": "Look there."}  # Names stay in the log.
    assert there_and_back(TALK) == {
        "messages": [TALK[0], named, *TALK[2:]],
        "tools": [TOOL],
    }


def test_every_other_key_is_kept_in_the_log() -> None:
    [message] = refold.from_openai({"role": "user", "content": "x", "name": "Bob", "n": None})
    assert message == {"role": "user", "content": "x", "name": "Bob"}
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(message)
        assert conversation.read(0).message.extra == {"name": "Bob"}


def test_a_whole_reply_brings_its_id_model_and_usage() -> None:
    reply = as_object(
        {
            "id": "chatcmpl-1",
            "model": "gpt-5.2",
            "usage": {"total_tokens": 5},
            "choices": [
                {"finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}
            ],
        }
    )
    assert refold.from_openai(reply) == [
        {
            "role": "assistant",
            "content": "Hi.",
            "id": "chatcmpl-1",
            "model": "gpt-5.2",
            "stop_reason": "stop",
            "usage": {"total_tokens": 5},
        }
    ]


@pytest.mark.parametrize(
    ("given", "content"),
    [
        (
            {"role": "assistant", "content": None, "refusal": "No."},
            [{"type": "text", "text": "No."}],
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Yes."}},
            "Yes.",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [call("c", "")]},
            [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [call("c", "[1]")]},
            [{"type": "tool_use", "id": "c", "name": "look", "input": {"_arguments": "[1]"}}],
        ),
        (
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
        ),
        (
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            [{"type": "tool_result", "tool_use_id": "c", "content": "x"}],
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            [{"type": "text", "text": "x"}],
        ),
    ],
)
def test_what_is_said_differently_there(given: Json, content: object) -> None:
    [message] = refold.from_openai([given])
    assert message["content"] == content
    with refold.open(":memory:") as memory:
        memory.conversation("t").append(message, recorded=True)


def test_the_older_function_role_answers_the_open_call() -> None:
    older: list[Json] = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "look", "arguments": "{}"},
        },
        {"role": "function", "name": "look", "content": "ok"},
    ]
    made = there_and_back(older)["messages"]
    assert made[1]["tool_calls"][0]["id"] == made[2]["tool_call_id"]
    assert made[2]["content"] == "ok"


def test_reasoning_items_are_left_out() -> None:
    items = [{"type": "reasoning", "summary": []}, {"role": "user", "content": "x"}]
    assert refold.from_openai(items) == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (5, "messages"),
        ("hello", "messages"),
        ([5], "messages[0]"),
        ({"role": "usr", "content": "x"}, "message.role"),
        ([TALK[0], {"content": "x"}], "messages[1].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], "messages[0].content[0].type"),
        (
            [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}],
            "messages[0].content[0].type",
        ),
        ({"choices": []}, "message.choices"),
    ],
)
def test_what_cannot_be_converted_is_named(given: Any, field: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        refold.from_openai(given)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ({"type": "function", "function": {}}, "tools[0].function.name"),
        ({"type": "web_search"}, "tools[0].type"),
        ({"type": "custom", "custom": {"name": "look"}}, "tools[0].type"),
        ({"type": "function", "function": {"name": "ns.f"}}, "tools[0].function.name"),
        ({"type": "function", "name": "ns.f", "parameters": {}}, "tools[0].name"),
        (
            {"type": "function", "function": {"name": "f", "parameters": "x"}},
            "tools[0].function.parameters",
        ),
        (5, "tools[0]"),
    ],
)
def test_a_tool_that_cannot_be_converted_is_named(tool: Any, field: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        refold.tools_from_openai([tool])
    assert caught.value.field == field


def test_of_a_custom_tool_it_is_not_said_that_it_runs_elsewhere() -> None:
    with pytest.raises(InvalidMessage) as caught:
        refold.tools_from_openai([{"type": "custom", "custom": {"name": "look"}}])
    assert "servers" not in caught.value.problem
    assert "free text" in caught.value.problem


@pytest.mark.parametrize("parameters", [{}, None, {"properties": {"path": {"type": "string"}}}])
def test_a_schema_without_a_type_becomes_one_that_the_messages_api_takes(parameters: Any) -> None:
    function = {"name": "look", "parameters": parameters}
    [tool] = refold.tools_from_openai([{"type": "function", "function": function}])
    assert tool["input_schema"] == {"type": "object", **(parameters or {})}
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        assert conversation.context(tools=[tool]).tools == [tool]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidMessage, match=r"^tools\[1\]\.function\.name: 'look'"):
        refold.tools_from_openai([TOOL, TOOL])


@pytest.mark.parametrize("strict", [True, False])
def test_a_strict_tool_stays_strict(strict: bool) -> None:
    function = {**TOOL["function"], "strict": strict}
    [tool] = refold.tools_from_openai([{"type": "function", "function": function}])
    assert tool["strict"] is strict
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        context = conversation.context(tools=[tool])
        assert context.for_anthropic()["tools"][0]["strict"] is strict
        assert context.for_openai()["tools"] == [{"type": "function", "function": function}]


def test_names_of_calls_are_made_legal_and_stay_apart() -> None:
    names = ["ns.f", "ns/f", "ns_f", "ns.f", "x" * 200, "y" * 100]
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for n, name in enumerate(names)
    ]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        conversation.append(refold.from_openai(asked))
        context = conversation.context()
        assert violations(context.for_anthropic()) == []
        made = context.for_openai()["messages"][1]["tool_calls"]
        stored = [block["name"] for block in conversation.messages()[1].message.blocks()]
    assert stored == names
    shown = [call["function"]["name"] for call in made]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in shown)
    assert (shown[0], shown[2], shown[3]) == ("ns_f", "ns_f", "ns_f")
    assert len(set(shown)) == 4


def test_a_name_that_is_too_long_for_openai_is_refused_there() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        context = conversation.context(
            tools=[{"name": "x" * 65, "input_schema": {"type": "object"}}]
        )
        with pytest.raises(InvalidMessage, match=r"^tools\[0\]\.name: "):
            context.for_openai()


@pytest.mark.parametrize("content", ["", [], None, [{"type": "text", "text": ""}]])
def test_an_empty_result_stays_empty(content: object) -> None:
    talk = [*TALK[:3], {"role": "tool", "tool_call_id": "c1", "content": content}]
    made = there_and_back(talk)["messages"]
    assert made[3] == {"role": "tool", "tool_call_id": "c1", "content": ""}


def test_a_result_without_content_is_empty_there() -> None:
    call = {"type": "tool_use", "id": "a", "name": "n", "input": {}}
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "assistant", "content": [call]})
        conversation.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
        )
        assert conversation.context().for_openai()["messages"][-1]["content"] == ""


def test_a_tool_of_a_server_has_no_place_in_an_openai_request() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        context = conversation.context(
            tools=[{"type": "web_search_20250305", "name": "web_search"}]
        )
        with pytest.raises(InvalidMessage, match=r"^tools\[0\]\.type: "):
            context.for_openai()


class Client:
    """The client of the SDK, with a model that calls a tool once."""

    def __init__(self) -> None:
        self.chat = self.completions = self
        self.asked: list[Json] = []

    def create(self, **request: Any) -> Any:
        self.asked.append(request)
        first = len(self.asked) == 1
        answer: Json = {"role": "assistant", "content": None if first else "It is sunny."}
        if first:
            answer["tool_calls"] = [call("c1")]
        return as_object({"id": f"chatcmpl-{len(self.asked)}", "choices": [{"message": answer}]})


def test_the_agent_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "guide.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(import json, openai, refold\n.*?)```", page, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    sdk, client = ModuleType("openai"), Client()
    setattr(sdk, "OpenAI", lambda: client)  # noqa: B010
    monkeypatch.setitem(sys.modules, "openai", sdk)
    monkeypatch.chdir(tmp_path)
    exec(code, {"TOOLS": [TOOL], "run": lambda name, arguments: f"{name} {arguments['at']}"})
    first, second = client.asked
    assert first["tools"] == [TOOL]
    assert second["messages"] == [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "look x"},
    ]
    with refold.open("agent.db") as memory:
        assert memory.conversation("thread-42").messages()[-1].message.content == "It is sunny."


def test_a_request_for_the_responses_api_comes_back_as_it_went_in() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    items: list[Json] = [
        {"role": "user", "content": "Look there."},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "nothing"},
        {"role": "user", "content": [{"type": "input_text", "text": "And this?"}, picture]},
    ]
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(refold.from_openai(items))
        context = conversation.context(system="You help.", tools=refold.tools_from_openai([TOOL]))
        made = context.for_openai(api="responses")
        assert made["instructions"] == "You help."
        assert made["input"] == items
        assert made["tools"] == [{"type": "function", **TOOL["function"]}]
        again = memory.conversation("again")
        again.append(refold.from_openai(made["input"]))
        assert [m.message for m in again.messages()] == [m.message for m in conversation.messages()]


def test_calls_of_the_responses_api_at_the_same_time_are_one_answer() -> None:
    calls = [
        {"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": "{}"}
        for n in range(2)
    ]
    outputs = [
        {"type": "function_call_output", "call_id": f"c{n}", "output": str(n)} for n in range(2)
    ]
    items: list[Json] = [{"role": "user", "content": "Look."}, *calls, *outputs]
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(refold.from_openai(items))
        assert violations(conversation.context().for_anthropic()) == []
        assert conversation.context().for_openai(api="responses")["input"] == items


def test_an_api_that_does_not_exist_is_refused() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        with pytest.raises(refold.InvalidSetting, match="'chat' or 'responses'"):
            conversation.context().for_openai(api="completions")  # type: ignore[arg-type]
