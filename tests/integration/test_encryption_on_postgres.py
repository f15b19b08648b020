"""A log on a server that is encrypted with a key of the user: unreadable without it, from its first event on."""

import secrets
from contextlib import closing

import pytest

import refold
from refold.infrastructure.postgres.connections import Address, Store

KEY = secrets.token_bytes(32)
WORDS = "the lighthouse keeper's number is 5550142"
USER = {"role": "user", "content": WORDS}


@pytest.fixture
def encrypted(database: str) -> str:
    with refold.open(database, encryption_key=KEY) as memory:
        conversation = memory.conversation("t")
        conversation.append(USER)
        conversation.append({"role": "assistant", "content": "noted"})
    return database


def test_with_its_key_everything_is_as_in_a_plain_one(encrypted: str) -> None:
    with refold.open(encrypted, encryption_key=KEY) as memory:
        conversation = memory.conversation("t")
        assert [m.message.content for m in conversation.messages()] == [WORDS, "noted"]
        assert conversation.recall("lighthouse").hits
        fork = conversation.fork(thread_id="copy", at=1)
        assert [m.message.content for m in fork.messages()] == [WORDS]
        assert conversation.erase(0).changed
        assert memory.verify().ok
        assert WORDS not in str(fork.context().messages)


def test_both_seals_are_around_a_payload(encrypted: str) -> None:
    """Who has the keys of the payloads still needs the user's key."""
    with closing(Store(Address.of(encrypted))) as store:
        rows = store.rows("SELECT state FROM {stored_events}")
    assert all(b" aes" in bytes(state).partition(b"\n")[0] for (state,) in rows)


@pytest.mark.parametrize("key", [None, bytes(range(32))], ids=["none", "another"])
def test_without_its_key_it_is_locked(encrypted: str, key: bytes | None) -> None:
    with pytest.raises(refold.LogLocked, match="encrypted with the key"):
        refold.open(encrypted, encryption_key=key) if key else refold.open(encrypted)


def test_a_plain_log_is_not_encrypted_half(database: str) -> None:
    with refold.open(database) as memory:
        memory.conversation("t").append(USER)
    with pytest.raises(refold.LogLocked, match="refold copy"):
        refold.open(database, encryption_key=KEY)
    with refold.open(database) as memory:
        assert len(memory.conversation("t").messages()) == 1


def test_a_memory_without_the_key_that_was_open_before_writes_nothing(database: str) -> None:
    with refold.open(database) as early, refold.open(database, encryption_key=KEY) as memory:
        memory.conversation("t").append(USER)
        with pytest.raises(refold.LogLocked):
            early.conversation("u").append(USER)
        assert [c.thread_id for c in memory.conversations()] == ["t"]
