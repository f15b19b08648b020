"""The log on a real file: the envelope and the chain, what comes back, and after a restart as well."""

import sqlite3
import threading
from contextlib import closing
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.conversation.appending import append
from refold.application.errors import LogBusy
from refold.domain.appending import append_messages
from refold.domain.errors import InvalidMessage, RefoldError
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.infrastructure.event_store import codec
from refold.infrastructure.event_store.conversation_loader import CAPACITY
from refold.infrastructure.event_store.envelope import (
    GENESIS,
    EnvelopeError,
    Place,
    digest_of,
    parse_frame,
    seal,
    unseal,
)
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.lock import WriteLock
from tests.support.builders import NOON, appended, assistant, incoming, tool_use, user
from tests.support.fake_ports import core_of
from tests.support.log_files import compacted_log, log_of, rows, say, words_of


def test_what_was_said_comes_back_after_a_restart(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one", "two", "three")
    log = SQLiteLog(path, create=False)
    assert words_of(log) == ["one", "two", "three"]
    assert log.load("t").state.version == 3
    log.close()


def test_a_conversation_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")
    assert log.load("nobody").state.version == 0
    assert log.read("nobody", 1, 9) == []
    assert list(log.scan()) == []
    assert list(log.check()) == []
    log.close()


def test_each_envelope_carries_the_digest_and_the_link_of_the_one_before(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one", "two", "three")
    previous = GENESIS
    for stream, version, name, blob in rows(path):
        head, _, payload = blob.partition(b"\n")
        magic, shape, at, salt, digest, link = head.decode("ascii").split(" ")
        assert (magic, shape, name) == (
            "refold1",
            str(codec.SHAPES["message_appended"]),
            "message_appended",
        )
        covered = "\0".join([salt, stream, str(version), name, shape, at, ""]).encode() + payload
        assert digest == sha256(covered).hexdigest()
        assert link == previous
        previous = sha256((previous + digest).encode()).hexdigest()


def test_equal_texts_have_different_digests(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "yes", "yes")
    salts = {parse_frame(blob).salt for *_, blob in rows(path)}
    assert len(salts) == 2
    assert all(len(salt) == 32 for salt in salts)


HERE = Place("t", 1, "n")


def test_an_erased_payload_leaves_the_link_as_it_was() -> None:
    whole, _ = seal(HERE, 1, "now", "salt", GENESIS, b'{"secret":1}')
    assert whole._replace(payload=b"").link() == whole.link()


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"previous": "f" * 64}], ids=str)
def test_the_link_depends_on_digest_and_previous_link(change: dict[str, Any]) -> None:
    envelope, _ = seal(HERE, 1, "now", "salt", GENESIS, b"{}")
    assert envelope._replace(**change).link() != envelope.link()


@pytest.mark.parametrize("place", [Place("u", 1, "n"), Place("t", 2, "n"), Place("t", 1, "m")])
def test_an_event_is_refused_anywhere_but_in_its_place(place: Place) -> None:
    _, blob = seal(HERE, 1, "now", "salt", GENESIS, b"{}")
    assert unseal(HERE, blob).payload == b"{}"
    with pytest.raises(EnvelopeError, match="differs from its digest"):
        unseal(place, blob)


@pytest.mark.parametrize("change", [(b" now ", b" then "), (b"refold1 1 ", b"refold1 2 ")])
def test_a_changed_frame_is_refused(change: tuple[bytes, bytes]) -> None:
    _, blob = seal(HERE, 1, "now", "salt", GENESIS, b"{}")
    with pytest.raises(EnvelopeError, match="differs from its digest"):
        unseal(HERE, blob.replace(*change))


@pytest.mark.parametrize(
    "blob", [b"", b"\n", b"{}", b"refold1 1 now salt digest\n{}", b"refold2 1 a b c d\n{}"]
)
def test_bytes_without_a_frame_are_no_envelope(blob: bytes) -> None:
    with pytest.raises(EnvelopeError):
        unseal(HERE, blob)


