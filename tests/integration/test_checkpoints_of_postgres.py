"""Conversations out of LangGraph's ``PostgresSaver``, on a private server."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refold
from tests.support.postgres import SWITCH, postgres, server_programs
from tests.support.strict_server import StrictServer

if not os.environ.get(SWITCH):
    for package in ("langchain_anthropic", "langgraph.checkpoint.postgres", "psycopg"):
        # Without libpq, psycopg is there and cannot be imported.
        pytest.importorskip(package, exc_type=ImportError)

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver

from refold.adapters.langchain import import_checkpoints
from tests.support.checkpoint_agents import summarising_agent, talk


@pytest.fixture
def saver() -> Iterator[PostgresSaver]:
    programs = server_programs()
    if programs is None:
        pytest.skip(f"no PostgreSQL server is installed: name its bin folder in {SWITCH}")
    with postgres(programs) as place, PostgresSaver.from_conn_string(place) as opened:
        opened.setup()
        yield opened


def said(message: BaseMessage) -> tuple[str, Any]:
    """Return the id and the content of a message, as refold stores it."""
    content: Any = message.content
    if isinstance(message, ToolMessage):
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        return str(message.id), [{**result, "content": content, "is_error": False}]
    return str(message.id), content


@pytest.mark.slow
def test_every_message_comes_out_of_postgres_once(saver: PostgresSaver, tmp_path: Path) -> None:
    with StrictServer() as server:
        had = talk(summarising_agent(server, saver), ("a", "b", "c"), 4)
    with refold.open(tmp_path / "agent.db", telemetry=False) as memory:
        first = import_checkpoints(saver, memory)
        again = import_checkpoints(saver, memory)
        assert [(t.thread_id, t.new) for t in first] == [(t, len(of)) for t, of in had.items()]
        assert [t.new for t in again] == [0, 0, 0]
        for thread_id, of in had.items():
            messages = memory.conversation(thread_id).messages()
            stored = [
                (str(m.message_id), list(c) if isinstance(c := m.message.content, tuple) else c)
                for m in messages
            ]
            assert dict(stored) == dict(map(said, of.values()))
            ids = [one.id for one in of.values()]
            assert [m.message_id for m in messages] == ids
            assert [m.at for m in messages] == sorted(m.at for m in messages)
            assert any(m.message.author == "program" for m in messages)
