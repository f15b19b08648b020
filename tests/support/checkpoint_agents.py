"""Agents of LangGraph that make checkpoints to import."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from langchain.agents.middleware import SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool

from .strict_server import StrictServer

create_agent: Any = import_module("langchain.agents").create_agent


@dataclass
class Counted:
    """A part of a state whose code is seen when it runs."""

    name: str
    made: ClassVar[list[str]] = []

    def __post_init__(self) -> None:
        self.made.append(self.name)


@tool
def run(command: str) -> str:
    """Run a command."""
    return f"{command} went well. " * 40


def summarising_agent(server: StrictServer, saver: Any) -> Any:
    """Return an agent whose state is summarised by LangChain after twelve messages."""
    made: Any = ChatAnthropic
    model = made(
        model="claude-opus-4-8",
        api_key="key",
        base_url=server.base_url,
        max_tokens=2_000,
        thinking={"type": "enabled", "budget_tokens": 1_024},
        max_retries=0,
    )
    summarises = SummarizationMiddleware(model, trigger=("messages", 12), keep=("messages", 6))
    return create_agent(model, tools=[run], middleware=[summarises], checkpointer=saver)


def talk(agent: Any, threads: tuple[str, ...], turns: int) -> dict[str, dict[str, Any]]:
    """Ask each thread some questions, and return every message that a state had, by thread and id."""
    had: dict[str, dict[str, Any]] = {thread: {} for thread in threads}
    for number in range(turns):
        for thread_id in threads:
            question = {"role": "user", "content": f"Question {number} of {thread_id}"}
            config = {"configurable": {"thread_id": thread_id}}
            for state in agent.stream({"messages": [question]}, config, stream_mode="values"):
                had[thread_id].update((one.id, one) for one in state["messages"])
    return had


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder with their bytes."""
    return {one.name: one.read_bytes() for one in sorted(folder.iterdir())}
