"""Content of LangChain in its own formats: answers in the format ``v1``, audio, video and files."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import refold

pytest.importorskip("langchain", minversion="1.2")
langchain_anthropic = pytest.importorskip("langchain_anthropic")

from langchain_core.language_models.chat_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402

from refold.adapters import langchain_messages  # noqa: E402
from refold.adapters.langchain import MemoryMiddleware, stored_messages  # noqa: E402
from refold.adapters.langchain_messages import given_messages  # noqa: E402
from tests.support.strict_server import StrictServer  # noqa: E402

create_agent: Any = import_module("langchain.agents").create_agent
CONFIG: Any = {"configurable": {"thread_id": "t"}}
WINDOW = 12_000
CALL: Any = {"name": "run", "args": {"command": "make"}, "id": "c1"}


@tool
def run(command: str) -> str:
    """Run a command."""
    return f"{command} went well. " * 40


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as opened:
        yield opened


@pytest.mark.parametrize("streaming", [False, True])
def test_answers_in_the_format_v1_are_never_refused(memory: refold.Memory, streaming: bool) -> None:
    with StrictServer() as server:
        chat = langchain_anthropic.ChatAnthropic(
            model="claude-opus-5-5",
            api_key="key",
            base_url=server.base_url,
            max_tokens=2_000,
            thinking={"type": "adaptive"},
            max_retries=0,
            output_version="v1",
            streaming=streaming,
        )
        agent = create_agent(
            chat,
            tools=[run],
            middleware=[MemoryMiddleware(memory)],
            checkpointer=InMemorySaver(),
        )
        messages: list[Any] = []
        for number in range(12):
            asked = f"Question {number}: please build part {number}. " * 3
            said = {"messages": [{"role": "user", "content": asked}]}
            messages = agent.invoke(said, CONFIG)["messages"]
        assert server.refused == []
    assert messages[1].content[0]["type"] == "reasoning"
    conversation = memory.conversation("t")
    assert conversation.summaries()
    assert len(conversation.messages()) == len(messages)
    first = conversation.messages()[1].message.blocks()
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use"]


BLOCKS: list[Any] = [
    {"type": "thinking", "thinking": "I look.", "signature": "c2lnbmF0dXJl"},
    {"type": "redacted_thinking", "data": "c2VhbGVk"},
    {"type": "text", "text": "I search."},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}},
    {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1",
     "content": {"type": "code_execution_result", "stdout": "1", "return_code": 0}},
    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2", "content": []},
    {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "s", "input": {}},
    {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"command": "make"}},
]  # fmt: skip


def test_blocks_of_an_answer_in_the_format_v1_are_those_of_the_api() -> None:
    calls: Any = [{"name": "run", "args": {"command": "make"}, "id": "toolu_1"}]
    known: Any = {"model_provider": "anthropic"}
    answer = AIMessage(BLOCKS, tool_calls=calls, response_metadata=known)
    own: Any = answer.content_blocks
    assert [block["type"] for block in own][:2] == ["reasoning", "non_standard"]
    made = given_messages([AIMessage(own, tool_calls=calls, response_metadata=known)])
    assert made == [{"role": "assistant", "content": BLOCKS}]


class Listener(BaseChatModel):
    """A model that keeps what it gets."""

    got: list[Any]
    reply: Any = "I hear it."

    @property
    def _llm_type(self) -> str:
        return "listener"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        self.got.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply))])


SOUND = "UklGRiQAAABXQVZF" * 20_000
PARTS: dict[str, Any] = {
    "audio": {"type": "audio", "base64": SOUND, "mime_type": "audio/wav"},
    "video": {"type": "video", "base64": SOUND, "mime_type": "video/mp4"},
    "table": {"type": "file", "base64": SOUND, "mime_type": "text/csv", "filename": "a.csv"},
    "file by id": {"type": "file", "file_id": "file-1"},
    "audio by address": {"type": "audio", "url": "https://example.com/a.wav"},
    "text": {"type": "text-plain", "text": "It is said. " * 4, "mime_type": "text/plain"},
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("by_tool", [False, True], ids=["person", "tool"])
def test_audio_and_files_are_counted_as_a_line_and_sent_as_they_were(
    memory: refold.Memory, part: Any, by_tool: bool
) -> None:
    model = Listener(got=[])
    agent = create_agent(model, middleware=[MemoryMiddleware(memory, thread="t")])
    messages: list[Any] = []
    for number in range(30):
        messages += [HumanMessage(f"Question {number}. " * 60), AIMessage("It is so. " * 60)]
    if by_tool:
        messages += [HumanMessage("Fetch it."), AIMessage("", tool_calls=[CALL])]
        messages.append(ToolMessage([{"type": "text", "text": "Here."}, part], tool_call_id="c1"))
    else:
        messages.append(HumanMessage([{"type": "text", "text": "Listen."}, part]))
    agent.invoke({"messages": messages})
    (got,) = model.got
    assert len(got) < len(messages)
    assert got[-1].content[-1] == part
    assert memory.conversation("t").context().tokens < WINDOW
    stored = str(memory.conversation("t").messages()[-2].message.content)
    assert SOUND not in stored
    assert part.get("text", "") in stored


def test_what_a_model_says_in_audio_is_counted_as_a_line(memory: refold.Memory) -> None:
    model = Listener(got=[], reply=[PARTS["audio"]])
    agent = create_agent(model, middleware=[MemoryMiddleware(memory, thread="t")])
    messages: list[Any] = []
    for number in range(3):
        messages.append(HumanMessage(f"Question {number}. " * 60))
        messages = agent.invoke({"messages": messages})["messages"]
    assert memory.conversation("t").context().tokens < WINDOW / 4
    assert not memory.conversation("t").summaries()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"type": "text", "text": "hello"}, id="no file"),
        pytest.param(
            {"type": "file", "base64": "JVBERi0xLjQ=", "mime_type": "application/pdf"}, id="pdf"
        ),
        pytest.param({"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"}, id="audio"),
    ],
)
def test_a_history_with_files_goes_on_after_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    """Before 0.11, such a file was stored as it is, so that its list goes on in a fork now."""

    def as_it_is(block: Any) -> Any:
        return {"type": "text", "text": block} if isinstance(block, str) else block

    def ask(content: Any) -> list[Any]:
        with refold.open(tmp_path / "a.db", telemetry=False) as memory:
            agent = create_agent(Saying(), middleware=[MemoryMiddleware(memory)])
            history = stored_messages(memory.conversation("t"))
            agent.invoke({"messages": [*history, HumanMessage(content)]}, CONFIG)
            return history

    with monkeypatch.context() as before:
        before.setattr(langchain_messages, "_block", as_it_is)
        ask([{"type": "text", "text": "What is this?"}, said])
    assert [len(ask(f"question {number}")) for number in range(4)] == [2, 4, 6, 8]
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        assert len(memory.conversations()) == (1 if said["type"] == "text" else 2)


class Saying(BaseChatModel):
    """A model that says the same each time."""

    @property
    def _llm_type(self) -> str:
        return "saying"

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("It is that."))])
