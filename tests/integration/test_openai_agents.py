"""Agents of the OpenAI Agents SDK: their items come back exactly, and their model gets compacted input."""

import asyncio
import copy
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support.adapter_pages import assert_page_prints
from tests.support.counted_reads import counted_reads
from tests.support.openai_server import OpenAIServer
from tests.support.prefixes import prefix_breaks, recorded_changes

agents = pytest.importorskip("agents")
testing: Any = pytest.importorskip("agents.testing")

import openai  # noqa: E402
from agents import RunHooks  # noqa: E402
from agents.extensions import handoff_filters  # noqa: E402
from agents.memory.session_settings import SessionSettings  # noqa: E402
from agents.run_config import CallModelData, ModelInputData  # noqa: E402

from refold.adapters.openai_agents import RefoldSession  # noqa: E402

WINDOW = 12_000
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "user", "content": "hi"},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "sealed"},
    {"type": "message", "role": "assistant", "id": "m1", "status": "completed",
     "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
    {"type": "function_call", "id": "f1", "call_id": "c1", "name": "run", "arguments": '{"a":  1}'},
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"query": "x"}},
    {"type": "unheard_of", "payload": [1, None, {"deep": "\u2028"}]},
]  # fmt: skip


def run(command: str) -> str:
    """Run a command."""
    return f"{command} went well. " * 40


RUN: Any = agents.function_tool(run)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def agent_of(server: OpenAIServer, *, responses: bool = True) -> Any:
    client = openai.AsyncOpenAI(api_key="key", base_url=server.base_url, max_retries=0)
    kind = agents.OpenAIResponsesModel if responses else agents.OpenAIChatCompletionsModel
    model = kind(model="gpt-5.2", openai_client=client)
    return agents.Agent(name="helper", instructions="You help.", model=model, tools=[RUN])


def config_of(session: RefoldSession) -> Any:
    return agents.RunConfig(call_model_input_filter=session.input_filter, tracing_disabled=True)


def ask(agent: Any, session: RefoldSession, asked: str) -> Any:
    return agents.Runner.run(agent, asked, session=session, run_config=config_of(session))


