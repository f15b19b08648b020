"""Messages of other APIs are refused with their path and with what converts them; nothing is lost in silence."""

# pyright: basic

from typing import Any

import pytest

import refold
from refold.application.agent_tools.definitions import definitions_of
from refold.application.conversation.parsing import read_messages
from refold.domain.errors import InvalidMessage

OPENAI = "refold.from_openai"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TEXT = {"type": "text", "media_type": "text/plain", "data": "x"}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PICTURE = "data:image/png;base64,aGk="


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def shown(kind: str, **source: Any) -> dict[str, Any]:
    return said({"type": kind, "source": source})


def result(*parts: Any) -> dict[str, Any]:
    return said({"type": "tool_result", "tool_use_id": "a", "content": list(parts)})


FOREIGN: list[tuple[dict[str, Any], str, str]] = [
    ({"role": "assistant", "content": "x", "tool_calls": [CALL]}, "tool_calls", OPENAI),
    ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls", OPENAI),
    ({"role": "assistant", "content": "x", "function_call": {"name": "f"}}, "function_call", OPENAI),
    ({"role": "assistant", "content": None, "refusal": "No."}, "refusal", OPENAI),
    ({"role": "user", "content": "x", "tool_call_id": "c1"}, "tool_call_id", OPENAI),
    ({"role": "tool", "content": "x"}, "role", OPENAI),
    ({"role": "function", "name": "f", "content": "x"}, "role", OPENAI),
    ({"role": "developer", "content": "x"}, "role", OPENAI),
    (said({"type": "image_url", "image_url": {"url": "u"}}), "content[0].type", OPENAI),
    (said({"type": "input_text", "text": "x"}), "content[0].type", OPENAI),
    (said({"type": "output_text", "text": "x"}, role="assistant"), "content[0].type", OPENAI),
    (said({"type": "function_call", "name": "f"}, role="assistant"), "content[0].type", OPENAI),
    (said({"type": "input_image", "image_url": "u"}), "content[0].type", OPENAI),
    (result({"type": "image_url"}), "content[0].content[0].type", OPENAI),
    ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, "type", OPENAI),
    ({"role": "user", "parts": [{"text": "x"}]}, "parts", "Gemini"),
    ({"role": "user", "parts": [{"type": "text", "text": "x"}]}, "parts", "AI SDK"),
    ({"id": "m", "role": "user", "content": "", "parts": [{"type": "file"}]}, "parts", "AI SDK"),
    ({"role": "user", "content": "x", "images": ["aGk="]}, "images", "Ollama"),
    ({"role": "tool", "content": "x", "images": ["aGk="]}, "images", "Ollama"),
    ({"role": "model", "content": "x"}, "role", "Gemini"),
    (said({"functionCall": {}}), "content[0].type", "Gemini"),
    ({"type": "human", "content": "x"}, "type", "convert_to_openai_messages"),
    ({"type": "ai", "content": "", "tool_calls": [CALL]}, "tool_calls", "LangChain"),
    ({"role": "human", "content": "x"}, "role", "LangChain"),
    (said({"type": "image", "url": "u"}), "content[0].source", "LangChain"),
    ({"role": "tool", "content": [{"type": "tool-result"}]}, "role", "AI SDK"),
    (said({"toolUse": {}}), "content[0].type", "Bedrock"),
    (said({"text": "x"}), "content[0].type", '{"type": "text"'),
]  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("given", "field", "told"), FOREIGN, ids=lambda v: repr(v)[:60])
def test_a_message_of_another_api_is_refused_with_its_converter(
    given: dict[str, Any], field: str, told: str, recorded: bool
) -> None:
    if recorded and field.endswith(("content[0].source", "[0].type")) and "type" in str(given):
        return  # History may have any block: it is shown as text.
    with pytest.raises(InvalidMessage) as caught:
        read_messages(given, recorded=recorded)
    assert caught.value.field == f"message.{field}"
    assert told in caught.value.problem


