"""The index of keys: what it says is proved by the events, whatever became of its rows."""

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.errors import LogDamaged
from refold.domain.messages import Message
from refold.infrastructure.event_store import proven_keys
from refold.infrastructure.event_store.message_keys import MessageKeys, digest_of
from tests.support.golden_files import golden_text
from tests.support.golden_log import KEYS, from_sql
from tests.support.log_files import execute, rows

KEY = bytes(range(32))
SAID = 12
"""Messages of conversation ``t``, the last of them stored without a key."""


def deliver(path: Path, number: int, key: bytes | None = None) -> refold.Appended:
    """Deliver message ``number`` as a program would that does not know whether it is stored."""
    with refold.open(path, encryption_key=key) as memory:
        return memory.conversation("t").append(
            {"role": "user", "content": f"message {number}"}, key=f"delivery-{number}"
        )


def texts(path: Path, key: bytes | None = None, thread_id: str = "t") -> list[str]:
    with refold.open(path, encryption_key=key) as memory:
        return [str(m.message.content) for m in memory.conversation(thread_id).messages()]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[bytes | None, Path]:
    """A log without and one with encryption, closed: each one file."""
    folder = tmp_path_factory.mktemp("keys")
    paths: dict[bytes | None, Path] = {None: folder / "plain.db", KEY: folder / "sealed.db"}
    for key, path in paths.items():
        with refold.open(path, encryption_key=key) as memory:
            for thread_id in ("t", "u"):
                conversation = memory.conversation(thread_id)
                for number in range(SAID - 1):
                    message = {"role": "user", "content": f"message {number}"}
                    conversation.append(message, key=f"delivery-{number}")
                conversation.append({"role": "user", "content": f"message {SAID - 1}"})
    return paths


def log_with_keys(path: Path, written: Path) -> Path:
    for source in written.parent.glob(f"{written.name}*"):
        if not source.name.endswith(".lock"):
            shutil.copy(source, path.with_name(source.name.replace(written.name, path.name)))
    return path


@pytest.fixture(params=[None, KEY], ids=["plain", "encrypted"])
def key(request: pytest.FixtureRequest) -> bytes | None:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def path(tmp_path: Path, key: bytes | None, written: dict[bytes | None, Path]) -> Path:
    return log_with_keys(tmp_path / "a.db", written[key])


def test_a_key_that_points_to_another_message_does_not_swallow_a_delivery(
    path: Path, key: bytes | None
) -> None:
    execute(
        path,
        "UPDATE message_keys SET key='delivery-70' WHERE key='delivery-3' AND originator_id='t'",
    )
    stored = deliver(path, 70, key)
    assert stored.messages[0].new
    assert texts(path, key)[stored.positions[0]] == "message 70"


def test_a_lost_row_does_not_store_the_same_delivery_twice(path: Path, key: bytes | None) -> None:
    execute(path, "DELETE FROM message_keys WHERE key='delivery-3' AND originator_id='t'")
    stored = deliver(path, 3, key)
    assert (stored.positions, stored.messages[0].new) == ((3,), False)
    assert len(texts(path, key)) == SAID


def test_a_wrong_version_is_not_believed(path: Path, key: bytes | None) -> None:
    execute(
        path,
        "UPDATE message_keys SET originator_version=6 WHERE key='delivery-3' AND originator_id='t'",
    )
    assert deliver(path, 3, key).positions == (3,)


def test_a_row_that_was_put_there_swallows_nothing(path: Path, key: bytes | None) -> None:
    execute(path, "INSERT INTO message_keys VALUES ('t', 'delivery-70', 4)")
    assert deliver(path, 70, key).messages[0].new


ODD: list[object] = [None, 7, -1, 2**62, 1.5, "text", "", b"\x00\xff", b"", "x" * 100_000]


def columns() -> Iterator[tuple[str, str]]:
    for table, names in {
        "message_keys": ("originator_id", "key", "originator_version"),
        "sealed_keys": ("originator_id", "digest", "next", "seal"),
    }.items():
        for name in names:
            yield table, name


