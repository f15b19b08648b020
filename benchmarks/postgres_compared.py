"""A log on a PostgreSQL server beside raw psycopg, the recorder of eventsourcing and LangGraph's PostgresSaver.

    python benchmarks/postgres_compared.py --write

One private server, which waits for its disk at every commit. What is compared is measured in turns, so that a busy
machine slows all of it alike. Rates with several writers count what all of them stored together.
"""

import multiprocessing
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import psycopg  # noqa: E402
from eventsourcing.persistence import StoredEvent  # noqa: E402
from psycopg.conninfo import conninfo_to_dict  # noqa: E402

import refold  # noqa: E402
from tests.support.postgres import Server, private_server  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "postgres_compared.md"
PAYLOAD = 1_361
"""Bytes of a raw event: as many as refold stores for the message below, without the frame's and the seal's."""
TEXT = "Please look at src/worker.py: the tests of the second queue fail. " * 15
SECONDS = 4.0
WRITERS = 8
SLOW_SYNC_MS = 3
"""Milliseconds of a sync on a slower disk: those of a network disk are 1 to 5."""
ROUNDS = 100
LENGTHS = (100, 1_000, 10_000)


class Row(NamedTuple):
    """One line of the table."""

    what: str
    figure: str
    beside: str


@contextmanager
def raw(place: str) -> Iterator[Callable[[int], None]]:
    """Store an event with psycopg: one prepared statement and one commit, in a table like that of a log."""
    with psycopg.connect(place, autocommit=True, prepare_threshold=1) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS raw_events (stream text, version bigint, topic text, state bytea, "
            "id bigserial UNIQUE, PRIMARY KEY (stream, version))"
        )
        stream, versions, state = secrets.token_hex(8), iter(range(1, 1 << 30)), os.urandom(PAYLOAD)

        def turn(read: int) -> None:
            connection.execute(
                "INSERT INTO raw_events (stream, version, topic, state) VALUES (%s, %s, 'message', %b)",
                (stream, next(versions), state),
            )
            if read:
                connection.execute(
                    "SELECT version, topic, state FROM raw_events WHERE stream = %s ORDER BY version DESC LIMIT %s",
                    (stream, read),
                    binary=True,
                ).fetchall()

        yield turn


@contextmanager
def with_refold(place: str) -> Iterator[Callable[[int], None]]:
    """Append a message, and make the next request if something is to be read."""
    with refold.open(place, telemetry=False, window=32_000, standing_recall=0) as memory:
        conversation = memory.conversation(secrets.token_hex(8))

        roles = cycle(("user", "assistant"))

        def turn(read: int) -> None:
            conversation.append({"role": next(roles), "content": TEXT})
            if read:
                conversation.context()

        yield turn


@contextmanager
def with_eventsourcing(place: str) -> Iterator[Callable[[int], None]]:
    """Store an event with the recorder of the eventsourcing library."""
    from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

    parts = conninfo_to_dict(place)
    store = PostgresDatastore(
        str(parts["dbname"]), str(parts["host"]), "5432", str(parts["user"]), "none"
    )
    recorder = PostgresApplicationRecorder(store, events_table_name="library_events")
    with psycopg.connect(place, autocommit=True) as connection:
        # Its tables cannot be created by several processes at once.
        connection.execute("SELECT pg_advisory_lock(4711)")
        recorder.create_table()
    stream, versions, state = uuid4(), iter(range(1, 1 << 30)), os.urandom(PAYLOAD)

    def turn(read: int) -> None:
        del read
        recorder.insert_events([StoredEvent(stream, next(versions), "message", state)])

    try:
        yield turn
    finally:
        store.close()


@contextmanager
def with_langgraph(place: str) -> Iterator[Callable[[int], None]]:
    """Run a graph of one node that appends a message, with the state in PostgresSaver."""
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.graph import START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": []})
    graph.add_edge(START, "answer")
    with PostgresSaver.from_conn_string(place) as saver:
        saver.setup()
        agent = graph.compile(checkpointer=saver)
        thread: Any = {"configurable": {"thread_id": secrets.token_hex(8)}}

        def turn(read: int) -> None:
            del read
            agent.invoke({"messages": [HumanMessage(TEXT)]}, thread)

        yield turn


WAYS = {
    "raw psycopg": raw,
    "refold": with_refold,
    "eventsourcing": with_eventsourcing,
    "langgraph": with_langgraph,
}


