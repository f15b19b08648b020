"""The middleware for agents of LangChain: the state goes in, the compacted messages reach the model."""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict

import pytest

import refold

pytest.importorskip("langchain", minversion="1.2")
pytest.importorskip("langgraph.checkpoint.sqlite")
langchain_anthropic = pytest.importorskip("langchain_anthropic")

from langchain.agents.middleware import (  # noqa: E402
    AgentMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
)
from langchain_core.language_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import (  # noqa: E402
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)
from langchain_core.tools import tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402

from refold.adapters.langchain import (  # noqa: E402
    MemoryMiddleware,
    MemoryState,
    import_checkpoints,
    stored_messages,
)
from tests.support.adapter_pages import assert_page_runs  # noqa: E402
from tests.support.log_faults import FAULTS  # noqa: E402
from tests.support.other_agents import answer_in_between  # noqa: E402
from tests.support.prefixes import prefix_breaks, recorded_changes  # noqa: E402
from tests.support.strict_server import StrictServer  # noqa: E402

MODELS = ("claude-opus-4-8", "claude-opus-5-5")
create_agent: Any = import_module("langchain.agents").create_agent
graphs: Any = import_module("langgraph.graph")
THINKING: dict[str, Any] = {
    "claude-opus-4-8": {"type": "enabled", "budget_tokens": 1_024},
    "claude-opus-5-5": {"type": "adaptive"},
}
WINDOW = 12_000
CONFIG: Any = {"configurable": {"thread_id": "t"}}


RUNS = list[str]()
"""Commands that ran."""


@tool
def run(command: str) -> str:
    """Run a command."""
    RUNS.append(command)
    return f"{command} went well. " * 40


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer() as running:
        yield running


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as opened:
        yield opened


class FailingLog(AgentMiddleware[Any, Any, Any]):
    """Makes the log fail around every n-th call of the model, and at every n-th end of a turn."""

    every = 0

    def __init__(
        self, path: Path, memory: refold.Memory, fault: str, patch: pytest.MonkeyPatch
    ) -> None:
        super().__init__()
        self._begin = partial(FAULTS[fault], path, patch, memory)
        self._count = itertools.count()
        self._ends: list[Callable[[], object]] = []

    def _maybe(self) -> None:
        if self.every and next(self._count) % self.every == 0:
            self._ends.append(self._begin())

    def _end(self) -> None:
        while self._ends:
            self._ends.pop()()

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self._maybe()
        try:
            return handler(request)
        finally:
            self._end()

    def after_model(self, state: Any, runtime: Any) -> None:
        del runtime
        if not state["messages"][-1].tool_calls:
            self._maybe()

    def before_agent(self, state: Any, runtime: Any) -> None:
        del state, runtime
        self._end()

    def after_agent(self, state: Any, runtime: Any) -> None:
        del state, runtime
        self._end()


def chat(server: StrictServer, model: str) -> Any:
    return langchain_anthropic.ChatAnthropic(
        model=model,
        api_key="key",
        base_url=server.base_url,
        max_tokens=2_000,
        thinking=THINKING[model],
        max_retries=0,
    )


def agent_of(model: Any, *middleware: Any) -> Any:
    return create_agent(
        model,
        tools=[run],
        system_prompt="You help.",
        middleware=list(middleware),
        checkpointer=InMemorySaver(),
    )


def ask(agent: Any, question: str) -> list[Any]:
    state = agent.invoke({"messages": [{"role": "user", "content": question}]}, CONFIG)
    messages: list[Any] = state["messages"]
    return messages


@pytest.mark.slow(but="claude-opus-5-5")
@pytest.mark.parametrize("model", MODELS)
def test_sixty_turns_are_never_refused_and_all_of_it_is_stored(
    server: StrictServer, memory: refold.Memory, model: str
) -> None:
    agent = agent_of(chat(server, model), MemoryMiddleware(memory))
    messages: list[Any] = []
    for number in range(60):
        messages = ask(agent, f"Question {number}: please build part {number}. " * 3)
    assert server.refused == []
    conversation = memory.conversation("t")
    assert len(conversation.messages()) == len(messages)
    assert len(conversation.summaries()) >= 3
    assert len(memory.conversations()) == 1
    assert max(len(json.dumps(body)) for body in server.bodies) < 3.6 * WINDOW
    assert prefix_breaks(server.bodies) <= recorded_changes(conversation) < 30


