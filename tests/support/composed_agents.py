"""Agents whose memory is one of several middleware, against the strict local server."""

import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.sqlite import SqliteSaver

import refold
from refold.adapters.langchain import MemoryMiddleware

from .checkpoint_agents import run

create_agent: Any = import_module("langchain.agents").create_agent
command: Any = import_module("langgraph.types").Command
THINKING: dict[str, dict[str, Any]] = {
    "claude-opus-4-8": {"type": "enabled", "budget_tokens": 1_024},
    "claude-opus-5-5": {"type": "adaptive"},
}
WINDOW = 6_000
THREAD: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 40}
Order = Literal["memory first", "memory last"]
ORDERS: tuple[Order, ...] = ("memory first", "memory last")


def chat(url: str, model: str = "claude-opus-5-5") -> Any:
    made: Any = ChatAnthropic
    return made(
        model=model,
        api_key="key",
        base_url=url,
        max_tokens=1_000,
        thinking=THINKING[model],
        max_retries=0,
    )


def agent_with(
    model: Any, memory: refold.Memory, others: Sequence[Any], order: Order, saver: Any
) -> Any:
    """Return an agent with a tool, whose memory is the first or the last of its middleware."""
    own = MemoryMiddleware(memory)
    middleware = [own, *others] if order == "memory first" else [*others, own]
    return create_agent(
        model, tools=[run], system_prompt="You help.", middleware=middleware, checkpointer=saver
    )


@contextmanager
def reviewed_agent(folder: Path, url: str, order: Order) -> Generator[tuple[Any, refold.Memory]]:
    """Open an agent whose calls a person reviews, with its memory and its checkpoints in files."""
    with (
        SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver,
        refold.open(folder / "agent.db", window=WINDOW, telemetry=False) as memory,
    ):
        review = HumanInTheLoopMiddleware(interrupt_on={"run": True})
        yield agent_with(chat(url), memory, [review], order, saver), memory


def ask(agent: Any, question: str) -> dict[str, Any]:
    state: dict[str, Any] = agent.invoke(
        {"messages": [{"role": "user", "content": question}]}, THREAD
    )
    return state


def decide(agent: Any, decision: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = agent.invoke(command(resume={"decisions": [decision]}), THREAD)
    return state


def decide_elsewhere(folder: str, url: str, order: Order, decision: dict[str, Any]) -> None:
    """Resume the agent with one decision, in a process of its own."""
    with reviewed_agent(Path(folder), url, order) as (agent, _):
        decide(agent, decision)


if __name__ == "__main__":
    decide_elsewhere(*json.loads(sys.argv[1]))
