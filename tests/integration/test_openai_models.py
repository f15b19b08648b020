"""Models of OpenAI: agents of LangChain, and loops of one's own, over Chat Completions and the Responses API."""

import base64
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import refold

langchain_openai = pytest.importorskip("langchain_openai", minversion="1.1")
pytest.importorskip("langchain", minversion="1.2")

import openai  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402

from refold.adapters.langchain import MemoryMiddleware  # noqa: E402
from tests.support.openai_server import OpenAIServer  # noqa: E402
from tests.support.prefixes import prefix_breaks, recorded_changes  # noqa: E402

create_agent: Any = import_module("langchain.agents").create_agent
WINDOW = 12_000
CONFIG: Any = {"configurable": {"thread_id": "t"}}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@tool
def run(command: str) -> str:
    """Run a command."""
    return f"{command} went well. " * 40


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def agent_of(server: OpenAIServer, memory: refold.Memory, saver: Any, *, responses: bool) -> Any:
    model = langchain_openai.ChatOpenAI(
        model="gpt-5.2",
        api_key="key",
        base_url=server.base_url,
        max_retries=0,
        use_responses_api=responses,
    )
    return create_agent(
        model,
        tools=[run],
        system_prompt="You help.",
        middleware=[MemoryMiddleware(memory)],
        checkpointer=saver,
    )


@pytest.mark.slow
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
def test_sixty_turns_of_an_agent_are_never_refused(
    server: OpenAIServer, tmp_path: Path, responses: bool
) -> None:
    saver, messages, changes = InMemorySaver(), list[Any](), 0
    for life in range(2):
        with refold.open(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
            agent = agent_of(server, memory, saver, responses=responses)
            for number in range(30):
                asked = f"Question {life} {number}: please build part {number}. " * 3
                given = {"messages": [{"role": "user", "content": asked}]}
                messages = agent.invoke(given, CONFIG)["messages"]
            conversation = memory.conversation("t")
            assert len(conversation.messages()) == len(messages)
            assert len(memory.conversations()) == 1
            assert conversation.summaries()
            changes = recorded_changes(conversation)
    field = "input" if responses else "messages"
    # A system message that explains the summary is the first message of Chat Completions.
    assert prefix_breaks(server.bodies, field) <= changes < 60
    assert server.refused == []
    assert "unknown" not in json.dumps(server.bodies[-1])
    if responses:
        last = [
            item["id"] for item in server.bodies[-1]["input"] if item.get("type") == "reasoning"
        ]
        assert last, "replies that are shown whole are sent with their reasoning"
    assert len(messages) >= 360
    assert max(len(json.dumps(body)) for body in server.bodies) < 4 * WINDOW


@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
@pytest.mark.parametrize(
    "picture",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}},
        {"type": "image", "base64": DOT, "mime_type": "image/png"},
    ],
    ids=["chat-part", "langchain-part"],
)
def test_pictures_are_sent_as_pictures(
    server: OpenAIServer, tmp_path: Path, picture: dict[str, Any], responses: bool
) -> None:
    with refold.open(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
        agent = agent_of(server, memory, InMemorySaver(), responses=responses)
        content = [{"type": "text", "text": "What is it?"}, picture]
        agent.invoke({"messages": [{"role": "user", "content": content}]}, CONFIG)
    assert server.refused == []
    assert f"data:image/png;base64,{DOT}" in json.dumps(server.bodies[-1])


PDF = base64.b64encode(b"%PDF-1.4 " + bytes(range(256)) * 1_000).decode()


@pytest.mark.parametrize("is_compacted", [False, True], ids=["whole", "compacted"])
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
@pytest.mark.parametrize(
    "document",
    [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        {"type": "file", "base64": PDF, "mime_type": "application/pdf", "filename": "a.pdf"},
    ],
    ids=["chat-part", "langchain-part"],
)  # fmt: skip
def test_documents_are_sent_as_documents(
    server: OpenAIServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    document: dict[str, Any],
    responses: bool,
    is_compacted: bool,
) -> None:
    talk = [
        {"role": role, "content": f"Part {n}. " + "and so on " * 1_000}
        for n in range(50 if is_compacted else 0)
        for role in ("user", "assistant")
    ]
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, document]}
    with refold.open(tmp_path / "a.db", window=80_000, telemetry=False) as memory:
        agent = agent_of(server, memory, InMemorySaver(), responses=responses)
        agent.invoke({"messages": [*talk, asked]}, CONFIG)
        assert bool(memory.conversation("t").summaries()) == is_compacted
    assert [one for one in caplog.records if one.name.startswith("refold.adapters")] == []
    assert server.refused == []
    sent = json.dumps(server.bodies[-1])
    assert f"data:application/pdf;base64,{PDF}" in sent
    assert "a.pdf" in sent


TOOLS = refold.tools_from_openai(
    [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
)


@pytest.mark.slow(but="responses")
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_sixty_turns_of_a_loop_of_ones_own_are_never_refused(
    server: OpenAIServer, tmp_path: Path, api: Any
) -> None:
    client = openai.OpenAI(base_url=server.base_url, api_key="key", max_retries=0)
    with refold.open(tmp_path / "a.db", window=6_000, telemetry=False) as memory:
        conversation, said = memory.conversation("t"), 60
        for number in range(60):
            conversation.append({"role": "user", "content": f"Build part {number}, please. " * 6})
            while True:
                request = conversation.context(tools=TOOLS).for_openai(api=api)
                reply, calls = _answer(client, api, request)
                conversation.append(refold.from_openai(reply))
                said += 1 + len(calls)
                for call_id in calls:
                    result = {
                        "type": "function_call_output",
                        "call_id": call_id,
                        "output": "ok " * 90,
                    }
                    conversation.append(refold.from_openai([result]))
                if not calls:
                    break
        assert len(conversation.messages()) == said >= 360
        assert len(conversation.summaries()) >= 3
        assert memory.verify().ok
    assert server.refused == []
    if api == "responses":
        assert sum('"rs_' in json.dumps(body) for body in server.bodies) > 150


def _answer(client: Any, api: str, request: Any) -> tuple[Any, list[str]]:
    if api == "chat":
        reply = client.chat.completions.create(model="gpt-5.2", **request)
        return reply, [call.id for call in reply.choices[0].message.tool_calls or ()]
    reply = client.responses.create(model="gpt-5.2", **request)
    return reply, [item.call_id for item in reply.output if item.type == "function_call"]


CALL: Any = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
REASONING: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
USER: Any = {"role": "user", "content": "hi"}
REFUSED: dict[str, tuple[str, Any]] = {
    "no answer": (
        "chat",
        [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, USER],
    ),
    "no call": ("chat", [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]),
    "a foreign part": (
        "chat",
        [{"role": "user", "content": [{"type": "thinking", "thinking": ""}]}],
    ),
    "no text": ("chat", [USER, {"role": "assistant", "content": None}]),
    "reasoning alone": ("responses", [USER, REASONING, USER]),
    "no output": (
        "responses",
        [USER, {"type": "function_call", "call_id": "c", "name": "run", "arguments": ""}],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_server_refuses_what_the_api_refuses(server: OpenAIServer, name: str) -> None:
    api, messages = REFUSED[name]
    client: Any = openai.OpenAI(base_url=server.base_url, api_key="key", max_retries=0)
    send = client.chat.completions.create if api == "chat" else client.responses.create
    field = "messages" if api == "chat" else "input"
    with pytest.raises(openai.BadRequestError):
        send(model="gpt-5.2", **{field: messages})
    assert server.refused
