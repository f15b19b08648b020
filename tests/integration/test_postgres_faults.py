"""A log on a server while connections, the server and its disk fail: nothing acknowledged is lost or stored twice."""

import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

import refold
from refold.infrastructure.postgres import connections
from tests.support.postgres import Server, private_server

USER = {"role": "user", "content": "a question"}
REPLY = {"role": "assistant", "content": "an answer"}
STARTING = b"SFATAL\0C57P03\0Mthe database system is starting up\0\0"
SLOW_DISK = "-c fsync=off -c max_connections=200"


def texts(place: str, thread_id: str = "t") -> list[str]:
    with refold.open(place) as memory:
        return [str(m.message.content) for m in memory.conversation(thread_id).messages()]


class Proxy:
    """A proxy before the socket of a server that cuts connections when it is told to."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._target = str(server.folder / ".s.PGSQL.5432")
        self.folder = folder
        self.cut_replies_to = b""
        """If a client sends these bytes, the connection is cut before the reply; once."""
        self.cut_requests_with = b""
        """If a client sends these bytes, the connection is cut before the server gets them; once."""
        self.cuts = 0
        self.starting = 0
        """Number of connections that get the answer of a server that is starting."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / ".s.PGSQL.5432"))
        self._socket.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            if self.starting:
                self.starting -= 1
                client.recv(1 << 10)
                client.sendall(b"E" + (len(STARTING) + 4).to_bytes(4, "big") + STARTING)
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            state = {"lost": False}
            for act in (self._send, self._answer):
                threading.Thread(target=act, args=(client, server, state), daemon=True).start()

    def _send(self, client: socket.socket, server: socket.socket, state: dict[str, bool]) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self.cut_requests_with and self.cut_requests_with in data:
                    self.cut_requests_with = b""
                    self.cuts += 1
                    break
                if self.cut_replies_to and self.cut_replies_to in data:
                    self.cut_replies_to = b""
                    state["lost"] = True
                server.sendall(data)
        self._close(client, server)

    def _answer(self, client: socket.socket, server: socket.socket, state: dict[str, bool]) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if state["lost"]:
                    self.cuts += 1
                    break  # The server has done it; nobody learns that.
                client.sendall(data)
        self._close(client, server)

    @staticmethod
    def _close(*sockets: socket.socket) -> None:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with private_server(options=SLOW_DISK) as started:
        yield started


@pytest.fixture
def place(server: Server) -> str:
    return server.new_database()


@pytest.fixture
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = Path(f"/tmp/px{os.getpid()}{time.monotonic_ns() % 10**6}")
    folder.mkdir()
    with closing(Proxy(server, folder)) as made:
        yield made


@pytest.mark.parametrize("when", ["before the commit", "after the commit"])
def test_a_message_is_stored_once_when_the_connection_is_lost(
    server: Server, place: str, proxy: Proxy, when: str
) -> None:
    with refold.open(place.replace(str(server.folder), str(proxy.folder))) as memory:
        conversation = memory.conversation("t")
        conversation.append(USER)
        if when == "before the commit":
            proxy.cut_requests_with = b"INSERT INTO"
        else:
            proxy.cut_replies_to = b"INSERT INTO"
        stored = conversation.append([REPLY, {"role": "user", "content": "go on"}])
        assert proxy.cuts == 1
        assert stored.version == 3
        conversation.append(REPLY)
    assert texts(place) == ["a question", "an answer", "go on", "an answer"]


@pytest.mark.parametrize("what", ["fork", "erase", "compact"])
def test_other_changes_happen_once_as_well(
    server: Server, place: str, proxy: Proxy, what: str
) -> None:
    with refold.open(place.replace(str(server.folder), str(proxy.folder)), window=4_000) as memory:
        conversation = memory.conversation("t")
        for number in range(30):
            conversation.append({"role": "user", "content": f"{number} " + "word " * 100})
            conversation.append(REPLY)
        proxy.cut_replies_to = b"COMMIT" if what != "compact" else b"INSERT INTO"
        match what:
            case "fork":
                conversation.fork(thread_id="copy", at=10)
            case "erase":
                conversation.erase(3)
            case _:
                assert conversation.compact().outcome == "performed"
        assert proxy.cuts == 1
        assert memory.verify().ok
    if what == "fork":
        assert len(texts(place, "copy")) == 10


