"""Agents of Pydantic AI: their history goes in, the compacted messages reach the model."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import refold
from tests.support.adapter_pages import assert_page_runs
from tests.support.other_agents import ANSWER, answer_in_between
from tests.support.prefixes import prefix_breaks, recorded_changes
from tests.support.strict_server import StrictServer

pydantic_ai = pytest.importorskip("pydantic_ai")

import anthropic  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    AudioUrl,
    BinaryContent,
    BinaryImage,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SpeechPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
)
from pydantic_ai.models.anthropic import AnthropicModel  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: E402

from refold.adapters import pydantic_ai_messages  # noqa: E402
from refold.adapters.pydantic_ai import MemoryCapability, stored_messages  # noqa: E402
from refold.adapters.pydantic_ai_messages import GivenMessages  # noqa: E402

MODELS = ("claude-opus-4-8", "claude-opus-5-5")
THINKING: dict[str, Any] = {
    "claude-opus-4-8": {"type": "adaptive"},
    "claude-opus-5-5": {"type": "adaptive"},
}
WINDOW = 12_000


class Port(BaseModel):
    """What an agent answers."""

    port: int


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer() as running:
        yield running


def run(command: str) -> str:
    """Run a command."""
    return f"{command} went well. " * 40


@asynccontextmanager
async def agent_of(
    base_url: str, memory: refold.Memory, model: str = MODELS[0], **how: Any
) -> AsyncGenerator[Any]:
    async with anthropic.AsyncAnthropic(api_key="key", base_url=base_url, max_retries=0) as client:
        yield _agent(client, memory, model, **how)


def _agent(client: Any, memory: refold.Memory, model: str, **how: Any) -> Any:
    made = AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    settings: Any = {"max_tokens": 4_096, "anthropic_thinking": THINKING[model]}
    capability = MemoryCapability(memory, thread="t", **how)
    return pydantic_ai.Agent(
        made,
        instructions="You help.",
        tools=[run],
        model_settings=settings,
        capabilities=[capability],
    )


async def talk(base_url: str, memory: refold.Memory, asked: list[str], *how: str) -> list[Any]:
    """Ask, each time with the history of before, and return the history."""
    history: list[Any] = stored_messages(memory.conversation("t"))
    async with agent_of(base_url, memory, *how) as agent:
        for question in asked:
            history = (await agent.run(question, message_history=history)).all_messages()
    return history


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_sixty_turns_of_an_agent_are_never_refused(
    server: StrictServer, tmp_path: Path, model: str
) -> None:
    changes = 0
    for life in range(2):
        with refold.open(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
            asked = [f"Question {life} {n}: please build part {n}. " * 3 for n in range(30)]
            history = asyncio.run(talk(server.base_url, memory, asked, model))
            conversation = memory.conversation("t")
            assert len(memory.conversations()) == 1
            assert len(conversation.messages()) == len(history)
            assert conversation.summaries()
            changes = recorded_changes(conversation)
    assert server.refused == []
    assert prefix_breaks(server.bodies) <= changes < 60


HISTORY: list[Any] = [
    ModelRequest(parts=[
        SystemPromptPart("Be brief."),
        UserPromptPart(["Look", ImageUrl("https://example.org/a.png"),
                        BinaryContent(b"A", media_type="image/png")]),
    ]),
    ModelResponse(parts=[
        ThinkingPart("Hm", signature="s", provider_name="anthropic"), ThinkingPart("Aha"),
        TextPart("I look."), ToolCallPart("run", '{"command": "ls"}', tool_call_id="c1"),
        ToolCallPart("run", {"wrong": 1}, tool_call_id="c2"),
    ], model_name="m"),
    ModelRequest(parts=[
        ToolReturnPart("run", {"files": ["a"]}, tool_call_id="c1"),
        ToolReturnPart("run", "no such argument", tool_call_id="c2", outcome="retried"),
        UserPromptPart("Answer in words."),
    ]),
]  # fmt: skip


def test_every_part_is_told_in_the_form_of_the_messages_api() -> None:
    given = GivenMessages(HISTORY)
    system, asked, answer, results, last = given.messages
    assert system == {"role": "system", "content": "Be brief."}
    assert [block["type"] for block in asked["content"]] == ["text", "image", "image"]
    assert [block["type"] for block in answer["content"]] == [
        "thinking", "thinking", "text", "tool_use", "tool_use"]  # fmt: skip
    assert answer["content"][3]["input"] == {"command": "ls"}
    assert [b.get("is_error") for b in results["content"]] == [None, True]
    assert results["content"][0]["content"] == '{"files":["a"]}'
    assert last["content"] == [{"type": "text", "text": "Answer in words."}]
    originals = [given.original(index) for index in range(5)]
    assert originals[0] is None
    data = [original["data"] for original in originals if original]
    *before, request = HISTORY
    parts = [*request.parts]
    given_back = [*before, replace(request, parts=parts[:2]), replace(request, parts=parts[2:])]
    assert ModelMessagesTypeAdapter.validate_python(data) == ModelMessagesTypeAdapter.validate_json(
        ModelMessagesTypeAdapter.dump_json(given_back)
    )


def _other_process(path: Path, base_url: str, number: int) -> int:
    with refold.open(path, window=WINDOW, telemetry=False) as memory:
        return len(asyncio.run(talk(base_url, memory, [f"Question {number}"])))


def test_another_process_goes_on(server: StrictServer, tmp_path: Path) -> None:
    lengths: list[int] = []
    for number in range(2):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            lengths.append(
                pool.submit(_other_process, tmp_path / "a.db", server.base_url, number).result()
            )
    assert lengths == [lengths[0], 2 * lengths[0]]
    assert "Question 0" in str(server.bodies[-1])
    assert server.refused == []


def test_a_log_that_fails_does_not_stop_the_agent(
    server: StrictServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"

    async def play(memory: refold.Memory) -> int:
        history: list[Any] = []
        async with agent_of(server.base_url, memory, lock_wait=0.1) as agent:
            for number in range(3):
                with closing(sqlite3.connect(path, isolation_level=None)) as holder:
                    if number == 1:
                        holder.execute("BEGIN EXCLUSIVE")
                    result = await agent.run(f"Question {number}", message_history=history)
                    history = result.all_messages()
        return len(history)

    with refold.open(path, window=WINDOW, telemetry=False) as memory:
        length = asyncio.run(play(memory))
        assert len(memory.conversation("t").messages()) == length
    assert server.refused == []
    warned = [
        one for one in caplog.records if "the model gets the agent's own messages" in one.message
    ]
    assert len(warned) == 1


def test_runs_at_once_do_not_mix(memory: refold.Memory) -> None:
    def answer(messages: list[Any], info: Any) -> Any:
        del info
        asked = [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]
        return ModelResponse(parts=[TextPart(f"heard {asked}")])

    agent: Any = pydantic_ai.Agent(
        FunctionModel(answer),
        capabilities=[MemoryCapability(memory, thread=lambda ctx: str(ctx.conversation_id))],
    )

    async def play() -> None:
        histories: dict[str, Any] = {"a": [], "b": []}
        for number in range(3):
            runs = [
                agent.run(f"{name} {number}", message_history=history, conversation_id=name)
                for name, history in histories.items()
            ]
            for name, result in zip(histories, await asyncio.gather(*runs), strict=True):
                histories[name] = result.all_messages()

    asyncio.run(play())
    for name in "ab":
        said = [m.message.blocks() for m in memory.conversation(name).messages()]
        assert len(said) == 6
        other = "b" if name == "a" else "a"
        assert f"{other} 0" not in str(said)


def test_the_answer_of_another_run_to_the_same_history_is_not_sent(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent: Any = pydantic_ai.Agent(capabilities=[MemoryCapability(memory, thread="t")])
    answer_in_between(monkeypatch, memory)
    got, history = requests_of(agent, ["Is it so?"], [])
    assert ANSWER not in str(got)
    assert sorted(row.messages for row in memory.conversations()) == [2, len(history)]


def requests_of(agent: Any, asked: list[Any], history: list[Any]) -> tuple[list[Any], Any]:
    """What the model of an agent gets for these questions, and the history at the end."""
    got: list[Any] = []

    def answer(messages: list[Any], info: Any) -> Any:
        shown = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        for message in shown:
            for part in (message, *message["parts"]):
                part.pop("timestamp", None)
                part.pop("run_id", None)
                part.pop("conversation_id", None)
        got.append((shown, info.instructions, len(info.function_tools)))
        is_first = len(messages) == 1
        made = ToolCallPart("run", {"command": "ls"}, tool_call_id="c1") if is_first else None
        return ModelResponse(parts=[made or TextPart("done")] if len(got) != 3 else [])

    async def play() -> list[Any]:
        with agent.override(model=FunctionModel(answer)):
            kept = list(history)
            for question in asked:
                result = await agent.run(question, message_history=kept, conversation_id="t")
                kept = result.all_messages()
            return kept

    kept = asyncio.run(play())
    return got, kept


@pytest.mark.parametrize("history", [[], HISTORY], ids=["fresh", "older"])
def test_a_model_gets_the_requests_of_the_agent_until_something_is_compacted(
    tmp_path: Path, history: list[Any]
) -> None:
    def agent(*capabilities: Any) -> Any:
        return pydantic_ai.Agent(
            instructions=["You help.", lambda: "It is noon."],
            system_prompt="Be nice.",
            tools=[run],
            capabilities=capabilities,
        )

    asked = ["Build it.", "  ", ["Look", ImageUrl("https://example.org/b.png")]]
    plain, kept = requests_of(agent(), asked, history[:1])
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        stored, kept_too = requests_of(agent(MemoryCapability(memory)), asked, history[:1])
    assert stored == plain
    assert [len(message.parts) for message in kept_too] == [len(message.parts) for message in kept]
    assert [m.instructions for m in kept_too if isinstance(m, ModelRequest)] == [
        m.instructions for m in kept if isinstance(m, ModelRequest)
    ]


def test_a_system_prompt_that_changes_with_each_run_makes_no_forks(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    number = 0

    def answer(messages: list[Any], info: Any) -> Any:
        seen.append((str(messages), str(info.instructions)))
        return ModelResponse(parts=[TextPart("answer " * 40)])

    async def play(memory: refold.Memory) -> None:
        nonlocal number
        agent: Any = pydantic_ai.Agent(
            FunctionModel(answer), capabilities=[MemoryCapability(memory, thread="t")]
        )
        agent.system_prompt(dynamic=True)(lambda: f"It is day {number}.")
        history: list[Any] = []
        for number in range(30):
            result = await agent.run(f"Question {number}. " * 20, message_history=history)
            history = result.all_messages()

    with refold.open(tmp_path / "a.db", window=6_000, telemetry=False) as memory:
        asyncio.run(play(memory))
        assert [row.thread_id for row in memory.conversations()] == ["t"]
        assert memory.conversation("t").summaries()
    for day, (messages, instructions) in enumerate(seen):
        shown = messages + instructions
        assert f"It is day {day}." in shown
        assert f"It is day {day - 1}." not in shown
    assert "It is day 29." in seen[-1][1]


def test_a_run_that_nobody_asks_keeps_its_system_prompt_after_a_restart(tmp_path: Path) -> None:
    seen: list[Any] = []

    def answer(messages: list[Any], info: Any) -> Any:
        seen.append((messages, info.instructions))
        return ModelResponse(parts=[TextPart("answer")])

    history: list[Any] = []
    for asked in (None, "Go on.", "Go on."):
        with refold.open(tmp_path / "a.db", telemetry=False) as memory:
            capability = MemoryCapability(memory, thread="t")
            agent: Any = pydantic_ai.Agent(
                FunctionModel(answer), system_prompt="Be nice.", capabilities=[capability]
            )
            assert stored_messages(memory.conversation("t")) == history
            result = asyncio.run(agent.run(asked, message_history=history))
            history = result.all_messages()
            assert [row.thread_id for row in memory.conversations()] == ["t"]
    assert ["Be nice." in str(one) for one in seen] == [True] * 3


def test_system_messages_that_were_stored_in_other_ways_are_in_the_history(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        conversation = memory.conversation("t")
        for role in ("system", "user", "assistant"):
            conversation.append({"role": role, "content": f"From the {role}."})
        history: list[Any] = stored_messages(conversation)
        parts = [part for message in history for part in message.parts]
    assert [part.content for part in parts] == [
        "From the system.", "From the user.", "From the assistant."]  # fmt: skip


@pytest.mark.parametrize("is_compacted", [False, True], ids=["whole", "compacted"])
def test_a_model_gets_files_as_the_agent_gave_them(tmp_path: Path, is_compacted: bool) -> None:
    pdf = b"%PDF-1.4 " + bytes(range(256)) * 1_000
    files = [
        BinaryContent(pdf, media_type="application/pdf"),
        BinaryContent(bytes(500_000), media_type="audio/wav"),
        DocumentUrl("https://example.org/a.pdf"),
        AudioUrl("https://example.org/a.mp3"),
    ]
    seen: list[Any] = []

    def answer(messages: list[Any], info: Any) -> Any:
        del info
        seen.append(messages)
        return ModelResponse(parts=[TextPart("answer " * 2_000)])

    with refold.open(tmp_path / "a.db", window=80_000, telemetry=False) as memory:
        capability = MemoryCapability(memory, thread="t")
        agent: Any = pydantic_ai.Agent(FunctionModel(answer), capabilities=[capability])
        history: list[Any] = []
        for number in range(50 if is_compacted else 0):
            result = asyncio.run(agent.run(f"Question {number}. " * 20, message_history=history))
            history = result.all_messages()
        asyncio.run(agent.run(["What is in these?", *files], message_history=history))
        assert bool(memory.conversation("t").summaries()) == is_compacted
    assert seen[-1][-1].parts[-1].content[-len(files) :] == files


def test_a_model_gets_the_pictures_of_a_tool_after_a_compaction(tmp_path: Path) -> None:
    picture = BinaryContent(b"\x89PNG" + bytes(3_000), media_type="image/png")
    returned: list[Any] = []

    def answer(messages: list[Any], info: Any) -> Any:
        del info
        (last, *_) = messages[-1].parts
        if isinstance(last, ToolReturnPart):
            returned.append(last.content)
            return ModelResponse(parts=[TextPart("answer " * 1_500)])
        return ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id=f"c{len(messages)}")])

    def look() -> list[Any]:
        """Take a picture of the screen."""
        return ["The screen:", picture]

    with refold.open(tmp_path / "a.db", window=60_000, telemetry=False) as memory:
        capability = MemoryCapability(memory, thread="t")
        agent: Any = pydantic_ai.Agent(
            FunctionModel(answer), tools=[look], capabilities=[capability]
        )
        history: list[Any] = []
        for number in range(30):
            result = asyncio.run(agent.run(f"Question {number}. " * 20, message_history=history))
            history = result.all_messages()
        assert memory.conversation("t").summaries()
    assert returned == [["The screen:", picture]] * 30


def test_pictures_and_audio_that_the_model_made_are_counted_as_a_line(tmp_path: Path) -> None:
    drawn = FilePart(BinaryImage(data=bytes(range(256)) * 1_000, media_type="image/png"))
    heard = SpeechPart(
        speaker="assistant", audio=BinaryContent(drawn.content.data, media_type="audio/wav")
    )
    got: list[Any] = []

    def draw(messages: Any, _: Any) -> ModelResponse:
        got.append(list(messages))
        return ModelResponse(parts=[TextPart("Here it is. " * 60), drawn, heard])

    with refold.open(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
        capability = MemoryCapability(memory, thread="t")
        agent: Any = pydantic_ai.Agent(FunctionModel(draw), capabilities=[capability])
        history: list[Any] = []
        for number in range(24):
            asked = f"Draw house {number}. " * 60
            history = asyncio.run(agent.run(asked, message_history=history)).all_messages()
        conversation = memory.conversation("t")
        assert conversation.summaries()
        assert len(str(conversation.messages()[1].message.content)) < 1_000
        stored = stored_messages(conversation)[1].parts
        assert [part.part_kind for part in stored] == ["text", "file", "speech"]
    assert len(got[-1]) < len(history) - 1
    shown: Any = [one for one in got[-1] if isinstance(one, ModelResponse)][-1].parts[1]
    assert shown.content.data == drawn.content.data


@pytest.mark.parametrize("new_process", [False, True])
def test_an_agent_whose_output_is_a_tool_stays_in_one_conversation(
    tmp_path: Path, new_process: bool
) -> None:
    """Pydantic AI joins the result of that tool with the next prompt, in the history of the run after that."""

    def answer(messages: Any, info: Any) -> ModelResponse:
        call = f"c{len(str(messages))}"
        return ModelResponse(
            parts=[ToolCallPart(info.output_tools[0].name, {"port": 80}, tool_call_id=call)]
        )

    with refold.open(tmp_path / "a.db", window=200_000, telemetry=False) as memory:
        capability = MemoryCapability(memory, thread="t")
        kind = pydantic_ai.ToolOutput(Port)
        agent: Any = pydantic_ai.Agent(
            FunctionModel(answer), output_type=kind, capabilities=[capability]
        )
        conversation = memory.conversation("t")
        history: list[Any] = []
        for number in range(5):
            known = stored_messages(conversation) if new_process else history
            result = asyncio.run(agent.run(f"Question {number}.", message_history=known))
            history = result.all_messages()
        assert [(row.thread_id, row.messages) for row in memory.conversations()] == [("t", 15)]
        stored = stored_messages(conversation)
        parts = [part.part_kind for message in stored for part in message.parts]
        assert parts == ["user-prompt", "tool-call", "tool-return"] * 5
        assert parts == [part.part_kind for message in history for part in message.parts]


@pytest.mark.parametrize(
    "given",
    [
        AudioUrl("https://a.example/1.mp3"),
        VideoUrl("https://a.example/1.mp4"),
        UploadedFile(file_id="f1", provider_name="openai"),
    ],
)
def test_a_file_by_its_address_stays_in_one_conversation_after_a_restart(
    tmp_path: Path, given: Any
) -> None:
    def answer(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart("Well.")])

    prompts: list[Any] = [["What is this?", given], "Go on.", "And then?"]
    rows: list[tuple[str, int]] = []
    for prompt in prompts:
        with refold.open(tmp_path / "a.db", telemetry=False) as memory:
            capability = MemoryCapability(memory, thread="t")
            agent: Any = pydantic_ai.Agent(FunctionModel(answer), capabilities=[capability])
            history = stored_messages(memory.conversation("t"))
            asyncio.run(agent.run(prompt, message_history=history))
            rows = [(row.thread_id, row.messages) for row in memory.conversations()]
    assert rows == [("t", 6)]


def test_what_is_no_memory_is_refused() -> None:
    given: Any = "no memory"
    with pytest.raises(refold.InvalidSetting):
        MemoryCapability(given)


def test_the_stored_history_is_read_from_either_face(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        memory.conversation("t").append({"role": "user", "content": "Hello"})
        wrong: Any = "t"
        with pytest.raises(refold.InvalidSetting, match="conversation='t': must be what"):
            stored_messages(wrong)

    async def read() -> int:
        async with refold.aopen(tmp_path / "agent.db") as memory:
            return len(await asyncio.to_thread(stored_messages, memory.conversation("t")))

    assert asyncio.run(read()) == 1


def test_the_code_of_the_page_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    assert_page_runs("pydantic-ai.md", tmp_path)


@pytest.mark.parametrize("erased", [[], [4]])
def test_a_history_whose_results_had_files_in_the_same_message_goes_on_after_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, erased: list[int]
) -> None:
    """Before 0.11, a request was one message. Now it is two, so its list goes on in a fork."""
    seen: list[list[int]] = []

    def answer(messages: Any, info: Any) -> ModelResponse:
        asked = [n for n in range(9) if f"question {n}" in str(messages)]
        if asked == [0] and not seen:
            seen.append(asked)
            return ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id="c1")])
        seen.append(asked)
        return ModelResponse(parts=[TextPart(f"answer {asked[-1]}")])

    def whole(message: Any) -> list[Any]:
        return [message]

    def ask(number: int) -> list[Any]:
        with refold.open(tmp_path / "a.db", telemetry=False) as memory:
            capability = MemoryCapability(memory, thread="t")
            agent: Any = pydantic_ai.Agent(FunctionModel(answer), capabilities=[capability])

            def look() -> Any:
                return pydantic_ai.ToolReturn(
                    "seen", content=[BinaryContent(b"\x89PNG", media_type="image/png")]
                )

            agent.tool_plain(look)
            history = stored_messages(memory.conversation("t"))
            asyncio.run(agent.run(f"question {number}", message_history=history))
            return history

    with monkeypatch.context() as before:
        before.setattr(pydantic_ai_messages, "_split", whole)
        ask(0)
        ask(1)
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        for position in erased:
            memory.conversation("t").erase(position)
    histories = [ask(number) for number in range(2, 6)]
    kept = [0] if erased else [0, 1]
    assert seen[-4:] == [[*kept, *range(2, number + 1)] for number in range(2, 6)]
    assert [len(history) for history in histories] == [6, 9, 11, 13]
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        assert len(memory.conversations()) == 2
        [fork] = [row.thread_id for row in memory.conversations() if row.thread_id != "t"]
        memory.erase_conversation(fork)
        assert len(stored_messages(memory.conversation("t"))) == 6


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("hello", id="no file"),
        pytest.param(BinaryContent(b"%PDF-1.4 one", media_type="application/pdf"), id="pdf"),
        pytest.param(BinaryContent(b"RIFF", media_type="audio/wav"), id="audio"),
        pytest.param(AudioUrl("https://example.org/a.wav"), id="audio by address"),
    ],
)
def test_a_history_with_files_goes_on_after_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    """Before 0.11, such a file was stored as text, so that its list goes on in a fork now."""
    newly_stored = pydantic_ai_messages._user_block  # pyright: ignore[reportPrivateUsage]

    def as_text(content: Any) -> Any:
        is_file = not isinstance(content, str)
        return {"type": "text", "text": repr(content)} if is_file else newly_stored(content)

    def answer(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart(f"answer {len(messages)}")])

    def ask(prompt: Any) -> list[Any]:
        with refold.open(tmp_path / "a.db", telemetry=False) as memory:
            capability = MemoryCapability(memory, thread="t")
            agent: Any = pydantic_ai.Agent(FunctionModel(answer), capabilities=[capability])
            history = stored_messages(memory.conversation("t"))
            asyncio.run(agent.run(prompt, message_history=history))
            return history

    with monkeypatch.context() as before:
        before.setattr(pydantic_ai_messages, "_user_block", as_text)
        ask(["What is this?", said])
    assert [len(ask(f"question {number}")) for number in range(4)] == [2, 4, 6, 8]
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        assert len(memory.conversations()) == (1 if said == "hello" else 2)
