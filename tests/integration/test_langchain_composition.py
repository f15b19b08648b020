"""The memory as one of several middleware: nothing is refused, and every message is stored once."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import refold
from tests.architecture.rules import ROOT
from tests.support.strict_server import Json, StrictServer, works

pytest.importorskip("langchain", minversion="1.2")
pytest.importorskip("langgraph.checkpoint.sqlite")
pytest.importorskip("langchain_anthropic")

from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from refold.adapters.langchain import MemoryMiddleware
from tests.support.checkpoint_agents import run
from tests.support.composed_agents import (
    ORDERS,
    WINDOW,
    Order,
    agent_with,
    ask,
    chat,
    create_agent,
    decide,
    reviewed_agent,
)

DECISIONS: dict[str, dict[str, Any]] = {
    "approve": {"type": "approve"},
    "edit": {
        "type": "edit",
        "edited_action": {"name": "run", "args": {"command": "make nothing"}},
    },
    "reject": {"type": "reject", "message": "Not now."},
}
TURNS = 14


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer() as running:
        yield running


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as opened:
        yield opened


def assert_stored_once(memory: refold.Memory, messages: list[Any]) -> None:
    """One conversation has exactly the messages of the state."""
    (only,) = memory.conversations()
    stored = memory.conversation(only.thread_id).messages()
    assert len(stored) == len(messages)
    results = [b for m in stored for b in m.message.blocks() if b["type"] == "tool_result"]
    of_state = [m for m in messages if m.type == "tool"]
    assert [b["tool_use_id"] for b in results] == [m.tool_call_id for m in of_state]


def play(agent: Any, turns: int = TURNS) -> list[Any]:
    messages: list[Any] = []
    for number in range(turns):
        messages = ask(agent, f"Question {number} of ann@example.org: build part {number}.")[
            "messages"
        ]
    return messages


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_person_reviews_the_calls(
    server: StrictServer, tmp_path: Path, order: Order, decision: str
) -> None:
    messages: list[Any] = []
    for life in range(3):
        with reviewed_agent(tmp_path, server.base_url, order) as (agent, _):
            for number in range(3):
                state = ask(agent, f"Question {life} {number}: please build it. " * 10)
                while "__interrupt__" in state:
                    state = decide(agent, DECISIONS[decision])
                messages = state["messages"]
    with reviewed_agent(tmp_path, server.base_url, order) as (_, memory):
        assert server.refused == []
        assert_stored_once(memory, messages)


@pytest.mark.slow
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_another_process_goes_on_after_a_review(
    server: StrictServer, tmp_path: Path, order: Order, decision: str
) -> None:
    with reviewed_agent(tmp_path, server.base_url, order) as (agent, _):
        assert "__interrupt__" in ask(agent, "Please build it.")
    for _ in range(2):
        given = json.dumps([str(tmp_path), server.base_url, order, DECISIONS[decision]])
        subprocess.run(
            [sys.executable, "-m", "tests.support.composed_agents", given],
            cwd=ROOT,
            check=True,
            timeout=60,
        )
    with reviewed_agent(tmp_path, server.base_url, order) as (agent, memory):
        state = ask(agent, "And now?")
        while "__interrupt__" in state:
            state = decide(agent, DECISIONS[decision])
        assert server.refused == []
        assert len(state["messages"]) == 12
        assert_stored_once(memory, state["messages"])


class Remark(AgentMiddleware[Any, Any, Any]):
    """Adds a message to each request, and not to the state."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        remark = HumanMessage("Remark: it is Tuesday.")
        return handler(request.override(messages=[*request.messages, remark]))


COMPOSED: dict[str, Callable[[], list[Any]]] = {
    "to-do": lambda: [TodoListMiddleware()],
    "retries": lambda: [
        ToolRetryMiddleware(initial_delay=0),
        ModelRetryMiddleware(initial_delay=0, jitter=False),
    ],
    "limit": lambda: [ModelCallLimitMiddleware(run_limit=2)],
    "redacts input": lambda: [PIIMiddleware("email", apply_to_tool_results=True)],
    "redacts output": lambda: [PIIMiddleware("email", apply_to_output=True)],
}


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("order", ORDERS)
def test_other_middleware(memory: refold.Memory, order: Order, name: str) -> None:
    def replies(body: Json, number: int) -> list[Json]:
        return [{**b, "text": f"Mail bob@example.org! {b['text']}"} if b["type"] == "text" else b
                for b in works(body, number)]  # fmt: skip

    with StrictServer(replies) as server:
        agent = agent_with(chat(server.base_url), memory, COMPOSED[name](), order, InMemorySaver())
        messages = play(agent)
        assert server.refused == []
        assert_stored_once(memory, messages)
        assert memory.conversation("t").summaries()
        if name.startswith("redacts"):
            of_state = "".join(str(m.content) for m in messages)
            stored = "".join(str(m.message.content) for m in memory.conversation("t").messages())
            for mail in ("ann@example.org", "bob@example.org"):
                assert (mail in stored) == (mail in of_state)


@pytest.mark.parametrize("order", ORDERS)
def test_a_model_that_fails_is_asked_again(
    server: StrictServer, memory: refold.Memory, order: Order
) -> None:
    retries = [ModelRetryMiddleware(initial_delay=0, jitter=False)]
    agent = agent_with(chat(server.base_url), memory, retries, order, InMemorySaver())
    messages: list[Any] = []
    for number in range(4):
        server.fails = [529, 529]
        messages = ask(agent, f"Question {number}")["messages"]
    assert server.fails == []
    assert server.refused == []
    assert_stored_once(memory, messages)


EDITS: tuple[tuple[str, Order], ...] = (
    ("claude-opus-4-8", "memory first"),
    ("claude-opus-4-8", "memory last"),
    ("claude-opus-5-5", "memory last"),
)


@pytest.mark.parametrize(("model", "order"), EDITS)
def test_middleware_that_edits_requests(
    server: StrictServer, memory: refold.Memory, order: Order, model: str
) -> None:
    edits = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1_500, keep=2)])
    agent = agent_with(chat(server.base_url, model), memory, [edits], order, InMemorySaver())
    messages = play(agent)
    assert server.refused == []
    assert_stored_once(memory, messages)


def test_what_edits_requests_after_the_memory_is_refused_with_and_without_it(
    server: StrictServer, memory: refold.Memory
) -> None:
    model = chat(server.base_url, "claude-opus-5-5")
    edits = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1_500, keep=2)])
    for others in ([edits], [MemoryMiddleware(memory), edits]):
        server.refused.clear()
        agent = create_agent(model, tools=[run], middleware=others, checkpointer=InMemorySaver())
        with pytest.raises(Exception, match="changed since it was signed"):
            play(agent)
        assert server.refused


@pytest.mark.parametrize("order", ORDERS)
def test_a_message_that_is_in_requests_alone(
    server: StrictServer, memory: refold.Memory, order: Order
) -> None:
    model = chat(server.base_url)
    messages = play(agent_with(model, memory, [Remark()], order, InMemorySaver()))
    assert server.refused == []
    assert_stored_once(memory, messages)
    assert all("it is Tuesday" in str(body["messages"][-1]) for body in server.bodies)


@pytest.mark.parametrize("order", ORDERS)
def test_a_second_summariser(server: StrictServer, memory: refold.Memory, order: Order) -> None:
    other = SummarizationMiddleware(
        chat(server.base_url), trigger=("messages", 14), keep=("messages", 6)
    )
    play(agent_with(chat(server.base_url), memory, [other], order, InMemorySaver()))
    assert server.refused == []