@pytest.mark.parametrize("model", MODELS[1:])
def test_the_state_is_kept_short_and_nothing_is_missing(
    server: StrictServer, tmp_path: Path, model: str
) -> None:
    saver = InMemorySaver()
    said, stored = 0, 0
    for life in range(3):
        with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as memory:
            agent = create_agent(
                chat(server, model),
                tools=[run],
                system_prompt="You help.",
                middleware=[MemoryMiddleware(memory, keep_in_state=8)],
                checkpointer=saver,
            )
            for number in range(5):
                messages = ask(agent, f"Question {life} {number}: please build it. " * 3)
                said += 6
                assert len(messages) <= 8
            stored = len(memory.conversation("t").messages())
            assert len(memory.conversations()) == 1
    assert server.refused == []
    assert stored == said


def test_agents_that_share_a_thread_do_not_take_the_beginning_of_each_other(
    memory: refold.Memory,
) -> None:
    class Interrupted(MemoryMiddleware):
        between: Callable[[], object] = staticmethod(lambda: None)

        def _follow(self, thread_id: str, messages: Any, state: Any) -> str:
            name = super()._follow(thread_id, messages, state)
            self.between, between = staticmethod(lambda: None), self.between
            between()
            return name

    middleware = Interrupted(memory, thread="t", keep_in_state=2)
    agents: dict[str, Any] = {}
    for who in ("Ann", "Bob"):
        model = GenericFakeChatModel(messages=itertools.repeat("It is so."))
        agents[who] = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())

    def say(who: str, number: int) -> Any:
        return ask(agents[who], f"{who} asks question {number}.")

    def end_of_bob() -> None:
        say("Bob", 1)

    say("Ann", 0)
    say("Bob", 0)

    def after_model() -> None:
        middleware.between = staticmethod(end_of_bob)

    middleware.between = staticmethod(after_model)
    say("Ann", 1)
    state = agents["Ann"].get_state(CONFIG).values
    removed = state.get("refold_removed")
    if removed is not None:
        stored = memory.conversation(removed["conversation"]).messages()
        assert stored[0].text == "Ann asks question 0."
    else:
        assert len(state["messages"]) == 4