def test_the_salt_is_part_of_the_digest() -> None:
    assert digest_of(HERE, 1, "now", "a", b"x") != digest_of(HERE, 1, "now", "b", b"x")


def test_times_are_stored_in_utc_whatever_the_zone_of_the_clock(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")
    local = datetime(2026, 1, 2, 20, 0, tzinfo=timezone(timedelta(hours=8)))
    log.transact("t", lambda c: append_messages(c.state, [incoming(user("x"))]), at=local)
    [logged] = log.read("t", 1, 1)
    assert logged.at == "2026-01-02T12:00:00.000000Z"
    log.close()


FOR_THE_DISK = {
    "synchronous": 2,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
    "journal_mode": "wal",
    "secure_delete": 1,
}
"""Without the second and third, a commit ends in the cache of the drive on macOS."""


def test_the_file_waits_for_the_disk_at_every_commit(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")
    with log._datastore.transaction(commit=False) as cursor:  # pyright: ignore[reportPrivateUsage]
        found = {}
        for name in FOR_THE_DISK:
            cursor.execute(f"PRAGMA {name}")
            found[name] = cursor.fetchone()[0]
    assert found == FOR_THE_DISK
    log.close()


def test_two_conversations_are_apart_and_the_scan_has_all_in_order(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")
    for word in ("1", "2", "3"):
        say(log, word, thread_id="a")
        say(log, word, thread_id="b")
    logged = list(log.scan())
    assert [(e.thread_id, e.version) for e in logged] == [
        ("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3),
    ]  # fmt: skip
    assert [e.number for e in logged] == sorted({e.number for e in logged})
    assert list(log.scan(after=logged[3].number)) == logged[4:]
    assert [e.version for e in log.read("a", 2, 3)] == [2, 3]
    log.close()


def test_more_conversations_than_are_remembered_are_all_there(tmp_path: Path) -> None:
    log = SQLiteLog(":memory:")
    names = [f"t{i}" for i in range(CAPACITY + 5)]
    for name in names:
        say(log, name, thread_id=name)
    for name in names:
        say(log, "again", thread_id=name)
        assert words_of(log, name) == [name, "again"]
    log.close()
    del tmp_path


def test_a_refused_decision_stores_nothing(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")

    def refuse(_: object) -> list[MessageAppended]:
        raise RefoldError("no")

    with pytest.raises(RefoldError, match="no"):
        log.transact("t", refuse, at=NOON)
    assert log.load("t").state.version == 0
    log.close()


def test_a_key_is_stored_once_also_after_a_restart(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one", "two")
    log = SQLiteLog(path)
    say(log, "one", key="t-0")
    say(log, "new", key="t-2")
    assert words_of(log) == ["one", "two", "new"]
    assert log.versions_of_keys("t", ["t-0", "t-2", "none"]) == {"t-0": 1, "t-2": 3}
    assert log.versions_of_keys("u", ["t-0"]) == {}
    log.close()


def test_a_key_is_stored_once_through_two_open_logs(tmp_path: Path) -> None:
    one, other = SQLiteLog(tmp_path / "a.db"), SQLiteLog(tmp_path / "a.db")
    say(one, "hello")
    say(other, "hi", key="k")
    say(one, "hi", key="k")
    assert words_of(one) == words_of(other) == ["hello", "hi"]
    one.close()
    other.close()


def test_a_thousand_keys_are_looked_up_at_once(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")
    messages = [{"role": "user", "content": str(i)} for i in range(1_200)]
    append(core_of(log), "t", messages, key=[f"k{i}" for i in range(1_200)])
    found = log.versions_of_keys("t", [f"k{i}" for i in range(1_200)])
    assert len(found) == 1_200
    assert found["k1199"] == 1_200
    log.close()


def test_an_empty_decision_sees_what_another_log_appended(tmp_path: Path) -> None:
    one, other = SQLiteLog(tmp_path / "a.db"), SQLiteLog(tmp_path / "a.db")
    say(one, "hello")
    say(other, "hi")
    loaded, events = one.transact("t", lambda _: (), at=NOON)
    assert events == ()
    assert loaded.state.version == 2
    one.close()
    other.close()


@pytest.mark.parametrize(
    "content",
    [
        "half \ud83d of a pair",
        "\udfff\ud800\0",
        (tool_use("a", **{"k\ud83d": "\udc4d", "n": [1, 10**30, 1.5, None, True, -0.0, 1e-300]}),),
    ],
)
def test_what_utf8_cannot_say_comes_back_as_it_went_in(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "a.db"
    message = Message(role="assistant", content=content)
    log = SQLiteLog(path)
    log.transact("t", lambda c: append_messages(c.state, [incoming(message)]), at=NOON)
    live = log.load("t").window.entries[0].message
    log.close()
    again = SQLiteLog(path)
    assert again.load("t").window.entries[0].message == live == message
    assert list(again.check()) == []
    again.close()


ANY_TEXT = st.text(max_size=10)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES, ANY_TEXT)
def test_any_json_is_decoded_as_it_was_encoded(value: Any, words: str) -> None:
    event = appended(0, assistant(tool_use("a", value=value), {"type": "text", "text": words}))
    name, shape, payload = codec.encode(event)
    read = codec.decode(name, shape, payload)
    assert read == event
    # 1, 1.0 and True are equal, and are not the same.
    assert repr(read.model_dump()["message"]) == repr(event.model_dump()["message"])


def test_an_earlier_version_is_loaded_as_it_was(tmp_path: Path) -> None:
    log = SQLiteLog(compacted_log(tmp_path / "a.db"))
    newest = log.load("t").state.version
    for version in range(newest + 1):
        loaded = log.load("t", at=version)
        assert loaded.state.version == version
        assert loaded.state.length == len(log.read("t", 1, version)) if version <= 60 else True
    assert log.load("t", at=newest) == log.load("t")
    log.close()


def test_a_log_in_memory_lives_as_long_as_its_object() -> None:
    one, other = SQLiteLog(":memory:"), SQLiteLog(":memory:")
    say(one, "hello")
    assert words_of(one) == ["hello"]
    assert words_of(other) == []
    one.close()
    other.close()
    one.close()


def test_the_lock_is_given_up_after_its_time_and_the_error_is_typed(tmp_path: Path) -> None:
    holder, waiting = WriteLock(tmp_path / "l", 1), WriteLock(tmp_path / "l", 0.05)
    with holder.held():
        with pytest.raises(LogBusy, match="another process"), waiting.held():
            pytest.fail("held twice")
        # The holder itself may hold it again.
        with holder.held():
            pass
    with waiting.held():
        pass
    holder.close()
    waiting.close()


def test_threads_that_share_one_log_lose_and_double_nothing(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")

    def work(name: str) -> None:
        for number in range(25):
            say(log, f"{name}{number}", key=f"{name}{number}")
            say(log, f"{name}{number}", thread_id=name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = words_of(log)
    assert sorted(together) == sorted(f"{name}{n}" for name in "abcd" for n in range(25))
    for name in "abcd":
        mine = [f"{name}{n}" for n in range(25)]
        assert [w for w in together if w.startswith(name)] == mine
        assert words_of(log, name) == mine
    assert list(log.check()) == []
    log.close()


def test_readers_are_not_kept_waiting_by_a_writer(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert words_of(log) == ["one"]
        assert [e.version for e in log.scan()] == [1]
    log.close()


@pytest.mark.slow
def test_a_message_that_no_request_could_carry_is_refused_and_nothing_is_stored() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        with pytest.raises(InvalidMessage, match="at most"):
            conversation.append(
                [{"role": "user", "content": "hi"}, {"role": "user", "content": "x" * 33_600_000}]
            )
        assert conversation.version == 0
