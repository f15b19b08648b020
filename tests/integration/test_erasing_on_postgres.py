"""What was erased is in no byte of the server's folder that refold can reach, and the rest is named."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import refold
from refold.infrastructure.postgres import stream_rows
from refold.infrastructure.postgres.connections import Address, Store
from tests.integration.test_owner_memories import quoting
from tests.support.postgres import Server, database_of, private_server

SECRET = "Zanzibar-4471-platypus"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with private_server() as started:
        yield started


@pytest.fixture
def place(server: Server) -> str:
    return server.new_database()


def keys_of(place: str) -> list[bytes]:
    store = Store(Address.of(place))
    try:
        return [bytes(key) for (key,) in store.rows("SELECT key FROM {payload_keys}")]
    finally:
        store.close()


def files_with(folder: Path, *wanted: bytes) -> list[str]:
    """The files below a folder that have one of these bytes."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found += [path.name for one in wanted if one in content]
    return found


def talk(memory: refold.Memory) -> refold.ConversationMemory:
    conversation = memory.conversation("t")
    for number in range(6):
        conversation.append({"role": "user", "content": f"question {number}"})
        conversation.append({"role": "assistant", "content": f"answer {number}"})
    conversation.append({"role": "user", "content": f"my password is {SECRET}"})
    return conversation


def states(places: tuple[refold.ErasedPlace, ...]) -> dict[str, str]:
    return {place.place: place.state for place in places}


def test_nothing_of_an_erased_message_is_in_any_file_after_waiting(
    server: Server, place: str
) -> None:
    with refold.open(place) as memory:
        conversation = talk(memory)
        before = set(keys_of(place))
        conversation.recall("password")
        assert memory.conversations()
        report = conversation.erase(12)
        gone = before - set(keys_of(place))
        assert gone, "the erased event kept its key"
        assert not report.complete
        assert states(report.places) == {
            "keys": "gone",
            "write-ahead log": "pending",
            "replicas": "out of reach",
            "archive of the write-ahead log": "out of reach",
            "base backups": "out of reach",
            "server log": "out of reach",
        }
        places = memory.finish_erasures(wait=60)
        assert states(places)["write-ahead log"] == "gone"
        assert report.finished(places).complete
        assert memory.verify().ok
        assert [m.message.role for m in conversation.messages()] == ["user", "assistant"] * 6 + [
            "user"
        ]
    server.stop("fast")
    try:
        assert files_with(server.data, SECRET.encode(), *gone) == []
    finally:
        server.start()


def test_the_search_finds_what_is_there(server: Server, place: str) -> None:
    """Without the last step of an erasure, the keys are in a file."""
    with refold.open(place) as memory:
        conversation = talk(memory)
        before = set(keys_of(place))
        conversation.erase(12)
        gone = before - set(keys_of(place))
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    assert files_with(server.data, *gone)