def test_a_transaction_that_stays_open_delays_nobody_and_loses_nothing(place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(place) as other:
        memory.conversation("t").append(USER)
        other.execute(
            "INSERT INTO refold.stored_events (originator_id, originator_version, topic, state) "
            "SELECT 'slow', originator_version, topic, state FROM refold.stored_events"
        )
        other.execute(
            "INSERT INTO refold.payload_keys SELECT 'slow', originator_version, key FROM refold.payload_keys"
        )
        memory.conversation("u").append(USER)
        assert {c.thread_id for c in memory.conversations()} == {"t", "u"}
        other.commit()
        # Its bytes are bound to another stream, so the event that came late is seen and refused.
        with pytest.raises(refold.LogDamaged, match="slow"):
            memory.conversations()


def write(
    place: str,
    thread_id: str,
    ready: "multiprocessing.Queue[str]",
    told: "multiprocessing.Queue[tuple[str, str]]",
    seconds: float,
) -> None:
    """Append until the time is up; tell what was acknowledged."""
    number = 0
    with refold.open(place) as memory:
        conversation = memory.conversation(thread_id)
        ready.put(thread_id)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            word = f"{os.getpid()}-{number}"
            with suppress(refold.LogError):
                conversation.append({"role": "user", "content": word})
                told.put((thread_id, word))
                number += 1


@contextmanager
def writers(place: str, threads: list[str], seconds: float) -> Generator[dict[str, list[str]]]:
    """Let a process write into each of these conversations; at the end, what they were told."""
    spawning = multiprocessing.get_context("spawn")
    ready, told = spawning.Queue(), spawning.Queue()
    working = [
        spawning.Process(target=write, args=(place, thread, ready, told, seconds))
        for thread in threads
    ]
    for one in working:
        one.start()
    said: dict[str, list[str]] = {thread: [] for thread in threads}
    # A server that is down refuses those who open the log.
    for _ in working:
        ready.get(timeout=60)
    yield said
    until = time.monotonic() + seconds + 60
    while any(one.is_alive() for one in working) or not told.empty():
        assert time.monotonic() < until
        with suppress(Exception):
            thread, word = told.get(timeout=0.1)
            said[thread].append(word)
    for one in working:
        one.join(10)


@pytest.mark.slow
def test_what_was_acknowledged_survives_crashes_of_the_server() -> None:
    """Three crashes while four processes write, two of them into one conversation."""
    with private_server(options="-c max_connections=100") as server:
        place = server.new_database()
        with refold.open(place):
            pass
        with writers(place, ["a", "b", "c", "c"], 12.0) as said:
            for _ in range(3):
                time.sleep(2.5)
                server.stop("immediate")
                server.start()
        for thread in ("a", "b", "c"):
            stored = texts(place, thread)
            assert len(said[thread]) > 20
            assert len(stored) == len(set(stored)), "a message was stored twice"
            assert set(said[thread]) <= set(stored), "an acknowledged message was lost"
        with refold.open(place) as memory:
            assert memory.verify().ok
            assert {c.thread_id: c.messages for c in memory.conversations()} == {
                thread: len(texts(place, thread)) for thread in ("a", "b", "c")
            }


def test_a_log_is_opened_when_its_server_has_started(
    server: Server, place: str, proxy: Proxy
) -> None:
    proxy.starting = 2
    behind = place.replace(str(server.folder), str(proxy.folder))
    with refold.open(behind) as memory:
        assert memory.conversation("t").append(USER).version == 1
    proxy.starting = 100
    with pytest.raises(refold.LogGone, match="starting up"):
        refold.open(behind)


def sessions(place: str, condition: LiteralString, act: LiteralString = "count(*)") -> int:
    """Return the number of the sessions of refold that meet a condition, after an act on each."""
    with psycopg.connect(place, autocommit=True) as connection:
        found = connection.execute(
            f"SELECT {act} FROM pg_stat_activity WHERE datname = current_database() "
            f"AND application_name LIKE 'refold%' AND {condition}"
        ).fetchone()
    assert found is not None
    return int(found[0])


def use_all_connections(place: str, memory: refold.Memory) -> None:
    """Append to eight conversations at once, each with a connection of its own."""
    with ThreadPoolExecutor(8) as threads, psycopg.connect(place) as other:
        other.execute("LOCK TABLE refold.stored_events")
        for number in range(8):
            threads.submit(memory.conversation(str(number)).append, USER)
        until = time.monotonic() + 30
        while sessions(place, "wait_event_type = 'Lock'") < 8:
            assert time.monotonic() < until
            time.sleep(0.02)


def test_connections_that_were_lost_together_are_replaced_together(place: str) -> None:
    with refold.open(place) as memory:
        use_all_connections(place, memory)
        for act in (
            memory.conversation("0").messages,
            memory.conversations,
            lambda: memory.conversation("0").append(REPLY),
        ):
            assert sessions(place, "true", "count(pg_terminate_backend(pid))") > 5
            act()
            use_all_connections(place, memory)
    assert texts(place, "0")[:2] == ["a question", "a question"]


def test_a_server_that_ends_idle_sessions_is_connected_to_again(place: str) -> None:
    with refold.open(f"{place}&options=-c%20idle_session_timeout%3D1s") as memory:
        conversation = memory.conversation("t")
        for act in (lambda: conversation.append(USER), memory.conversations):
            act()
            until = time.monotonic() + 30
            while sessions(place, "true"):
                assert time.monotonic() < until
                time.sleep(0.02)
        conversation.append(REPLY)
    assert texts(place) == ["a question", "an answer"]


def test_a_server_that_is_back_is_noticed_at_once(
    server: Server, place: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WAIT", 4.0)
    with refold.open(place.replace(str(server.folder), str(proxy.folder))) as memory:
        conversation = memory.conversation("t")
        conversation.append(USER)
        proxy.starting = 1_000
        sessions(place, "true", "count(pg_terminate_backend(pid))")
        with pytest.raises(refold.LogGone, match="starting up"):
            conversation.append(REPLY)
        proxy.starting = 0
        began = time.monotonic()
        conversation.append(REPLY)
        assert time.monotonic() - began < 2
    assert texts(place) == ["a question", "an answer"]


def test_what_only_reads_is_repeated_after_a_lost_connection(place: str) -> None:
    with refold.open(place) as memory:
        conversation = memory.conversation("t")
        conversation.append([USER, REPLY])
        conversation.erase(0)
        for act in (
            memory.stats,
            memory.finish_erasures,
            memory.verify,
            lambda: conversation.context(at=datetime.now(UTC)),
        ):
            assert sessions(place, "true", "count(pg_terminate_backend(pid))") > 0
            act()


def test_a_connection_that_is_lost_at_the_end_of_opening_is_replaced(
    server: Server, place: str, proxy: Proxy
) -> None:
    proxy.cut_replies_to = b"pg_is_in_recovery"
    with refold.open(place.replace(str(server.folder), str(proxy.folder))) as memory:
        assert proxy.cuts == 1
        assert memory.conversation("t").append(USER).version == 1
