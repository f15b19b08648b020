"""Conversations out of files of LangGraph's ``SqliteSaver``, by the command line."""

import operator
import shutil
import sqlite3
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from refold import Memory
from refold import open as open_memory
from tests.support.command_line import Refold
from tests.support.strict_server import StrictServer

pytest.importorskip("langchain", minversion="1.2")
pytest.importorskip("langgraph.checkpoint.sqlite")
pytest.importorskip("langchain_anthropic")

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from refold.adapters.langchain import MemoryMiddleware, import_checkpoints
from tests.support.checkpoint_agents import Counted, files_in, run, summarising_agent, talk
from tests.support.composed_agents import ask, chat, create_agent

Had = dict[str, dict[str, Any]]
graphs: Any = import_module("langgraph.graph")
add_messages: Any = graphs.add_messages
DeltaChannel: Any = import_module("langgraph.channels.delta").DeltaChannel


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Added(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


def _changed(state: Any, writes: Any) -> Any:
    for one in writes:
        state = add_messages(state, one)
    return state


class Changes(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_changed)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Had]:
    """A file with two threads that LangChain summarised, and what their states had."""
    path = tmp_path_factory.mktemp("made") / "checkpoints.sqlite"
    with StrictServer() as server, SqliteSaver.from_conn_string(str(path)) as saver:
        had = talk(summarising_agent(server, saver), ("a", "b"), 4)
    return path, had


@pytest.fixture(name="refold_in")
def refold_command(refold: Refold) -> Refold:
    """The command, under a name that leaves the package its own."""
    return refold


