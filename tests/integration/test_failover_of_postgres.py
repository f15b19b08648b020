"""A server that becomes a replica, a replica that is promoted, and commits that are lost on the way."""

import time
from collections.abc import Iterator

import psycopg
import pytest

import refold
from tests.support.postgres import Server, database_of, private_server

from .test_postgres_operation import REPLY, USER, closing_replica, messages, talk


@pytest.fixture
def server() -> Iterator[Server]:
    with private_server(options="-c fsync=off -c wal_level=replica -c hot_standby=on") as started:
        yield started


@pytest.fixture
def place(server: Server) -> str:
    return server.new_database()


def become_replica(server: Server) -> None:
    """Restart a server as a replica, as after a failover to another one."""
    server.stop("fast")
    (server.data / "standby.signal").touch()
    server.start()


def promote(server: Server) -> None:
    server.run("pg_ctl", "-D", server.data, "-w", "promote")


def settings(server: Server, *statements: bytes) -> None:
    """Change settings of a server and load them."""
    with psycopg.connect(server.place(), autocommit=True) as connection:
        for statement in (*statements, b"SELECT pg_reload_conf()"):
            connection.execute(statement)


def wait_until(server: Server, query: bytes, wanted: object) -> None:
    until = time.monotonic() + 20
    with psycopg.connect(server.place(), autocommit=True) as connection:
        while connection.execute(query).fetchone() != (wanted,):
            assert time.monotonic() < until
            time.sleep(0.02)


def refuse_all_changes(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    with pytest.raises(refold.LogNotWritable, match="replica"):
        conversation.append(USER)
    with pytest.raises(refold.LogNotWritable, match="replica"):
        conversation.fork()
    with pytest.raises(refold.LogNotWritable, match="replica"):
        conversation.erase(2)


def test_a_memory_reads_on_when_its_server_becomes_a_replica(server: Server, place: str) -> None:
    said = talk(place)
    with refold.open(place, window=4_000) as memory, refold.open(place) as other:
        wanted = [c.thread_id for c in memory.conversations()]
        become_replica(server)
        assert [str(m.message.content) for m in memory.conversation("t").messages()] == said
        assert len(other.conversation("t").context().messages) > 2
        assert [c.thread_id for c in memory.conversations()] == wanted
        assert memory.conversation("t").recall("word").hits
        assert memory.stats().events
        assert memory.verify().ok
        refuse_all_changes(memory)


def test_a_memory_of_a_replica_uses_all_tables_after_its_promotion(
    server: Server, place: str
) -> None:
    said = talk(place)
    become_replica(server)
    snapshots = b"SELECT count(*) > 0 FROM refold.stored_snapshots"
    with refold.open(place, window=4_000) as memory:
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == len(said)
        refuse_all_changes(memory)
        promote(server)
        for number in range(12):
            conversation.append({"role": "user", "content": f"{number} " + "word " * 60})
            conversation.append(REPLY)
        assert conversation.compact().outcome == "performed"
        conversation.fork(thread_id="later", at=10)
        assert conversation.erase(3).complete is not None
        assert memory.verify().ok
    with psycopg.connect(place) as connection:
        assert connection.execute(snapshots).fetchone() == (True,)
    assert messages(place, "later")


def test_a_replica_says_what_is_pending_on_its_primary(server: Server, place: str) -> None:
    talk(place)  # With an erased message, whose key is in the write-ahead log.
    become_replica(server)
    with refold.open(place) as memory:
        for places in (memory.finish_erasures(), memory.erase_owner("nobody").places):
            found = {one.place: one for one in places}
            assert found["keys"].state == "gone"
            assert found["write-ahead log"].state == "pending"
            assert "replica" in found["write-ahead log"].detail
            assert "files of the log" not in found
        began = time.monotonic()
        memory.finish_erasures(wait=20)
        assert time.monotonic() - began < 10


def test_a_process_that_knows_lost_commits_says_so_and_goes_on_when_it_is_opened_again(
    server: Server, place: str
) -> None:
    """A failover to a replica that is behind loses what was acknowledged since."""
    said = talk(place)
    with closing_replica(server) as replica:
        name = database_of(place)
        either = (
            f"postgresql://refold@/{name}?host={server.folder},{replica.folder}"
            "&target_session_attrs=read-write"
        )
        with refold.open(either) as memory:
            conversation = memory.conversation("t")
            conversation.append(USER, key="kept")
            query = b"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) = 0 FROM pg_stat_replication"
            wait_until(server, query, wanted=True)
            settings(replica, b"ALTER SYSTEM SET primary_conninfo = ''")
            wait_until(server, b"SELECT count(*) FROM pg_stat_replication", 0)
            conversation.append(REPLY, key="lost")
            memory.conversation("lost").append(USER)
            server.stop("immediate")
            promote(replica)
            for refused in (
                lambda: conversation.append(USER),
                conversation.messages,
                conversation.context,
                lambda: memory.conversation("lost").append(USER),
            ):
                with pytest.raises(refold.LogDamaged, match="open the memory again") as caught:
                    refused()
                assert "salvage" not in str(caught.value)
        with refold.open(either) as memory:
            conversation = memory.conversation("t")
            (again,) = conversation.append(USER, key="kept").messages
            (new,) = conversation.append(REPLY, key="lost").messages
            assert (again.new, new.new) == (False, True)
            assert len(conversation.messages()) == len(said) + 2
            assert memory.verify().ok
        server.start()