def interleaved(place: str, names: list[str], read: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median milliseconds of each way, all of them measured in turn."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        ways = {name: stack.enter_context(WAYS[name](place)) for name in names}
        took: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(10):
            for turn in ways.values():
                turn(read)
        for _ in range(rounds):
            for name, turn in ways.items():
                began = time.perf_counter()
                turn(read)
                took[name].append(time.perf_counter() - began)
    return {name: 1_000 * statistics.median(times) for name, times in took.items()}


def _write(place: str, name: str, ready: Any, go: Any, counts: Any) -> None:
    with WAYS[name](place) as turn:
        turn(0)
        ready.put(1)
        go.wait()
        until, stored = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            turn(0)
            stored += 1
        counts.put(stored)


def together(place: str, name: str, writers: int) -> float:
    """Return the events a second that so many processes store, each in a stream of its own."""
    spawning = multiprocessing.get_context("spawn")
    ready, counts, go = spawning.Queue(), spawning.Queue(), spawning.Event()
    working = [
        spawning.Process(target=_write, args=(place, name, ready, go, counts))
        for _ in range(writers)
    ]
    for one in working:
        one.start()
    for _ in working:
        ready.get(timeout=60)
    go.set()
    stored = sum(counts.get(timeout=60) for _ in working)
    for one in working:
        one.join(30)
    return stored / SECONDS


def contexts(place: str) -> dict[int, float]:
    """Return the median milliseconds of a context of a new process's memory, and of a warm one, by length."""
    found: dict[int, float] = {}
    with refold.open(place, telemetry=False, window=32_000, standing_recall=0) as memory:
        conversation = memory.conversation("long")
        length = 0
        for wanted in LENGTHS:
            while length < wanted:
                batch = [
                    {"role": "user", "content": f"{length} {TEXT[:200]}"},
                    {"role": "assistant", "content": "ok"},
                ]
                conversation.append(batch * 5)
                length += 10
                if length % 100 == 0:
                    conversation.context()
            took: list[float] = []
            for _ in range(40):
                conversation.append(
                    [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "ok"}]
                )
                began = time.perf_counter()
                conversation.context()
                took.append(time.perf_counter() - began)
            length += 80
            found[wanted] = 1_000 * statistics.median(took)
    return found


def measure(server: Server) -> list[Row]:
    """Return the lines of the table."""
    rows: list[Row] = []
    place = server.new_database()
    one = interleaved(place, ["raw psycopg", "refold", "eventsourcing"], 0)
    rows.append(_beside("append of one message, durable", one))
    turn = interleaved(place, ["raw psycopg", "refold"], 20)
    rows.append(
        _beside("turn in a window of 32,000 tokens (raw: append and read the last 20 events)", turn)
    )
    graph = interleaved(place, ["refold", "langgraph"], 20, 100)
    rows.append(_beside("turn beside LangGraph's PostgresSaver, up to 110 messages", graph))
    rows += [_writers(place, writers) for writers in (1, WRITERS)]
    with slow_disk(server):
        rows.append(_writers(server.new_database(), WRITERS, f", a sync of {SLOW_SYNC_MS} ms"))
    by_length = contexts(server.new_database())
    said = ", ".join(f"{length:,}: {ms:.2f} ms" for length, ms in by_length.items())
    ratio = by_length[LENGTHS[-1]] / by_length[LENGTHS[0]]
    rows.append(
        Row("next request by length of the conversation", said, f"{ratio:.2f} × at {LENGTHS[-1]:,}")
    )
    return rows


def _writers(place: str, writers: int, disk: str = "") -> Row:
    rates = {
        name: together(place, name, writers) for name in ("raw psycopg", "refold", "eventsourcing")
    }
    peer = rates["refold"] / rates["eventsourcing"]
    said = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())
    return Row(
        f"{writers} writers, streams of their own{disk}", said, f"{peer:.1f} × eventsourcing"
    )


@contextmanager
def slow_disk(server: Server) -> Iterator[None]:
    """Run the server under strace, which lets each sync take longer, as on a disk of a data centre."""
    server.stop("fast")
    delay = ("-e", "trace=fdatasync", "-e", f"inject=fdatasync:delay_enter={SLOW_SYNC_MS * 1_000}")
    words = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", *delay]
    quiet = subprocess.DEVNULL
    slowed = subprocess.Popen([*words, *server.words()], stdout=quiet, stderr=quiet)
    try:
        server.wait()
        yield
    finally:
        server.stop("fast")
        slowed.wait(60)
        server.start()


def _beside(what: str, times: dict[str, float]) -> Row:
    first, *others = times
    said = ", ".join(f"{name} {ms:.2f} ms" for name, ms in times.items())
    print(what, said, file=sys.stderr)
    ratios = ", ".join(f"{name} {times[name] / times[first]:.2f} × {first}" for name in others)
    return Row(what, said, ratios)


def main() -> None:
    """Measure, print the table, and write it with ``--write``."""
    with private_server(options="-c max_connections=100") as server:
        rows = measure(server)
    lines = ["| what | measured | ratio |", "|---|---|---|"]
    lines += [f"| {row.what} | {row.figure} | {row.beside} |" for row in rows]
    table = "\n".join(lines)
    print(table)
    if "--write" in sys.argv:
        head = (
            "# A log on a PostgreSQL server beside its peers\n\n"
            "Made by `python benchmarks/postgres_compared.py --write`"
        )
        RESULT.write_text(
            f"{head}: PostgreSQL 18 on this machine, a commit waits for the disk.\n\n{table}\n",
            "utf-8",
        )


if __name__ == "__main__":
    main()