def test_without_a_checkpointer_the_state_stays_whole(
    server: StrictServer, memory: refold.Memory, caplog: pytest.LogCaptureFixture
) -> None:
    agent = create_agent(
        chat(server, MODELS[1]),
        tools=[run],
        middleware=[MemoryMiddleware(memory, keep_in_state=4)],
    )
    messages: list[Any] = []
    for number in range(5):
        messages.append({"role": "user", "content": f"Question {number}"})
        messages = agent.invoke({"messages": messages}, CONFIG)["messages"]
    assert len(messages) == len(memory.conversation("t").messages()) == 30
    assert len(memory.conversations()) == 1
    assert sum("needs a checkpointer" in r.getMessage() for r in caplog.records) == 1


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_the_answer_of_another_agent_to_the_same_messages_is_not_sent(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    model = Recording(messages=itertools.repeat("It is so."), got=[])
    agent: Any = create_agent(model, middleware=[MemoryMiddleware(memory)])
    answer_in_between(monkeypatch, memory)
    given = {"messages": [HumanMessage("Is it so?")]}
    if is_async:
        asyncio.run(agent.ainvoke(given, CONFIG))
    else:
        agent.invoke(given, CONFIG)
    assert [[one.text for one in request] for request in model.got] == [["Is it so?"]]
    assert [row.messages for row in memory.conversations()] == [2, 2]


class Passed(TypedDict):
    """State of a graph that replaces its messages with those of its agent."""

    messages: list[Any]


@pytest.mark.parametrize("state", [Passed, MemoryState])
def test_the_state_of_an_agent_inside_of_another_graph_stays_whole(
    memory: refold.Memory, state: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = GenericFakeChatModel(messages=itertools.repeat("It is so."))
    agent = create_agent(model, middleware=[MemoryMiddleware(memory, keep_in_state=2)])
    graph: Any = graphs.StateGraph(state)
    graph.add_node("agent", agent).add_edge(graphs.START, "agent")
    compiled = graph.compile(checkpointer=InMemorySaver())
    messages: list[Any] = []
    for number in range(4):
        asked = HumanMessage(f"Question {number}")
        given = [*messages, asked] if state is Passed else [asked]
        messages = compiled.invoke({"messages": given}, CONFIG)["messages"]
    stored = memory.conversation("t").messages()
    assert [one.text for one in stored] == [one.text for one in messages]
    assert len(messages) == 8
    assert len(memory.conversations()) == 1
    assert sum("needs a checkpointer" in r.getMessage() for r in caplog.records) == 1


def test_the_state_of_an_agent_inside_of_another_graph_is_kept_short_if_it_lasts(
    memory: refold.Memory,
) -> None:
    model = GenericFakeChatModel(messages=itertools.repeat("It is so."))
    middleware = MemoryMiddleware(memory, thread="inner", keep_in_state=2)
    agent = create_agent(model, middleware=[middleware], checkpointer=True)
    lengths: list[int] = []

    def ask_agent(state: Any) -> Any:
        asked = [HumanMessage(state["messages"][-1].text)]
        lengths.append(len(agent.invoke({"messages": asked})["messages"]))
        return {"messages": []}

    graph: Any = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("ask", ask_agent).add_edge(graphs.START, "ask")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for number in range(4):
        compiled.invoke({"messages": [HumanMessage(f"Question {number}")]}, CONFIG)
    assert lengths == [2] * 4
    assert len(memory.conversation("inner").messages()) == 8
    assert len(memory.conversations()) == 1


def test_an_agent_remembers_in_its_own_conversation_while_a_sub_agent_runs(
    memory: refold.Memory,
) -> None:
    has_answered = threading.Event()

    class Calling(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **given: Any) -> Any:
            del tools, given
            return self

    class Later(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            if request.tool_call["name"] == "remember":
                assert has_answered.wait(30)
            return handler(request)

    middleware = MemoryMiddleware(memory, edits="allow")
    helper: Any = create_agent(
        Calling(messages=itertools.repeat("It is so.")), middleware=[middleware]
    )

    @tool
    def ask_helper(question: str) -> str:
        """Ask the helper."""
        answer: str = helper.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text
        has_answered.set()
        return answer

    note = {"text": "Ann likes tea.", "kind": "preference"}
    calls: list[Any] = [
        {"name": "ask_helper", "args": {"question": "What is so?"}, "id": "c1"},
        {"name": "remember", "args": note, "id": "c2"},
    ]
    answers = iter([AIMessage("", tool_calls=calls), AIMessage("Done.")])

    agent: Any = create_agent(
        Calling(messages=answers), tools=[ask_helper], middleware=[middleware, Later()]
    )
    agent.invoke({"messages": [HumanMessage("I like tea. Ask the helper.")]}, CONFIG)
    assert [one.text for one in memory.conversation("t").notes()] == ["Ann likes tea."]


def test_the_conversation_that_was_used_last_is_remembered(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.adapters.langchain._REMEMBERED", 2)
    middleware = MemoryMiddleware(memory)
    agent: Any = create_agent(
        GenericFakeChatModel(messages=itertools.repeat("It is so.")), middleware=[middleware]
    )
    for thread in ("a", "b", "a", "c"):
        given = {"messages": [HumanMessage(f"Question of {thread}")]}
        agent.invoke(given, {"configurable": {"thread_id": thread}})
    known = middleware._conversations  # pyright: ignore[reportPrivateUsage]
    assert [thread for thread, _ in known] == ["a", "c"]


def test_other_middleware_composes_with_it(server: StrictServer, memory: refold.Memory) -> None:
    agent = agent_of(chat(server, MODELS[1]), TodoListMiddleware(), MemoryMiddleware(memory))
    messages: list[Any] = []
    for number in range(4):
        messages = ask(agent, f"Question {number}")
    assert server.refused == []
    assert {"run", "write_todos"} <= {t["name"] for t in server.bodies[-1]["tools"]}
    assert len(memory.conversation("t").messages()) == len(messages)


def test_an_agent_can_ask_its_memory(server: StrictServer, memory: refold.Memory) -> None:
    middleware = MemoryMiddleware(memory, thread="t", recall=True)
    agent = agent_of(chat(server, MODELS[1]), middleware)
    ask(agent, "The port of the staging server is 6390.")
    assert "recall_memory" in {t["name"] for t in server.bodies[-1]["tools"]}
    recall = next(one for one in middleware.tools if one.name == "recall_memory")
    found = recall.invoke({"query": "port of the staging server"})
    assert found.startswith("Nothing was found")
    assert "are in your context already" in found
    for number in range(20):
        ask(agent, f"Question {number}: please build part {number}. " * 6)
    assert "6390" in recall.invoke({"query": "port of the staging server"})


def test_an_agent_asks_to_edit_its_memory_and_the_program_decides(
    server: StrictServer, memory: refold.Memory
) -> None:
    middleware = MemoryMiddleware(memory, thread="t", edits="propose")
    ask(agent_of(chat(server, MODELS[1]), middleware), "Never deploy on a Friday.")
    assert {"recall_memory", "remember", "pin", "forget"} <= {
        t["name"] for t in server.bodies[-1]["tools"]
    }
    pin = next(one for one in middleware.tools if one.name == "pin")
    pin.invoke({"text": "Never deploy on a Friday."})
    conversation = memory.conversation("t")
    assert conversation.pins() == ()
    [proposal] = conversation.proposals()
    conversation.allow(proposal.edit_id)
    assert [one.text for one in conversation.pins()] == ["Never deploy on a Friday."]
    with pytest.raises(refold.InvalidSetting, match="edits"):
        MemoryMiddleware(memory, edits="always")  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", [0, -1, "20", 3.5, True])
def test_a_wrong_setting_is_refused(memory: refold.Memory, keep: Any) -> None:
    with pytest.raises(refold.InvalidSetting, match="keep_in_state"):
        MemoryMiddleware(memory, keep_in_state=keep)


@pytest.mark.parametrize("given", [{"question": "port"}, {}, {"query": "port", "limit": -1}])
def test_a_wrong_argument_of_the_model_is_answered(memory: refold.Memory, given: Any) -> None:
    middleware = MemoryMiddleware(memory, thread="t", recall=True)
    recall = next(one for one in middleware.tools if one.name == "recall_memory")
    assert "recall_memory takes" in recall.invoke(given) or "limit" in recall.invoke(given)


class Recording(GenericFakeChatModel):
    """A model of another vendor that keeps what it gets."""

    got: list[list[Any]]

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        del tools, kwargs
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.got.append(list(messages))
        return super()._generate(messages, *args, **kwargs)


def test_messages_go_out_as_they_are_until_something_is_compacted(memory: refold.Memory) -> None:
    replies = (AIMessage(content=f"Noted {n}. " + "so " * 300, name="helper") for n in range(60))
    model = Recording(messages=replies, got=[])
    agent = agent_of(model, MemoryMiddleware(memory))
    for number in range(50):
        messages = ask(agent, f"Question {number} " * 20)
        is_compacted = bool(memory.conversation("t").summaries())
        own = [one.id for one in messages[:-1]]
        sent = [one.id for one in model.got[-1] if one.type != "system"]
        assert (sent == own) != is_compacted
        # Replies that are shown whole stay as they were.
        assert {one.name for one in model.got[-1] if one.type == "ai"} <= {"helper"}
    assert memory.conversation("t").summaries()


class Seeing(AgentMiddleware[Any, Any, Any]):
    """Keeps the requests that the model gets."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, Any]] = []

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        shown = [
            {**one, "data": {**one["data"], "id": ""}} for one in messages_to_dict(request.messages)
        ]
        self.seen.append((shown, request.system_message and request.system_message.content))
        return handler(request)


MARKED = {"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}}
SPOKEN = {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}
WRITTEN = {"type": "file", "file": {"file_id": "f1"}}
CALL = {"name": "run", "args": {"command": "ls"}, "id": "c1"}


@pytest.mark.parametrize(
    ("given", "is_sent"),
    [
        ([SystemMessage("Be nice."), SystemMessage("Be brief."), HumanMessage("hi")], True),
        ([HumanMessage([MARKED, SPOKEN, WRITTEN])], True),
        ([HumanMessage("a"), AIMessage("b"), AIMessage("c"), HumanMessage("d")], True),
        ([HumanMessage("a"), AIMessage("", tool_calls=[CALL]), ToolMessage("x", tool_call_id="c1"),
          HumanMessage("b")], True),
        ([HumanMessage("a"), AIMessage("", tool_calls=[CALL]), HumanMessage("b")], False),
        ([ToolMessage("x", tool_call_id="c1"), HumanMessage("b")], False),
        ([HumanMessage("a"), AIMessage(""), HumanMessage("b")], False),
        ([HumanMessage("a"), AIMessage("b"), SystemMessage("c"), HumanMessage("d")], False),
    ],
    ids=["system", "content", "answers", "call", "open", "orphan", "silent", "middle"],
)  # fmt: skip
def test_a_model_gets_the_requests_of_the_agent_if_it_accepts_them(
    tmp_path: Path, given: list[Any], is_sent: bool
) -> None:
    def play(*middleware: Any) -> list[tuple[Any, Any]]:
        seeing = Seeing()
        model = GenericFakeChatModel(messages=iter([AIMessage("one"), AIMessage("two")]))
        agent = create_agent(model, middleware=[*middleware, seeing], system_prompt="You help.")
        state = agent.invoke({"messages": given}, CONFIG)
        agent.invoke({"messages": [*state["messages"], HumanMessage("more")]}, CONFIG)
        return seeing.seen

    with refold.open(tmp_path / "agent.db", telemetry=False) as memory:
        assert (play(MemoryMiddleware(memory)) == play()) is is_sent
        assert len(memory.conversations()) == 1


def test_a_call_with_broken_arguments_keeps_its_answer(memory: refold.Memory) -> None:
    broken: Any = {"id": "c1", "name": "run", "args": '{"command": ', "error": "cut off"}
    said = [AIMessage(content="", invalid_tool_calls=[broken]), AIMessage(content="Done.")]
    model = Recording(messages=iter(said), got=[])
    agent = agent_of(model, MemoryMiddleware(memory))
    ask(agent, "go on")
    ask(agent, "and now?")
    sent = [one.type for one in model.got[-1] if one.type != "system"]
    assert sent == ["human", "ai", "tool", "human"]
    stored = memory.conversation("t").messages()
    assert stored[1].message.content[0] == {
        "type": "tool_use",
        "id": "c1",
        "name": "run",
        "input": {"_arguments": '{"command": '},
    }


def asks_its_memory(body: Any, number: int) -> list[Any]:
    """Call the tool for a question about the port, then repeat what it found."""
    last = body["messages"][-1]["content"]
    blocks = [{"type": "text", "text": last}] if isinstance(last, str) else last
    found = [b for b in blocks if b["type"] == "tool_result"]
    if found:
        return [{"type": "text", "text": str(found[0]["content"])[:400]}]
    if any("which port" in str(b.get("text")) for b in blocks):
        given = {"query": "port of the server"}
        return [{"type": "tool_use", "id": f"c{number}", "name": "recall_memory", "input": given}]
    return [{"type": "text", "text": "Noted. " * 150}]


def test_each_thread_recalls_its_own_conversation(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StrictServer(asks_its_memory) as server:
        agent = agent_of(chat(server, MODELS[1]), MemoryMiddleware(memory, recall=True))
        messages: list[Any] = []
        config: Any = {}
        for thread, port in (("one", "6390"), ("other", "7401")):
            config = {"configurable": {"thread_id": thread}}
            said = [f"The port of the server is {port}.", *["Go on, please. " * 40] * 30]
            for words in (*said, "which port is it?"):
                asked = [{"role": "user", "content": words}]
                messages = agent.invoke({"messages": asked}, config)["messages"]
            assert messages[-2].name == "recall_memory"
            assert port in messages[-2].text
        assert "6390" not in messages[-2].text
        monkeypatch.setattr(memory._core.log, "load", 1 / 2)  # pyright: ignore[reportPrivateUsage]
        asked = [{"role": "user", "content": "which port is it?"}]
        messages = agent.invoke({"messages": asked}, config)["messages"]
        assert "cannot be used" in messages[-2].text
        assert not server.refused


def test_a_model_of_another_vendor_gets_text_and_calls(memory: refold.Memory) -> None:
    numbers = itertools.count()

    def replies() -> Iterator[AIMessage]:
        while True:
            n = next(numbers)
            call = {"name": "run", "args": {"command": f"make {n}"}, "id": f"c{n}"}
            yield AIMessage(content=f"I run {n}.", tool_calls=[call])
            yield AIMessage(content=f"Done {n}.")

    class Fake(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            del tools, kwargs
            return self

    agent = agent_of(Fake(messages=replies()), MemoryMiddleware(memory))
    messages: list[Any] = []
    for number in range(30):
        messages = ask(agent, f"Question {number} " * 60)
    assert len(memory.conversation("t").messages()) == len(messages) == 120
    assert memory.conversation("t").summaries()


@pytest.mark.slow(but="deleted-8")
@pytest.mark.parametrize("keep", [None, 8])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_that_fails_does_not_stop_the_agent(
    server: StrictServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    keep: int | None,
) -> None:
    """It fails at every third call of the model, or while a turn ends."""
    path, turns = tmp_path / "agent.db", 0
    RUNS.clear()
    with refold.open(path, window=WINDOW, telemetry=False, scrub_megabytes=0) as memory:
        middleware = MemoryMiddleware(memory, keep_in_state=keep, lock_wait=0.05)
        agent = agent_of(
            chat(server, MODELS[1]), FailingLog(path, memory, fault, monkeypatch), middleware
        )
        while not memory.conversation("t").summaries():
            turns += 1
            ask(agent, "Please build another part. " * 6)
        FailingLog.every = 3
        for number in range(20):
            turns += 1
            ask(agent, f"Question {number}: please build it. " * 6)
        FailingLog.every = 0
        ask(agent, "the last one")
        assert server.refused == []
        # A question, each call with its result, and an answer.
        assert len(memory.conversation("t").messages()) == 2 * (turns + 1) + 2 * len(RUNS)
        assert len(memory.conversations()) == 1
        assert memory.verify().ok
    assert any("cannot be used" in r.message for r in caplog.records)


def test_messages_come_back_as_langchain_had_them(
    server: StrictServer, memory: refold.Memory
) -> None:
    agent = agent_of(chat(server, MODELS[1]), MemoryMiddleware(memory))
    messages: list[Any] = []
    for number in range(12):
        messages = ask(agent, f"Question {number}: please build part {number}. " * 6)
    conversation = memory.conversation("t")
    assert messages_to_dict(stored_messages(conversation)) == messages_to_dict(messages)
    conversation.erase(1)
    conversation.append({"role": "user", "content": "said elsewhere"})
    back = stored_messages(conversation)
    assert messages_to_dict(back[2:-1]) == messages_to_dict(messages[2:])
    assert "Content unavailable" in str(back[1].content)
    assert back[-1].content == [{"type": "text", "text": "said elsewhere"}]


@pytest.mark.parametrize("model", MODELS[1:])
def test_asynchronous_agents(server: StrictServer, memory: refold.Memory, model: str) -> None:
    agent = agent_of(chat(server, model), MemoryMiddleware(memory))

    async def play() -> list[Any]:
        messages: list[Any] = []
        for number in range(10):
            given = {"messages": [{"role": "user", "content": f"Question {number}"}]}
            messages = (await agent.ainvoke(given, CONFIG))["messages"]
        return messages

    messages = asyncio.run(play())
    assert server.refused == []
    assert len(memory.conversation("t").messages()) == len(messages)


def test_the_code_of_the_page_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    assert_page_runs("langchain.md", tmp_path)


def test_people_come_out_of_a_checkpointer(server: StrictServer, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        summarises = SummarizationMiddleware(
            chat(server, MODELS[0]), trigger=("messages", 12), keep=("messages", 6)
        )
        agent = create_agent(
            chat(server, MODELS[0]), tools=[run], middleware=[summarises], checkpointer=saver
        )
        said: dict[str, list[str]] = {"a": [], "b": []}
        for number in range(4):
            for thread_id, questions in said.items():
                question = f"Question {number} of {thread_id}"
                config: Any = {"configurable": {"thread_id": thread_id}}
                agent.invoke({"messages": [{"role": "user", "content": question}]}, config)
                questions.append(question)
        with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as memory:
            first = import_checkpoints(saver, memory)
            again = import_checkpoints(saver, memory)
            assert [one.thread_id for one in first] == ["a", "b"]
            assert all(one.new == one.messages for one in first)
            assert [one._replace(new=0) for one in first] == again
            for thread_id, questions in said.items():
                messages = memory.conversation(thread_id).messages()
                asked = [m.message.content for m in messages if m.message.content in questions]
                assert asked == questions
                programs = [m for m in messages if m.message.author == "program"]
                assert programs, "summaries are marked"
                assert all(
                    "summary of the conversation" in str(m.message.content) for m in programs
                )
                results = [
                    b for m in messages for b in m.message.blocks() if b["type"] == "tool_result"
                ]
                assert len(results) == 8
                assert sorted(m.at for m in messages) == [m.at for m in messages]