def test_a_reader_that_still_sees_the_keys_is_waited_for_by_the_next_opening(place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(place) as reader:
        conversation = talk(memory)
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM refold.stored_events")
        report = conversation.erase(12)
        assert states(report.places)["keys"] == "pending"
        assert states(report.places)["write-ahead log"] == "pending"
        assert states(memory.finish_erasures(wait=30))["write-ahead log"] == "pending"
        assert SECRET not in str(conversation.context().messages)
        reader.rollback()
    with refold.open(place) as memory:
        assert states(memory.finish_erasures())["keys"] == "gone"


def test_a_writer_in_another_database_is_waited_for(server: Server, place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(server.place()) as writer:
        conversation = talk(memory)
        writer.execute("SELECT pg_current_xact_id()")
        end = threading.Timer(0.5, writer.commit)
        end.start()
        report = conversation.erase(12)
        end.join()
        assert states(report.places)["keys"] == "gone"


def test_waiting_does_not_fill_the_disk_where_a_slot_keeps_the_write_ahead_log(place: str) -> None:
    segments = "SELECT count(*) FROM pg_ls_waldir()"
    with refold.open(place) as memory, psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SELECT pg_create_physical_replication_slot('slot', true)")
        talk(memory).erase(12)
        ((before,),) = connection.execute(segments)
        assert states(memory.finish_erasures(wait=2))["write-ahead log"] == "pending"
        ((after,),) = connection.execute(segments)
        connection.execute("SELECT pg_drop_replication_slot('slot')")
        assert after <= before + 4
        assert states(memory.finish_erasures(wait=60))["write-ahead log"] == "gone"


def test_a_role_that_may_not_see_the_write_ahead_log_is_told_so(server: Server, place: str) -> None:
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CREATE ROLE app LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {database_of(place)} TO app".encode())
    with refold.open(place.replace("refold@", "app@")) as memory:
        report = talk(memory).erase(12)
        [ahead] = [one for one in report.places if one.place == "write-ahead log"]
        assert ahead.state == "pending"
        assert "pg_monitor" in ahead.detail
        assert not report.complete


@pytest.mark.parametrize("seen", [False, True])
def test_a_role_that_may_not_switch_the_write_ahead_log_gets_the_report(
    server: Server, place: str, seen: bool
) -> None:
    role = f"waits{int(seen)}"
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"GRANT CREATE ON DATABASE {database_of(place)} TO {role}".encode())
        if seen:
            connection.execute(f"GRANT pg_monitor TO {role}".encode())
    with refold.open(place.replace("refold@", f"{role}@")) as memory:
        talk(memory).erase(12)
        found = states(memory.finish_erasures(wait=30))
        assert (found["keys"], found["write-ahead log"]) == ("gone", "pending")


def test_a_copy_that_an_earlier_version_made_has_no_damage(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refold.open(place, window=8_000, memories=5) as memory:
        quoting(memory)
        memory.conversation("monday").erase(0)
        # What was erased in another conversation was copied without its mark.
        monkeypatch.setattr(stream_rows, "REWRITING", ("message_erased",))
        memory.conversation("tuesday").fork(thread_id="later")
        assert memory.verify().ok


SAMPLED = "SELECT tablename FROM pg_stats WHERE schemaname = 'refold' AND attname = 'key'"


def test_no_sample_of_the_keys_is_in_the_statistics(place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(place, autocommit=True) as connection:
        talk(memory)
        connection.execute("ANALYZE")
        assert connection.execute(SAMPLED).fetchall() == []


def test_an_erasure_removes_samples_of_the_keys_in_a_log_of_an_earlier_version(place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(place, autocommit=True) as connection:
        conversation = talk(memory)
        connection.execute(
            "ALTER TABLE ONLY refold.payload_keys ALTER COLUMN key SET STATISTICS 100"
        )
        connection.execute("ANALYZE refold.payload_keys")
        assert connection.execute(SAMPLED).fetchall() == [("payload_keys",)]
        assert states(conversation.erase(12).places)["keys"] == "gone"
        assert connection.execute(SAMPLED).fetchall() == []
        connection.execute("ANALYZE")
        assert connection.execute(SAMPLED).fetchall() == []
        assert memory.verify().ok


def test_samples_of_the_keys_that_this_role_may_not_remove_are_pending(place: str) -> None:
    with refold.open(place) as memory, psycopg.connect(place, autocommit=True) as connection:
        talk(memory)
        for statement in (
            "ALTER TABLE ONLY refold.payload_keys ALTER COLUMN key SET STATISTICS 100",
            "ANALYZE refold.payload_keys",
            "CREATE ROLE agent LOGIN",
            "GRANT USAGE ON SCHEMA refold TO agent",
            "GRANT SELECT, INSERT, UPDATE, DELETE, MAINTAIN ON ALL TABLES IN SCHEMA refold TO agent",
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA refold TO agent",
        ):
            connection.execute(statement.encode())
    with refold.open(place.replace("refold@", "agent@")) as memory:
        report = memory.conversation("t").erase(12)
        assert states(report.places)["keys"] == "pending"
    with refold.open(place) as memory:
        assert states(memory.finish_erasures())["keys"] == "gone"