def test_in_a_list_the_message_is_named() -> None:
    with pytest.raises(InvalidMessage, match=r"^messages\[1\]\.tool_calls: "):
        read_messages([said({"type": "text", "text": "x"}), FOREIGN[0][0]])


@pytest.mark.parametrize(
    "empty",
    [{"tool_calls": None}, {"tool_calls": []}, {"refusal": None}, {"parts": []}, {"images": []}],
)
def test_an_empty_field_of_another_api_loses_nothing(empty: dict[str, Any]) -> None:
    [taken] = read_messages({"role": "assistant", "content": "x", **empty})
    assert taken.message.extra == empty


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (said({"type": "image"}), "content[0].source"),
        (said({"type": "document", "source": "x"}), "content[0].source"),
        (said({"type": "image", "source": {"data": "x"}}), "content[0].source"),
        (shown("image", type="base64"), "content[0].source.media_type"),
        (shown("image", type="base64", media_type="image/png"), "content[0].source.data"),
        (shown("image", **SOURCE | {"media_type": "image/bmp"}), "content[0].source.media_type"),
        (shown("image", **SOURCE | {"data": "@@@"}), "content[0].source.data"),
        (shown("image", **SOURCE | {"data": ""}), "content[0].source.data"),
        (shown("image", **SOURCE | {"data": "aGk=aGk="}), "content[0].source.data"),
        (shown("image", type="url"), "content[0].source.url"),
        (shown("image", type="url", url=PICTURE), "content[0].source.url"),
        (shown("image", type="url", url="shots/1.png"), "content[0].source.url"),
        (shown("image", type="url", url=r"C:\shots\1.png"), "content[0].source.url"),
        (shown("image", type="url", url="blob:https://a/b"), "content[0].source.url"),
        (shown("image", type="url", url="file:///home/me/1.png"), "content[0].source.url"),
        (shown("document", type="url", url="FILE://host/1.pdf"), "content[0].source.url"),
        (shown("image", type="url", url="https:///1.png"), "content[0].source.url"),
        (shown("document", type="url", url="https://"), "content[0].source.url"),
        (shown("image", type="file"), "content[0].source.file_id"),
        (shown("image", **TEXT), "content[0].source.type"),
        (shown("document", **SOURCE), "content[0].source.media_type"),
        (shown("document", type="text", data="x"), "content[0].source.media_type"),
        (shown("document", type="content", content=5), "content[0].source.content"),
        (
            shown("document", type="content", content=[{"type": "image"}]),
            "content[0].source.content[0].source",
        ),
        (
            result({"type": "image", "source": SOURCE | {"data": "@@@"}}),
            "content[0].content[0].source.data",
        ),
        (result("x"), "content[0].content[0]"),
        (result({"text": "x"}), "content[0].content[0].type"),
        (result({"type": "text"}), "content[0].content[0].text"),
        (result({"type": "image"}), "content[0].content[0].source"),
        (result({"type": "tool_use", "id": "a"}), "content[0].content[0].type"),
    ],
)
def test_a_block_that_no_request_could_have_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_messages(given)
    assert caught.value.field == f"message.{field}"


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use"])
def test_two_calls_with_one_id_in_a_message_are_refused(kind: str) -> None:
    call = {"type": kind, "id": "srvtoolu_1", "name": "f", "input": {}}
    spoken = {"type": "text", "text": "x"}
    with pytest.raises(InvalidMessage) as caught:
        read_messages(said(call, spoken, call, role="assistant"))
    assert caught.value.field == "message.content[2].id"
    assert "'srvtoolu_1'" in caught.value.problem
    assert "message.content[0].id" in caught.value.problem
    read_messages(said(call, {**call, "id": "srvtoolu_2"}, role="assistant"))
    read_messages(said(call, call, role="assistant"), recorded=True)


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("data:image/bmp;base64,aGk=", "source.media_type"),
        ("data:image/png;base64,@@@", "source.data"),
        ("data:image/png,abc", "source.url"),
    ],
)
def test_what_was_converted_is_checked_as_well(url: str, field: str) -> None:
    image = {"type": "image_url", "image_url": {"url": url}}
    converted = refold.from_openai([said(image)])
    with pytest.raises(InvalidMessage, match=rf"^messages\[0\]\.content\[0\]\.{field}: must be"):
        read_messages(converted)
    read_messages(converted, recorded=True)


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("image", SOURCE | {"data": "aG\nk"}),
        ("image", {"type": "url", "url": "https://x/y.png"}),
        ("image", {"type": "file", "file_id": "file_1"}),
        ("document", {"type": "content", "content": [{"type": "text", "text": "x"}]}),
        ("document", SOURCE | {"media_type": "application/pdf"}),
    ],
)
def test_every_source_of_the_api_is_taken(kind: str, source: dict[str, Any]) -> None:
    read_messages(shown(kind, **source))