@pytest.mark.slow(but=["sealed_keys-next", "sealed_keys-digest"])
@pytest.mark.parametrize(("table", "name"), list(columns()))
def test_whatever_lies_in_a_column_nothing_is_lost_or_doubled(
    tmp_path: Path, written: dict[bytes | None, Path], table: str, name: str
) -> None:
    for at, odd in enumerate(ODD):
        key = (None, KEY)[at % 2]
        path = log_with_keys(tmp_path / f"{at}.db", written[key])
        with closing(sqlite3.connect(path)) as connection, connection:
            found = connection.execute(f"SELECT DISTINCT {name} FROM {table}").fetchall()
            values = (odd, found[len(found) // 2][0])
            with suppress(sqlite3.IntegrityError):  # A column that takes no NULL.
                connection.execute(f"UPDATE OR REPLACE {table} SET {name}=? WHERE {name}=?", values)
        all_is_stored_once(path, key, (0, 4, 5, 6, 10))


def all_is_stored_once(
    path: Path, key: bytes | None, numbers: Iterable[int] = range(SAID - 1)
) -> None:
    """Deliver every message again, and one that is new: refused, or answered as it must be."""
    with refold.open(path, encryption_key=key) as memory:
        conversation, new = memory.conversation("t"), 0
        for number in numbers:
            message = {"role": "user", "content": f"message {number}"}
            with suppress(LogDamaged):
                assert conversation.append(message, key=f"delivery-{number}").positions == (number,)
        with suppress(LogDamaged):
            new = len(
                conversation.append(
                    {"role": "user", "content": "new"}, key="delivery-500"
                ).positions
            )
        found = [str(m.message.content) for m in conversation.messages()]
        assert found == [f"message {n}" for n in range(SAID)] + ["new"] * new


@pytest.mark.slow(but=["plain-sealed_keys", "encrypted-both"])
@pytest.mark.parametrize("table", ["message_keys", "sealed_keys", "both"])
def test_each_row_may_be_deleted(path: Path, key: bytes | None, table: str) -> None:
    tables = ("message_keys", "sealed_keys") if table == "both" else (table,)
    for name in tables:
        execute(path, f"DELETE FROM {name}")
    all_is_stored_once(path, key)
    with refold.open(path, encryption_key=key) as memory:
        assert memory.verify(repair=True).ok


def deliver_history(path: Path, numbers: Iterable[int], key: bytes | None) -> refold.Appended:
    """Deliver messages of a recording in one call."""
    messages = [
        RecordedMessage(
            message=Message(role="user", content=f"message {number}"), key=f"delivery-{number}"
        )
        for number in numbers
    ]
    with refold.open(path, encryption_key=key) as memory:
        return memory.conversation("t").append_recorded(messages)


@pytest.mark.parametrize(
    "tables", [(), ("message_keys",), ("sealed_keys",), ("message_keys", "sealed_keys")]
)
def test_history_that_begins_with_a_new_message_is_stored_once(
    path: Path, key: bytes | None, tables: tuple[str, ...]
) -> None:
    """Its keys are presumed to be new, and the insert proves it, or refuses them."""
    deliver_history(path, range(60), key)
    name, count = "recorded:delivery-3", SAID + 60
    if "message_keys" in tables:
        execute(path, "DELETE FROM message_keys WHERE key=?", (name,))
    if "sealed_keys" in tables:
        execute(path, "DELETE FROM sealed_keys WHERE digest=?", (digest_of("t", name),))
    stored = deliver_history(path, [70, 3, 71, 5], key)
    assert [one.new for one in stored.messages] == [True, False, True, False]
    assert stored.positions == (count, SAID + 3, count + 1, SAID + 5)
    assert texts(path, key)[count:] == ["message 70", "message 71"]
    with refold.open(path, encryption_key=key) as memory:
        assert memory.verify().ok


def test_rows_that_are_left_of_lost_events_refuse_no_history(
    tmp_path: Path, written: dict[bytes | None, Path]
) -> None:
    path = log_with_keys(tmp_path / "a.db", written[None])
    deliver_history(path, range(60), None)
    (tmp_path / "a.db.anchor").unlink()
    for table in ("stored_events", "message_keys"):
        execute(path, f"DELETE FROM {table} WHERE originator_id='t'")
    assert all(one.new for one in deliver_history(path, range(60), None).messages)
    assert len(texts(path)) == 60
    with refold.open(path) as memory:
        assert memory.verify().ok


def test_the_keys_of_a_new_history_are_not_looked_up(
    path: Path, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    find = MessageKeys.find

    def counted(self: MessageKeys, c: Any, stream: str, keys: Sequence[str]) -> Any:
        asked.append(len(keys))
        return find(self, c, stream, keys)

    monkeypatch.setattr(MessageKeys, "find", counted)
    for numbers in (range(100), range(100, 150)):
        assert all(one.new for one in deliver_history(path, numbers, key).messages)
    assert asked == [1, 1]
    assert not any(one.new for one in deliver_history(path, range(150), key).messages)
    assert asked[2:] == [150]


def test_a_row_of_the_proof_that_is_deleted_is_missed(path: Path, key: bytes | None) -> None:
    for number in range(SAID - 1):
        digest = digest_of("t", f"delivery-{number}")
        execute(path, "DELETE FROM sealed_keys WHERE digest=?", (digest,))
        execute(path, "DELETE FROM message_keys WHERE key=?", (f"delivery-{number}",))
        assert not deliver(path, number, key).messages[0].new
    assert len(texts(path, key)) == SAID


def test_a_proof_made_without_the_key_is_not_believed(
    tmp_path: Path, written: dict[bytes | None, Path]
) -> None:
    from refold.infrastructure.event_store.envelope import PLAIN

    path = log_with_keys(tmp_path / "a.db", written[KEY])
    plain = log_with_keys(tmp_path / "plain.db", written[None])
    assert PLAIN.proves(b"x", PLAIN.proof(b"x"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ATTACH ? AS plain", (str(plain),))
        connection.execute("DELETE FROM message_keys WHERE originator_version>4")
        connection.execute("DELETE FROM plain.sealed_keys WHERE originator_id='u'")
        connection.execute("INSERT OR REPLACE INTO sealed_keys SELECT * FROM plain.sealed_keys")
    all_is_stored_once(path, KEY)


def test_an_event_that_its_key_and_the_proof_know_and_that_is_gone_is_damage(
    tmp_path: Path, written: dict[bytes | None, Path]
) -> None:
    path = log_with_keys(tmp_path / "a.db", written[None])
    (tmp_path / "a.db.anchor").unlink()
    execute(path, "DELETE FROM stored_events WHERE originator_version>=9 AND originator_id='t'")
    with pytest.raises(LogDamaged, match="is missing"):
        deliver(path, 9)


@pytest.mark.slow(but="log-2")
@pytest.mark.parametrize("name", ["log-1", "log-2", "log-3", "log-4"])
def test_the_keys_of_a_log_of_before_are_proved_by_its_events_once(
    tmp_path: Path, name: str
) -> None:
    path = from_sql(golden_text(f"{name}.sql"), tmp_path / "a.db")
    execute(path, "DELETE FROM message_keys WHERE key='k3'")
    execute(path, "UPDATE message_keys SET key='k70' WHERE key='k5'")
    with refold.open(path, encryption_key=KEYS.get(name)) as memory:
        conversation = memory.conversation("compacted")
        assert {d.place for d in memory.verify().damage} == {"keys"}
        for number in (3, 5):
            again = conversation.append(
                _said_at(conversation, number), key=f"k{number}", recorded=True
            )
            assert (again.positions, again.messages[0].new) == ((number,), False)
        assert conversation.append({"role": "user", "content": "new"}, key="k70").messages[0].new
        assert memory.verify().ok


def test_the_proof_of_a_log_that_was_written_once_is_believed_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = from_sql(golden_text("log-5.sql"), tmp_path / "a.db")
    monkeypatch.setattr(proven_keys, "keys_of", unwanted)
    with refold.open(path) as memory:
        for thread_id in ("compacted", "copy"):
            conversation = memory.conversation(thread_id)
            conversation.append({"role": "user", "content": "new"}, key="new")
        conversation = memory.conversation("compacted")
        again = conversation.append(_said_at(conversation, 3), key="k3", recorded=True)
        assert (again.positions, again.messages[0].new) == ((3,), False)
        assert memory.verify().ok


def _said_at(conversation: refold.ConversationMemory, position: int) -> dict[str, Any]:
    message = conversation.read(position).message
    content = message.content
    return {"role": message.role, "content": content if isinstance(content, str) else [*content]}


def unwanted(*_: Any) -> None:
    pytest.fail("the events were read for their keys")


def test_a_conversation_that_begins_here_is_never_read_for_its_keys(
    path: Path, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proven_keys, "keys_of", unwanted)
    with refold.open(path, encryption_key=key) as memory:
        conversation = memory.conversation("began without a key")
        conversation.append({"role": "user", "content": "x"})
        conversation.append({"role": "user", "content": "y"}, key="y")
        copy = conversation.fork(thread_id="copy")
        assert copy.append({"role": "user", "content": "y"}, key="y").positions == (1,)
        copy.append({"role": "user", "content": "z"}, key="z")
    deliver(path, 3, key)


def test_keys_of_a_fork_and_of_a_salvaged_log_are_known_in_them(
    path: Path, tmp_path: Path, key: bytes | None
) -> None:
    execute(path, "DELETE FROM message_keys WHERE key='delivery-3'")
    with refold.open(path, encryption_key=key) as memory:
        copy = memory.conversation("t").fork(at=6, thread_id="copy")
        for number in (0, 3, 5):
            message = {"role": "user", "content": f"message {number}"}
            assert copy.append(message, key=f"delivery-{number}").positions == (number,)
        assert copy.append({"role": "user", "content": "6"}, key="delivery-6").messages[0].new
        memory.salvage(tmp_path / "new.db")
    all_is_stored_once(tmp_path / "new.db", key)


def change(statement: str) -> Callable[[Path], None]:
    return lambda path: execute(path, statement)


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm",
    [
        change("DELETE FROM message_keys WHERE key='delivery-3'"),
        change("DELETE FROM sealed_keys WHERE length(digest)=0 AND originator_id='t'"),
        change("UPDATE message_keys SET key='delivery-70' WHERE key='delivery-3'"),
        change(
            "UPDATE message_keys SET originator_id='w' WHERE key='delivery-3' AND originator_id='t'"
        ),
        change("UPDATE message_keys SET originator_version=x'00' WHERE key='delivery-3'"),
        change("UPDATE sealed_keys SET seal=1 WHERE originator_id='u'"),
        change("DROP TABLE sealed_keys"),
    ],
)
def test_an_index_that_differs_is_told_and_repaired_and_the_log_is_not_called_damaged(
    path: Path, key: bytes | None, harm: Callable[[Path], None]
) -> None:
    harm(path)
    before = rows(path)
    with refold.open(path, encryption_key=key) as memory:
        found = memory.verify()
        assert {d.place for d in found.damage} <= {"keys"}
        repaired = memory.verify(repair=True)
        assert repaired.ok
        assert memory.verify().ok
    assert rows(path) == before
    all_is_stored_once(path, key)


def test_the_index_of_an_erased_conversation_is_empty(path: Path, key: bytes | None) -> None:
    with refold.open(path, encryption_key=key) as memory:
        memory.erase_conversation("t")
        assert memory.verify().ok
    with closing(sqlite3.connect(path)) as connection:
        for table in ("message_keys", "sealed_keys"):
            query = f"SELECT count(*) FROM {table} WHERE originator_id='t'"
            assert connection.execute(query).fetchone() == (0,)


@pytest.mark.parametrize("odd", [5, 1.5, b"text", {"a": 1}, object(), True, ["a", 5]])
def test_a_key_of_another_kind_is_refused_by_name(tmp_path: Path, odd: Any) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        with pytest.raises(refold.InvalidMessage, match="key"):
            conversation.append({"role": "user", "content": "x"}, key=odd)
        assert conversation.messages() == []