@pytest.mark.slow
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
def test_sixty_turns_of_an_agent_are_never_refused(
    server: OpenAIServer, tmp_path: Path, responses: bool
) -> None:
    changes = 0
    for life in range(2):
        with refold.open(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
            session = RefoldSession("t", memory)

            async def live(life: int = life, session: RefoldSession = session) -> tuple[int, int]:
                agent = agent_of(server, responses=responses)
                result: Any = None
                for number in range(30):
                    asked = f"Question {life} {number}: please build part {number}. " * 3
                    result = await ask(agent, session, asked)
                return len(result.to_input_list()), len(await session.get_items())

            given, kept = asyncio.run(live())
            assert given == kept
            conversation = memory.conversation("t")
            assert len(memory.conversations()) == 1
            assert conversation.summaries()
            changes = recorded_changes(conversation)
    field = "input" if responses else "messages"
    assert prefix_breaks(server.bodies, field) <= changes < 60
    assert server.refused == []


def test_the_code_of_the_page_runs_and_prints_what_it_shows(
    server: OpenAIServer, tmp_path: Path
) -> None:
    variables = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "key",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    assert_page_prints("openai-agents.md", tmp_path, variables)
    assert "My name is Ann." in str(server.bodies[-1]["input"])


def test_the_items_of_a_compacted_session_are_not_counted_for_its_first_request(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [
        {"role": "assistant" if n % 2 else "user", "content": f"Part {n} is checked. " * 20}
        for n in range(1_200)
    ]

    async def first_request() -> int:
        await RefoldSession("t", memory).add_items(items)
        memory.conversation("t").compact(all=True, keep_last=2)
        session = RefoldSession("t", memory)
        given = ModelInputData(input=await session.get_items(), instructions="Be brief.")
        data = CallModelData(model_data=given, agent=agents.Agent(name="a"), context=None)
        counts = counted_reads(monkeypatch)
        sent = await session.input_filter(data)
        assert len(sent.input) < len(items)
        return counts["messages"] + counts["events"]

    assert asyncio.run(first_request()) < len(items) // 2


def test_items_come_back_exactly(memory: refold.Memory) -> None:
    async def play() -> None:
        session = RefoldSession("t", memory)
        await session.add_items(ITEMS[:4])
        await session.add_items([])
        await session.add_items(ITEMS[4:])
        assert await session.get_items() == ITEMS
        for limit in range(len(ITEMS) + 2):
            assert await session.get_items(limit) == (ITEMS[-limit:] if limit else [])
        assert await session.get_items(-1) == ITEMS
        settings = SessionSettings(limit=3)
        few = RefoldSession("t", memory, session_settings=settings)
        assert await few.get_items() == ITEMS[-3:]

    asyncio.run(play())


def test_items_are_popped_one_by_one_and_the_log_keeps_them(memory: refold.Memory) -> None:
    async def play() -> None:
        session, other = (RefoldSession("t", memory) for _ in range(2))
        await session.add_items(ITEMS)
        left = list(ITEMS)
        while left:
            assert await other.pop_item() == left.pop()
            assert await session.get_items() == left
        assert await session.pop_item() is None
        await other.add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS[:1]
        await session.clear_session()
        await session.clear_session()
        assert await other.get_items() == []

    asyncio.run(play())
    (first, *_) = memory.conversation("t").messages()
    assert first.original is not None
    assert first.original.data == ITEMS[:1]
    assert memory.verify().ok


def test_a_pop_that_ended_in_its_middle_is_completed(memory: refold.Memory) -> None:
    async def play() -> None:
        await RefoldSession("t", memory).add_items(ITEMS)
        # The copy is there, and not yet what stood before the popped item in its message.
        first = memory.conversation("t")
        first.fork(position=len(first.messages()) - 2, thread_id="t~1")
        for _ in range(2):
            assert await RefoldSession("t", memory).get_items() == ITEMS[:-1]

    asyncio.run(play())


def test_what_was_cleared_does_not_come_back(memory: refold.Memory) -> None:
    async def play() -> None:
        said = [{"role": "user", "content": f"I begin for the {n}th time."} for n in range(4)]
        session = RefoldSession("t", memory)
        await session.add_items([said[0], *ITEMS[2:]])
        await session.clear_session()
        for number in (1, 2, 3):
            await session.add_items([said[number]])
            assert await RefoldSession("t", memory).get_items() == said[1 : number + 1]

    asyncio.run(play())


@pytest.mark.parametrize("taken", ["popped", "cleared"])
@pytest.mark.parametrize("begins_first", ["a", "a~1"])
def test_a_session_never_gets_the_items_of_another(
    memory: refold.Memory, taken: str, begins_first: str
) -> None:
    said = {name: {"role": "user", "content": f"I am {name}."} for name in ("a", "a~1", "b")}

    async def play() -> None:
        for name in sorted(("a", "a~1"), key=lambda name: name != begins_first):
            session = RefoldSession(name, memory)
            assert await session.get_items() == []
            await session.add_items([said[name], said["b"]])
            if taken == "popped":
                assert await session.pop_item() == said["b"]
            else:
                await session.clear_session()
                await session.add_items([said[name]])
        for name in ("a", "a~1", "a"):
            assert await RefoldSession(name, memory).get_items() == [said[name]]

    asyncio.run(play())


def test_an_erased_copy_is_no_place_for_another_session(memory: refold.Memory) -> None:
    async def play() -> None:
        first, other = RefoldSession("a", memory), RefoldSession("a~1", memory)
        await first.add_items(ITEMS[:2])
        await first.clear_session()
        memory.erase_conversation("a~1", "a request")
        await other.add_items(ITEMS[:1])
        assert await first.get_items() == []

    asyncio.run(play())


def test_an_older_session_that_is_named_like_a_copy_goes_on(memory: refold.Memory) -> None:
    memory.conversation("ann~42").append({"role": "user", "content": "hi"})
    session = RefoldSession("ann~42", memory)
    assert [item["content"] for item in asyncio.run(session.get_items())] == ["hi"]


def test_two_runs_at_once_do_not_mix(server: OpenAIServer, memory: refold.Memory) -> None:
    async def play() -> list[list[Any]]:
        sessions = [RefoldSession(name, memory) for name in ("a", "b")]
        agent = agent_of(server)
        for number in range(3):
            await asyncio.gather(*(ask(agent, s, f"{s.session_id} {number}") for s in sessions))
        return [await session.get_items() for session in sessions]

    for name, items in zip("ab", asyncio.run(play()), strict=True):
        asked = [item["content"] for item in items if item.get("role") == "user"]
        assert asked == [f"{name} {number}" for number in range(3)]
        bodies = [body for body in server.bodies if f"{name} 0" in str(body)]
        assert bodies
        assert all(
            f"{other} 0" not in str(body) for body in bodies for other in "ab" if other != name
        )


def _other_process(path: Path, base_url: str, number: int) -> int:
    class Elsewhere:
        pass

    server: Any = Elsewhere()
    server.base_url = base_url

    async def play() -> int:
        with refold.open(path, window=WINDOW, telemetry=False) as memory:
            session = RefoldSession("t", memory)
            await ask(agent_of(server), session, f"Question {number}")
            return len(await session.get_items())

    return asyncio.run(play())


def test_another_process_goes_on(server: OpenAIServer, tmp_path: Path) -> None:
    lengths: list[int] = []
    for number in range(3):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            lengths.append(
                pool.submit(_other_process, tmp_path / "a.db", server.base_url, number).result()
            )
    assert lengths == [lengths[0], 2 * lengths[0], 3 * lengths[0]]
    assert "Question 0" in str(server.bodies[-1])
    assert server.refused == []


def test_a_log_that_fails_does_not_stop_the_agent(
    server: OpenAIServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"

    async def play(memory: refold.Memory) -> None:
        session = RefoldSession("t", memory, lock_wait=0.1)
        agent = agent_of(server)
        await ask(agent, session, "One")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        await ask(agent, session, "Two")
        asked = [i["content"] for i in await session.get_items() if i.get("role") == "user"]
        assert asked == ["One", "Two"]
        holder.execute("ROLLBACK")
        holder.close()
        await ask(agent, session, "Three")
        asked = [i["content"] for i in await session.get_items() if i.get("role") == "user"]
        assert asked == ["One", "Two", "Three"]

    with refold.open(path, window=WINDOW, telemetry=False) as memory:
        asyncio.run(play(memory))
    assert server.refused == []
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len([one for one in warned if "the agent goes on without it" in one.message]) == 1


class SlowCounter:
    """Counts tokens, and takes long for one message."""

    def __init__(self) -> None:
        self._counter = EstimatingTokenCounter()
        self.is_slow = False

    def count_text(self, text: str) -> int:
        return self._counter.count_text(text)

    def count_message(self, message: refold.Message) -> refold.TokenCount:
        if self.is_slow and "first" in str(message.content):
            time.sleep(0.3)
        return self._counter.count_message(message)

    def count_tools(self, tools: tuple[dict[str, Any], ...]) -> int:
        return self._counter.count_tools(tools)


def test_items_that_are_kept_while_others_are_stored_are_not_lost(tmp_path: Path) -> None:
    path, counter = tmp_path / "a.db", SlowCounter()
    said = [{"role": "user", "content": words} for words in ("first", "second", "third")]

    async def play(memory: refold.Memory) -> None:
        session = RefoldSession("t", memory, lock_wait=0.1)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        await session.add_items(said[:1])
        counter.is_slow = True
        second = asyncio.create_task(session.add_items(said[1:2]))
        await asyncio.sleep(0.1)
        third = asyncio.create_task(session.add_items(said[2:]))
        await second
        holder.execute("ROLLBACK")
        holder.close()
        await third
        assert await session.get_items() == said

    with refold.open(path, counter=counter, telemetry=False) as memory:
        asyncio.run(play(memory))
        stored = [message.text for message in memory.conversation("t").messages()]
    assert stored == ["first", "second", "third"]


def test_items_that_are_kept_are_not_those_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def play(memory: refold.Memory) -> None:
        session = RefoldSession("t", memory, lock_wait=0.1)
        await session.add_items(copy.deepcopy(ITEMS))
        for item in await session.get_items():
            item.clear()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        assert await session.get_items() == ITEMS
        given = copy.deepcopy(ITEMS)
        await session.add_items(given)
        kept = await session.get_items()
        assert kept == ITEMS * 2
        for item in (*given, *kept):
            item.clear()
        assert await session.get_items() == ITEMS * 2
        holder.execute("ROLLBACK")
        holder.close()
        assert await session.get_items() == ITEMS * 2

    with refold.open(path, telemetry=False) as memory:
        asyncio.run(play(memory))


def test_an_item_that_cannot_be_stored_is_refused_and_blocks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    unfit: list[Any] = [{"role": "user", "content": object()}, {"x": float("nan")}, "hi", None]

    async def refuse(session: RefoldSession) -> None:
        for item in unfit:
            with pytest.raises(refold.InvalidMessage):
                await session.add_items([*ITEMS[:2], item])

    async def play(memory: refold.Memory) -> None:
        session = RefoldSession("t", memory, lock_wait=0.1)
        await refuse(session)
        await session.add_items(ITEMS[:1])
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        await refuse(session)
        await session.add_items(ITEMS[2:])
        holder.execute("ROLLBACK")
        holder.close()
        assert await RefoldSession("t", memory).get_items() == ITEMS[:1]
        assert await session.get_items() == [ITEMS[0], *ITEMS[2:]]
        assert await RefoldSession("t", memory).get_items() == [ITEMS[0], *ITEMS[2:]]

    with refold.open(path, telemetry=False) as memory:
        asyncio.run(play(memory))


def rounds_of_own_tools(number: int, said: str) -> list[dict[str, Any]]:
    """A round of each tool whose results have a form of their own."""
    screen = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    shown = [{"stdout": said, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    found = {"execution": "server", "status": "completed", "call_id": None}
    return [
        {"role": "user", "content": f"Round {number}"},
        {"type": "custom_tool_call", "call_id": f"a{number}", "name": "own", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": f"a{number}", "output": said},
        {"type": "shell_call", "call_id": f"b{number}", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": f"b{number}", "output": shown},
        {"type": "computer_call", "call_id": f"c{number}", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": f"c{number}", "output": screen},
        {"type": "local_shell_call", "call_id": f"d{number}", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": f"d{number}", "output": said},
        {"type": "apply_patch_call", "call_id": f"e{number}", "operation": {"path": "x"}},
        {"type": "apply_patch_call_output", "call_id": f"e{number}", "status": "completed",
         "output": said},
        {"type": "tool_search_call", "id": f"f{number}", "arguments": {}, **found},
        {"type": "tool_search_output", "id": f"g{number}", "tools": [], **found},
        {"type": "mcp_approval_request", "id": f"h{number}", "name": "n", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": f"h{number}", "approve": True},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip


@pytest.mark.parametrize("said", ["fine", "It went well. " * 400], ids=["short", "long"])
def test_results_keep_the_form_that_their_calls_require(tmp_path: Path, said: str) -> None:
    with refold.open(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
        session = RefoldSession("t", memory)
        shown: list[Any] = []
        compacted = 0
        for number in range(20):
            given = rounds_of_own_tools(number, said)
            asyncio.run(session.add_items(given))
            context = memory.conversation("t").context()
            compacted += not context.is_whole
            shown = context.for_openai(api="responses")["input"]
            open_calls: dict[str, str] = {}
            for item in shown:
                kind = str(item.get("type"))
                key = str(item.get("call_id") or item.get("id"))
                if kind.endswith("_call") and kind != "tool_search_call":
                    open_calls[key] = kind
                elif kind.endswith("_call_output"):
                    assert f"{open_calls.pop(key)}_output" == kind
            assert open_calls == {}
            if context.is_whole:
                assert shown[-len(given) - 1 : -1] == given
        assert compacted


def test_the_filter_gives_every_item_of_a_whole_session_as_it_is(tmp_path: Path) -> None:
    async def play(memory: refold.Memory) -> None:
        system = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "x"}]
        # The SDK itself takes calls of the local shell for unanswered.
        own = [i for i in rounds_of_own_tools(0, "fine") if "local_shell" not in str(i.get("type"))]
        inputs: list[Any] = []
        for name in ("with", "without"):
            session = RefoldSession(name, memory)
            await session.add_items([*system, *ITEMS, *own])
            config = config_of(session)
            if name == "without":
                config.call_model_input_filter = None
            agent, model = scripted(*[testing.assistant_message("fine")] * 2)
            for asked in ("First", "Second"):
                await agents.Runner.run(agent, asked, session=session, run_config=config)
            inputs.append([list(call.input) for call in model.calls])
        assert inputs[0] == inputs[1]

    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        asyncio.run(play(memory))


UNANSWERED: list[Any] = [
    {"role": "user", "content": "Begin."},
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
]
ANSWERED: list[Any] = [
    *UNANSWERED[:1],
    *UNANSWERED[2:],
    {"type": "function_call", "call_id": "c2", "name": "run", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    {"type": "function_call_output", "call_id": "c2", "output": "ok"},
]


@pytest.mark.parametrize(
    ("before", "limit"), [(UNANSWERED, None), (ANSWERED, 1), (ANSWERED, 2), (ANSWERED, 3)]
)
def test_a_run_without_a_half_of_its_calls_has_the_whole_conversation(
    memory: refold.Memory, caplog: pytest.LogCaptureFixture, before: list[Any], limit: int | None
) -> None:
    async def play() -> None:
        session = RefoldSession("t", memory, session_settings=SessionSettings(limit=limit))
        await session.add_items(before)
        call = testing.function_call("run", {"command": "make"}, call_id="c3")
        again = testing.function_call("run", {"command": "make"}, call_id="c4")
        done = testing.assistant_message("done")
        agent, model = scripted(call, done, again, done)
        for _ in range(2):
            await ask(agent, session, "Go on.")
        assert caplog.records == []
        for number, request in enumerate(model.calls):
            said = [one for one in request.input if one.get("role") == "user"]
            assert [one["content"] for one in said] == ["Begin.", *["Go on."] * (1 + number // 2)]
        assert len(await session.get_items(-1)) == len(before) + 8

    asyncio.run(play())


def test_settings_may_be_a_dictionary(memory: refold.Memory) -> None:
    async def play() -> None:
        session = RefoldSession("t", memory, session_settings={"limit": 2})
        assert session.session_settings == SessionSettings(limit=2)
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS[-2:]
        session.session_settings = {"limit": 1}
        assert await session.get_items() == ITEMS[-1:]
        session.session_settings = None
        assert await session.get_items() == ITEMS
        with pytest.raises(TypeError, match="limitt"):
            RefoldSession("t", memory, session_settings={"limitt": 1})

    asyncio.run(play())


def scripted(*answers: Any) -> tuple[Any, Any]:
    """An agent whose model gives these answers, and the model."""
    model = testing.ScriptedModel([one if isinstance(one, list) else [one] for one in answers])
    return agents.Agent(name="helper", model=model, tools=[RUN]), model


def test_every_way_to_run_an_agent(memory: refold.Memory, caplog: pytest.LogCaptureFixture) -> None:
    def only_users(history: list[Any], new: list[Any]) -> list[Any]:
        return [one for one in history if one.get("role") == "user"] + new

    async def play() -> None:
        session = RefoldSession("t", memory)
        config = config_of(session)
        agent, _ = scripted(testing.assistant_message("one"))
        await agents.Runner.run(agent, "First", session=session, run_config=config)
        call = testing.function_call("run", {"command": "make"}, call_id="c1")
        agent, model = scripted([call], testing.assistant_message("two"))
        streamed = agents.Runner.run_streamed(agent, "Second", session=session, run_config=config)
        async for _ in streamed.stream_events():
            pass
        assert [len(one.input) for one in model.calls] == [3, 5]
        agent, model = scripted(testing.assistant_message("three"))
        before = await session.get_items()
        given = [{"role": "user", "content": "Third"}]
        await agents.Runner.run(agent, given, session=session, run_config=config)
        assert list(model.calls[0].input) == before + given
        assert caplog.records == []
        # What the callback left out is in the session, so its list is sent as it is.
        agent, model = scripted(testing.assistant_message("four"))
        config.session_input_callback = only_users
        given = [{"role": "user", "content": "Fourth"}]
        await agents.Runner.run(agent, given, session=session, run_config=config)
        asked = [one["content"] for one in model.calls[0].input]
        assert asked == ["First", "Second", "Third", "Fourth"]
        assert "lacks items of its session" in caplog.text
        assert len(await session.get_items()) == 10
        session.close()

    asyncio.run(play())


@pytest.mark.parametrize("has_session", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_an_agent_that_is_a_tool_has_a_conversation_of_its_own(
    memory: refold.Memory,
    caplog: pytest.LogCaptureFixture,
    is_streamed: bool,
    has_session: bool,
) -> None:
    # It inherits the filter of the run, and is often asked in the words of the user.
    call = testing.function_call("run", {"command": "make"}, call_id="s1")
    translator, inner = scripted([call], testing.assistant_message("hallo"))
    asked = testing.function_call("translate", {"input": "hello"}, call_id="m1")
    agent, outer = scripted(
        testing.assistant_message("Hi."),
        [asked],
        testing.assistant_message("It is hallo."),
        testing.assistant_message("Bye."),
    )
    own = RefoldSession("translator", memory) if has_session else None
    agent.tools = [translator.as_tool("translate", "Translate.", session=own)]

    async def play() -> list[Any]:
        session = RefoldSession("t", memory)
        for question in ("I am Ann.", "hello", "Thanks."):
            if is_streamed:
                config = config_of(session)
                run = agents.Runner.run_streamed(
                    agent, question, session=session, run_config=config
                )
                async for _ in run.stream_events():
                    pass
            else:
                await ask(agent, session, question)
        return await session.get_items()

    items = asyncio.run(play())
    assert [len(one.input) for one in inner.calls] == [1, 3]
    assert [len(one.input) for one in outer.calls] == [1, 3, 5, 7]
    assert [one["call_id"] for one in items if "call_id" in one] == ["m1", "m1"]
    assert len(items) == 8
    assert caplog.records == []


def test_the_input_after_a_handoff_that_is_filtered_is_compacted(memory: refold.Memory) -> None:
    async def play() -> Any:
        session = RefoldSession("t", memory)
        said = [{"role": "user", "content": f"Fact {number}. " * 60} for number in range(100)]
        await session.add_items(said)
        helper, model = scripted(testing.assistant_message("Done."))
        call = testing.function_call("transfer_to_helper", {}, call_id="h1")
        agent, _ = scripted([call])
        agent.handoffs = [agents.handoff(helper, input_filter=handoff_filters.remove_all_tools)]
        await ask(agent, session, "Go on.")
        return model.calls[0].input

    shown = asyncio.run(play())
    assert "Go on." in str(shown[-1])
    assert len(str(shown)) < 4 * WINDOW


def test_streamed_runs_at_once_store_each_question_once(memory: refold.Memory) -> None:
    async def play() -> list[str]:
        session = RefoldSession("t", memory)
        begun, other = asyncio.Event(), asyncio.Event()

        class Waiting(RunHooks[Any]):
            async def on_llm_start(self, *_: Any, **__: Any) -> None:
                # The filter has stored the question, and the run has not given it yet.
                begun.set()
                await other.wait()

        async def stream(question: str, hooks: Any) -> None:
            agent, _ = scripted(testing.assistant_message("Yes."))
            run = agents.Runner.run_streamed(
                agent, question, session=session, run_config=config_of(session), hooks=hooks
            )
            async for _ in run.stream_events():
                pass

        first = asyncio.create_task(stream("First", Waiting()))
        await begun.wait()
        await stream("Second", None)
        other.set()
        await first
        return [one["content"] for one in await session.get_items() if one["role"] == "user"]

    assert asyncio.run(play()) == ["First", "Second"]


def test_items_that_were_kept_are_stored_once_if_the_log_works_again_before_the_next_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    class Locked(RefoldSession):
        async def add_items(self, items: Any) -> None:
            is_turn = len(items) == 2
            if is_turn:
                holder.execute("BEGIN EXCLUSIVE")
            await super().add_items(items)
            if is_turn:
                holder.execute("ROLLBACK")

    async def play(memory: refold.Memory) -> list[Any]:
        session = Locked("t", memory, lock_wait=0.1)
        call = testing.function_call("run", {"command": "make"}, call_id="c1")
        agent, _ = scripted([call], testing.assistant_message("Done."))
        await ask(agent, session, "Build it.")
        return await session.get_items()

    with refold.open(path, telemetry=False) as memory:
        items = asyncio.run(play(memory))
    holder.close()
    assert [one["call_id"] for one in items if "call_id" in one] == ["c1", "c1"]
    assert len(items) == 4
    assert "lacks items" not in caplog.text


def test_conversations_of_the_server_are_refused(
    server: OpenAIServer, memory: refold.Memory
) -> None:
    async def play() -> None:
        session = RefoldSession("t", memory)
        with pytest.raises(agents.UserError, match="previous_response_id"):
            await agents.Runner.run(
                agent_of(server), "Hi", session=session, previous_response_id="resp_1"
            )

    asyncio.run(play())
    assert server.bodies == []


def test_what_is_no_session_is_refused() -> None:
    given: Any = "no memory"
    with pytest.raises(refold.InvalidSetting):
        RefoldSession("t", given)
    with refold.open(":memory:") as memory:
        # The copies of a session have longer ids.
        for name in (" ", "x" * 499):
            with pytest.raises(refold.InvalidThreadId):
                RefoldSession(name, memory)