@pytest.fixture
def file(made: tuple[Path, Had], tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    return Path(shutil.copy(made[0], folder / "checkpoints.sqlite"))


def graph_of(state: Any, node: Any, saver: Any) -> Any:
    graph: Any = graphs.StateGraph(state)
    graph.add_node("node", node)
    graph.add_edge(graphs.START, "node")
    return graph.compile(checkpointer=saver)


def says(*texts: str) -> Any:
    """Return a node that answers with these messages."""

    def node(_: Any) -> Any:
        return {"messages": [AIMessage(text) for text in texts]} if texts else {}

    return node


def contents(db: Path, thread_id: str) -> list[str]:
    with open_memory(db, telemetry=False) as memory:
        messages = memory.conversation(thread_id).messages()
        return [str(b.get("text")) for m in messages for b in m.message.blocks()]


def test_every_message_of_every_thread_comes_once(
    made: tuple[Path, Had], file: Path, tmp_path: Path, refold_in: Refold
) -> None:
    before, db = files_in(file.parent), tmp_path / "agent.db"
    first = refold_in("import", file, "--db", db, "--json").answer["files"][0]
    again = refold_in("import", file, "--db", db, "--json").answer["files"][0]
    assert first["format"] == "langgraph"
    had = made[1]
    expected = [(t, len(of), len(of)) for t, of in had.items()]
    assert [(c["thread_id"], c["messages"], c["new"]) for c in first["conversations"]] == expected
    assert [c["new"] for c in again["conversations"]] == [0, 0]
    assert files_in(file.parent) == before
    with open_memory(db, telemetry=False) as memory:
        for thread_id, of in had.items():
            messages = memory.conversation(thread_id).messages()
            assert {m.message_id for m in messages} == set(of)
            assert [m.at for m in messages] == sorted(m.at for m in messages)
            asked = [
                m.message.content for m in messages if "Question" in str(m.message.content)[:9]
            ]
            assert asked == [f"Question {n} of {thread_id}" for n in range(4)]
            summaries = {k for k, one in of.items() if one.additional_kwargs.get("lc_source")}
            assert summaries
            programs = {m.message_id for m in messages if m.message.author == "program"}
            assert programs == summaries


def test_the_output_is_that_of_other_imports(file: Path, tmp_path: Path, refold_in: Refold) -> None:
    done = refold_in("import", file, "--db", tmp_path / "agent.db")
    assert done.code == 0
    assert "langgraph" in done.out
    assert "Next: refold list" in done.out


@pytest.mark.parametrize("is_open", [True, False], ids=["its writer runs", "its writer is gone"])
def test_commits_in_the_write_ahead_log_are_read(
    tmp_path: Path, refold_in: Refold, is_open: bool
) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    path = folder / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.conn.execute("PRAGMA wal_autocheckpoint=0")
        graph = graph_of(State, says("Hello."), saver)
        graph.invoke({"messages": [HumanMessage("Hi.")]}, {"configurable": {"thread_id": "t"}})
        if not is_open:
            (tmp_path / "left").mkdir()
            for name in ("checkpoints.sqlite", "checkpoints.sqlite-wal"):
                shutil.copy(folder / name, tmp_path / "left")
            path = tmp_path / "left" / "checkpoints.sqlite"
        before = files_in(path.parent)
        assert refold_in("import", path, "--db", tmp_path / "agent.db").code == 0
        after = files_in(path.parent)
    assert before.keys() == after.keys()
    names = ("checkpoints.sqlite", "checkpoints.sqlite-wal")
    assert [before[name] for name in names] == [after[name] for name in names]
    assert contents(tmp_path / "agent.db", "t") == ["Hi.", "Hello."]


def test_subgraphs_and_threads_without_messages_are_told(tmp_path: Path, refold_in: Refold) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        inner = graph_of(State, says("inner"), True)

        def call(state: Any) -> Any:
            inner.invoke({"messages": state["messages"]})
            return {"messages": [AIMessage("outer")]}

        graph = graph_of(State, call, saver)
        graph.invoke({"messages": [HumanMessage("Hi.")]}, {"configurable": {"thread_id": "t"}})
        empty = graph_of(dict, says(), saver)
        empty.invoke({"x": 1}, {"configurable": {"thread_id": "silent"}})
    done = refold_in("import", path, "--db", tmp_path / "agent.db")
    assert "× checkpoint of a subgraph" in done.out
    assert "1 × thread without messages" in " ".join(done.out.split())
    assert contents(tmp_path / "agent.db", "t") == ["Hi.", "outer"]


def test_removed_messages_are_read_and_edited_ones_are_as_they_were_last(
    tmp_path: Path, refold_in: Refold
) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:

        def node(state: Any) -> Any:
            messages = state["messages"]
            removed = [RemoveMessage(id=one.id) for one in messages[:-1]]
            return {"messages": [*removed, AIMessage(f"answer to {messages[-1].content}")]}

        graph = graph_of(State, node, saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        for number in range(3):
            graph.invoke({"messages": [HumanMessage(f"Q{number}", id=f"q{number}")]}, config)
        graph.update_state(config, {"messages": [HumanMessage("Q2, my key is [removed]", id="q2")]})
    assert refold_in("import", path, "--db", tmp_path / "agent.db").code == 0
    assert contents(tmp_path / "agent.db", "t") == [
        "Q0", "answer to Q0",
        "Q1", "answer to Q1",
        "Q2, my key is [removed]", "answer to Q2",
    ]  # fmt: skip


@pytest.mark.parametrize("state", [Added, Changes])
def test_states_without_ids_and_states_saved_as_changes(
    tmp_path: Path, refold_in: Refold, state: Any
) -> None:
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = graph_of(state, says("Yes."), saver)
        for _ in range(3):
            graph.invoke(
                {"messages": [HumanMessage("And now?")]}, {"configurable": {"thread_id": "t"}}
            )
    db = tmp_path / "agent.db"
    for _ in range(2):
        assert refold_in("import", path, "--db", db).code == 0
        assert len(contents(db, "t")) == 6
    assert contents(db, "t")[::2] == ["And now?"] * 3


def test_another_database_is_refused(tmp_path: Path, refold_in: Refold) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE cars (name)")
    done = refold_in("import", path, "--db", tmp_path / "agent.db")
    assert done.code == 2
    assert "SQLite file without conversations" in done.err
    assert "cars" in done.err
    assert not (tmp_path / "agent.db").exists()


def test_a_damaged_file_is_refused(file: Path, tmp_path: Path, refold_in: Refold) -> None:
    content = bytearray(file.read_bytes())
    content[5_000:] = b"\xff" * len(content[5_000:])
    file.write_bytes(content)
    done = refold_in("import", file, "--db", tmp_path / "agent.db")
    assert done.code == 2
    assert "cannot be read (database disk image is malformed)" in done.err
    assert not (tmp_path / "agent.db").exists()


def test_a_damaged_checkpoint_is_told_and_the_others_are_read(
    made: tuple[Path, Had], file: Path, tmp_path: Path, refold_in: Refold
) -> None:
    with closing(sqlite3.connect(file)) as opened, opened:
        opened.execute("UPDATE checkpoints SET checkpoint = x'ff' WHERE rowid = 3")
    done = refold_in("import", file, "--db", tmp_path / "agent.db", "--json").answer["files"][0]
    (damaged,) = done["damaged"]
    assert damaged["reason"] == "checkpoint that cannot be read"
    assert sum(c["messages"] for c in done["conversations"]) == sum(map(len, made[1].values()))


def test_without_langgraph_it_says_what_to_install(
    file: Path, tmp_path: Path, refold_in: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "refold.adapters.langgraph_checkpoints", None)
    done = refold_in("import", file, "--db", tmp_path / "agent.db")
    assert done.code == 2
    assert "pip install 'refold[langchain]'" in done.err


def test_no_code_of_another_package_runs(tmp_path: Path, refold_in: Refold) -> None:
    path = tmp_path / "checkpoints.sqlite"

    class Odd(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        part: Any

    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = graph_of(Odd, says("Yes."), saver)
        given = {"messages": [HumanMessage("Hi.")], "part": Counted("mine")}
        graph.invoke(given, {"configurable": {"thread_id": "t"}})
    Counted.made.clear()
    assert refold_in("import", path, "--db", tmp_path / "agent.db").code == 0
    assert Counted.made == []
    assert len(contents(tmp_path / "agent.db", "t")) == 2


def test_a_log_of_refold_is_no_file_to_import(tmp_path: Path, refold_in: Refold) -> None:
    db = tmp_path / "agent.db"
    with open_memory(db, telemetry=False) as memory:
        memory.conversation("t").append({"role": "user", "content": "Hi."})
    done = refold_in("import", db, "--db", tmp_path / "other.db")
    assert done.code == 2
    assert "without conversations" in done.err


def test_an_agent_goes_on_with_the_middleware_and_a_later_import_adds_nothing(
    tmp_path: Path, refold_in: Refold
) -> None:
    path, db = tmp_path / "checkpoints.sqlite", tmp_path / "agent.db"

    def turn(saver: SqliteSaver, server: StrictServer, *memory: Memory) -> int:
        middleware = [MemoryMiddleware(one) for one in memory]
        agent = create_agent(
            chat(server.base_url), tools=[run], middleware=middleware, checkpointer=saver
        )
        return len(ask(agent, "Please build it.")["messages"])

    with StrictServer() as server, SqliteSaver.from_conn_string(str(path)) as saver:
        turn(saver, server)
        assert refold_in("import", path, "--db", db).code == 0
        with open_memory(db, telemetry=False) as memory:
            length = turn(saver, server, memory)
            first = memory.conversation("t").messages()[0]
            memory.conversation("t").erase([first.position], reason="asked to")
        again = refold_in("import", path, "--db", db, "--json").answer["files"][0]
        assert again["conversations"] == [{"thread_id": "t", "messages": length, "new": 0}]
        with open_memory(db, telemetry=False) as memory:
            assert [one.new for one in import_checkpoints(saver, memory)] == [0]
            assert [c.messages for c in memory.conversations()] == [length]
        assert server.refused == []


def test_a_file_left_in_the_middle_of_a_write_is_refused(
    file: Path, tmp_path: Path, refold_in: Refold
) -> None:
    Path(f"{file}-journal").write_bytes(b"pages as they were before")
    done = refold_in("import", file, "--db", tmp_path / "agent.db")
    assert done.code == 2
    assert "in the middle of a write" in done.err