def test_images_and_documents_with_a_source_are_taken() -> None:
    image = {"type": "image", "source": SOURCE}
    document = {"type": "document", "source": TEXT}
    [taken] = read_messages(said(image, document))
    assert list(taken.message.blocks()) == [image, document]
    assert taken.message.unknown == ()
    read_messages(result(image, {"type": "text", "text": "x"}))


@pytest.mark.parametrize(
    ("tool", "field", "told"),
    [
        ({"nme": "x"}, "name", "'nme'"),
        ({}, "name", "nothing"),
        ({"name": ""}, "name", ""),
        ({"name": "x"}, "input_schema", "JSON schema"),
        ({"name": "x", "input_schema": "object"}, "input_schema", ""),
        ({"name": "x", "parameters": {}}, "input_schema", "'parameters'"),
        ({"name": "x", "inputSchema": {}}, "input_schema", "'inputSchema'"),
        ({"type": "custom", "name": "x"}, "input_schema", ""),
        ({"type": "", "name": "x"}, "type", "server tool"),
        ({"type": 5, "name": "x"}, "type", "server tool"),
        ({"type": "function", "function": {"name": "x"}}, "type", "refold.tools_from_openai"),
        ({"type": "function", "name": "x", "parameters": {}}, "type", "refold.tools_from_openai"),
        ({"function": {"name": "x"}}, "type", "refold.tools_from_openai"),
    ],
)
def test_a_malformed_tool_is_refused(tool: dict[str, Any], field: str, told: str) -> None:
    good = {"name": "good", "input_schema": {"type": "object"}}
    with pytest.raises(InvalidMessage) as caught:
        definitions_of([good, tool])
    assert caught.value.field == f"tools[1].{field}"
    assert told in caught.value.problem


@pytest.mark.parametrize("name", ["ns.f", "a b", "x" * 129, "naïve"])
def test_a_tool_with_a_name_that_the_api_refuses_is_refused_by_it(name: str) -> None:
    with pytest.raises(InvalidMessage, match=r"^tools\[0\]\.name: '") as caught:
        definitions_of([{"name": name, "input_schema": {"type": "object"}}])
    assert name[:100] in caught.value.problem


def test_two_tools_with_one_name_are_refused() -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}}
    with pytest.raises(InvalidMessage, match=r"^tools\[2\]\.name: 'f'.*tools\[0\]\.name"):
        definitions_of([tool, {**tool, "name": "g"}, tool])
    toolsets = [{"type": "mcp_toolset", "mcp_server_name": name} for name in ("a", "b")]
    assert len(definitions_of(toolsets)) == 2


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "x", "input_schema": {"type": "object"}},
        {"type": "custom", "name": "x", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "mcp_toolset", "mcp_server_name": "files"},
    ],
)
def test_tools_of_the_api_are_taken_as_they_are(tool: dict[str, Any]) -> None:
    assert definitions_of([tool]) == (tool,)
