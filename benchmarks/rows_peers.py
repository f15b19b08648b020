"""The turn of other libraries next to refold and raw sqlite3: append of three messages, then what they load.

    python benchmarks/rows_peers.py

Only libraries that are installed are measured: ``pip install openai-agents langgraph langgraph-checkpoint-sqlite
google-adk``. Each is used as its own runner uses it.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from rows import Cost, cost, medians
from rows_append import LIVE, Raw, fill, said, turn

import refold

ROUNDS = 12
Turn = Callable[[int], object]
Peer = Callable[[Path, int], Turn]


def openai_agents(folder: Path, size: int) -> Turn:
    """Return a turn of OpenAI's ``SQLiteSession``: append, then all items."""
    from agents import SQLiteSession  # type: ignore[import-not-found]

    session: Any = SQLiteSession("chat", str(folder / "openai.db"))
    loop = asyncio.new_event_loop()
    for first in range(0, size, 1_000):
        loop.run_until_complete(session.add_items([said(n) for n in range(first, first + 1_000)]))

    def act(number: int) -> None:
        loop.run_until_complete(session.add_items(list(turn(number))))
        loop.run_until_complete(session.get_items())

    return act


def langgraph(folder: Path, size: int) -> Turn:
    """Return a turn of a graph with ``SqliteSaver``: three messages go in, and the state is loaded."""
    import sqlite3

    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]
    from langgraph.graph import END, START, MessagesState, StateGraph

    graph: Any = StateGraph(MessagesState)
    graph.add_node("wait", lambda state: {})
    graph.add_edge(START, "wait")
    graph.add_edge("wait", END)
    connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False)
    app = graph.compile(checkpointer=SqliteSaver(connection))
    config = {"configurable": {"thread_id": "chat"}}
    texts = [str(said(n)["content"]) for n in range(size)]
    made = [(AIMessage if n % 2 else HumanMessage)(text) for n, text in enumerate(texts)]
    app.invoke({"messages": made}, config)

    def act(number: int) -> None:
        new = [HumanMessage(f"{number} {n} {texts[0]}") for n in range(3)]
        app.invoke({"messages": new}, config)

    return act


def google_adk(folder: Path, size: int) -> Turn:
    """Return a turn of ADK's ``SqliteSessionService``: three events, then the session."""
    from google.adk.events import Event  # type: ignore[import-not-found]
    from google.adk.sessions.sqlite_session_service import (  # type: ignore[import-not-found]
        SqliteSessionService,
    )
    from google.genai import types  # type: ignore[import-not-found]

    service: Any = SqliteSessionService(str(folder / "adk.db"))
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete
    session = run(service.create_session(app_name="a", user_id="u", session_id="chat"))
    text = str(said(0)["content"])

    def event(number: int) -> Any:
        part = types.Part(text=f"{number} {text}")
        return Event(author="user", content=types.Content(role="user", parts=[part]))

    for number in range(size):
        run(service.append_event(session, event(number)))

    def act(number: int) -> None:
        loaded = run(service.get_session(app_name="a", user_id="u", session_id="chat"))
        for n in range(3):
            run(service.append_event(loaded, event(number + n)))

    return act


PEERS: dict[str, Peer] = {
    "OpenAI Agents SDK": openai_agents,
    "LangGraph SqliteSaver": langgraph,
    "Google ADK": google_adk,
}


def turns(folder: Path, size: int) -> Iterator[tuple[str, Cost]]:
    """Yield the cost of a turn of raw sqlite3, refold and each installed peer, in one run."""
    raw = Raw(folder / "raw.db")
    with closing(raw.connection), refold.open(folder / "log.db", window=1_000_000) as memory:
        conversation = memory.conversation("chat")
        fill(conversation, raw, size)

        def floor(number: int) -> None:
            raw.append(turn(number))
            raw.tail(LIVE)

        def ours(number: int) -> None:
            conversation.append(turn(number))
            conversation.context()

        acts: dict[str, Turn] = {"raw sqlite3": floor, "refold": ours}
        for name, peer in PEERS.items():
            with suppress(ImportError):
                acts[name] = peer(folder, size)
        found: dict[str, list[Cost]] = {name: [] for name in acts}
        for number in range(ROUNDS):
            for name, act in acts.items():
                found[name].append(cost(partial(act, 10**6 + number)))
        for name, costs in found.items():
            yield name, medians(costs)


if __name__ == "__main__":
    for count in (1_000, 10_000) if "--long" in sys.argv else (1_000,):
        with tempfile.TemporaryDirectory() as place:
            for name, spent in turns(Path(place), count):
                print(f"{count:>7,} {name:25} {spent}")
